//! Programs on the kernel's sockets.
//!
//! [`KernelPeer`] is a Python process in a namespace that listens and connects as told; what it can
//! do stands in `tests/support/peer.py`. It ends with its handle.
use crate::netns::Host;
use serde_json::Value;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

const PROGRAM: &str = include_str!("../tests/support/peer.py");
/// Longer than any single task may take.
const LIMIT: Duration = Duration::from_secs(120);

/// A Python program that uses the kernel's TCP inside a namespace. Dropping it ends the process and
/// all its sockets.
#[derive(Debug)]
pub struct KernelPeer {
    child: Child,
    tasks: ChildStdin,
    answers: Receiver<String>,
}

impl KernelPeer {
    /// Starts it in `host`.
    pub fn new(host: &Host) -> KernelPeer {
        let mut command = Command::new("/usr/bin/env");
        command.args(["python3", "-u", "-c", PROGRAM]).env("PATH", "/usr/bin:/bin:/usr/local/bin");
        let mut child = host.spawn(command.stdin(Stdio::piped()).stdout(Stdio::piped()));
        let tasks = child.stdin.take().expect("piped");
        let output = BufReader::new(child.stdout.take().expect("piped"));
        let (sender, answers) = channel();
        thread::spawn(move || output.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
        KernelPeer { child, tasks, answers }
    }

    /// Gives it one task and waits for the answer.
    ///
    /// # Panics
    /// If the task fails or takes more than two minutes.
    pub fn call(&mut self, task: &Value) -> Value {
        self.begin(task);
        self.finish()
    }

    /// Gives it one task; `finish` takes the answer.
    pub fn begin(&mut self, task: &Value) {
        writeln!(self.tasks, "{task}").expect("the peer takes a task");
    }

    /// Waits for the answer to the task given by `begin`.
    pub fn finish(&mut self) -> Value {
        let line = self.answers.recv_timeout(LIMIT).expect("the peer answers in time");
        let answer: Value = serde_json::from_str(&line).expect("the peer answers in JSON");
        assert!(answer.get("failed").is_none(), "the peer failed: {answer}");
        answer
    }
}

impl Drop for KernelPeer {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Bytes as text of code points below 256, the way they cross JSON.
pub(crate) fn text(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| char::from(*byte)).collect()
}
