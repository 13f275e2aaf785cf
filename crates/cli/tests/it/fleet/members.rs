//! Members of a fleet: hosts that cannot take part, hosts that share a name, unreadable entries.
use super::store::Etcd;
use crate::link::Namespace;
use crate::{firstbyte, run, skipped_without, stderr, stdout};
use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// A fleet named `web` whose hosts are network namespaces.
struct Fleet {
    etcd: Etcd,
    folder: tempfile::TempDir,
}

/// A running agent; stopped when dropped.
struct Agent {
    child: Child,
    said: BufReader<std::process::ChildStderr>,
    told: BufReader<std::process::ChildStdout>,
}

impl Fleet {
    /// Creates a fleet called `name`, with its own store.
    fn new(name: &str) -> Fleet {
        let fleet = Fleet { etcd: Etcd::start_with(name, "http", &[]), folder: tempfile::tempdir().unwrap() };
        assert_eq!(fleet.verb("create", &[]).status.code(), Some(0));
        fleet
    }

    fn verb(&self, verb: &str, more: &[&str]) -> std::process::Output {
        run(&[&["fleet", verb, "web", "--store", &self.etcd.url()], more].concat())
    }

    fn agent(&self, host: &str, namespace: &Namespace) -> Agent {
        let state = self.folder.path().join(&namespace.0);
        let mut command = firstbyte();
        command.args(["fleet", "agent", "web", "--host", host, "--netns", &namespace.0]);
        command.args(["--store", &self.etcd.url(), "--interval", "100ms", "--state"]).arg(state);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let said = BufReader::new(child.stderr.take().unwrap());
        let told = BufReader::new(child.stdout.take().unwrap());
        Agent { child, said, told }
    }

    /// Writes an entry, as anybody with write access to the store could.
    fn put(&self, part: &str, value: &str) {
        use base64::Engine;
        let encoded = |text: &str| base64::engine::general_purpose::STANDARD.encode(text);
        let key = encoded(&format!("/firstbyte/fleets/web/{part}"));
        let body = format!(r#"{{"key":"{key}","value":"{}"}}"#, encoded(value));
        let mut curl = testnet::command("curl");
        curl.args(["--silent", "--show-error", "--fail", "--max-time", "20", "--data", &body]);
        let done = curl.arg(format!("{}/v3/kv/put", self.etcd.url())).output().unwrap();
        assert!(done.status.success(), "{}", stderr(&done));
    }

    /// Waits until the status contains these words.
    fn until(&self, words: &str) {
        let begun = Instant::now();
        loop {
            let status = self.verb("status", &[]);
            if stdout(&status).contains(words) {
                return;
            }
            assert!(begun.elapsed() < Duration::from_secs(30), "{words}: {}", stdout(&status));
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Agent {
    /// Returns the next line of its standard error.
    fn complaint(&mut self) -> String {
        let mut line = String::new();
        self.said.read_line(&mut line).unwrap();
        line
    }

    /// Stops it like a service manager, once it reports its keys in use: by then it handles
    /// signals.
    fn terminate(mut self) {
        let mut line = String::new();
        self.told.read_line(&mut line).unwrap();
        assert!(line.contains("is in use"), "{line}");
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_host_that_cannot_save_keys_does_not_take_part() {
    if skipped_without("etcd") || skipped_without("ip") {
        return;
    }
    testnet::in_namespace(|| {
        let fleet = Fleet::new("able");
        let once = fleet.verb("agent", &["--host", "a", "--once", "--state", "/proc/nowhere/a"]);
        assert_eq!(once.status.code(), Some(1));
        assert!(stderr(&once).contains("cannot make /proc/nowhere"), "{}", stderr(&once));
        fleet.until("no host yet");
        // Rotations do not wait for it.
        let here = fleet.folder.path().join("here");
        let once = fleet.verb("agent", &["--host", "b", "--once", "--state", here.to_str().unwrap()]);
        assert_eq!(once.status.code(), Some(0), "{}", stderr(&once));
        fleet.until("b  version 1");
    });
}

#[test]
fn of_two_machines_with_one_name_the_second_is_refused() {
    if skipped_without("etcd") || skipped_without("ip") {
        return;
    }
    testnet::in_namespace(|| {
        let fleet = Fleet::new("named");
        let machines = ["one", "two"].map(|name| Namespace::new(name).unwrap());
        let first = fleet.agent("web1", &machines[0]);
        fleet.until("web1  version 1  the backup key was used 0 times");
        let mut second = fleet.agent("web1", &machines[1]);
        let said = second.complaint();
        assert!(
            said.contains("cannot join fleet web as web1: the agent of another machine uses this name; give one of the two another name"),
            "{said}"
        );
        // An agent that restarts on the same machine is the same host.
        drop(first);
        let first = fleet.agent("web1", &machines[0]);
        fleet.until("web1  version 1  the backup key was used 0 times");
        // When the first has ended, the name is free.
        first.terminate();
        assert!(second.child.try_wait().unwrap().is_none());
        fleet.until("web1  version 1  the backup key was used 0 times");
    });
}

#[test]
fn entries_that_cannot_be_read_stop_no_other_host() {
    if skipped_without("etcd") || skipped_without("ip") || skipped_without("curl") {
        return;
    }
    testnet::in_namespace(|| {
        let fleet = Fleet::new("readable");
        fleet.put("hosts/bad", "x");
        fleet.put("reports/bad", "y");
        let machine = Namespace::new("three").unwrap();
        let _agent = fleet.agent("good", &machine);
        fleet.until("good  version 1  the backup key was used 0 times");
        fleet.until("bad   version 0  cannot read its entry in the store");
        let mut command = firstbyte();
        command.args(["fleet", "rotate", "web", "--quiet", "0", "--store", &fleet.etcd.url()]);
        let mut rotation = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(rotation.stdout.take().unwrap()).lines();
        let waits = lines.next().unwrap().unwrap();
        assert!(waits.starts_with("waiting: bad has an unreadable entry in the store"), "{waits}");
        assert_eq!(fleet.verb("forget", &["bad"]).status.code(), Some(0));
        lines.for_each(drop);
        assert!(rotation.wait().unwrap().success());

        // Keys that everybody knows are rejected.
        fleet.put("plan", r#"{"version":9,"step":"settled","keys":"0-0-0-0"}"#);
        let said = fleet.verb("status", &[]);
        assert!(
            stderr(&said).contains("a key is all zeros, and everybody can make its cookies"),
            "{}",
            stderr(&said)
        );
    });
}
