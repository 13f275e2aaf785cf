//! The program keeps the contract: lines, statuses, and the packets an exchange takes.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking, as tests do")]

use serde_json::Value;
use std::process::{Command, Output};

fn run(arguments: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_firstbyte-bench")).args(arguments.split(' ')).output().unwrap()
}

/// The one line it prints.
fn line(arguments: &str) -> Value {
    let output = run(arguments);
    assert!(output.status.success(), "{arguments}: {}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text.lines().count(), 1, "{text}");
    assert!(text.contains(r#"},"info":{"#), "{text}");
    serde_json::from_str(&text).unwrap()
}

fn figure(line: &Value, key: &str) -> f64 {
    line["m"][key].as_f64().unwrap_or_else(|| panic!("no {key} in {line}"))
}

#[test]
fn an_exchange_takes_seven_packets_with_fast_open_five_and_three_with_an_early_fin() {
    for concurrency in [1, 64] {
        let plain = line(&format!("xchg-mem --mode plain --conc {concurrency} --n 300"));
        assert_eq!(figure(&plain, "pkts_per_xchg"), 7.0);
        assert_eq!(plain["params"]["conc"], concurrency.to_string());
        let tfo = line(&format!("xchg-mem --mode tfo --conc {concurrency} --n 300"));
        assert_eq!(figure(&tfo, "pkts_per_xchg"), 5.0);
        assert_eq!(figure(&tfo, "tfo_share"), 1.0);
        let early_fin = line(&format!("xchg-mem --mode tfo --close syn --conc {concurrency} --n 300"));
        assert_eq!(figure(&early_fin, "pkts_per_xchg"), 3.0);
    }
}

#[test]
fn a_stream_arrives_whole_with_and_without_checksums() {
    for (mtu, checksums) in [(1500, 0), (1500, 1), (65535, 0), (65535, 1)] {
        let stream = line(&format!("bulk-mem --mtu {mtu} --csum {checksums} --secs 60 --bytes 10000000"));
        let bytes: u64 = stream["info"]["bytes"].as_str().unwrap().parse().unwrap();
        assert!((10_000_000..20_000_000).contains(&bytes), "{bytes}");
        // A packet per segment, and an acknowledgement for every second at most.
        let segments = 1e9 / f64::from(mtu - 52);
        let packets = figure(&stream, "pkts_per_gb");
        assert!(
            (segments..1.6 * segments).contains(&packets),
            "{packets} packets per GB, {segments} segments"
        );
    }
}

#[test]
fn idle_connections_are_counted_and_hold_their_data_no_longer() {
    for bytes in [0, 100] {
        let idle = line(&format!("idle --conns 1000 --req {bytes}"));
        assert_eq!(idle["params"]["data"], bytes.to_string());
        let each = figure(&idle, "bytes_per_endpoint");
        assert!((200.0..3000.0).contains(&each), "{each} bytes");
    }
}

/// A connection whose turn comes seldom acknowledges the answer by itself when the delay is over:
/// one packet more at most.
#[test]
fn a_request_among_idle_connections_takes_as_many_packets_as_alone() {
    for (pattern, more) in [("", 0.01), (" --pattern random", 1.0)] {
        let alone = line(&format!("scale --conns 0 --secs 0.2{pattern}"));
        let crowded = line(&format!("scale --conns 2000 --secs 0.2{pattern}"));
        let (alone, crowded) = (figure(&alone, "pkts_per_rr"), figure(&crowded, "pkts_per_rr"));
        assert!((2.0..2.01).contains(&alone), "{alone} packets");
        assert!((alone - 0.01..=alone + more).contains(&crowded), "{alone} and {crowded} packets");
    }
}

#[test]
fn what_does_not_exist_here_is_unsupported_and_what_is_wrong_is_an_error() {
    for (arguments, status) in [
        ("no-such-workload", 3),
        ("xchg-mem --mode quic", 3),
        ("xchg-mem --no-such-key 1", 1),
        ("xchg-mem --mode plain --close syn", 1),
        ("bulk-tun --dev longer-than-any-device --secs 1", 1),
        ("bulk-mem --secs=-1", 1),
        ("bulk-mem --secs 0", 1),
        ("bulk-mem --secs nan", 1),
        ("bulk-mem --secs 1e30", 1),
        ("bulk-mem --bytes 0", 1),
        ("scale --secs=-1", 1),
        ("xchg-mem --n 0", 1),
        ("xchg-mem --conc 0", 1),
        ("idle --conns 0", 1),
        ("--clock-step 0 idle", 1),
        ("budgets --segments 1000", 1),
    ] {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(status), "{arguments}");
        assert!(output.stdout.is_empty(), "{arguments}");
    }
}

/// The table is a test: every hostile case within its bounds.
#[test]
fn hostile_cases_keep_their_bounds() {
    let output = run("hostile --no-linux");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let text = String::from_utf8(output.stdout).unwrap();
    for case in bench::hostile::cases() {
        assert_eq!(
            text.lines().filter(|line| line.starts_with(&format!("{} ", case.name))).count(),
            1,
            "{text}"
        );
    }
    assert!(!text.contains("EXCEEDED"), "{text}");
}

#[test]
fn a_hostile_case_that_does_not_exist_is_an_error_that_says_so() {
    let output = run("hostile --only nothing-like-this");
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("no case has `nothing-like-this` in its name"), "{said}");
    let wrong = run("hostile --nonsense");
    assert!(!wrong.status.success());
    assert!(String::from_utf8(wrong.stderr).unwrap().contains("--nonsense"));
}
