//! What limits a sender, and for how long: every moment is booked, exactly.

use crate::pair::*;
use crate::peer::*;
use crate::transfer::{Transfer, limit_rate};
use core::time::Duration;
use proto::*;

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// A connection of which enough waits in a card of its own host: Linux's `tcp_chrono` books that as busy and as neither of its limits, and the
/// application wrote enough. The windows are looked at first, as Linux does; a small segment that Nagle's algorithm keeps is the application's.
#[test]
fn queues_below_the_stack_are_told_from_the_application() {
    let mut p = Peer::ours();
    let listener = p.listen();
    let id = p.establish(listener);
    p.write(id, &pattern(1, 12_000));
    assert!(p.stack.poll_transmit(p.now).is_some());
    p.stack.hold_back(p.now, id, true);
    p.expect_nothing();
    let device = |p: &Peer| p.stack.info(id).unwrap().limits.device_limited(p.now).as_millis();
    assert_eq!(times(&p, id).0, LimitedBy::Device);
    pass(&mut p, 10);
    assert_eq!((times(&p, id), device(&p)), ((LimitedBy::Device, [10, 0, 0, 0, 0]), 10));
    p.stack.hold_back(p.now, id, false);
    p.expect_range(1001..10001);
    assert_eq!(times(&p, id).0, LimitedBy::Congestion);
    p.stack.hold_back(p.now, id, true);
    pass(&mut p, 20);
    assert_eq!((times(&p, id), device(&p)), ((LimitedBy::Congestion, [30, 0, 0, 20, 0]), 10));
    p.stack.hold_back(p.now, id, false);
    p.send("A 1 ack 10001 win 65535");
    p.expect_range(10001..12001);
    p.write(id, &pattern(12_001, 500));
    p.expect("PA 12001:12501 ack 1");
    p.stack.hold_back(p.now, id, true);
    p.write(id, &pattern(12_501, 500));
    p.expect_nothing();
    assert_eq!(times(&p, id).0, LimitedBy::Application);
}

/// Kind now, then busy, receiver, send buffer, congestion window, application, in ms.
fn times(p: &Peer, id: ConnId) -> (LimitedBy, [u128; 5]) {
    let limits = p.stack.info(id).unwrap().limits;
    let times = [
        limits.busy_time(p.now),
        limits.rwnd_limited(p.now),
        limits.sndbuf_limited(p.now),
        limits.cwnd_limited(p.now),
        limits.app_limited(p.now),
    ];
    (limits.by(), times.map(|time| time.as_millis()))
}

fn pass(p: &mut Peer, ms: u64) {
    p.now = p.now + Duration::from_millis(ms);
}

/// Segments of 1000 bytes, ten of them as initial window.
#[test]
fn each_limit_is_told_from_the_others() {
    let mut p = Peer::ours();
    let socket = SocketOptions { send_buffer: Some(20_000), ..SocketOptions::default() };
    let listener = p.listen_with(ListenOptions { socket, ..ListenOptions::default() });
    let id = p.establish(listener);
    p.expect_nothing();
    assert_eq!(times(&p, id), (LimitedBy::Idle, [0, 0, 0, 0, 0]));
    pass(&mut p, 7);
    // Three segments, all in flight: more could be written.
    p.write(id, &pattern(1, 3000));
    p.expect_range(1..3001);
    pass(&mut p, 10);
    assert_eq!(times(&p, id), (LimitedBy::Application, [10, 0, 0, 0, 17]));
    // Twelve more than the window takes.
    p.write(id, &pattern(3001, 12_000));
    p.expect_range(3001..10001);
    assert_eq!(times(&p, id).0, LimitedBy::Congestion);
    pass(&mut p, 20);
    assert_eq!(times(&p, id), (LimitedBy::Congestion, [30, 0, 0, 20, 17]));
    // Half of it is acknowledged, and the peer takes no more than that.
    p.send("A 1 ack 5001 win 5500");
    p.expect_nothing();
    pass(&mut p, 30);
    assert_eq!(times(&p, id), (LimitedBy::Receiver, [60, 30, 0, 20, 17]));
    // The window opens: all goes, and the buffer is full of it.
    p.send("A 1 ack 10001 win 65535");
    p.expect_range(10001..15001);
    let full = p.stack.write(p.now, id, &pattern(15_001, 20_000));
    assert_eq!(full, Ok(15_000));
    p.expect_range(15001..30001);
    assert_eq!(p.stack.info(id).unwrap().flight_size, 20_000);
    pass(&mut p, 40);
    assert_eq!(
        times(&p, id),
        (LimitedBy::Congestion, [100, 30, 0, 60, 17]),
        "the window is as full as the buffer"
    );
    p.send("A 1 ack 13001 win 65535");
    p.expect_nothing();
    assert_eq!(times(&p, id).0, LimitedBy::SendBuffer);
    pass(&mut p, 50);
    p.send("A 1 ack 30001 win 65535");
    assert_eq!(p.sent_now(), [""; 0]);
    assert_eq!(times(&p, id), (LimitedBy::Idle, [150, 30, 50, 60, 17]));
    pass(&mut p, 1000);
    assert_eq!(times(&p, id), (LimitedBy::Idle, [150, 30, 50, 60, 1017]));
}

/// What Nagle's algorithm keeps is the application's doing: it could write more, or switch it off.
#[test]
fn a_small_rest_that_waits_is_limited_by_the_application() {
    let mut p = Peer::ours();
    let listener = p.listen();
    let id = p.establish(listener);
    p.write(id, b"a");
    p.expect("PA 1:2 ack 1");
    p.write(id, b"b");
    p.expect_nothing();
    pass(&mut p, 10);
    assert_eq!(times(&p, id), (LimitedBy::Application, [10, 0, 0, 0, 10]));
}

#[test]
fn bytes_behind_a_syn_wait_for_the_handshake() {
    let mut p = Peer::ours();
    let first_bytes = bytes::Bytes::from_static(b"hello");
    let id = p.connect(ConnectOptions { first_bytes, ..ConnectOptions::default() });
    p.expect_syn();
    pass(&mut p, 30);
    assert_eq!(times(&p, id), (LimitedBy::Handshake, [30, 0, 0, 0, 0]));
    p.send("SA 0 ack 1 win 65535 <mss 1000>");
    p.expect("PA 1:6 ack 1");
    pass(&mut p, 5);
    assert_eq!(times(&p, id), (LimitedBy::Application, [35, 0, 0, 0, 5]));
}

/// Row 121: without window scaling 64 KiB per round trip, however fast the path. 35 ms: 1.87 MB/s at most.
#[test]
fn a_window_without_scaling_is_what_limits() {
    let mut config = Config::default();
    config.set("net.ipv4.tcp_window_scaling", "0").unwrap();
    let pair = Pair::new(config.clone(), config, 0);
    let mut transfer = Transfer::new(pair, SocketOptions::default(), SocketOptions::default());
    transfer.pair.delay = Duration::from_micros(17_500);
    let took = transfer.run_to(20_000_000).as_secs_f64();
    let theory = 20e6 / 65_535.0 * 0.035;
    assert!((theory..theory * 1.05).contains(&took), "{took} s, by the formula {theory}");
    let (limits, now) = (transfer.sender_info().limits, transfer.pair.now);
    let share = limits.rwnd_limited(now).as_secs_f64() / limits.busy_time(now).as_secs_f64();
    assert!(share > 0.95, "{share}");
    let info = transfer.sender_info();
    assert!(!info.window_scaling);
    // Row 121: 64 K in 35 ms.
    assert_eq!(info.window_rate(), Some(1_872_428));
}

/// Row 127: 16 KiB per 20 ms, 22 MB, 26.9 s. The limit holds for plain writes.
#[test]
fn a_strict_send_buffer_is_what_limits() {
    let pair = Pair::new(Config::default(), Config::default(), 10);
    let client = SocketOptions { send_buffer: Some(16_384), ..SocketOptions::default() };
    let mut transfer = Transfer::new(pair, client, SocketOptions::default());
    let took = transfer.run_to(22_000_000).as_secs_f64();
    let theory = 22e6 / 16_384.0 * 0.02;
    assert!((theory - 0.1..theory + 0.1).contains(&took), "{took} s, by the formula {theory}");
    let (limits, now) = (transfer.sender_info().limits, transfer.pair.now);
    let share = limits.sndbuf_limited(now).as_secs_f64() / limits.busy_time(now).as_secs_f64();
    assert!(share > 0.98, "{share}");
    assert_eq!(limits.rwnd_limited(now), ms(0));
}

/// On a path of 10 Mbit/s and 40 ms it is the congestion window that waits for the path; then a reader that is slower than that.
#[test]
fn the_path_and_the_reader_take_turns() {
    let mut config = Config::default();
    for (name, value) in [("net.ipv4.tcp_congestion_control", "reno"), ("firstbyte.initial_ssthresh", "40")] {
        config.set(name, value).unwrap();
    }
    let mut pair = Pair::new(config, Config::default(), 20);
    limit_rate(&mut pair, 1_250_000);
    let mut transfer = Transfer::new(pair, SocketOptions::default(), SocketOptions::default());
    transfer.run_to(2_000_000);
    let share = |transfer: &Transfer, of: fn(&SenderLimits, Instant) -> Duration| {
        let limits = transfer.sender_info().limits;
        of(&limits, transfer.pair.now).as_secs_f64() / limits.busy_time(transfer.pair.now).as_secs_f64()
    };
    assert_eq!(transfer.receiver_info().recv_queue, 0);
    assert!(share(&transfer, SenderLimits::rwnd_limited) < 0.05);
    let cwnd = share(&transfer, SenderLimits::cwnd_limited);
    assert!(cwnd > 0.9, "{cwnd}");
    // A tenth of the path's rate, on average since the beginning: it stops for a long time first.
    transfer.reading_rate = Some(125_000);
    transfer.run_for(60_000);
    assert_eq!(transfer.sender_info().limits.by(), LimitedBy::Receiver);
    let rwnd = share(&transfer, SenderLimits::rwnd_limited);
    assert!(rwnd > 0.9, "{rwnd}");
}
