//! Loss: time-outs with back-off, Karn, fast retransmit and NewReno, giving up; and the growth of the congestion window.

use crate::peer::*;
use core::time::Duration;
use proto::*;

/// Established in a round trip of 100 ms: SRTT 100, RTTVAR 50, RTO 300 ms.
fn established_with(config: Config) -> (Peer, ConnId) {
    let mut p = Peer::new(config);
    let listener = p.listen();
    p.send("S 0 win 65535 <mss 1000>");
    p.expect("SA 0 ack 1");
    p.now = p.now + Duration::from_millis(100);
    p.send("A 1 ack 1");
    let id = p.accept(listener);
    p.events();
    assert_eq!(p.stack.info(id).unwrap().rto, Duration::from_millis(300));
    (p, id)
}

/// With Reno: its windows are easy to tell.
fn established() -> (Peer, ConnId) {
    established_with(Config::default().tcp_congestion_control(CongestionControl::Reno))
}

/// Sends the first ten segments.
fn ten_in_flight() -> (Peer, ConnId) {
    ten_in_flight_with(2)
}

fn ten_in_flight_with(tcp_frto: u32) -> (Peer, ConnId) {
    let reno = CongestionControl::Reno;
    let (mut p, id) = established_with(Config::default().tcp_congestion_control(reno).tcp_frto(tcp_frto));
    p.write(id, &pattern(1, 40_000));
    for number in 0..10 {
        p.expect(&format!("A {}:{} ack 1", 1 + number * 1000, 1001 + number * 1000));
    }
    p.expect_nothing();
    (p, id)
}

fn wait(p: &mut Peer, ms: u64) {
    p.expect_nothing_for(ms);
}

#[test]
fn the_initial_window_is_ten_segments_and_slow_start_doubles_it() {
    let (mut p, id) = ten_in_flight();
    wait(&mut p, 100);
    for number in 1..=5u32 {
        p.send(&format!("A 1 ack {}", 1 + number * 2000));
        let sent = p.sent_now();
        assert_eq!(sent.len(), 4, "two acknowledged, two more: {sent:?}");
    }
    let info = p.stack.info(id).unwrap();
    assert_eq!((info.cwnd, info.flight_size, info.ssthresh), (20_000, 20_000, u32::MAX));
}

#[test]
fn a_window_that_is_not_filled_does_not_grow() {
    let (mut p, id) = established();
    for number in 0..5 {
        let seq = 1 + number * 100;
        p.write(id, &pattern(seq, 100));
        p.expect(&format!("PA {seq}:{} ack 1", seq + 100));
        p.send(&format!("A 1 ack {}", seq + 100));
    }
    assert_eq!(p.stack.info(id).unwrap().cwnd, 10_000);
}

#[test]
fn rtt_and_rto_follow_rfc_6298() {
    let (mut p, id) = established();
    p.write(id, &pattern(1, 1000));
    p.expect("PA 1:1001 ack 1");
    wait(&mut p, 180);
    p.send("A 1 ack 1001");
    let info = p.stack.info(id).unwrap();
    assert_eq!(info.srtt, Some(Duration::from_millis(110)));
    assert_eq!(info.rttvar, Duration::from_micros(57_500));
    assert_eq!(info.rto, Duration::from_millis(340));
    assert_eq!(info.min_rtt, Some(Duration::from_millis(100)));
}

#[test]
fn the_timer_backs_off_and_gives_up_after_tcp_retries2() {
    let mut config = Config::default().tcp_mtu_probing(0);
    config.set("net.ipv4.tcp_retries2", "5").unwrap();
    let (mut p, id) = established_with(config);
    p.write(id, &pattern(1, 1000));
    p.expect("PA 1:1001 ack 1");
    for ms in [300, 600, 1200, 2400, 4800] {
        p.expect_after(ms, "PA 1:1001 ack 1");
    }
    p.expect_nothing_for(9599);
    assert_eq!(p.state(id), State::Established);
    p.expect_nothing_for(1);
    assert_eq!(p.stack.close_reason(id), Some(CloseReason::TimedOut));
    assert_eq!(p.events_of(id), Events::CLOSED | Events::READABLE | Events::WRITABLE);
    let counters = p.stack.counters();
    assert_eq!((counters.timeouts, counters.retrans_segs, counters.abort_on_timeout), (6, 5, 1));
    p.close(id);
    assert_eq!(p.sizes(), (0, 0, 0));
}

#[test]
fn fifteen_retransmissions_take_fifteen_minutes() {
    let (mut p, id) = established();
    p.write(id, b"x");
    p.expect("PA 1:2 ack 1");
    let mut wait = 300;
    for _ in 0..15 {
        p.expect_after(wait, "PA 1:2 ack 1");
        wait = (wait * 2).min(120_000);
    }
    p.expect_nothing_for(119_999);
    assert_eq!(p.state(id), State::Established);
    p.expect_nothing_for(1);
    assert_eq!(p.stack.close_reason(id), Some(CloseReason::TimedOut));
}

#[test]
fn an_orphan_gives_up_sooner() {
    let mut config = Config::default();
    config.set("net.ipv4.tcp_orphan_retries", "2").unwrap();
    let (mut p, id) = established_with(config);
    p.write(id, b"x");
    p.close(id);
    p.expect("FPA 1:2 ack 1");
    p.expect_after(300, "FPA 1:2 ack 1");
    p.expect_after(600, "FPA 1:2 ack 1");
    p.expect_nothing_for(1199);
    assert_eq!(p.sizes(), (1, 0, 0));
    p.expect_nothing_for(1);
    assert_eq!(p.sizes(), (0, 0, 0));
}

/// `tcp_orphan_retries` is for those whose application has let go: one that has only ended its own direction has `tcp_retries2`.
#[test]
fn a_half_closed_connection_is_no_orphan() {
    let mut config = Config::default();
    config.set("net.ipv4.tcp_orphan_retries", "2").unwrap();
    let (mut p, id) = established_with(config);
    p.write(id, b"x");
    p.stack.shutdown(p.now, id).unwrap();
    p.expect("FPA 1:2 ack 1");
    for wait in [300, 600, 1200, 2400, 4800, 9600, 19_200] {
        p.expect_after(wait, "FPA 1:2 ack 1");
    }
    assert_eq!((p.state(id), p.stack.orphans()), (State::FinWait1, 0));
}

/// Karn: what was sent twice says nothing about the RTT, and the back-off stays until something that was sent once does (RFC 6298 §5).
#[test]
fn a_retransmitted_segment_is_not_measured() {
    let (mut p, id) = established();
    p.write(id, &pattern(1, 1000));
    p.expect("PA 1:1001 ack 1");
    p.expect_after(300, "PA 1:1001 ack 1");
    p.expect_after(600, "PA 1:1001 ack 1");
    wait(&mut p, 10);
    p.send("A 1 ack 1001");
    let info = p.stack.info(id).unwrap();
    assert_eq!((info.srtt, info.rto), (Some(Duration::from_millis(100)), Duration::from_millis(1200)));
    assert_eq!(info.total_retrans, 2);
    p.write(id, &pattern(1001, 1000));
    p.expect("PA 1001:2001 ack 1");
    wait(&mut p, 100);
    p.send("A 1 ack 2001");
    assert!(p.stack.info(id).unwrap().rto <= Duration::from_millis(300));
}

/// RFC 6298 §5.3: the timer starts anew with each ACK of new data, and stops when nothing is in flight.
#[test]
fn the_timer_starts_anew_with_progress() {
    let (mut p, id) = established();
    p.write(id, &pattern(1, 2000));
    p.expect("A 1:1001 ack 1");
    p.expect("PA 1001:2001 ack 1");
    wait(&mut p, 100);
    p.send("A 1 ack 1001");
    let rto = p.stack.info(id).unwrap().rto;
    assert_eq!(rto, Duration::from_micros(250_000), "SRTT 100, RTTVAR 37.5");
    p.expect_after(250, "PA 1001:2001 ack 1");
    p.send("A 1 ack 2001");
    p.expect_nothing_for(100_000);
}

/// RFC 5681 §3.1: ssthresh is half of what was in flight, cwnd one segment; slow start from there.
#[test]
fn after_a_timeout_everything_goes_again_from_one_segment() {
    let (mut p, id) = ten_in_flight_with(0);
    p.expect_after(300, "A 1:1001 ack 1");
    p.expect_nothing();
    let info = p.stack.info(id).unwrap();
    assert_eq!((info.cwnd, info.ssthresh), (1000, 5000));
    p.send("A 1 ack 1001");
    p.expect("A 1001:2001 ack 1");
    p.expect("A 2001:3001 ack 1");
    p.expect_nothing();
    p.send("A 1 ack 3001");
    assert_eq!(p.sent_now().len(), 4);
    // The rest had arrived: one ACK for all ends the repetition.
    p.send("A 1 ack 10001");
    let sent = p.sent_now();
    assert!(sent[0].starts_with("A 10001:11001"), "{sent:?}");
    let info = p.stack.info(id).unwrap();
    assert_eq!((info.cwnd, info.ssthresh), (5000, 5000));
    assert_eq!(p.stack.counters().timeouts, 1);
}

#[test]
fn a_second_timeout_of_one_loss_does_not_halve_again() {
    let (mut p, id) = ten_in_flight();
    p.expect_after(300, "A 1:1001 ack 1");
    p.expect_after(600, "A 1:1001 ack 1");
    let info = p.stack.info(id).unwrap();
    assert_eq!((info.cwnd, info.ssthresh), (1000, 5000));
}

#[test]
fn three_duplicates_mean_a_loss() {
    let (mut p, id) = ten_in_flight();
    wait(&mut p, 100);
    // Limited transmit (RFC 3042): a new segment for each of the first two.
    p.send("A 1 ack 1");
    p.expect("A 10001:11001 ack 1");
    p.send("A 1 ack 1");
    p.expect("A 11001:12001 ack 1");
    p.expect_nothing();
    p.send("A 1 ack 1");
    p.expect("A 1:1001 ack 1");
    p.expect_nothing();
    // What limited transmit sent does not count as in flight (RFC 5681 §3.2 step 2).
    let info = p.stack.info(id).unwrap();
    assert_eq!((info.cwnd, info.ssthresh), (9000, 5000), "the window is on its way there");
    // Each further duplicate is a segment that has left the network (RFC 5681 §3.2 step 4); every second lets one go (RFC 6937).
    for sent in ["A 12001:13001 ack 1", "A 13001:14001 ack 1"] {
        p.send("A 1 ack 1");
        p.expect_nothing();
        p.send("A 1 ack 1");
        p.expect(sent);
        p.expect_nothing();
    }
    // A full acknowledgement ends it with cwnd = ssthresh, and counts as any other: for more than a window of new data a segment more.
    p.send("A 1 ack 14001");
    assert_eq!(p.sent_now().len(), 6);
    assert_eq!(p.stack.info(id).unwrap().cwnd, 6000);
    let counters = p.stack.counters();
    assert_eq!((counters.timeouts, counters.reno_recovery, counters.fast_retrans), (0, 1, 1));
}

/// RFC 6582: a partial acknowledgement in recovery means the next hole is lost, too.
#[test]
fn a_partial_acknowledgement_sends_the_next_hole() {
    let (mut p, id) = ten_in_flight();
    wait(&mut p, 100);
    for _ in 0..3 {
        p.send("A 1 ack 1");
    }
    p.expect("A 1:1001 ack 1");
    p.send("A 1 ack 3001");
    p.expect("A 3001:4001 ack 1");
    p.expect_nothing();
    p.send("A 1 ack 10001");
    let info = p.stack.info(id).unwrap();
    assert_eq!((info.cwnd, info.ssthresh), (5000, 5000));
    assert_eq!(p.sent_now().len(), 5);
    assert_eq!(p.stack.counters().retrans_segs, 2);
}

/// RFC 6582 §4.1: duplicates made by our own repetition after a time-out are no loss.
#[test]
fn duplicates_after_a_timeout_are_not_a_loss() {
    let (mut p, id) = ten_in_flight_with(0);
    p.expect_after(300, "A 1:1001 ack 1");
    p.send("A 1 ack 1001");
    p.expect("A 1001:2001 ack 1");
    p.expect("A 2001:3001 ack 1");
    for _ in 0..5 {
        p.send("A 1 ack 1001");
    }
    p.expect_nothing();
    assert_eq!(p.stack.info(id).unwrap().ssthresh, 5000);
}

#[test]
fn duplicates_with_text_or_another_window_are_no_duplicates() {
    let (mut p, id) = ten_in_flight();
    p.send("A 1:11 ack 1");
    p.send("A 11:21 ack 1");
    p.send("A 21:31 ack 1");
    p.send("A 31 ack 1 win 60000");
    p.send("A 31 ack 1 win 61000");
    p.send("A 31 ack 1 win 62000");
    assert!(p.sent_now().iter().all(|sent| sent.contains("(0)")));
    assert_eq!(p.stack.info(id).unwrap().cwnd, 10_000);
}

/// Congestion avoidance: a window's worth of acknowledgements adds one segment.
#[test]
fn beyond_ssthresh_the_window_grows_by_a_segment_per_round() {
    let (mut p, id) = ten_in_flight();
    for _ in 0..3 {
        p.send("A 1 ack 1");
    }
    p.send("A 1 ack 10001");
    p.expect_range(10001..15001);
    let mut cwnds = Vec::new();
    for number in 1..=11 {
        p.send(&format!("A 1 ack {}", 10_001 + number * 1000));
        p.expect_only_data();
        cwnds.push(p.stack.info(id).unwrap().cwnd / 1000);
    }
    assert_eq!(cwnds, [5, 5, 5, 5, 6, 6, 6, 6, 6, 6, 7]);
}

#[test]
fn a_lost_fin_is_sent_again() {
    let (mut p, id) = established();
    p.stack.shutdown(p.now, id).unwrap();
    p.expect("FA 1 ack 1");
    p.expect_after(300, "FA 1 ack 1");
    p.send("A 1 ack 2");
    assert_eq!(p.state(id), State::FinWait2);
    p.expect_nothing_for(10_000);
}

#[test]
fn a_fin_lost_with_its_text_is_sent_again_with_it() {
    let (mut p, id) = established();
    p.write(id, &pattern(1, 1500));
    p.stack.shutdown(p.now, id).unwrap();
    p.expect("A 1:1001 ack 1");
    p.expect("FPA 1001:1501 ack 1");
    p.expect_after(300, "A 1:1001 ack 1");
    p.send("A 1 ack 1001");
    p.expect("FPA 1001:1501 ack 1");
    p.send("A 1 ack 1501");
    p.expect_after(600, "FA 1501 ack 1");
    p.send("A 1 ack 1502");
    assert_eq!(p.state(id), State::FinWait2);
}

#[test]
fn text_that_arrives_in_answer_to_repetitions_is_exact() {
    let (mut p, id) = established();
    let data: Vec<u8> = (0..2500u32).map(|i| (i * 7) as u8).collect();
    p.write(id, &data);
    p.expect_bytes("A 1:1001 ack 1", &data[..1000]);
    p.expect_bytes("A 1001:2001 ack 1", &data[1000..2000]);
    p.expect_bytes("PA 2001:2501 ack 1", &data[2000..]);
    p.send("A 1 ack 301");
    wait(&mut p, 199);
    p.skip(1);
    let rto = p.stack.info(id).unwrap().rto;
    p.now = p.now + rto;
    p.stack.handle_timeout(p.now);
    p.expect_bytes("A 301:1301 ack 1", &data[300..1300]);
}
