//! Buffers that follow the path, and those that stay as the application chose them.

use crate::pair::*;
use crate::peer::*;
use crate::transfer::{Transfer, limit_rate};
use core::time::Duration;
use proto::*;

fn with(mut config: Config, settings: &[(&str, &str)]) -> Config {
    for (name, value) in settings {
        config.set(name, value).unwrap();
    }
    config
}

/// 100 ms and 100 Mbit/s: 1.25 MB are in flight at full rate.
fn long_fat(client: Config, server: Config) -> Transfer {
    let mut pair = Pair::new(client, server, 50);
    limit_rate(&mut pair, 12_500_000);
    Transfer::new(pair, SocketOptions::default(), SocketOptions::default())
}

/// Share of the path's rate in payload that 2 s reach, from `from` ms on.
fn share(transfer: &mut Transfer, from: u64) -> f64 {
    transfer.run_for(from);
    let before = transfer.received;
    transfer.run_for(2000);
    (transfer.received - before) as f64 / (2.0 * 12_500_000.0 * 1448.0 / 1500.0)
}

/// From a window of 64 KiB, and a send buffer of two initial windows.
#[test]
fn a_long_fat_path_is_filled_from_small_buffers() {
    let mut transfer = long_fat(Config::linux(), Config::linux());
    let (rcv_wnd, send_queue) = (transfer.receiver_info().rcv_wnd, 87_000);
    assert_eq!(rcv_wnd, 65_160);
    transfer.run_for(1);
    assert!(transfer.sender_info().send_queue <= send_queue, "{}", transfer.sender_info().send_queue);
    let share = share(&mut transfer, 2000);
    assert!(share > 0.98, "{share}");
    let info = transfer.receiver_info();
    assert!(info.rcv_wnd > 1_250_000, "{}", info.rcv_wnd);
    // The sender fills the path's queue: the round trip is longer than 100 ms.
    let (rtt, space) = (info.tcp_info.rcv_rtt.unwrap(), f64::from(info.tcp_info.rcv_space.unwrap()));
    assert!(rtt >= Duration::from_millis(100), "{rtt:?}");
    assert!(space > 0.9 * 12_500_000.0 * 0.1, "{space}");
    // The window is rounded up to what its scale can tell.
    assert!(info.recv_buffer > info.rcv_wnd);
    assert!(info.tcp_info.rcv_ssthresh + (1 << info.rcv_wscale) > info.rcv_wnd);
    let sender = transfer.sender_info();
    assert_eq!(sender.send_buffer, 4_194_304);
    assert!(
        (sender.send_queue as u32..sender.send_queue as u32 * 6 / 5).contains(&sender.memory),
        "{}",
        sender.memory
    );
}

/// The receiver learns the round trip from the window alone.
#[test]
fn also_without_timestamps() {
    let config = with(Config::linux(), &[("net.ipv4.tcp_timestamps", "0")]);
    let mut transfer = long_fat(config.clone(), config);
    let share = share(&mut transfer, 2500);
    assert!(share > 0.98, "{share}");
}

/// Row 199: a window of 64 KiB, 81 KiB once the buffer's true use is known (1448 bytes take 2304), and so much per round trip.
#[test]
fn without_moderation_the_window_stays() {
    let config = with(Config::linux(), &[("net.ipv4.tcp_moderate_rcvbuf", "0")]);
    let mut transfer = long_fat(Config::linux(), config);
    transfer.run_for(4000);
    let rcv_wnd = transfer.receiver_info().rcv_wnd;
    assert!((75_000..82_944).contains(&rcv_wnd), "{rcv_wnd}");
    assert!(transfer.received < 41 * u64::from(rcv_wnd));
    assert_eq!(transfer.sender_info().limits.by(), LimitedBy::Receiver);
}

/// Row 197: the largest buffer is the limit.
#[test]
fn the_buffer_does_not_grow_beyond_its_most() {
    let config = with(Config::linux(), &[("net.ipv4.tcp_rmem", "4096 131072 262144")]);
    let mut transfer = long_fat(Config::linux(), config);
    transfer.run_for(4000);
    let rcv_wnd = transfer.receiver_info().rcv_wnd;
    assert!((150_000..=165_888).contains(&rcv_wnd), "{rcv_wnd}");
    let rate = transfer.received as f64 / 4.0;
    assert!((1.2e6..1.7e6).contains(&rate), "{rate}");
}

/// An application that reads slowly takes little per round trip, so its buffer does not grow.
#[test]
fn a_slow_reader_keeps_a_small_buffer() {
    let mut transfer = long_fat(Config::linux(), Config::linux());
    transfer.reading_rate = Some(100_000);
    transfer.run_for(10_000);
    let info = transfer.receiver_info();
    assert!(info.rcv_wnd as usize + info.recv_queue < 131_072, "{} {}", info.rcv_wnd, info.recv_queue);
    assert!((950_000..=1_000_000).contains(&transfer.received), "{}", transfer.received);
    let (limits, now) = (transfer.sender_info().limits, transfer.pair.now);
    assert!(limits.rwnd_limited(now) > Duration::from_secs(9), "{:?}", limits.rwnd_limited(now));
}

/// On a short path the buffer of 256 KiB does; it is not made larger.
#[test]
fn a_short_path_needs_no_large_buffer() {
    let mut pair = Pair::new(Config::default(), Config::default(), 0);
    pair.delay = Duration::from_micros(50);
    limit_rate(&mut pair, 125_000_000);
    let mut transfer = Transfer::new(pair, SocketOptions::default(), SocketOptions::default());
    transfer.run_for(300);
    assert!(transfer.sender_info().send_queue <= 262_144);
    let share = transfer.received as f64 / (0.3 * 125e6);
    assert!(share > 0.9, "{share}");
}

/// Rows 129–130: what is asked for is capped by `wmem_max`: 16, 131 or 256 KiB per round trip.
#[test]
fn a_chosen_send_buffer_is_capped_by_wmem_max() {
    for (asked, cap, gets) in
        [(262_144, "131072", 131_072), (262_144, "4194304", 262_144), (16_384, "4194304", 16_384)]
    {
        let pair = Pair::new(with(Config::default(), &[("net.core.wmem_max", cap)]), Config::default(), 10);
        let client = SocketOptions { send_buffer: Some(asked), ..SocketOptions::default() };
        let mut transfer = Transfer::new(pair, client, SocketOptions::default());
        transfer.run_for(2000);
        let most = 100 * gets;
        assert!(
            (most * 85 / 100..=most).contains(&transfer.received),
            "{asked} under {cap}: {}",
            transfer.received
        );
    }
}

/// Row 91: `SO_RCVBUF` bounds the window, whatever the application takes: twice as much memory, of which 162 of 256 bytes are payload.
#[test]
fn a_chosen_receive_buffer_stays() {
    let pair = Pair::new(Config::linux(), Config::linux(), 50);
    let server = SocketOptions { recv_buffer: Some(64_000), ..SocketOptions::default() };
    let mut transfer = Transfer::new(pair, SocketOptions::default(), server);
    transfer.run_for(3000);
    let info = transfer.receiver_info();
    assert!(info.rcv_wnd < 81_000 + 128, "{}", info.rcv_wnd);
    assert!((28 * 62_000..=31 * 81_128).contains(&transfer.received), "{}", transfer.received);
}

/// `TCP_WINDOW_CLAMP`, at once and changed later.
#[test]
fn a_clamp_bounds_the_window_of_a_larger_buffer() {
    let mut p = Peer::ours();
    let socket = SocketOptions { window_clamp: Some(20_000), ..SocketOptions::default() };
    let listener = p.listen_with(ListenOptions { socket, ..ListenOptions::default() });
    p.send("S 0 win 65535 <mss 1000>");
    p.expect("SA 0 ack 1 win 18980");
    p.send("A 1 ack 1 win 65535");
    let id = p.accept(listener);
    p.send("A 1:1001 ack 1");
    p.expect_after(5, "A 1 ack 1001 win 19000");
    assert_eq!(p.read(id).unwrap().len(), 1000);
    p.stack.set_option(p.now, id, SocketOption::WindowClamp(30_000)).unwrap();
    p.send("A 1001:2001 ack 1");
    p.expect_after(5, "A 1 ack 2001 win 29000");
    p.stack.set_option(p.now, id, SocketOption::WindowClamp(100)).unwrap();
    p.send("A 2001:3001 ack 1");
    p.expect_after(5, "A 1 ack 3001 win 28000");
    assert_eq!(p.read(id).unwrap().len(), 2000);
    // What was offered stays offered; then the least clamp, 1152 bytes.
    p.send_bytes("A 3001 ack 1", &pattern(3001, 28_000));
    assert_eq!(p.read(id).unwrap().len(), 28_000);
    assert_eq!(p.sent_now().last().unwrap(), "A 1:1(0) ack 31001 win 1152 <>");
}

/// A buffer chosen later: the send buffer is full at once, the window closes as data comes.
#[test]
fn buffers_may_be_chosen_later() {
    let mut p = Peer::ours();
    let listener = p.listen();
    let id = p.establish(listener);
    p.write(id, &pattern(1, 30_000));
    p.stack.set_option(p.now, id, SocketOption::SendBuffer(20_000)).unwrap();
    assert_eq!(p.stack.write(p.now, id, b"x"), Err(WriteError::Blocked));
    p.expect_range(1..10001);
    p.stack.set_option(p.now, id, SocketOption::RecvBuffer(64_000)).unwrap();
    p.send("A 1:1001 ack 10001");
    p.expect("A 10001:11001 ack 1001 win 64535");
}

/// Linux tells 64240 (44 segments) with its SYN and 65160 (45 with timestamps) with its SYN-ACK, and `win 63` and `win 64` after, in units
/// of the scale that 32 MiB of buffer need.
#[test]
fn the_first_windows_are_linuxs() {
    let mut p = Peer::new(Config::linux());
    p.connect(ConnectOptions::default());
    p.expect("S 0 win 64240 <mss 1460,sackOK,TS 0 0,wscale 10>");
    p.send("SA 0 ack 1 win 65160 <mss 1460,sackOK,TS 100 0,wscale 7>");
    p.expect("A 1 ack 1 win 63");
    let mut p = Peer::new(Config::linux());
    let listener = p.listen();
    p.send("S 0 win 64240 <mss 1460,sackOK,TS 100 0,wscale 7>");
    p.expect("SA 0 ack 1 win 65160 <mss 1460,sackOK,TS 0 100,wscale 10>");
    p.send("A 1 ack 1 win 502 <TS 100 0>");
    let id = p.accept(listener);
    p.write(id, b"hello");
    p.expect("PA 1:6 ack 1 win 64");
}

/// Captured from Linux 6.18 over veth (window scale 10): it begins at 65160 and grows by twice what comes.
#[test]
fn a_window_grows_as_linuxs() {
    let mut p = Peer::new(Config::linux());
    let listener = p.listen();
    p.send("S 0 win 64240 <mss 1460,sackOK,TS 100 0,wscale 10>");
    p.expect("SA 0 ack 1 win 65160 <mss 1460,sackOK,TS 0 100,wscale 10>");
    p.send("A 1 ack 1 win 63 <TS 100 0>");
    let id = p.accept(listener);
    p.send("PA 1:101 ack 1 win 63 <TS 100 0>");
    p.expect("A 1 ack 101 win 64");
    assert_eq!(p.read(id).unwrap().len(), 100);
    p.write(id, b"hello");
    p.expect("PA 1:6 ack 101 win 64");
    for (seq, window) in [(101, 79), (7341, 93)] {
        let text = format!("PA {seq}:{} ack 6 win 63 <TS 200 0>", seq + 7240);
        p.send_rx(RxPacket { gso_size: 1448, ..RxPacket::new(p.packet(&text)) });
        p.expect(&format!("A 6 ack {} win {window}", seq + 7240));
        p.read(id).unwrap();
    }
}

/// Row 81: a reader that sleeps for 12 s. The window closes once, is probed five times (0.2 s, then twice as late each time), and opens
/// once.
#[test]
fn a_reader_asleep_for_twelve_seconds_is_probed_five_times() {
    let mut pair = Pair::new(Config::default(), Config::default(), 1);
    limit_rate(&mut pair, 125_000_000);
    let server = SocketOptions { recv_buffer: Some(65_536), ..SocketOptions::default() };
    let mut transfer = Transfer::new(pair, SocketOptions::default(), server);
    transfer.reading_rate = Some(0);
    transfer.run_for(12_000);
    transfer.reading_rate = None;
    transfer.run_to(10_000_000);
    let (sender, receiver) =
        (transfer.pair.stacks[CLIENT].counters(), transfer.pair.stacks[SERVER].counters());
    let closed = (receiver.to_zero_window_adv, receiver.from_zero_window_adv);
    assert_eq!((sender.win_probe, closed, sender.timeouts, sender.retrans_segs), (5, (1, 1), 0, 0));
}

/// A closed window is counted when it is told, and when it opens; what comes for it is thrown away.
#[test]
fn closed_windows_are_counted() {
    let mut p = Peer::ours();
    let socket = SocketOptions { recv_buffer: Some(5000), ..SocketOptions::default() };
    let listener = p.listen_with(ListenOptions { socket, ..ListenOptions::default() });
    let id = p.establish(listener);
    p.send_bytes("A 1 ack 1", &pattern(1, 4380));
    p.expect("A 1 ack 4381");
    p.send("A 4381:5001 ack 1");
    p.expect_after(5, "A 1 ack 5001 win 0");
    p.send("A 5001:5002 ack 1");
    p.expect("A 1 ack 5001 win 0");
    assert_eq!(p.read(id).unwrap().len(), 5000);
    p.expect("A 1 ack 5001 win 5000");
    let counters = p.stack.counters();
    let counted = (counters.to_zero_window_adv, counters.zero_window_drop, counters.from_zero_window_adv);
    assert_eq!(counted, (1, 1, 1));
}

/// `SO_SNDBUF` 0, where `tcp_wmem` allows as little: a byte has room all the same.
#[test]
fn a_send_buffer_of_nothing_takes_a_byte() {
    for config in both_profiles() {
        let config = with(config, &[("net.ipv4.tcp_wmem", "0 16384 4194304")]);
        let mut p = Peer::new(config);
        let socket = SocketOptions { send_buffer: Some(0), ..SocketOptions::default() };
        let listener = p.listen_with(ListenOptions { socket, ..ListenOptions::default() });
        let id = p.establish(listener);
        assert!(p.stack.write(p.now, id, b"!").is_ok());
        p.expect("PA 1:2 ack 1");
    }
}
