//! `firstbyte lab … --host`: the kernel's TCP and ours in real time, compared with virtual time.
use crate::{firstbyte, run, stderr};
use serde_json::Value;
use std::io::Write;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

/// Largest relative difference from virtual time.
const ROOM: f64 = 0.05;
/// Attempts: on a shared machine, other processes affect the measurement.
const TRIES: usize = 3;

/// Returns a shortened scenario of the lab; `None` if namespaces cannot be created.
fn shortened(name: &str, changes: &[(&str, &str)]) -> Option<std::path::PathBuf> {
    if let Err(reason) = testnet::can() {
        // Straight to the descriptor: the harness swallows eprintln! of a test that passes.
        let _ = writeln!(std::io::stderr(), "SKIPPED: needs root and /dev/net/tun ({reason})");
        return None;
    }
    let of_lab = concat!(env!("CARGO_MANIFEST_DIR"), "/../lab/scenarios");
    let mut text = std::fs::read_to_string(format!("{of_lab}/{name}.toml")).unwrap();
    for (from, to) in changes {
        assert!(text.contains(from), "{name} has no `{from}`");
        text = text.replace(from, to);
    }
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("host").replace("::", "-");
    let path = std::env::temp_dir().join(format!("firstbyte-{test}-{}.toml", std::process::id()));
    std::fs::write(&path, text).unwrap();
    Some(path)
}

/// One at a time: two measurements would affect each other.
static CLOCK: Mutex<()> = Mutex::new(());

/// Returns the command at the highest priority, if allowed.
fn urgent() -> Command {
    if !testnet::has_program("chrt") {
        return firstbyte();
    }
    let mut command = testnet::command("chrt");
    command.args(["-f", "10", env!("CARGO_BIN_EXE_firstbyte")]).env("NO_COLOR", "1").stdin(Stdio::null());
    command
}

/// Checks that the result of that name is close to that of virtual time.
fn agrees(path: &std::path::Path, host: &str, what: &str) {
    let near =
        |figure: &Value| figure["difference"].as_f64().is_some_and(|difference| difference.abs() <= ROOM);
    measures(path, host, what, near);
}

/// Checks that the result of that name is as expected.
fn measures(path: &std::path::Path, host: &str, what: &str, should: impl Fn(&Value) -> bool) {
    let _alone = CLOCK.lock().unwrap_or_else(PoisonError::into_inner);
    for _ in 0..TRIES {
        let output = urgent().args(["lab", "run"]).arg(path).args(["--host", host, "--json"]).output();
        let output = output.unwrap();
        let values: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        let figures = values["figures"].as_array().cloned().unwrap_or_default();
        let figure = figures.iter().find(|figure| figure["what"] == what);
        if figure.is_some_and(&should) {
            return;
        }
        let _ = writeln!(std::io::stderr(), "{host}: {what}: {figure:?} {}", stderr(&output));
    }
    panic!("{host}: {what}: not as in virtual time in {TRIES} tries");
}

#[test]
fn the_kernel_opens_connections_as_in_virtual_time() {
    let Some(path) = shortened("round-trips", &[("connections = 10", "connections = 4")]) else { return };
    for host in ["kernel", "kernel,firstbyte", "firstbyte,kernel"] {
        agrees(&path, host, "mean first byte with Fast Open");
    }
    agrees(&path, "kernel", "mean first byte, plain");
    std::fs::remove_file(path).unwrap();
}

#[test]
fn the_kernel_is_limited_by_its_windows_as_in_virtual_time() {
    let Some(path) = shortened("window-scaling", &[("20MB", "5MB")]) else { return };
    agrees(&path, "kernel", "goodput without scaling");
    std::fs::remove_file(path).unwrap();
}

/// A TUN device has room for 500 unread packets by default: it dropped packets of larger windows,
/// on a path without loss.
#[test]
fn the_path_loses_nothing_of_a_large_window() {
    let more = "\n[[expect]]\nwhat = \"segments retransmitted\"\nthat = \"count(with scaling, server, TcpRetransSegs)\"\nat_most = \"100\"\n";
    let Some(path) = shortened("window-scaling", &[("read 20MB", "read 10MB"), ("write 20MB", "write 10MB")])
    else {
        return;
    };
    let text = std::fs::read_to_string(&path).unwrap();
    let without =
        text.find("[[run]]\nname = \"without").unwrap()..text.find("[[run]]\nname = \"with scaling").unwrap();
    let (runs, _) = text.split_once("[[expect]]").unwrap();
    std::fs::write(&path, runs.replace(&text[without], "") + more).unwrap();
    // A busy machine may cause a timeout; with the bug, 700 and more segments were lost.
    measures(&path, "kernel", "segments retransmitted", |figure| figure["holds"] == true);
    std::fs::remove_file(path).unwrap();
}

#[test]
fn the_kernel_is_limited_by_its_buffers_as_in_virtual_time() {
    // The smallest buffer takes half a minute.
    let Some(path) = shortened("send-buffer", &[("22MB", "8MB"), ("\"16KiB\"", "\"100KiB\"")]) else {
        return;
    };
    agrees(&path, "kernel", "time with SO_SNDBUF 128 KiB");
    std::fs::remove_file(path).unwrap();
}

#[test]
fn the_kernel_fills_a_queue_as_in_virtual_time() {
    let Some(path) = shortened("bufferbloat", &[("6MB", "3MB")]) else { return };
    agrees(&path, "kernel", "longest wait in the FIFO");
    std::fs::remove_file(path).unwrap();
}

#[test]
fn the_kernel_counts_what_virtual_time_counts() {
    let more = "[[expect]]\nwhat = \"SYN data taken\"\nthat = \"count(fast open, client, TcpExtTCPFastOpenActive)\"\nat_least = \"1\"\n";
    let changes = [("connections = 10", "connections = 3")];
    let Some(path) = shortened("round-trips", &changes) else { return };
    let text = std::fs::read_to_string(&path).unwrap() + more;
    std::fs::write(&path, text).unwrap();
    agrees(&path, "kernel", "SYN data taken");
    std::fs::remove_file(path).unwrap();
}

#[test]
fn what_a_clock_cannot_play_is_told() {
    let output = run(&["lab", "crowd", "--host", "kernel"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("router: only in virtual time"), "{output:?}");
    let output = run(&["lab", "round-trips", "--host", "linux"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("`linux` is not a TCP; write kernel"), "{output:?}");
    // Nothing would be measured in real time.
    let output = run(&["lab", "round-trips", "--host", "firstbyte"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("--host needs the kernel"), "{output:?}");
}
