//! `firstbyte link`: the kernel of two network namespaces, over a path of the lab.
use crate::{firstbyte, run, skipped_without, stderr};
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Stdio};

/// A network namespace of `ip netns`, removed when dropped.
pub(crate) struct Namespace(pub(crate) String);

impl Namespace {
    /// Returns `None` if namespaces cannot be created.
    pub(crate) fn new(side: &str) -> Option<Namespace> {
        let name = format!("firstbyte-{side}-{}", std::process::id());
        let added = testnet::command("ip").args(["netns", "add", &name]).status();
        added.is_ok_and(|status| status.success()).then_some(Namespace(name))
    }

    fn ping(&self, count: &str) -> String {
        let mut ping = testnet::command("ip");
        ping.args(["netns", "exec", &self.0, "ping", "-c", count, "-i", "0.05", "-W", "1", "10.79.0.2"]);
        String::from_utf8(ping.output().unwrap().stdout).unwrap()
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        drop(testnet::command("ip").args(["netns", "delete", &self.0]).status());
    }
}

struct Link(Child);

impl Link {
    /// Starts the link, and waits until both ends are joined.
    fn between(ends: &[Namespace; 2], path: &[&str]) -> Link {
        let mut link = firstbyte();
        link.args(["link", &ends[0].0, &ends[1].0]).args(path).stdout(Stdio::piped());
        let mut link = link.spawn().unwrap();
        let mut line = String::new();
        let mut out = BufReader::with_capacity(1, link.stdout.as_mut().unwrap());
        out.read_line(&mut line).unwrap();
        assert!(line.contains("are joined"), "{line}");
        Link(link)
    }

    /// Ends it with a signal. Returns its output.
    fn end(mut self) -> String {
        let pid = self.0.id().to_string();
        assert!(testnet::command("kill").args(["-TERM", &pid]).status().unwrap().success());
        let mut told = String::new();
        self.0.stdout.take().unwrap().read_to_string(&mut told).unwrap();
        assert!(self.0.wait().unwrap().success(), "{told}");
        told
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

#[test]
fn the_kernel_meets_the_path_that_was_asked_for() {
    if ["ip", "ping", "kill"].iter().any(|program| skipped_without(program)) {
        return;
    }
    if let Err(reason) = testnet::can() {
        let _ = writeln!(std::io::stderr(), "SKIPPED: needs root and /dev/net/tun ({reason})");
        return;
    }
    let (Some(client), Some(server)) = (Namespace::new("client"), Namespace::new("server")) else {
        // Straight to the descriptor: the harness swallows eprintln! of a test that passes.
        let _ = writeln!(std::io::stderr(), "SKIPPED: ip netns add is not allowed here");
        return;
    };
    let ends = [client, server];
    let link = Link::between(&ends, &["rtt=30ms"]);
    let told = ends[0].ping("3");
    assert!(told.contains(" 0% packet loss"), "{told}");
    // rtt min/avg/max/mdev = 30.1/…
    let least: f64 = told.rsplit("mdev = ").next().unwrap().split('/').next().unwrap().parse().unwrap();
    assert!((30.0..40.0).contains(&least), "{told}");
    let told = link.end();
    assert!(told.contains("client to server: "), "{told}");
    let link = Link::between(&ends, &["loss=100%"]);
    let told = ends[0].ping("2");
    assert!(told.contains(" 100% packet loss"), "{told}");
    let told = link.end();
    // The kernels send a few packets of their own.
    assert!(told.contains("lost, loss on the line: "), "{told}");
}

#[test]
fn a_word_that_is_none_of_a_path_is_told() {
    let output = run(&["link", "here", "there", "rt=20ms"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("did you mean `rtt`?"), "{output:?}");
}
