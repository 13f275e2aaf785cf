//! Recoveries that prove spurious are taken back: Eifel by timestamps, D-SACKs, F-RTO.

use crate::peer::*;
use core::time::Duration;
use proto::*;

/// Ten segments of 1000 bytes in flight, thirty more waiting; RTO 300 ms, no probes. Our clock shows 100 when they go. With Reno: its windows
/// are easy to tell.
fn ten_in_flight(syn: &str, set: &[(&str, &str)]) -> (Peer, ConnId) {
    let reno = CongestionControl::Reno;
    let mut config = Config::default().tcp_early_retrans(0).abc_limit(2).tcp_congestion_control(reno);
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
    assert_eq!(windows(&p, id), (11_000, u32::MAX), "and grows by what was acknowledged");
    assert_eq!(sent(&mut p), [10, 11], "nothing is retransmitted");
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
    assert_eq!(windows(&p, id), (11_000, u32::MAX));
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
    assert_eq!(sent(&mut p), [0, 10]);
    assert_eq!(windows(&p, id), (8000, 5000));
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
    p.expect("A 14001:15001 ack 1");
    p.send("A 1 ack 10001 <sack 1:1001>");
    assert_eq!(windows(&p, id), (10_000, u32::MAX));
}

/// Eifel in fast recovery: undone by an ACK that ends it, or by an earlier one; the window then grows by what that told of (at most two
/// segments).
#[test]
fn a_fast_recovery_answered_by_the_original_is_undone() {
    for (ack, full, partial, cwnd) in [(10_001, 1, 0, 12_000), (4001, 0, 1, 11_000)] {
        let (mut p, id) = ten_in_flight(STAMPED, &[]);
        p.expect_nothing_for(100);
        p.send("A 1 ack 1 <TS 300 100,sack 1001:4001>");
        assert_eq!(sent(&mut p), [0, 10]);
        p.send(&format!("A 1 ack {ack} <TS 301 100>"));
        assert_eq!(windows(&p, id), (cwnd, u32::MAX));
        let counters = p.stack.counters();
        assert_eq!((counters.full_undo, counters.partial_undo, counters.retrans_segs), (full, partial, 1));
    }
}

const BARE: &str = "S 0 win 65535 <mss 1000>";
const ONLY_STAMPED: &str = "S 0 win 65535 <mss 1012,TS 100 0>";

/// Eifel for a peer without SACK: after a time-out nothing is retransmitted, after duplicates the path is known to reorder.
#[test]
fn without_sack_the_timestamp_tells() {
    let (mut p, id) = ten_in_flight(ONLY_STAMPED, &[]);
    p.expect_after(300, "A 1:1001 ack 1");
    assert_eq!(windows(&p, id), (1000, 5000));
    p.send("A 1 ack 1001 <TS 300 100>");
    assert_eq!(windows(&p, id), (11_000, u32::MAX), "back, and one more for this ACK");
    assert_eq!(sent(&mut p), [10, 11], "nothing is retransmitted");
    p.send("A 1 ack 12001 <TS 301 100>");
    // The second is of F-RTO, and finds the windows back already (as with Linux).
    assert_eq!((p.stack.counters().loss_undo, p.stack.counters().retrans_segs), (2, 1));
    for (ack, full, partial) in [(10_001, 1, 0), (4001, 0, 1)] {
        let (mut p, id) = ten_in_flight(ONLY_STAMPED, &[]);
        p.expect_nothing_for(100);
        [(); 3].iter().for_each(|()| p.send("A 1 ack 1 <TS 300 100>"));
        assert_eq!((sent(&mut p), windows(&p, id)), (vec![0], (7000, 5000)), "on its way");
        p.send(&format!("A 1 ack {ack} <TS 301 100>"));
        assert_eq!((windows(&p, id).0 >= 10_000, windows(&p, id).1), (true, u32::MAX));
        let counters = p.stack.counters();
        assert_eq!((counters.full_undo, counters.partial_undo, counters.ts_reorder), (full, partial, 1));
        p.expect_only_data();
        [(); 3].iter().for_each(|()| p.send(&format!("A 1 ack {ack} <TS 302 100>")));
        let new = sent(&mut p);
        assert!(!new.contains(&(ack / 1000)), "three duplicates mean nothing now: {new:?}");
    }
}

#[test]
fn without_sack_an_echo_of_the_retransmission_undoes_nothing() {
    let (mut p, id) = ten_in_flight(ONLY_STAMPED, &[("net.ipv4.tcp_frto", "0")]);
    p.expect_after(300, "A 1:1001 ack 1");
    p.send("A 1 ack 1001 <TS 300 400>");
    assert_eq!((windows(&p, id), sent(&mut p)), ((2000, 5000), vec![1, 2]));
    assert_eq!(p.stack.counters().loss_undo, 0);
}

/// RFC 5682 §2, the basic algorithm: neither SACK nor timestamps.
#[test]
fn without_sack_forward_progress_tells() {
    let (mut p, id) = ten_in_flight(BARE, &[]);
    p.expect_after(300, "A 1:1001 ack 1");
    p.send("A 1 ack 1001");
    assert_eq!(sent(&mut p), [10, 11], "step 2b: new data");
    p.send("A 1 ack 2001");
    assert_eq!(windows(&p, id), (11_000, u32::MAX), "step 3b: the originals arrive");
    p.send("A 1 ack 12001");
    assert_eq!(sent(&mut p)[0], 12);
    let counters = p.stack.counters();
    assert_eq!((counters.spurious_rtos, counters.loss_undo, counters.retrans_segs), (1, 1, 1));
}

/// The peer's window takes less than a segment beyond what was sent: nothing new can go, so what is missing goes.
#[test]
fn without_sack_a_window_too_small_for_news_lets_lost_ones_go() {
    let (mut p, _) = ten_in_flight("S 0 win 65535 <mss 1000>", &[]);
    p.expect_after(300, "A 1:1001 ack 1");
    p.send("A 1 ack 1001 win 9500");
    assert_eq!(sent(&mut p), [1, 2], "the window of the congestion, two segments");
}

#[test]
fn without_sack_a_duplicate_tells_that_the_timeout_was_right() {
    let (mut p, id) = ten_in_flight(BARE, &[]);
    p.expect_after(300, "A 1:1001 ack 1");
    p.send("A 1 ack 1001");
    assert_eq!(sent(&mut p), [10, 11]);
    p.send("A 1 ack 1001");
    assert_eq!(
        sent(&mut p),
        [1],
        "step 3a: the usual repetition, for what the duplicate tells to have left the network"
    );
    p.send("A 1 ack 1001");
    assert_eq!(sent(&mut p), [2]);
    assert_eq!((windows(&p, id), p.stack.counters().spurious_rtos), ((2000, 5000), 0));
    p.send("A 1 ack 3001");
    assert_eq!(sent(&mut p), [3]);
    // With nothing new to send, or everything acknowledged at once, there is nothing to try.
    let (mut p, _) = ten_in_flight(BARE, &[]);
    p.expect_after(300, "A 1:1001 ack 1");
    p.send("A 1 ack 10001");
    assert_eq!(sent(&mut p), [10, 11, 12]);
    p.send("A 1 ack 10001");
    p.expect_nothing();
}

/// Linux's `tcp_check_reno_reordering`: ten duplicates of nine segments behind the first.
#[test]
fn without_sack_too_many_duplicates_tell_of_reordering() {
    let (mut p, _) = ten_in_flight(BARE, &[("net.ipv4.tcp_max_reordering", "4")]);
    [(); 12].iter().for_each(|()| p.send("A 1 ack 1"));
    assert_eq!(p.stack.counters().reno_reorder, 3);
    p.expect_only_data();
    p.send("A 1 ack 13001");
    p.send("A 1 ack 14001");
    p.expect_only_data();
    [(); 3].iter().for_each(|()| p.send("A 1 ack 14001"));
    assert_eq!(p.stack.counters().reno_recovery, 1);
    p.send("A 1 ack 14001");
    assert_eq!(p.stack.counters().reno_recovery, 2);
}

/// The network doubles acknowledgements: the path seems to reorder, and three duplicates are no sign of loss any more. A time-out with more of
/// them than `tcp_reordering` tells that this was wrong (Linux's `tcp_enter_loss`).
#[test]
fn a_timeout_amid_duplicates_takes_reordering_back() {
    let (mut p, id) = ten_in_flight(BARE, &[]);
    [(); 12].iter().for_each(|()| p.send("A 1 ack 1"));
    sent(&mut p);
    p.send("A 1 ack 13001");
    let last = sent(&mut p);
    let reordering = |p: &Peer| p.stack.info(id).unwrap().tcp_info.reordering;
    assert!(reordering(&p) > 5, "{}", reordering(&p));
    [(); 4].iter().for_each(|()| p.send("A 1 ack 13001"));
    assert!(!sent(&mut p).contains(&13), "too few now, behind {last:?}");
    p.now = p.now + p.stack.info(id).unwrap().rto;
    p.stack.handle_timeout(p.now);
    assert_eq!(sent(&mut p)[0], 13);
    assert_eq!(reordering(&p), 3);
}

/// A FIN is held to be lost with what a time-out finds so, and waits for the window; that was spurious. The FIN is all that is in flight then,
/// and has a time-out of its own.
#[test]
fn a_fin_behind_a_spurious_timeout_is_not_forgotten() {
    let mut p = Peer::new(Config::default().tcp_early_retrans(0).window_unit(WindowUnit::Segments));
    let listener = p.listen();
    p.send(STAMPED);
    p.expect("SA 0 ack 1");
    p.now = p.now + Duration::from_millis(100);
    p.send("A 1 ack 1 <TS 200 0>");
    let id = p.accept(listener);
    p.write(id, &pattern(1, 1000));
    p.expect("PA 1:1001 ack 1");
    p.stack.shutdown(p.now, id).unwrap();
    p.expect("FA 1001 ack 1");
    p.expect_after(300, "PA 1:1001 ack 1");
    p.expect_nothing_for(50);
    p.send("A 1 ack 1001 <TS 300 100>");
    p.expect_nothing_for(200);
    let info = p.stack.info(id).unwrap();
    assert_eq!(p.stack.counters().loss_undo, 1);
    p.expect_after_exactly(info.rto - Duration::from_millis(200), "FA 1001 ack 1");
}
