//! The one timer of loss: what each of its purposes leaves of the others; and what D-SACKs and echoes of congestion do to a recovery.

use crate::peer::*;
use crate::sack::established_with;
use core::time::Duration;
use proto::*;

/// Four segments, the last three 50 ms after the first, and the last is reported 130 ms after that: the first is retransmitted.
fn first_again_and_others_late() -> (Peer, ConnId) {
    let (mut p, id) = established_with(Config::default());
    p.write(id, &pattern(1, 1000));
    p.expect("PA 1:1001 ack 1");
    p.expect_nothing_for(50);
    p.write(id, &pattern(1001, 3000));
    p.expect_range(1001..4001);
    p.expect_nothing_for(80);
    p.send("A 1 ack 1 <sack 3001:4001>");
    p.expect("PA 1:1001 ack 1");
    (p, id)
}

/// The least round trip is 80 ms: what may be reordered has a quarter of that to come.
#[test]
fn the_time_out_goes_on_after_the_timer_of_what_may_be_reordered() {
    let (mut p, id) = first_again_and_others_late();
    p.expect_after(20, "A 1001:2001 ack 1");
    p.expect("A 2001:3001 ack 1");
    let rto = p.stack.info(id).unwrap().rto;
    p.expect_after_exactly(rto - Duration::from_millis(20), "PA 1:1001 ack 1");
    assert_eq!(p.stack.counters().timeouts, 1);
}

/// The first is retransmitted at 100 ms. What was sent before that is reported at 160: the time-out counts anew.
#[test]
fn what_sack_reports_puts_off_the_time_out() {
    let (mut p, id) = established_with(Config::default());
    p.write(id, &pattern(1, 5000));
    p.expect_range(1..5001);
    p.expect_nothing_for(100);
    p.send("A 1 ack 1 <sack 1001:4001>");
    p.expect("A 1:1001 ack 1");
    p.expect_nothing_for(60);
    p.send("A 1 ack 1 <sack 1001:5001>");
    let rto = p.stack.info(id).unwrap().rto;
    p.expect_after_exactly(rto, "A 1:1001 ack 1");
}

/// RTO 300 ms, probe after 202: it takes the last of two. New data at 250 ms: in our profile the time-out counts from the probe; where new
/// data sets the timer of a probe again that comes with the time-out of the first segment, and finds one unanswered.
#[test]
fn new_data_may_set_the_timer_of_a_probe_again() {
    for (probe_rules, wait) in [
        (ProbeRules::Rfc, Duration::from_millis(252)),
        (ProbeRules::Kernel, Duration::from_nanos(50_000_001)),
    ] {
        let config = Config::default().probe_rules(probe_rules);
        let (mut p, id) = established_with(config);
        p.write(id, &pattern(1, 2000));
        p.expect_range(1..2001);
        p.expect_after(202, "PA 1001:2001 ack 1");
        p.expect_nothing_for(48);
        p.write(id, &pattern(2001, 1000));
        p.expect("PA 2001:3001 ack 1");
        p.expect_after_exactly(wait, "A 1:1001 ack 1");
        let counters = p.stack.counters();
        assert_eq!((counters.loss_probes, counters.timeouts), (1, 1));
    }
}

/// Congestion is echoed, and one segment reported: CWR goes with new data. The first is held to be lost after a quarter of the round trip,
/// unless that data has set the timer of a probe instead, which comes with the time-out of the first segment, and takes new data.
#[test]
fn while_the_window_shrinks_a_probe_may_go_instead() {
    for &probe_rules in ProbeRules::ALL {
        let config = Config::default()
            .probe_rules(probe_rules)
            .tcp_ecn(1)
            .reduction_rules(ReductionRules::Kernel)
            .tcp_congestion_control(CongestionControl::Reno);
        let mut p = Peer::new(config);
        let listener = p.listen();
        p.send("SEW 0 win 65535 <mss 1000,sackOK>");
        p.expect("SEA 0 ack 1");
        p.now = p.now + Duration::from_millis(100);
        p.send("A 1 ack 1");
        let id = p.accept(listener);
        p.write(id, &pattern(1, 20_000));
        assert_eq!(p.sent_now().len(), 10);
        p.expect_nothing_for(100);
        p.send("EA 1 ack 1 <sack 1001:2001>");
        p.expect("WA 10001:11001 ack 1");
        p.skip(25);
        assert_eq!(p.stack.counters().sack_recovery, u64::from(probe_rules == ProbeRules::Rfc));
        if probe_rules == ProbeRules::Kernel {
            p.expect_after(125, "A 11001:12001 ack 1");
        }
    }
}

/// The peer reports first a hole, then that it is filled, then that what was retransmitted for it had arrived: the path reorders, by what lies
/// behind.
#[test]
fn what_went_again_in_vain_was_reordered() {
    let (mut p, id) = established_with(Config::default());
    p.write(id, &pattern(1, 10_000));
    p.expect_range(1..10001);
    p.expect_nothing_for(100);
    p.send("A 1 ack 1 <sack 3001:8001 1001:2001>");
    assert!(p.sent_now()[1].starts_with("A 2001:3001"));
    p.send("A 1 ack 1 <sack 1001:8001>");
    assert_eq!(p.stack.counters().sack_reorder, 0);
    p.expect_nothing_for(100);
    p.send("A 1 ack 1 <sack 2001:3001 1001:8001>");
    assert_eq!(p.stack.counters().sack_reorder, 1);
    assert_eq!(p.stack.info(id).unwrap().tcp_info.reordering, 6);
}

/// A segment goes, and again after its time-out: the echo tells which of the two is acknowledged, and so the round trip.
#[test]
fn the_least_round_trip_comes_of_echoes_too() {
    let mut p = Peer::new(Config::default());
    let listener = p.listen();
    p.send("S 0 win 65535 <mss 1000,sackOK,TS 100 0>");
    p.expect("SA 0 ack 1");
    p.now = p.now + Duration::from_millis(100);
    p.send("A 1 ack 1 <TS 200 0>");
    let id = p.accept(listener);
    p.write(id, &pattern(1, 900));
    p.expect("PA 1:901 ack 1 <TS 100 200>");
    p.expect_after(300, "PA 1:901 ack 1 <TS 400 200>");
    p.now = p.now + Duration::from_millis(7);
    p.send("A 1 ack 901 <TS 210 400>");
    let info = p.stack.info(id).unwrap();
    assert_eq!(info.min_rtt, Some(Duration::from_millis(7)));
    assert_eq!(info.srtt, Some(Duration::from_micros(88_375)), "100 - 93 / 8");
}

/// An old least round trip does not follow one in which the peer may have waited: that of a small segment, if nothing was acknowledged since it
/// went. Of two small ones, the second of which went with a FIN, it follows the second.
#[test]
fn the_least_round_trip_follows_what_no_wait_is_in() {
    let (mut p, id) = established_with(Config::default().tcp_min_rtt_wlen(1));
    let ms = Duration::from_millis;
    let least = |p: &Peer| p.stack.info(id).unwrap().min_rtt;
    p.write(id, &pattern(1, 1000));
    p.expect("PA 1:1001 ack 1");
    p.now = p.now + ms(20);
    p.send("A 1 ack 1001");
    assert_eq!(least(&p), Some(ms(20)));
    p.expect_nothing_for(2000);
    p.write(id, &pattern(1001, 17));
    p.expect("PA 1001:1018 ack 1");
    p.now = p.now + ms(10);
    p.write(id, &pattern(1018, 2));
    p.stack.shutdown(p.now, id).unwrap();
    p.expect("FPA 1018:1020 ack 1");
    p.now = p.now + ms(30);
    p.send("A 1 ack 1018");
    assert_eq!(least(&p), Some(ms(20)));
    p.now = p.now + ms(100);
    p.send("A 1 ack 1021");
    assert_eq!(least(&p), Some(ms(130)));
}

/// Reno's window grows by a segment for each window that is acknowledged, however many ACKs that takes: in bytes, and in Linux's profile.
#[test]
fn reno_grows_by_a_segment_a_window() {
    for config in both_profiles() {
        let (mut p, id) = established_with(config);
        p.write(id, &pattern(1, 25_000));
        p.expect_range(1..10001);
        p.expect_nothing_for(100);
        p.send("A 1 ack 1 <sack 1001:10001>");
        p.expect_sent(5);
        p.expect_nothing_for(100);
        let mut una = 1 + p.stack.info(id).unwrap().flight_size;
        p.send(&format!("A 1 ack {una}"));
        let mut windows = Vec::new();
        for round in 0..4 {
            p.write(id, &pattern(25_001 + 9000 * round, 9000));
            windows.push(p.stack.info(id).unwrap().cwnd / 1000);
            p.expect_sent(6 + round as usize);
            p.expect_nothing_for(100);
            for _ in 0..p.stack.info(id).unwrap().flight_size / 1000 {
                una += 1000;
                p.send(&format!("A 1 ack {una}"));
            }
        }
        assert_eq!(windows, [6, 7, 8, 9]);
    }
}

/// Blocks leave room for 988 of 1000 bytes, so that these are two segments: a probe waits for no delayed acknowledgement of one alone.
#[test]
fn what_goes_beside_blocks_counts_as_the_packets_it_takes() {
    let (mut p, id) = established_with(Config::linux());
    p.send("A 1001:2001 ack 1");
    p.expect("A 1 ack 1 <sack 1001:2001>");
    p.write(id, &pattern(1, 1000));
    p.expect_range(1..1001);
    assert_eq!(p.stack.info(id).unwrap().tcp_info.unacked, 2000);
    p.expect_after(202, "PA 989:1001 ack 1 <sack 1001:2001>");
}

/// Linux takes the rest of a segment that was acknowledged in part for one that came late, and remembers that the path reorders: more than the
/// fast path of the next text may overlook.
#[test]
fn the_rest_of_a_segment_acknowledged_in_part_is_remembered() {
    let (mut p, id) = established_with(Config::default().loss_rules(LossRules::Kernel));
    p.write(id, &pattern(1, 100));
    p.expect("PA 1:101 ack 1");
    p.send("A 1 ack 50");
    p.send("A 1 ack 101");
    assert_eq!(p.stack.counters().sack_reorder, 1);
    p.write(id, &pattern(2, 100));
    p.expect("PA 101:201 ack 1");
}
