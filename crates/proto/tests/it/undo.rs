//! Recoveries that prove needless are taken back: Eifel by timestamps, D-SACKs, F-RTO.

use crate::peer::*;
use core::time::Duration;
use proto::*;

/// Ten segments of 1000 bytes in flight, thirty more waiting; RTO 300 ms, no probes. Our clock shows 100 when they go. With Reno: its windows
/// are easy to tell.
fn ten_in_flight(syn: &str, set: &[(&str, &str)]) -> (Peer, ConnId) {
    let reno = CongestionControl::Reno;
    let mut config = Config { tcp_early_retrans: 0, tcp_congestion_control: reno, ..Config::default() };
    for (name, value) in set {
        config.set(name, value).unwrap();
    }
    let mut p = Peer::new(config);
    let listener = p.listen();
    p.send(syn);
    p.expect("SA 0 ack 1");
    p.now = p.now + Duration::from_millis(100);
    p.send(if syn.contains("TS") { "A 1 ack 1 <TS 200 0>" } else { "A 1 ack 1" });
    let id = p.accept(listener);
    p.write(id, &pattern(1, 40_000));
    assert_eq!(sent(&mut p).len(), 10);
    (p, id)
}

const PLAIN: &str = "S 0 win 65535 <mss 1000,sackOK>";
const STAMPED: &str = "S 0 win 65535 <mss 1012,sackOK,TS 100 0>";

/// What is sent now, as first numbers in thousands.
fn sent(p: &mut Peer) -> Vec<u32> {
    let thousands = |text: &String| text.split([' ', ':']).nth(1).unwrap().parse::<u32>().unwrap() / 1000;
    p.sent_now().iter().map(thousands).collect()
}

fn windows(p: &Peer, id: ConnId) -> (u32, u32) {
    let info = p.stack.info(id).unwrap();
    (info.cwnd, info.ssthresh)
}

/// RFC 3522: the ACK echoes a time before the retransmission, so it answers the original.
#[test]
fn a_timeout_answered_by_the_original_is_undone() {
    let (mut p, id) = ten_in_flight(STAMPED, &[]);
    p.expect_after(300, "A 1:1001 ack 1");
    assert_eq!(windows(&p, id), (1000, 5000));
    p.expect_nothing_for(50);
    p.send("A 1 ack 1001 <TS 300 100>");
    assert_eq!(windows(&p, id), (10_000, u32::MAX));
    assert_eq!(sent(&mut p), [10], "nothing goes again");
    let counters = p.stack.counters();
    assert_eq!((counters.loss_undo, counters.spurious_rtos, counters.retrans_segs), (1, 0, 1));
}

#[test]
fn a_timeout_answered_by_the_retransmission_is_not_undone() {
    let (mut p, id) = ten_in_flight(STAMPED, &[]);
    p.expect_after(300, "A 1:1001 ack 1");
    p.expect_nothing_for(50);
    p.send("A 1 ack 1001 <TS 300 400>");
    assert_eq!(windows(&p, id), (2000, 5000));
    assert_eq!(p.stack.counters().loss_undo, 0);
}

/// RFC 5682 §3.1 without timestamps: after the first ACK new data goes, and the second acknowledges what was sent once.
#[test]
fn forward_progress_of_originals_undoes_a_timeout() {
    let (mut p, id) = ten_in_flight(PLAIN, &[]);
    p.expect_after(300, "A 1:1001 ack 1");
    p.send("A 1 ack 1001");
    assert_eq!(sent(&mut p), [10, 11]);
    p.send("A 1 ack 2001");
    assert_eq!(windows(&p, id), (10_000, u32::MAX));
    p.send("A 1 ack 4001");
    assert_eq!(sent(&mut p)[..2], [12, 13]);
    let counters = p.stack.counters();
    assert_eq!((counters.spurious_rtos, counters.loss_undo, counters.retrans_segs), (1, 1, 1));
}

#[test]
fn without_it_the_timeout_was_right() {
    let (mut p, id) = ten_in_flight(PLAIN, &[]);
    p.expect_after(300, "A 1:1001 ack 1");
    p.send("A 1 ack 1001");
    assert_eq!(sent(&mut p), [10, 11]);
    p.expect_nothing_for(100);
    p.send("A 1 ack 1001 <sack 10001:11001>");
    assert_eq!(sent(&mut p), [1]);
    assert_eq!(windows(&p, id), (2000, 5000));
    assert_eq!(p.stack.counters().spurious_rtos, 0);
}

#[test]
fn without_tcp_frto_what_is_lost_goes_first() {
    let (mut p, _) = ten_in_flight(PLAIN, &[("net.ipv4.tcp_frto", "0")]);
    p.expect_after(300, "A 1:1001 ack 1");
    p.send("A 1 ack 1001");
    assert_eq!(sent(&mut p), [1, 2]);
}

/// Reordering beyond three segments: the retransmission is reported to have arrived twice.
#[test]
fn duplicates_reported_for_every_retransmission_undo_a_recovery() {
    let (mut p, id) = ten_in_flight(PLAIN, &[]);
    p.expect_nothing_for(100);
    p.send("A 1 ack 1 <sack 1001:4001>");
    assert_eq!(sent(&mut p), [0]);
    assert_eq!(windows(&p, id), (5000, 5000));
    p.send("A 1 ack 4001");
    p.send("A 1 ack 4001 <sack 1:1001>");
    assert_eq!(windows(&p, id), (10_000, u32::MAX));
    let counters = p.stack.counters();
    assert_eq!((counters.dsack_recv, counters.dsack_undo, counters.sack_recovery), (1, 1, 1));
}

/// The report may come after the recovery is over.
#[test]
fn a_late_report_still_undoes_it() {
    let (mut p, id) = ten_in_flight(PLAIN, &[]);
    p.expect_nothing_for(100);
    p.send("A 1 ack 1 <sack 1001:10001>");
    assert_eq!(sent(&mut p)[0], 0);
    p.send("A 1 ack 10001");
    assert_eq!(windows(&p, id).1, 5000);
    p.sent_now();
    p.send("A 1 ack 10001 <sack 1:1001>");
    assert_eq!(windows(&p, id), (10_000, u32::MAX));
}

/// Eifel in fast recovery: undone by an ACK that ends it, or by an earlier one.
#[test]
fn a_fast_recovery_answered_by_the_original_is_undone() {
    for (ack, full, partial) in [(10_001, 1, 0), (4001, 0, 1)] {
        let (mut p, id) = ten_in_flight(STAMPED, &[]);
        p.expect_nothing_for(100);
        p.send("A 1 ack 1 <TS 300 100,sack 1001:4001>");
        assert_eq!(sent(&mut p), [0]);
        p.send(&format!("A 1 ack {ack} <TS 301 100>"));
        assert_eq!(windows(&p, id), (10_000, u32::MAX));
        let counters = p.stack.counters();
        assert_eq!((counters.full_undo, counters.partial_undo, counters.retrans_segs), (full, partial, 1));
    }
}
