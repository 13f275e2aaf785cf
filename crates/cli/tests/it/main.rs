//! The built `firstbyte` command, from the outside.
#![expect(clippy::unwrap_used, reason = "tests")]
mod arguments;
mod blocked;
mod conformance;
mod doctor;
mod ending;
mod explain;
mod fleet;
mod get;
mod get_web;
mod host;
mod hostile;
mod idle;
mod lab;
mod link;
mod manual;
mod monitoring;
mod outputs;
mod pcap;
mod pictures;
mod ports;
mod serve;
mod serve_web;
mod watch;

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// True if a program is missing; prints that the test is skipped.
fn skipped_without(program: &str) -> bool {
    let is_there = testnet::has_program(program);
    if !is_there {
        // Straight to the descriptor: the harness swallows eprintln! of a test that passes.
        let _ = writeln!(std::io::stderr(), "SKIPPED: needs {program}");
    }
    !is_there
}

/// Returns the command, without the environment of a developer's terminal.
fn firstbyte() -> Command {
    let mut command = testnet::command(env!("CARGO_BIN_EXE_firstbyte"));
    command.env_remove("COLUMNS").env("NO_COLOR", "1").stdin(Stdio::null());
    command
}

/// Runs the command to its end. Everything takes seconds on an idle machine; three minutes are a
/// hang.
fn run(arguments: &[&str]) -> Output {
    let child =
        firstbyte().args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    let pid = rustix::process::Pid::from_child(&child);
    let (ended, waiting) = std::sync::mpsc::channel();
    std::thread::spawn(move || ended.send(child.wait_with_output()));
    waiting.recv_timeout(Duration::from_secs(180)).map_or_else(
        |_| {
            rustix::process::kill_process(pid, rustix::process::Signal::KILL).expect("it runs");
            panic!("{arguments:?} did not end")
        },
        |output| output.expect("its output"),
    )
}

fn stdout(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).expect("text")
}

fn stderr(output: &Output) -> &str {
    std::str::from_utf8(&output.stderr).expect("text")
}

/// A `firstbyte serve` in this thread's namespace; killed when dropped.
struct Server {
    child: Child,
    stdout: BufReader<ChildStdout>,
}

impl Server {
    /// Starts it with `--json`, and waits until it listens.
    fn start(arguments: &[&str]) -> Server {
        Server::start_by(firstbyte(), arguments)
    }

    /// Calls [`start`](Self::start), with a prepared command.
    fn start_by(mut command: Command, arguments: &[&str]) -> Server {
        let mut child = command
            .arg("serve")
            .arg("--json")
            .args(arguments)
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        let mut stdout = BufReader::new(child.stdout.take().expect("piped"));
        let mut line = String::new();
        stdout.read_line(&mut line).expect("it speaks");
        assert!(line.contains("\"listening\""), "{line}");
        Server { child, stdout }
    }

    /// Returns the next line of its output.
    fn next_line(&mut self) -> serde_json::Value {
        let mut line = String::new();
        self.stdout.read_line(&mut line).expect("it speaks");
        serde_json::from_str(&line).expect("JSON")
    }

    /// Sends SIGINT, as Ctrl-C does.
    fn interrupt(&self) {
        self.send(rustix::process::Signal::INT);
    }

    fn send(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, signal).expect("it runs");
    }

    /// Sends SIGINT. Returns the exit code and the lines printed since the first.
    fn stop(mut self) -> (Option<i32>, Vec<serde_json::Value>) {
        self.interrupt();
        let code = self.wait();
        let lines = (&mut self.stdout).lines().map(|line| line.expect("text"));
        (code, lines.map(|line| serde_json::from_str(&line).expect("JSON")).collect())
    }

    /// Returns its exit code, once it has ended by itself.
    fn wait(&mut self) -> Option<i32> {
        wait(&mut self.child)
    }
}

/// Returns the exit code of a child that ends by itself; `None` if a signal ended it.
fn wait(child: &mut Child) -> Option<i32> {
    let begun = Instant::now();
    loop {
        if let Some(status) = child.try_wait().expect("its status") {
            return status.code();
        }
        if begun.elapsed() > Duration::from_secs(20) {
            child.kill().expect("it runs");
            panic!("it does not end");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
