//! PSH, ends of records, and how much may wait to be sent.

use crate::pair::ethernet;
use crate::peer::*;
use proto::*;

fn established_in(mut p: Peer, syn: &str, socket: SocketOptions) -> (Peer, ConnId) {
    let listener = p.listen_with(ListenOptions { socket, ..ListenOptions::default() });
    let id = p.establish_with(listener, syn);
    p.events();
    (p, id)
}

fn established() -> (Peer, ConnId) {
    established_in(Peer::ours(), "S 0 win 65535 <mss 1000>", SocketOptions::default())
}

fn gso() -> Capabilities {
    Capabilities { gso_max_size: 65_536, tx_checksum: true, ..ethernet() }
}

fn record(p: &mut Peer, id: ConnId, data: &[u8]) {
    assert_eq!(p.stack.write_with(p.now, id, data, WriteFlags::END_OF_RECORD), Ok(data.len()));
}

/// Linux's `forced_push`: more than half of the largest window (here 5000 bytes) since the last push.
#[test]
fn a_long_write_is_pushed_every_half_window() {
    let mut p = Peer::ours();
    let listener = p.listen();
    p.send("S 0 win 10000 <mss 1000>");
    p.expect("SA 0 ack 1");
    p.send("A 1 ack 1 win 10000");
    let id = p.accept(listener);
    p.write(id, &pattern(1, 9500));
    let flags: Vec<bool> = (0..10)
        .map(|_| p.take_packet().unwrap())
        .map(|packet| wire::parse_tcp_packet(&packet).unwrap().1.flags.contains(wire::Flags::PSH))
        .collect();
    let pushed = |n: usize| n == 5 || n == 9;
    assert_eq!(flags, (0..10).map(pushed).collect::<Vec<_>>(), "after 6000 bytes, and at the end");
}

#[test]
fn what_is_written_after_the_end_of_a_record_goes_alone() {
    let (mut p, id) = established();
    record(&mut p, id, &pattern(1, 300));
    record(&mut p, id, &pattern(301, 200));
    p.write(id, &pattern(501, 10));
    p.expect("PA 1:301 ack 1");
    // Not the last in the queue: Nagle has nothing to wait for. The last one waits.
    p.expect("PA 301:501 ack 1");
    p.expect_nothing_for(10);
    p.send("A 1 ack 501");
    p.expect("PA 501:511 ack 1");
    // Nor are they joined when they are retransmitted.
    p.send("A 1 ack 511");
    record(&mut p, id, &pattern(511, 100));
    record(&mut p, id, &pattern(611, 100));
    p.write(id, &pattern(711, 100));
    p.expect("PA 511:611 ack 1");
    p.expect("PA 611:711 ack 1");
    p.expect_after(200, "PA 511:611 ack 1");
    p.send("A 1 ack 611");
    p.expect("PA 611:711 ack 1");
}

#[test]
fn a_burst_ends_with_its_record() {
    let (mut p, id) = established_in(
        Peer::with(Config::default(), gso()),
        "S 0 win 65535 <mss 1000>",
        SocketOptions::default(),
    );
    record(&mut p, id, &pattern(1, 2500));
    p.write(id, &pattern(2501, 3000));
    p.stack.shutdown(p.now, id).unwrap();
    let sizes: Vec<usize> =
        std::iter::from_fn(|| p.stack.poll_transmit(p.now)).map(|packet| packet.payload_len()).collect();
    assert_eq!(sizes, [2500, 3000]);
}

#[test]
fn a_fin_may_follow_the_last_record_at_once() {
    let (mut p, id) = established();
    record(&mut p, id, &pattern(1, 300));
    p.stack.shutdown(p.now, id).unwrap();
    p.expect("FPA 1:301 ack 1");
}

/// `TCP_NOTSENT_LOWAT`: what the windows hold back counts, what is in flight does not.
#[test]
fn no_more_is_taken_than_may_wait_to_be_sent() {
    let socket = SocketOptions { notsent_lowat: Some(4000), ..SocketOptions::default() };
    let (mut p, id) = established_in(Peer::ours(), "S 0 win 65535 <mss 1000>", socket);
    assert_eq!(p.stack.write(p.now, id, &pattern(1, 50_000)), Ok(4000));
    assert_eq!(p.stack.write(p.now, id, &pattern(4001, 1)), Err(WriteError::Blocked));
    for seq in [1, 1001, 2001] {
        p.expect(&format!("A {seq}:{} ack 1", seq + 1000));
    }
    p.expect("PA 3001:4001 ack 1");
    assert!(p.events_of(id).contains(Events::WRITABLE), "all of it has left");
    // Six more segments fill the congestion window; the rest waits.
    assert_eq!(p.stack.write(p.now, id, &pattern(4001, 50_000)), Ok(4000));
    assert_eq!(p.sent_now().len(), 4);
    assert_eq!(p.stack.write(p.now, id, &pattern(8001, 50_000)), Ok(4000));
    assert_eq!(p.sent_now().len(), 2);
    p.events();
    assert_eq!(p.stack.write(p.now, id, &pattern(12_001, 50_000)), Ok(2000));
    assert!(!p.events_of(id).contains(Events::WRITABLE), "4000 bytes wait");
    p.send("A 1 ack 1001");
    p.expect_range(10001..12001);
    assert!(!p.events_of(id).contains(Events::WRITABLE), "2000 are half of what may wait");
    p.send("A 1 ack 2001");
    p.expect_range(12001..14001);
    assert!(p.events_of(id).contains(Events::WRITABLE), "none waits");
    p.stack.set_option(p.now, id, SocketOption::NotsentLowat(None)).unwrap();
    assert_eq!(p.stack.write(p.now, id, &pattern(14_001, 50_000)), Ok(50_000));
}

#[test]
fn the_stacks_limit_of_unsent_bytes_holds_for_all() {
    let mut config = Config::default();
    config.set("net.ipv4.tcp_notsent_lowat", "100").unwrap();
    let (mut p, id) = established_in(Peer::new(config), "S 0 win 65535 <mss 1000>", SocketOptions::default());
    assert_eq!(p.stack.write(p.now, id, &[7; 500]), Ok(100));
    assert_eq!(p.stack.send_capacity(id), Err(WriteError::Blocked));
    p.expect("PA 1:101 ack 1");
    assert_eq!(p.stack.send_capacity(id), Ok(100));
}
