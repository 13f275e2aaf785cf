//! Conversations with tc.
use super::*;

#[derive(Clone, Debug)]
pub(super) struct Plain;

impl Packet for Plain {}

fn device() -> Device<Plain> {
    Device::with_queue_len("t0", 500, 1500)
}

/// Plays lines that begin with `$`, and compares what comes with the lines that follow.
fn play(script: &str) {
    let mut device = device();
    let mut lines = script.lines().map(str::trim_end).skip_while(|line| line.is_empty()).peekable();
    while let Some(line) = lines.next() {
        let command = line.strip_prefix("$ ").expect("a command");
        let mut expected = String::new();
        while let Some(line) = lines.next_if(|line| !line.starts_with('$')) {
            expected += line.trim_end();
            expected.push('\n');
        }
        let got = device.tc(0, command, &mut Vec::new()).unwrap_or_else(|error| format!("{error}\n"));
        let got: String = got.lines().map(|line| format!("{}\n", line.trim_end())).collect();
        assert_eq!(got, expected, "{command}");
    }
}

/// Recorded from Linux 6.18 and iproute2 6.1.
#[test]
fn adding_replacing_and_deleting_a_root() {
    play(include_str!("transcripts/root.txt"));
}

#[test]
fn classes_and_what_stands_in_them() {
    play(include_str!("transcripts/classes.txt"));
}

#[test]
fn options_that_are_wrong() {
    play(include_str!("transcripts/mistakes.txt"));
}

/// Nothing is sent of them by iproute2's `q_fq_codel.c`, `q_codel.c`, `q_pie.c` and `q_fq.c`, or looked at by `sfq_change`.
#[test]
fn zeros_that_say_nothing_leave_what_was_there() {
    let shown = |kind: &str| {
        let mut device = device();
        let mut tc = |command: &str| device.tc(0, command, &mut Vec::new());
        tc(&format!("qdisc add dev t0 root handle 1: {kind}")).unwrap();
        tc("qdisc show dev t0").unwrap()
    };
    for (kind, zeros) in [
        ("codel", "limit 0 target 0 interval 0"),
        ("fq_codel", "limit 0 flows 0 target 0 interval 0 quantum 0 drop_batch 0"),
        ("pie", "limit 0 target 0 tupdate 0 alpha 0 beta 0"),
        ("sfq", "depth 0 flows 0 divisor 0 quantum 0"),
        ("fq", "buckets 0"),
    ] {
        assert_eq!(shown(&format!("{kind} {zeros}")), shown(kind), "{kind}");
    }
}
