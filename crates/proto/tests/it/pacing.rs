//! Pacing: a window spread over its round trip.

use crate::peer::*;
use core::time::Duration;
use proto::*;

/// Established with Reno and an SRTT of 100 ms; ten segments of 1000 bytes acknowledged after 100 ms, more is written.
fn twelve_segments(config: Config, max_pacing_rate: Option<u32>) -> (Peer, ConnId) {
    twelve_segments_over(crate::pair::ethernet(), config, max_pacing_rate)
}

fn twelve_segments_over(
    device: Capabilities,
    config: Config,
    max_pacing_rate: Option<u32>,
) -> (Peer, ConnId) {
    let mut p = Peer::with(config.abc_limit(2), device);
    let congestion = Some(CongestionControl::Reno);
    let socket = SocketOptions { congestion, max_pacing_rate, ..SocketOptions::default() };
    let listener = p.listen_with(ListenOptions { socket, ..ListenOptions::default() });
    p.send("S 0 win 65535 <mss 1000>");
    p.expect("SA 0 ack 1");
    p.now = p.now + Duration::from_millis(100);
    p.send("A 1 ack 1 win 65535");
    let id = p.accept(listener);
    p.write(id, &pattern(1, 40_000));
    assert_eq!(p.sent_now().len(), 10, "the initial window goes at once");
    p.now = p.now + Duration::from_millis(100);
    p.send("A 1 ack 10001 win 65535");
    assert_eq!(p.stack.info(id).unwrap().cwnd, 12_000);
    (p, id)
}

/// When how many segments leave, in microseconds from now, for 90 ms.
fn departures(p: &mut Peer) -> Vec<(u64, usize)> {
    let start = p.now;
    let mut departures = Vec::new();
    loop {
        let sent = p.sent_now().len();
        if sent > 0 {
            departures.push((p.now.since(start).as_micros() as u64, sent));
        }
        match p.stack.poll_timeout() {
            Some(at) if at.since(start) < Duration::from_millis(90) => p.now = at,
            _ => return departures,
        }
        p.stack.handle_timeout(p.now);
    }
}

fn pacing() -> Config {
    Config::default().pacing(true)
}

#[test]
fn without_pacing_a_window_leaves_at_once() {
    let (mut p, id) = twelve_segments(Config::default(), None);
    assert_eq!(departures(&mut p), [(0, 12)]);
    assert_eq!(p.stack.info(id).unwrap().pacing_rate, None);
}

/// In slow start at twice the window per SRTT: 240 000 bytes/s, so a segment per 4⅙ ms; the first wait is half as long, for the gate
/// had been open.
#[test]
fn in_slow_start_a_window_leaves_in_half_a_round_trip() {
    let (mut p, id) = twelve_segments(pacing(), None);
    assert_eq!(p.stack.info(id).unwrap().pacing_rate, Some(240_000));
    let departures = departures(&mut p);
    assert!(departures.iter().all(|(_, segments)| *segments == 1));
    let times: Vec<u64> = departures.iter().map(|(at, _)| *at).collect();
    assert_eq!(times[..4], [0, 2_083, 6_249, 10_416]);
    assert_eq!((times.len(), times[11]), (12, 43_749));
}

/// Where the device cuts segments two leave together at least.
#[test]
fn bursts_are_of_two_segments() {
    let device = Capabilities { gso_max_size: 65_536, ..crate::pair::ethernet() };
    let (mut p, _) = twelve_segments_over(device, pacing(), None);
    let expected = [(0, 2), (4_166, 2), (12_500, 2), (20_833, 2), (29_166, 2), (37_499, 2)];
    assert_eq!(departures(&mut p), expected);
}

#[test]
fn in_congestion_avoidance_it_leaves_at_six_fifths() {
    let (mut p, id) = twelve_segments(pacing(), None);
    assert_eq!(departures(&mut p).len(), 12);
    for _ in 0..3 {
        p.send("A 1 ack 10001 win 65535");
    }
    p.expect_only_data();
    p.skip(100);
    p.send("A 1 ack 22001 win 65535");
    let info = p.stack.info(id).unwrap();
    let window = u64::from(info.cwnd.max(info.flight_size));
    assert!(info.cwnd >= info.ssthresh / 2);
    assert_eq!(info.pacing_rate, Some(window * 12));
}

/// `SO_MAX_PACING_RATE` paces a socket of a stack that does not pace.
#[test]
fn a_socket_may_limit_its_rate() {
    let (mut p, id) = twelve_segments(Config::default(), Some(100_000));
    assert_eq!(p.stack.info(id).unwrap().pacing_rate, Some(100_000));
    let times: Vec<u64> = departures(&mut p).iter().map(|(at, _)| at / 1000).collect();
    assert_eq!(times, [0, 5, 15, 25, 35, 45, 55, 65, 75, 85], "a segment per 10 ms");
}

/// The segments of the initial window leave unpaced, and the one that closes the gate behind them finds it no older than they are: it waits
/// for as long as its bytes take, 50 ms at 20 000 bytes/s.
#[test]
fn what_left_unpaced_is_no_lateness() {
    let mut p = Peer::with(Config::linux(), crate::pair::ethernet());
    let socket = SocketOptions { max_pacing_rate: Some(20_000), ..SocketOptions::default() };
    let listener = p.listen_with(ListenOptions { socket, ..ListenOptions::default() });
    p.send("S 0 win 65535 <mss 1000>");
    p.expect("SA 0 ack 1");
    p.now = p.now + Duration::from_millis(100);
    p.send("A 1 ack 1 win 65535");
    let id = p.accept(listener);
    p.write(id, &pattern(1, 12_000));
    assert_eq!(p.sent_now().len(), 10);
    p.send("A 1 ack 10001 win 65535");
    assert_eq!(departures(&mut p), [(50_000, 1)], "and another 50 ms later");
}

/// An acknowledgement that is owed does not wait for the gate.
#[test]
fn acknowledgements_are_not_paced() {
    let (mut p, _) = twelve_segments(pacing(), None);
    p.expect("A 10001:11001 ack 1");
    p.send("A 1001:2001 ack 10001 win 65535");
    assert_eq!(p.sent_now().len(), 1, "the duplicate ACK for the hole");
}

/// Without SACK too, where each partial acknowledgement shows another: the gate, which the ones before it have closed, comes first.
/// `SO_MAX_PACING_RATE` of an open connection: a segment per 10 ms, and at once again when it is taken back.
#[test]
fn a_rate_may_be_set_and_taken_back_while_open() {
    let config = || Config::default().pacing(false);
    let (mut p, id) = twelve_segments(config(), None);
    p.stack.set_option(p.now, id, SocketOption::MaxPacingRate(Some(100_000))).unwrap();
    let gaps = [0, 5, 15, 25, 35, 45, 55, 65, 75, 85].map(|at| (at * 1000, 1));
    assert_eq!(departures(&mut p), gaps, "half of the first wait, for the gate had been open");
    p.stack.set_option(p.now, id, SocketOption::MaxPacingRate(None)).unwrap();
    assert_eq!(departures(&mut p), [(0, 2)], "the rest of the window");
}

#[test]
fn retransmissions_without_sack_are_paced() {
    let mut p = Peer::with(Config::default(), crate::pair::ethernet());
    let socket = SocketOptions { max_pacing_rate: Some(100_000), ..SocketOptions::default() };
    let listener = p.listen_with(ListenOptions { socket, ..ListenOptions::default() });
    let id = p.establish_with(listener, "S 0 win 65535 <mss 1000>");
    p.write(id, &pattern(1, 10_000));
    assert_eq!(p.sent_now().len(), 10);
    p.now = p.now + Duration::from_millis(100);
    for _ in 0..3 {
        p.send("A 1 ack 1 win 65535");
    }
    p.expect("A 1:1001 ack 1");
    // 10 ms per segment; half of the first wait, for the gate had been open.
    p.send("A 1 ack 2001 win 65535");
    p.expect_after(5, "A 2001:3001 ack 1");
    p.send("A 1 ack 4001 win 65535");
    p.expect_after(10, "A 4001:5001 ack 1");
    assert_eq!(p.stack.counters().timeouts, 0);
}

/// What is lost is retransmitted at the pace of all else, here a segment per 10 ms; the first wait is half as long, for the gate had been open.
#[test]
fn retransmissions_are_paced() {
    let mut p = Peer::with(Config::default(), crate::pair::ethernet());
    let socket = SocketOptions { max_pacing_rate: Some(100_000), ..SocketOptions::default() };
    let listener = p.listen_with(ListenOptions { socket, ..ListenOptions::default() });
    let id = p.establish_with(listener, "S 0 win 65535 <mss 1000,sackOK>");
    p.write(id, &pattern(1, 19_000));
    assert_eq!(p.sent_now().len(), 10);
    p.now = p.now + Duration::from_millis(100);
    p.send("A 1 ack 10001 win 65535");
    let sent: usize = departures(&mut p).iter().map(|(_, segments)| segments).sum();
    assert_eq!(sent, 9);
    p.now = p.now + Duration::from_millis(100);
    p.send("A 1 ack 10001 win 65535 <sack 14001:19001>");
    assert_eq!(departures(&mut p), [(0, 1), (5_000, 1), (15_000, 1), (25_000, 1)]);
}

#[test]
fn a_connection_that_is_held_back_sends_only_what_keeps_it_going() {
    let (mut p, id) = twelve_segments(Config::default(), None);
    let first = p.stack.poll_transmit(p.now).unwrap();
    assert_eq!(p.stack.sender_of(&first), Some(id));
    p.stack.hold_back(p.now, id, true);
    assert_eq!(p.sent_now().len(), 0);
    // What comes is acknowledged, and what was in flight may all be answered: then one segment goes.
    p.send("A 1:1001 ack 10001 win 65535");
    p.send("A 1001:2001 ack 10001 win 65535");
    assert_eq!(p.sent_now().len(), 1, "an acknowledgement");
    p.send("A 2001 ack 11001 win 65535");
    assert_eq!(p.sent_now().len(), 1);
    assert_eq!(p.sent_now().len(), 0);
    p.stack.hold_back(p.now, id, false);
    assert_eq!(p.sent_now().len(), 11, "the rest of the window");
}
