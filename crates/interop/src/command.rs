//! The `firstbyte` command, as users start it.
use crate::netns::Host;
use crate::programs::Process;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Output, Stdio};
use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

/// Where the binary is, up to date.
pub fn binary() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| testnet::built("firstbyte-cli").join("firstbyte"))
}

/// Runs it to its end inside a namespace.
pub fn run(host: &Host, arguments: &[&str]) -> Output {
    host.output(Command::new(binary()).args(arguments))
}

/// `firstbyte serve --json` in a namespace. Ends with this value.
#[derive(Debug)]
pub struct Server {
    process: Process,
    lines: Receiver<String>,
}

impl Server {
    /// Starts it and waits until it listens.
    pub fn start(host: &Host, arguments: &[&str]) -> Server {
        let mut command = Command::new(binary());
        command.args(["serve", "--json"]).args(arguments).stdout(Stdio::piped());
        let mut process = Process(host.spawn(&mut command));
        let output = BufReader::new(process.0.stdout.take().expect("piped"));
        let (sender, lines) = channel();
        thread::spawn(move || output.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
        let server = Server { process, lines };
        let first = server.next_event();
        assert_eq!(first["event"], "listening", "{first}");
        server
    }

    /// The next thing it says; waits for it.
    ///
    /// # Panics
    /// When it says nothing for 10 s.
    pub fn next_event(&self) -> Value {
        let line = self.lines.recv_timeout(Duration::from_secs(10)).expect("the server speaks");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
    }

    /// Ends it by SIGTERM; how it ended, and what it said after the events that were taken.
    pub fn stop(mut self) -> (ExitStatus, Vec<Value>) {
        kill_process(Pid::from_child(&self.process.0), Signal::TERM).expect("the server lives");
        let status = self.process.0.wait().expect("the server ends");
        let rest = self.lines.iter().map(|line| serde_json::from_str(&line).expect("JSON")).collect();
        (status, rest)
    }
}
