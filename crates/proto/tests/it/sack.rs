//! Loss at a peer with SACK: the scoreboard, RACK, PRR, reordering, reneging, and peers that lie.

use crate::pair::{CLIENT, SERVER};
use crate::peer::*;
use core::time::Duration;
use proto::*;

/// Established with SACK in a round trip of 100 ms: SRTT 100, RTO 300 ms. With Reno: its windows are easy to tell.
pub(crate) fn established_with(config: Config) -> (Peer, ConnId) {
    let mut p = Peer::new(config.tcp_congestion_control(CongestionControl::Reno));
    let listener = p.listen();
    p.send("S 0 win 65535 <mss 1000,sackOK>");
    p.expect("SA 0 ack 1");
    p.now = p.now + Duration::from_millis(100);
    p.send("A 1 ack 1");
    let id = p.accept(listener);
    p.events();
    (p, id)
}

/// Ten segments of 1000 bytes in flight for 100 ms, thirty more waiting.
fn ten_in_flight_with(config: Config) -> (Peer, ConnId) {
    let (mut p, id) = established_with(config);
    p.write(id, &pattern(1, 40_000));
    for number in 0..10 {
        p.expect(&format!("A {}:{} ack 1", 1 + number * 1000, 1001 + number * 1000));
    }
    p.expect_nothing_for(100);
    (p, id)
}

fn ten_in_flight() -> (Peer, ConnId) {
    ten_in_flight_with(Config::default())
}

/// What is sent now, as `from` numbers in thousands.
fn sent(p: &mut Peer) -> Vec<u32> {
    p.sent_now()
        .iter()
        .map(|text| {
            let from = text.split([' ', ':']).nth(1).unwrap();
            from.parse::<u32>().unwrap() / 1000
        })
        .collect()
}

/// The number behind a segment's last byte.
fn end_of(text: &str) -> Option<u32> {
    text.split([' ', ':', '(']).nth(2)?.parse().ok()
}

#[test]
fn three_segments_beyond_a_hole_mean_a_loss() {
    let (mut p, id) = ten_in_flight();
    p.send("A 1 ack 1 <sack 1001:2001>");
    p.expect("A 10001:11001 ack 1");
    p.send("A 1 ack 1 <sack 1001:3001>");
    p.expect("A 11001:12001 ack 1");
    p.expect_nothing();
    p.send("A 1 ack 1 <sack 1001:4001>");
    p.expect("A 1:1001 ack 1");
    p.expect_nothing();
    let info = p.stack.info(id).unwrap();
    assert_eq!(
        (info.cwnd, info.ssthresh),
        (9000, 5000),
        "on the way down: eight are in flight, and one goes"
    );
    let counters = p.stack.counters();
    assert_eq!((counters.sack_recovery, counters.fast_retrans, counters.reno_recovery), (1, 1, 0));
    p.send("A 1 ack 12001");
    assert_eq!(p.stack.info(id).unwrap().cwnd, 6000, "the ACK that ends it tells of nine segments");
    assert_eq!(sent(&mut p).len(), 6);
    assert_eq!(p.stack.counters().timeouts, 0);
}

/// Acknowledgements that come together take segments out of flight before any can follow. The window was full all the same, and is
/// halved as if they had come one by one.
#[test]
fn a_batch_of_acknowledgements_halves_the_window_that_was_full() {
    let (mut p, id) = ten_in_flight();
    p.send("A 1 ack 2001");
    for end in [4, 5, 6] {
        p.send(&format!("A 1 ack 2001 <sack 3001:{end}001>"));
    }
    let info = p.stack.info(id).unwrap();
    assert_eq!((info.cwnd, info.ssthresh), (5000, 6000), "twelve after the first");
}

/// RFC 6937: while recovering, one segment goes for every second that is delivered, until five are in flight; then one for one.
#[test]
fn the_window_shrinks_in_even_steps() {
    let (mut p, _) = ten_in_flight();
    let mut all = Vec::new();
    for end in 2..=10 {
        p.send(&format!("A 1 ack 1 <sack 1001:{end}001>"));
        all.push(sent(&mut p));
    }
    let expected: [&[u32]; 9] = [&[10], &[11], &[0], &[], &[12], &[], &[13], &[], &[]];
    assert_eq!(all, expected);
}

/// What a NewReno sender needs a round trip each for goes in one.
#[test]
fn several_holes_are_filled_in_one_round_trip() {
    let (mut p, _) = ten_in_flight();
    p.send("A 1 ack 1 <sack 1001:2001>");
    p.send("A 1 ack 1 <sack 3001:4001 1001:2001>");
    assert_eq!(sent(&mut p), [10, 11]);
    p.expect_nothing_for(1);
    p.send("A 1 ack 1 <sack 5001:10001 3001:4001 1001:2001>");
    assert_eq!(sent(&mut p), [0, 2, 4]);
    p.send("A 1 ack 1 <sack 5001:12001 3001:4001 1001:2001>");
    assert_eq!(sent(&mut p), [12, 13]);
    assert_eq!(p.stack.counters().retrans_segs, 3);
}

/// RFC 8985 §6.2: with fewer than three beyond the hole it has a quarter of the least RTT to come.
#[test]
fn a_segment_that_may_be_reordered_gets_a_quarter_of_the_least_rtt() {
    let (mut p, id) = established_with(Config::default());
    p.write(id, &pattern(1, 3000));
    p.expect_range(1..3001);
    p.expect_nothing_for(100);
    p.send("A 1 ack 1 <sack 1001:2001>");
    p.expect_after(25, "A 1:1001 ack 1");
    assert_eq!(p.stack.counters().timeouts, 0);
}

#[test]
fn a_segment_that_comes_in_that_time_is_no_loss() {
    let (mut p, id) = established_with(Config::default());
    p.write(id, &pattern(1, 3000));
    p.expect_range(1..3001);
    p.expect_nothing_for(100);
    p.send("A 1 ack 1 <sack 1001:2001>");
    p.expect_nothing_for(24);
    p.send("A 1 ack 2001");
    p.expect_nothing_for(24);
    p.send("A 1 ack 3001");
    p.expect_nothing_for(10_000);
    let counters = p.stack.counters();
    assert_eq!((counters.sack_reorder, counters.sack_recovery, counters.retrans_segs), (1, 0, 0));
}

/// Once the path is known to reorder, three beyond a hole are no proof.
#[test]
fn reordering_is_remembered() {
    let (mut p, _) = ten_in_flight();
    p.send("A 1 ack 1 <sack 1001:3001>");
    p.send("A 1 ack 3001");
    assert_eq!(p.stack.counters().sack_reorder, 1);
    p.expect_range(10001..14001);
    p.send("A 1 ack 3001 <sack 4001:8001>");
    assert!(!sent(&mut p).contains(&3));
    p.expect_after(25, "A 3001:4001 ack 1");
}

/// RFC 8985: a retransmission is lost when something sent after it is delivered.
#[test]
fn a_lost_retransmission_is_sent_again_without_a_timeout() {
    let (mut p, _) = ten_in_flight();
    p.send("A 1 ack 1 <sack 1001:4001>");
    assert_eq!(sent(&mut p), [0, 10]);
    p.send("A 1 ack 1 <sack 1001:7001>");
    assert!(sent(&mut p).is_empty());
    p.expect_nothing_for(100);
    p.send("A 1 ack 1 <sack 10001:11001 1001:7001>");
    assert_eq!(sent(&mut p)[0], 0);
    let counters = p.stack.counters();
    assert_eq!((counters.lost_retransmit, counters.timeouts, counters.sack_recovery), (1, 0, 1));
}

/// RFC 6675 §4: without RACK a hole is lost with more than two segments' worth, or three runs, beyond it.
#[test]
fn without_rack_losses_are_counted() {
    let mut config = Config::default();
    config.set("net.ipv4.tcp_recovery", "0").unwrap();
    let (mut p, _) = ten_in_flight_with(config.clone());
    p.send("A 1 ack 1 <sack 1001:3001>");
    assert_eq!(sent(&mut p), [10, 11]);
    p.send("A 1 ack 1 <sack 1001:3002>");
    assert!(sent(&mut p).is_empty(), "half a packet is none");
    p.send("A 1 ack 1 <sack 1001:4001>");
    assert_eq!(sent(&mut p), [0]);
    let (mut p, _) = ten_in_flight_with(config);
    p.send("A 1 ack 1 <sack 1001:2001 3001:4001>");
    assert_eq!(sent(&mut p), [10, 11]);
    p.send("A 1 ack 1 <sack 1001:2001 3001:4001 5001:6001>");
    assert_eq!(sent(&mut p), [0]);
}

/// After a time-out only what the peer does not hold is retransmitted.
#[test]
fn a_timeout_repeats_only_what_is_missing() {
    let (mut p, id) = ten_in_flight();
    p.send("A 1 ack 1 <sack 3001:5001>");
    assert_eq!(sent(&mut p), [10, 11]);
    p.expect_after(25, "A 1:1001 ack 1");
    let rto = p.stack.info(id).unwrap().rto;
    p.expect_nothing();
    p.expect_after_exactly(rto, "A 1:1001 ack 1");
    p.expect_nothing();
    assert_eq!(p.stack.info(id).unwrap().cwnd, 1000);
    p.send("A 1 ack 1001 <sack 3001:5001>");
    assert_eq!(sent(&mut p), [1, 2]);
    p.send("A 1 ack 5001");
    assert_eq!(sent(&mut p), [5, 6, 7, 8]);
    let counters = p.stack.counters();
    assert_eq!((counters.timeouts, counters.slow_start_retrans), (1, 6));
}

/// RFC 2018 §8: a peer may let go of what it reported; the first segment it does not acknowledge shows it. Half a round trip later (not
/// the time-out's 300 ms) all of it is retransmitted.
#[test]
fn a_peer_that_lets_go_of_what_it_reported_gets_it_again() {
    let (mut p, _) = ten_in_flight();
    p.send("A 1 ack 1 <sack 1001:4001>");
    p.expect_sent(2);
    p.send("A 1 ack 1001");
    p.expect_nothing();
    p.expect_after(50, "A 1001:2001 ack 1");
    p.send("A 1 ack 2001");
    assert_eq!(sent(&mut p), [2, 3]);
    assert_eq!(p.stack.counters().sack_reneging, 1);
}

/// An ACK that has merely overtaken another: what it did not acknowledge is acknowledged in time, and nothing is forgotten.
#[test]
fn a_peer_that_only_seemed_to_let_go_is_believed() {
    let (mut p, _) = ten_in_flight();
    p.send("A 1 ack 1 <sack 1001:4001>");
    p.expect_sent(2);
    p.send("A 1 ack 1001");
    p.skip(49);
    p.send("A 1 ack 10001");
    p.skip(60);
    assert_eq!((p.stack.counters().sack_reneging, p.stack.counters().timeouts), (0, 0));
}

/// RFC 2018, RFC 2883: an ACK that later ones have overtaken acknowledges nothing new, but its blocks may be news.
#[test]
fn blocks_of_an_overtaken_ack_are_read() {
    let (mut p, id) = ten_in_flight();
    p.send("A 1 ack 2001");
    p.expect_range(10001..14001);
    p.send("A 1 ack 1001 <sack 5001:8001>");
    assert_eq!(sent(&mut p), [2], "three segments beyond a hole");
    p.send("A 1 ack 1 <sack 1001:2001>");
    assert_eq!(p.stack.counters().sack_discard, 0, "that was news once");
    p.send("A 1 ack 1001 <sack 1:1001>");
    assert_eq!(p.stack.counters().dsack_recv, 1);
    assert_eq!(p.stack.info(id).unwrap().state, State::Established);
}

/// RFC 8985 §7: the last segment of a flight is lost at RTT 40: a probe instead of the time-out, and the window stays.
#[test]
fn the_loss_of_the_last_segment_costs_no_timeout() {
    let mut pair = crate::pair::Pair::ours();
    pair.one_by_one = true;
    let listener = pair.listen(0);
    let id = pair.connect(ConnectOptions::default());
    pair.run(100);
    let child = pair.accept(listener).unwrap();
    let data = pattern(1, 24 * 1448);
    let mut segments = 0;
    pair.filter = Box::new(move |sent| {
        let text = sent.from == CLIENT && sent.len > 0;
        segments += i32::from(text);
        !text || segments != 24
    });
    pair.write(CLIENT, id, &data);
    let begun = pair.now;
    pair.run(1000);
    assert_eq!(pair.read(SERVER, child).unwrap(), data);
    let lost = pair.log.iter().find(|sent| !sent.delivered).unwrap();
    let again: Vec<_> =
        pair.log.iter().filter(|sent| sent.header.seq == lost.header.seq && sent.len > 0).collect();
    assert_eq!(again.len(), 2);
    assert_eq!(again[0].at.since(begun), Duration::from_millis(40));
    // The last ACK, a delayed one, comes 80 ms later; from there it is the time-out's 200 ms, less than two round trips and the delay of
    // a lone segment's ACK.
    assert_eq!(again[1].at.since(again[0].at), Duration::from_millis(280));
    let (counters, info) = (pair.stacks[CLIENT].counters(), pair.stacks[CLIENT].info(id).unwrap());
    assert_eq!((counters.loss_probes, counters.timeouts, counters.retrans_segs), (1, 0, 1));
    assert_eq!(info.ssthresh, u32::MAX);
}

/// RFC 8985 §7.4: later data acknowledged, and no report that the probe was in vain: it repaired a loss, and the window halves.
#[test]
fn a_loss_that_a_probe_repairs_is_answered() {
    let (mut p, id) = two_in_flight();
    p.expect_after(202, "PA 1001:2001 ack 1");
    p.send("A 1 ack 2001");
    p.write(id, &pattern(2001, 500));
    p.expect("PA 2001:2501 ack 1");
    p.expect_nothing_for(100);
    p.send("A 1 ack 2501");
    let counters = p.stack.counters();
    assert_eq!((counters.loss_probes, counters.loss_probe_recovery, counters.timeouts), (1, 1, 0));
    assert_eq!(p.stack.info(id).unwrap().ssthresh, 2000);
}

/// Two segments of 1000 bytes.
fn two_in_flight() -> (Peer, ConnId) {
    let (mut p, id) = established_with(Config::default());
    p.write(id, &pattern(1, 2000));
    assert_eq!(p.sent_now().len(), 2);
    (p, id)
}

#[test]
fn a_probe_in_vain_changes_nothing() {
    for answer in ["A 1 ack 2001 <sack 1001:2001>", "A 1 ack 2001"] {
        let (mut p, id) = two_in_flight();
        p.expect_after(202, "PA 1001:2001 ack 1");
        p.send("A 1 ack 2001");
        p.send(answer);
        p.write(id, &pattern(2001, 500));
        p.expect("PA 2001:2501 ack 1");
        p.expect_nothing_for(100);
        p.send("A 1 ack 2501");
        let counters = p.stack.counters();
        assert_eq!((counters.loss_probes, counters.loss_probe_recovery), (1, 0), "{answer}");
        assert_eq!(counters.dsack_recv, u64::from(answer.contains("sack")));
        assert_eq!(p.stack.info(id).unwrap().ssthresh, u32::MAX);
    }
}

/// A probe of new data, beyond cwnd; and only one before the time-out.
#[test]
fn a_probe_carries_new_data_if_there_is_any() {
    let (mut p, id) = established_with(Config::default());
    p.write(id, &pattern(1, 40_000));
    assert_eq!(p.sent_now().len(), 10);
    p.expect_after(202, "A 10001:11001 ack 1");
    p.expect_after(300, "A 1:1001 ack 1");
    let counters = p.stack.counters();
    assert_eq!((counters.loss_probes, counters.timeouts, counters.retrans_segs), (1, 1, 1));
}

/// RFC 8985 §7.2: a probe is due no later than the time-out. An application that writes a little every 100 ms puts it off, but the first
/// segment, sent 300 ms ago, is not left alone for as long as it goes on.
#[test]
fn new_data_does_not_put_a_probe_off_for_ever() {
    let (mut p, id) = established_with(Config::default());
    for number in 0..3 {
        p.write(id, &pattern(1 + 10 * number, 10));
        p.stack.push(p.now, id);
        assert_eq!(p.sent_now().len(), 1);
        p.expect_nothing_for(if number < 2 { 100 } else { 99 });
    }
    p.expect_after(1, "PA 21:31 ack 1");
    p.write(id, &pattern(31, 10));
    p.stack.push(p.now, id);
    p.expect("PA 31:41 ack 1");
    // The time-out counts from the probe.
    p.expect_after(300, "PA 1:41 ack 1");
    let counters = p.stack.counters();
    assert_eq!((counters.loss_probes, counters.timeouts), (1, 1));
}

#[test]
fn without_tcp_early_retrans_there_are_no_probes() {
    let mut config = Config::default();
    config.set("net.ipv4.tcp_early_retrans", "0").unwrap();
    let (mut p, id) = established_with(config);
    p.write(id, &pattern(1, 2000));
    assert_eq!(p.sent_now().len(), 2);
    p.expect_after(300, "A 1:1001 ack 1");
    assert_eq!(p.stack.counters().timeouts, 1);
}

/// A lost FIN is probed for like any last segment.
#[test]
fn a_lost_fin_is_probed_for() {
    let (mut p, id) = established_with(Config::default());
    p.stack.shutdown(p.now, id).unwrap();
    p.expect("FA 1 ack 1");
    p.expect_after(300, "FA 1 ack 1");
    p.expect_after(300, "FA 1 ack 1");
    let counters = p.stack.counters();
    assert_eq!((counters.loss_probes, counters.timeouts), (1, 1));
    p.send("A 1 ack 2");
    p.expect_nothing_for(1000);
}

/// A FIN that went alone is no text, but RACK finds it all the same, by what was sent after it (RFC 8985 §6.2).
#[test]
fn a_fin_is_lost_when_what_went_again_after_it_arrived() {
    let (mut p, id) = established_with(Config::default());
    p.write(id, &pattern(1, 4000));
    assert_eq!(sent(&mut p), [0, 1, 2, 3]);
    p.stack.shutdown(p.now, id).unwrap();
    p.expect("FA 4001 ack 1");
    p.expect_nothing_for(100);
    p.send("A 1 ack 1 <sack 1001:4001>");
    p.expect("A 1:1001 ack 1");
    p.expect_nothing_for(100);
    p.send("A 1 ack 4001");
    p.expect("FA 4001 ack 1");
    let counters = p.stack.counters();
    assert_eq!((counters.retrans_segs, counters.fast_retrans, counters.loss_probes), (2, 2, 0));
    p.send("A 1 ack 4002");
    p.expect_nothing_for(10_000);
}

/// And amid what a time-out began: of three segments that were retransmitted, and the FIN, the second and the FIN are lost once more.
#[test]
fn a_fin_that_is_lost_once_more_after_a_time_out_is_found() {
    let mut config = Config::default();
    config.set("net.ipv4.tcp_early_retrans", "0").unwrap();
    let (mut p, id) = established_with(config);
    p.write(id, &pattern(1, 3000));
    assert_eq!(sent(&mut p), [0, 1, 2]);
    p.stack.shutdown(p.now, id).unwrap();
    p.expect("FA 3001 ack 1");
    p.expect_after(300, "A 1:1001 ack 1");
    p.expect_nothing_for(100);
    p.send("A 1 ack 1001");
    assert_eq!(sent(&mut p), [1, 2, 3]);
    p.expect_nothing_for(100);
    p.send("A 1 ack 1001 <sack 2001:3001>");
    assert_eq!(sent(&mut p), [1]);
    p.expect_nothing_for(100);
    p.send("A 1 ack 3001");
    p.expect("FA 3001 ack 1");
    let counters = p.stack.counters();
    assert_eq!((counters.retrans_segs, counters.timeouts), (6, 1));
}

/// What was retransmitted before the FIN tells nothing of it.
#[test]
fn a_fin_may_come_yet_when_what_went_before_it_arrived() {
    let (mut p, id) = established_with(Config::default());
    p.write(id, &pattern(1, 4000));
    assert_eq!(sent(&mut p), [0, 1, 2, 3]);
    p.expect_nothing_for(100);
    p.send("A 1 ack 1 <sack 1001:4001>");
    p.expect("A 1:1001 ack 1");
    p.expect_nothing_for(1);
    p.stack.shutdown(p.now, id).unwrap();
    p.expect("FA 4001 ack 1");
    p.expect_nothing_for(99);
    p.send("A 1 ack 4001");
    p.expect_nothing_for(100);
}

/// On a path that reorders it may come a quarter of the least RTT later.
#[test]
fn a_fin_is_lost_when_it_is_later_than_the_path_reorders() {
    let (mut p, id) = established_with(Config::default());
    p.write(id, &pattern(1, 7000));
    assert_eq!(sent(&mut p), [0, 1, 2, 3, 4, 5, 6]);
    p.expect_nothing_for(100);
    p.send("A 1 ack 1 <sack 1001:2001>");
    p.send("A 1 ack 3001");
    p.send("A 1 ack 3001 <sack 4001:7001>");
    p.expect_nothing_for(20);
    p.stack.shutdown(p.now, id).unwrap();
    p.expect("FA 7001 ack 1");
    p.expect_after(5, "A 3001:4001 ack 1");
    p.expect_nothing_for(100);
    p.send("A 1 ack 7001");
    p.expect_after(20, "FA 7001 ack 1");
}

/// RFC 2883: what arrives twice is reported once, before the other blocks.
#[test]
fn what_arrives_twice_is_reported_once() {
    let (mut p, _) = established_with(Config::default());
    p.send("A 1:101 ack 1");
    p.send("A 201:301 ack 1");
    p.expect("A 1 ack 101 <sack 201:301>");
    p.send("A 1:101 ack 1");
    p.expect("A 1 ack 101 <sack 1:101 201:301>");
    p.send("A 251:351 ack 1");
    p.expect("A 1 ack 101 <sack 251:301 201:351>");
    p.send("A 101:201 ack 1");
    p.expect("A 1 ack 351 <>");
    p.send("A 301:401 ack 1");
    p.expect("A 1 ack 401 <sack 301:351>");
    p.send("A 51:101 ack 1");
    p.expect("A 1 ack 401 <sack 51:101>");
    let counters = p.stack.counters();
    assert_eq!((counters.dsack_old_sent, counters.dsack_ofo_sent), (3, 1));
}

#[test]
fn without_tcp_dsack_nothing_is_reported() {
    let mut config = Config::default();
    config.set("net.ipv4.tcp_dsack", "0").unwrap();
    let (mut p, _) = established_with(config);
    p.send("A 1:101 ack 1");
    p.expect_nothing();
    p.send("A 1:101 ack 1");
    p.expect("A 1 ack 101 <>");
}

#[test]
fn blocks_that_mean_nothing_are_counted_and_change_nothing() {
    let (mut p, id) = ten_in_flight_with(Config::default().abc_limit(2));
    for block in ["1:1001", "10001:11001", "9001:11001", "3001:2001", "500000:600000"] {
        p.send(&format!("A 1 ack 1 <sack {block}>"));
        p.expect_nothing();
    }
    assert_eq!(p.stack.counters().sack_discard, 5);
    p.send("A 1 ack 10001");
    assert_eq!(p.stack.info(id).unwrap().cwnd, 12_000);
    assert_eq!(p.stack.counters().retrans_segs, 0);
}

/// A byte here and a byte there: the queue is cut only so often, and the transfer ends.
#[test]
fn a_peer_that_reports_single_bytes_costs_little() {
    let (mut p, id) = ten_in_flight();
    for round in 0..100 {
        let blocks: Vec<String> =
            (0..4).map(|n| 3 + round * 80 + n * 20).map(|at| format!("{at}:{}", at + 1)).collect();
        p.send(&format!("A 1 ack 1 <sack {}>", blocks.join(" ")));
    }
    let segments = p.sent_now();
    assert!(segments.len() < 200, "{} segments", segments.len());
    // The rest of the transfer goes through, every acknowledgement for all that came.
    while p.stack.info(id).unwrap().send_queue > 0 {
        p.send("A 1 ack 10001");
        let end = p.sent_now().iter().filter_map(|text| end_of(text)).max().unwrap_or(10_001);
        p.send(&format!("A 1 ack {end}"));
    }
}

/// The first packet is acknowledged in two parts. In Linux's way of counting its rest lies behind what was acknowledged, so it came late; the
/// path is held to reorder, and the hole behind it is waited for a quarter of the least round trip more.
#[test]
fn a_packet_acknowledged_in_parts_may_count_as_reordered() {
    for (loss_rules, wait) in [(LossRules::Rfc, 0), (LossRules::Kernel, 25)] {
        let (mut p, id) = established_with(Config::default().loss_rules(loss_rules));
        p.write(id, &pattern(1, 10_000));
        assert_eq!(p.sent_now().len(), 10);
        p.now = p.now + Duration::from_millis(100);
        p.send("A 1 ack 501");
        assert_eq!(p.stack.counters().sack_reorder, 0);
        p.send("A 1 ack 1001");
        assert_eq!(p.stack.counters().sack_reorder, u64::from(loss_rules == LossRules::Kernel));
        p.send("A 1 ack 1001 <sack 2001:5001>");
        p.expect_after(wait, "A 1001:2001 ack 1");
    }
}

/// From una on the block goes nearly round the whole space of numbers, so that each end compares as it should. It is senseless, not older news.
#[test]
fn a_block_around_the_whole_space_means_nothing() {
    let (mut p, id) = established_with(Config::default());
    p.write(id, &pattern(1, 3000));
    p.expect_range(1..3001);
    p.send("A 1 ack 1001");
    p.send("A 1 ack 1 <sack 1342177280:2684354560>");
    assert_eq!(p.stack.counters().sack_discard, 0, "taken for news that came late");
    p.send("A 1 ack 1001 <sack 1342177280:2684354560>");
    assert_eq!(p.stack.counters().sack_discard, 1);
    p.send("A 1 ack 3001");
    p.expect_nothing_for(5000);
}

/// 400 segments in flight, of which every other is reported, one by one in an order that jumps about: whether the device cuts bursts or not,
/// what was not reported by then is retransmitted, in the order of its numbers, and each segment once.
#[test]
fn many_holes_are_repaired_in_order() {
    const SEGMENTS: u32 = 400;
    for burst in [0, 64_000] {
        let config = Config::default().tcp_congestion_control(CongestionControl::Reno).tcp_tso_win_divisor(0);
        let mut p = Peer::with(config, Capabilities { mtu: 1500, gso_max_size: burst, tx_checksum: true });
        let (network, metrics) = parse_route("0.0.0.0/0 initcwnd 400").unwrap();
        assert!(p.stack.set_route(p.now, network, metrics));
        let socket = SocketOptions { send_buffer: Some(1 << 20), ..SocketOptions::default() };
        let listener = p.listen_with(ListenOptions { socket, ..ListenOptions::default() });
        p.send("S 0 win 65535 <mss 1000,sackOK,wscale 7>");
        p.expect_syn();
        p.pass(100);
        p.send("A 1 ack 1");
        let id = p.accept(listener);
        p.write(id, &pattern(1, SEGMENTS as usize * 1000));
        let first: usize = p.sent_now().len();
        assert_eq!(first, SEGMENTS as usize);
        p.pass(100);
        let (mut again, mut reported) = (Vec::new(), Vec::new());
        for i in 0..SEGMENTS / 2 {
            let odd = i * 77 % (SEGMENTS / 2) * 2 + 1;
            reported.push(odd);
            p.send(&format!("A 1 ack 1 <sack {}:{}>", odd * 1000 + 1, odd * 1000 + 1001));
            p.pass(1);
            let now = sent(&mut p);
            assert!(!now.iter().any(|number| reported.contains(number)), "{now:?} of {reported:?}");
            again.extend(now);
        }
        assert!(again.len() > 50 && again.is_sorted_by(|a, b| a < b), "bursts of {burst} bytes: {again:?}");
        let last = again.last().copied().unwrap_or_default();
        assert!((0..last).step_by(2).all(|even| again.contains(&even)), "{again:?}");
    }
}
