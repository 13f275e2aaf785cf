//! What small segments wait for: Nagle, `TCP_NODELAY`, `TCP_CORK`, `MSG_MORE`, push.

use crate::pair::{CLIENT, Pair, SERVER};
use crate::peer::*;
use proto::*;

fn established() -> (Peer, ConnId) {
    established_with(SocketOptions::default())
}

fn established_with(socket: SocketOptions) -> (Peer, ConnId) {
    let mut p = Peer::ours();
    let listener = p.listen_with(ListenOptions { socket, ..ListenOptions::default() });
    let id = p.establish(listener);
    (p, id)
}

fn write_more(p: &mut Peer, id: ConnId, data: &[u8]) {
    assert_eq!(p.stack.write_with(p.now, id, data, WriteFlags::MORE), Ok(data.len()));
}

fn set(p: &mut Peer, id: ConnId, option: SocketOption) {
    assert_eq!(p.stack.set_option(p.now, id, option), Ok(()));
}

#[test]
fn a_cork_lets_only_whole_segments_go() {
    let (mut p, id) = established();
    set(&mut p, id, SocketOption::Cork(true));
    p.write(id, &pattern(1, 300));
    p.expect_nothing_for(10);
    p.write(id, &pattern(301, 900));
    p.expect("A 1:1001 ack 1");
    p.expect_nothing_for(10);
    p.send("A 1 ack 1001");
    p.expect_nothing_for(10);
    set(&mut p, id, SocketOption::Cork(false));
    p.expect("PA 1001:1201 ack 1");
}

/// A silence lets the window decay once, however many writes wait behind it.
#[test]
fn silence_counts_once_for_what_waits_under_a_cork() {
    let (mut p, id) = established();
    let mut at = 1;
    for _ in 0..3 {
        p.write(id, &pattern(at, 40_000));
        while p.stack.info(id).unwrap().flight_size < 40_000 && !p.sent_now().is_empty() {
            let sent = at + p.stack.info(id).unwrap().flight_size;
            p.send(&format!("A 1 ack {sent} win 65535"));
            at = sent;
        }
    }
    let window = |p: &Peer| p.stack.info(id).unwrap().cwnd;
    let before = window(&p);
    assert!(before >= 40_000, "{before}");
    set(&mut p, id, SocketOption::Cork(true));
    p.now = p.now + p.stack.info(id).unwrap().rto * 3 / 2;
    for _ in 0..3 {
        p.write(id, b"some");
        p.expect_nothing();
    }
    assert_eq!(window(&p), before / 2);
}

/// With nothing in flight the persist timer takes the cork for a window that never opens, as Linux's does: the time-out is 200 ms.
#[test]
fn what_is_corked_goes_when_a_time_out_passes_with_nothing_in_flight() {
    let (mut p, id) = established_with(SocketOptions { cork: true, ..SocketOptions::default() });
    p.write(id, &pattern(1, 300));
    p.expect_after(200, "PA 1:301 ack 1");
    p.write(id, &pattern(301, 1000));
    p.write(id, &pattern(1301, 50));
    p.expect("PA 301:1301 ack 1");
    p.expect_nothing_for(50);
    p.send("A 1 ack 1301");
    p.expect_after(200, "PA 1301:1351 ack 1");
}

/// The timer of what waited under a cork is not that of what is sent when it is taken away.
#[test]
fn a_cork_leaves_no_timer_behind() {
    let mut p = Peer::new(Config::linux());
    let socket = SocketOptions { cork: true, nodelay: true, ..SocketOptions::default() };
    let listener = p.listen_with(ListenOptions { socket, ..ListenOptions::default() });
    p.send("S 0 win 65535 <mss 1000,sackOK>");
    p.expect("SA 0 ack 1");
    p.now = p.now + core::time::Duration::from_millis(100);
    p.send("A 1 ack 1 win 65535");
    let id = p.accept(listener);
    p.write(id, &pattern(1, 500));
    p.expect_nothing_for(150);
    set(&mut p, id, SocketOption::Cork(false));
    p.expect("PA 1:501 ack 1");
    p.write(id, &pattern(501, 10));
    p.expect("PA 501:511 ack 1");
    // Twice the round trip of 100 ms, and the 2 ms of a loss probe.
    p.expect_after(202, "PA 501:511 ack 1");
}

/// What arrives puts off the timer of what is corked, also in a batch behind a damaged packet, of which nothing is read.
#[test]
fn what_arrives_behind_a_damaged_packet_puts_off_what_is_corked() {
    let (mut p, id) = established_with(SocketOptions { cork: true, ..SocketOptions::default() });
    p.send("A 1:2 ack 1");
    p.expect_after(5, "A 1 ack 2");
    p.write(id, b"one");
    p.expect_nothing_for(100);
    let [duplicate, next] = ["A 1:2 ack 1", "A 2:3 ack 1"].map(|text| p.packet(text));
    let mut damaged = duplicate.to_vec();
    *damaged.last_mut().unwrap() ^= 1;
    let mut batch = RxBatch::from_iter([RxPacket::new(damaged.into()), RxPacket::new(next)]);
    p.stack.handle_packets(p.now, &mut batch);
    p.expect_after(5, "A 1 ack 3");
    p.expect_nothing_for(150);
    p.expect_after(45, "PA 1:4 ack 3");
}

#[test]
fn a_fin_and_a_push_take_along_what_is_corked() {
    let (mut p, id) = established_with(SocketOptions { cork: true, ..SocketOptions::default() });
    p.write(id, b"one");
    p.expect_nothing();
    p.stack.push(p.now, id);
    p.expect("PA 1:4 ack 1");
    p.write(id, b"two");
    p.expect_nothing();
    p.stack.shutdown(p.now, id).unwrap();
    p.expect("FPA 4:7 ack 1");
}

/// Linux's `__tcp_sock_set_nodelay` and `__tcp_sock_set_cork`: each change may push once what waits, and the cork is the stronger.
#[test]
fn nodelay_pushes_through_a_cork_once() {
    let (mut p, id) = established_with(SocketOptions { cork: true, ..SocketOptions::default() });
    p.write(id, &pattern(1, 100));
    p.expect_nothing();
    set(&mut p, id, SocketOption::NoDelay(true));
    p.expect("PA 1:101 ack 1");
    p.write(id, &pattern(101, 100));
    p.expect_nothing();
    set(&mut p, id, SocketOption::Cork(false));
    p.expect("PA 101:201 ack 1");
    p.write(id, &pattern(201, 100));
    p.expect("PA 201:301 ack 1");
    // Corked again and uncorked with Nagle: the small segments in flight hold it.
    set(&mut p, id, SocketOption::NoDelay(false));
    set(&mut p, id, SocketOption::Cork(true));
    p.write(id, &pattern(301, 100));
    set(&mut p, id, SocketOption::Cork(false));
    p.expect_nothing_for(10);
    p.send("A 1 ack 301");
    p.expect("PA 301:401 ack 1");
}

#[test]
fn what_announces_more_waits_for_it_without_a_push() {
    let (mut p, id) = established();
    write_more(&mut p, id, &pattern(1, 300));
    p.expect_nothing_for(10);
    p.write(id, &pattern(301, 300));
    p.expect("PA 1:601 ack 1");
    p.send("A 1 ack 601");
    write_more(&mut p, id, &pattern(601, 1200));
    p.expect("A 601:1601 ack 1");
    p.expect_nothing();
    p.write(id, &pattern(1801, 10));
    p.expect("PA 1601:1811 ack 1");
    p.send("A 1 ack 1811");
    // Nothing follows: a segment from the peer ends the wait, or the time-out does.
    write_more(&mut p, id, &pattern(1811, 10));
    p.expect_nothing_for(10);
    p.send("A 1 ack 1811 win 60000");
    p.expect("A 1811:1821 ack 1");
    p.send("A 1 ack 1821");
    write_more(&mut p, id, &pattern(1821, 10));
    p.expect_after(200, "PA 1821:1831 ack 1");
}

/// A write that is not taken whole is no promise of another.
#[test]
fn a_part_of_a_write_announces_nothing() {
    let (mut p, id) = established_with(SocketOptions { send_buffer: Some(4096), ..SocketOptions::default() });
    assert_eq!(p.stack.write_with(p.now, id, &pattern(1, 5000), WriteFlags::MORE), Ok(4096));
    for seq in [1, 1001, 2001, 3001] {
        p.expect(&format!("A {seq}:{} ack 1", seq + 1000));
    }
    p.expect("PA 4001:4097 ack 1");
}

#[test]
fn a_push_ends_the_wait_of_nagle() {
    let (mut p, id) = established();
    p.write(id, b"a");
    p.expect("PA 1:2 ack 1");
    p.write(id, b"b");
    p.expect_nothing();
    p.stack.push(p.now, id);
    p.expect("PA 2:3 ack 1");
    p.write(id, b"c");
    p.expect_nothing();
}

/// Write, write, read: with Nagle the second write waits for the acknowledgement of the first, which the peer delays by 5 ms.
#[test]
fn write_write_read_takes_a_delayed_ack_longer_with_nagle() {
    for (nodelay, arrival) in [(false, 500 + 5 + 500 + 500), (true, 500)] {
        let mut w = Pair::new(Config::default(), Config::default(), 500);
        let listener = w.listen(0);
        let socket = SocketOptions { nodelay, ..SocketOptions::default() };
        let client = w.connect(ConnectOptions { socket, ..ConnectOptions::default() });
        w.run(2000);
        let server = w.accept(listener).unwrap();
        let start = w.now;
        w.write(CLIENT, client, b"half ");
        w.flush();
        w.write(CLIENT, client, b"request");
        while w.stacks[SERVER].info(server).unwrap().recv_queue < 12 {
            assert!(w.step());
        }
        assert_eq!(w.ms_since(start), arrival);
        w.write(SERVER, server, b"answer");
        while w.stacks[CLIENT].info(client).unwrap().recv_queue == 0 {
            assert!(w.step());
        }
        assert_eq!(w.ms_since(start), arrival + 500);
    }
}
