//! Requirements of RFC 9293 that no other conversation shows. `docs/rfc9293.md` lists them all.

use crate::peer::*;
use core::time::Duration;
use proto::*;
use wire::{Flags, SeqNum, TcpHeader, TcpOptions};

fn established() -> (Peer, ConnId) {
    let mut p = Peer::ours();
    let listener = p.listen();
    let id = p.establish(listener);
    (p, id)
}

/// A segment of the peer with an option of kind 200.
fn with_unknown_option(p: &Peer, flags: Flags, numbers: (SeqNum, SeqNum), payload: &[u8]) -> RxPacket {
    let mut options = TcpOptions::default();
    options.unknown.push((200, [1, 2, 3, 4][..].into()));
    let header = TcpHeader {
        seq: numbers.0,
        ack: numbers.1,
        flags,
        window: 65535,
        options,
        ..TcpHeader::new(p.remote.port(), p.local.port())
    };
    RxPacket::new(wire::build_tcp_packet(&p.ip(), &header, payload))
}

/// MUST-5, MUST-6.
#[test]
fn unknown_options_are_ignored_in_any_segment() {
    let mut p = Peer::ours();
    let listener = p.listen();
    p.send_rx(with_unknown_option(&p, Flags::SYN, (PEER_ISN, SeqNum(0)), b""));
    let iss = p.expect("SA 0 ack 1").seq;
    p.send_rx(with_unknown_option(&p, Flags::ACK, (PEER_ISN + 1, iss + 1), b""));
    let id = p.accept(listener);
    p.send_rx(with_unknown_option(&p, Flags::ACK, (PEER_ISN + 1, iss + 1), b"text"));
    assert_eq!(p.read(id).unwrap(), b"text");
    p.send_rx(with_unknown_option(&p, Flags::ACK | Flags::FIN, (PEER_ISN + 5, iss + 1), b""));
    assert_eq!(p.state(id), State::CloseWait);
}

/// SHLD-5, MAY-3, MUST-65.
#[test]
fn every_syn_and_no_other_segment_tells_an_mss() {
    let mut p = Peer::ours();
    let id = p.connect(ConnectOptions::default());
    assert_eq!(p.expect("S 0").options.mss, Some(1460));
    p.send("SA 0 ack 1 <mss 1000>");
    assert_eq!(p.expect("A 1 ack 1").options.mss, None);
    p.write(id, &pattern(1, 10));
    assert_eq!(p.expect("PA 1:11 ack 1").options.mss, None);
    p.close(id);
    assert_eq!(p.expect("FA 11 ack 1").options.mss, None);
    let mut p = Peer::ours().v6();
    p.listen();
    p.send("S 0");
    assert_eq!(p.expect("SA 0 ack 1").options.mss, Some(1440));
}

/// MUST-15.
#[test]
fn without_an_mss_segments_have_the_default_size() {
    for (mut p, size) in [(Peer::ours(), 536), (Peer::ours().v6(), 1220)] {
        let listener = p.listen();
        let id = p.establish_with(listener, "S 0");
        p.write(id, &pattern(1, 2 * size));
        p.expect(&format!("A 1:{} ack 1", 1 + size));
        p.expect(&format!("PA {}:{} ack 1", 1 + size, 1 + 2 * size));
    }
}

/// MUST-66. The number is the one expected next, as in an open window.
#[test]
fn a_reset_is_taken_while_the_window_is_closed() {
    let mut p = Peer::ours();
    let socket = SocketOptions { recv_buffer: Some(2000), ..SocketOptions::default() };
    let listener = p.listen_with(ListenOptions { socket, ..ListenOptions::default() });
    let id = p.establish(listener);
    let mut at = 1;
    while p.stack.info(id).unwrap().rcv_wnd > 0 {
        let len = p.stack.info(id).unwrap().rcv_wnd.min(1000);
        p.send(&format!("A {at}:{} ack 1", at + len));
        p.skip(100);
        at += len;
    }
    p.send(&format!("R {at}"));
    assert_eq!(p.state(id), State::Closed);
    assert_eq!(p.stack.close_reason(id), Some(CloseReason::Reset));
}

/// SHLD-2.
#[test]
fn a_reset_may_carry_data() {
    let (mut p, id) = established();
    p.send_bytes("R 1", b"the reason in words");
    assert_eq!(p.stack.close_reason(id), Some(CloseReason::Reset));
    p.expect_nothing();
}

/// MUST-41: an open connection lives on while its port is closed and listened on again.
#[test]
fn listening_anew_disturbs_no_connection() {
    let mut p = Peer::ours();
    let first = p.listen();
    let id = p.establish(first);
    p.stack.close_listener(p.now, first);
    let second = p.listen();
    p.send("PA 1:11 ack 1");
    assert_eq!(p.read(id).unwrap(), pattern(1, 10));
    p.skip(100);
    p.remote.set_port(40_001);
    p.establish(second);
    p.remote.set_port(40_000);
    p.write(id, &pattern(1, 10));
    p.expect("PA 1:11 ack 11");
}

/// MUST-57, MUST-63.
#[test]
fn syns_to_or_from_groups_are_not_answered() {
    for group in ["224.0.0.1", "255.255.255.255", "ff02::1"] {
        let addr: std::net::IpAddr = group.parse().unwrap();
        let fresh = || if addr.is_ipv4() { Peer::ours() } else { Peer::ours().v6() };
        let mut to = fresh();
        to.listen();
        to.local.set_ip(addr);
        let packet = RxPacket::new(to.packet("S 0"));
        to.stack.handle_packet(to.now, packet);
        to.expect_nothing();
        let mut from = fresh();
        from.listen();
        from.remote.set_ip(addr);
        from.send("S 0");
        from.expect_nothing();
        assert_eq!((to.sizes(), from.sizes()), ((0, 0, 0), (0, 0, 0)), "{group}");
    }
}

/// MUST-23: with one retransmission more than Linux's default.
#[test]
fn seven_syn_retries_take_more_than_three_minutes() {
    let mut p = Peer::new(Config::default().tcp_syn_retries(7));
    let id = p.connect(ConnectOptions::default());
    let begun = p.now;
    p.expect("S 0");
    while p.state(id) != State::Closed {
        p.now = p.stack.poll_timeout().expect("it still tries");
        p.stack.handle_timeout(p.now);
        p.expect_at_most(1);
    }
    assert_eq!(p.stack.close_reason(id), Some(CloseReason::TimedOut));
    assert_eq!(p.now.since(begun), Duration::from_secs(251));
}

/// The DiffServ code point and hop limit of everything the stack sends now.
fn marks(p: &mut Peer) -> Vec<(u8, u8)> {
    let packets: Vec<_> = std::iter::from_fn(|| p.take_packet()).collect();
    let headers = packets.iter().map(|packet| wire::IpHeader::parse(packet).unwrap().0);
    headers.map(|ip| (ip.dscp, ip.hop_limit)).collect()
}

/// MUST-48, MUST-49, SHLD-21, SHLD-22.
#[test]
fn an_application_chooses_code_point_and_hop_limit_and_may_change_its_mind() {
    let socket = SocketOptions { dscp: 46, hop_limit: Some(9), ..SocketOptions::default() };
    let mut p = Peer::ours();
    let listener = p.listen_with(ListenOptions { socket, ..ListenOptions::default() });
    p.send("S 0 win 65535 <mss 1000>");
    assert_eq!(marks(&mut p), [(46, 9)]);
    p.send("A 1 ack 1 win 65535");
    let id = p.accept(listener);
    p.write(id, b"text");
    assert_eq!(marks(&mut p), [(46, 9)]);
    for option in [SocketOption::Dscp(10), SocketOption::HopLimit(None)] {
        p.stack.set_option(p.now, id, option).unwrap();
    }
    p.write(id, b"more");
    p.stack.push(p.now, id);
    assert_eq!(marks(&mut p), [(10, 64)]);
    p.stack.set(p.now, "net.ipv4.ip_default_ttl", "100").unwrap();
    p.remote.set_port(9);
    p.send("A 1 ack 1");
    p.stack.abort(p.now, id);
    assert_eq!(marks(&mut p), [(0, 100), (10, 100)]);
}

/// MUST-48, MUST-49, SHLD-21, SHLD-22: an active open has its code point and hop limit from its SYN on.
#[test]
fn a_connect_is_marked_from_its_syn_on() {
    let mut p = Peer::ours().v6();
    let socket = SocketOptions { dscp: 8, hop_limit: Some(255), ..SocketOptions::default() };
    p.connect(ConnectOptions { socket, ..ConnectOptions::default() });
    assert_eq!(marks(&mut p), [(8, 255)]);
}
