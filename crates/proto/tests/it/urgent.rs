//! The urgent pointer by RFC 6093: a mark in the stream.

use crate::icmp::error_about;
use crate::pair::ethernet;
use crate::peer::*;
use proto::*;
use wire::IcmpError;

fn established(config: Config) -> (Peer, ConnId) {
    let mut p = Peer::new(config);
    let listener = p.listen();
    let id = p.establish(listener);
    p.events();
    (p, id)
}

/// The peer's segment with this urgent pointer.
fn send_urgent(p: &mut Peer, text: &str, pointer: u16) {
    let mut packet = p.packet(text).to_vec();
    packet[38..40].copy_from_slice(&pointer.to_be_bytes());
    p.send_rx(RxPacket { checksum: wire::RxChecksum::Trusted, ..RxPacket::new(packet.into()) });
}

fn write_urgent(p: &mut Peer, id: ConnId, data: &[u8]) {
    assert_eq!(p.stack.write_with(p.now, id, data, WriteFlags::URGENT), Ok(data.len()));
}

/// Every segment before the end of the urgent bytes has it, counted from its own number; nothing waits for Nagle.
#[test]
fn the_pointer_is_behind_the_last_urgent_byte() {
    let (mut p, id) = established(Config::default());
    p.write(id, &pattern(1, 1500));
    write_urgent(&mut p, id, &pattern(1501, 10));
    assert_eq!(p.expect("UA 1:1001 ack 1").urgent, 1510);
    assert_eq!(p.expect("UPA 1001:1511 ack 1").urgent, 510);
    p.write(id, &pattern(1511, 10));
    p.expect("PA 1511:1521 ack 1");
    p.send("A 1 ack 1511");
    p.write(id, &pattern(1521, 10));
    p.expect_nothing_for(10);
    p.send("A 1 ack 1521");
    p.expect("PA 1521:1531 ack 1");
}

/// A device that cuts a burst copies its header: the pointer would count from the wrong number in all segments but the first.
#[test]
fn what_goes_again_before_the_end_of_urgent_bytes_is_no_burst() {
    let device = Capabilities { gso_max_size: 65_536, tx_checksum: true, ..ethernet() };
    let mut p = Peer::with(Config::linux(), device);
    let listener = p.listen();
    let id = p.establish_with(listener, "S 0 win 65535 <mss 1460>");
    write_urgent(&mut p, id, &pattern(1, 1460));
    let packet = p.take_packet().unwrap();
    error_about(&mut p, &packet, IcmpError::PacketTooBig { mtu: 1000 });
    assert_eq!(p.expect("UA 1:961 ack 1").urgent, 1460);
    assert_eq!(p.expect("UPA 961:1461 ack 1").urgent, 500);
}

/// Urgent bytes wait for the window like any others (RFC 9293 §3.8.5: they are told of, not sent, before it opens).
#[test]
fn urgent_bytes_stay_within_the_window() {
    let device = Capabilities { gso_max_size: 65_536, tx_checksum: true, ..ethernet() };
    let mut p = Peer::with(Config::default().write_rules(WriteRules::BySegment), device);
    let listener = p.listen();
    p.send("S 0 win 600 <mss 1000>");
    p.expect("SA 0 ack 1");
    p.send("A 1 ack 1 win 600");
    let id = p.accept(listener);
    write_urgent(&mut p, id, &pattern(1, 3000));
    p.expect("UA 1:601 ack 1");
}

/// Also of an acknowledgement, while the window keeps the bytes themselves back (MUST-66).
#[test]
fn the_peer_is_told_before_the_window_opens() {
    let (mut p, id) = established(Config::default());
    p.send("A 1 ack 1 win 0");
    write_urgent(&mut p, id, b"!");
    assert_eq!(p.expect_after(200, "UA 0 ack 1").urgent, 2);
    p.send("PA 1:11 ack 1 win 0");
    assert_eq!(p.expect_after(5, "UA 1 ack 11").urgent, 1);
    p.send("A 11 ack 1 win 10");
    assert_eq!(p.expect("UPA 1:2 ack 11").urgent, 1);
}

/// As far as sixteen bits reach.
#[test]
fn urgent_bytes_may_be_far_away() {
    let (mut p, id) = established(Config::default());
    p.write(id, &pattern(1, 70_000));
    write_urgent(&mut p, id, b"!");
    assert_eq!(p.expect("UA 1:1001 ack 1").urgent, u16::MAX);
}

/// A read stops before the urgent byte, and one that begins there goes on.
#[test]
fn a_read_does_not_go_over_the_mark() {
    let (mut p, id) = established(Config::default());
    send_urgent(&mut p, "UPA 1:11 ack 1", 5);
    assert!(p.events_of(id).contains(Events::URGENT));
    assert_eq!(p.stack.urgent_mark(id), Some(4));
    let mut buf = [0; 100];
    assert_eq!(p.stack.peek(p.now, id, &mut buf), Ok(4));
    assert_eq!(p.read(id).unwrap(), pattern(1, 4));
    assert_eq!(p.stack.urgent_mark(id), Some(0));
    assert_eq!(p.read(id).unwrap(), pattern(5, 6));
    assert_eq!(p.stack.urgent_mark(id), None);
}

/// The pointer may come long before its bytes, and a later one counts instead.
#[test]
fn the_mark_may_lie_ahead() {
    let (mut p, id) = established(Config::default());
    send_urgent(&mut p, "UPA 1:11 ack 1", 15);
    assert_eq!(p.stack.urgent_mark(id), Some(14));
    assert_eq!(p.read(id).unwrap(), pattern(1, 10));
    assert_eq!(p.stack.urgent_mark(id), Some(4));
    p.events();
    send_urgent(&mut p, "UPA 11:13 ack 1", 3);
    assert!(!p.events_of(id).contains(Events::URGENT), "of an earlier byte: no news");
    send_urgent(&mut p, "UPA 13:21 ack 1", 8);
    assert!(p.events_of(id).contains(Events::URGENT));
    assert_eq!(p.stack.urgent_mark(id), Some(9));
    assert_eq!(p.stack.read_chunk(p.now, id, 100).unwrap().unwrap(), pattern(11, 9));
    assert_eq!(p.stack.urgent_mark(id), Some(0));
}

/// RFC 1122's pointer is the last urgent byte's own.
#[test]
fn tcp_stdurg_counts_otherwise() {
    let mut config = Config::default();
    config.set("net.ipv4.tcp_stdurg", "1").unwrap();
    let (mut p, id) = established(config);
    send_urgent(&mut p, "UPA 1:11 ack 1", 5);
    assert_eq!(p.stack.urgent_mark(id), Some(5));
}

/// `SO_OOBINLINE` off.
fn apart() -> (Peer, ConnId) {
    let (mut p, id) = established(Config::default());
    p.stack.set_option(p.now, id, SocketOption::UrgentApart(true)).unwrap();
    (p, id)
}

/// BSD's and Linux's way: the byte is read by itself, as soon as it is there, and the stream goes on without it.
#[test]
fn an_urgent_byte_is_read_apart() {
    let (mut p, id) = apart();
    assert_eq!(p.stack.read_urgent(id, true), Err(UrgentError::None), "nobody told of one");
    send_urgent(&mut p, "UPA 1:11 ack 1", 5);
    assert!(p.events_of(id).contains(Events::URGENT));
    assert_eq!(p.stack.urgent_mark(id), Some(4));
    assert_eq!(p.stack.read_urgent(id, false), Ok(pattern_at(5)), "a look leaves it");
    assert_eq!(p.stack.read_urgent(id, true), Ok(pattern_at(5)), "before what was sent before it");
    assert_eq!(p.stack.read_urgent(id, true), Err(UrgentError::None), "once");
    let mut buf = [0; 100];
    assert_eq!(p.stack.read(p.now, id, &mut buf), Ok(4));
    assert_eq!((&buf[..4], p.stack.urgent_mark(id)), (&pattern(1, 4)[..], Some(0)));
    assert_eq!(p.stack.peek(p.now, id, &mut buf), Ok(5));
    let looked = (&buf[..5], p.stack.urgent_mark(id));
    assert_eq!(looked, (&pattern(6, 5)[..], Some(0)), "a look does not pass the mark");
    assert_eq!(p.read(id).unwrap(), pattern(6, 5));
    assert_eq!(p.stack.urgent_mark(id), None);
}

/// Whoever does not ask for it loses nothing of the stream, and may still ask when the mark lies behind.
#[test]
fn a_reader_passes_the_mark_first() {
    let (mut p, id) = apart();
    send_urgent(&mut p, "UPA 1:2 ack 1", 1);
    assert_eq!(p.stack.read(p.now, id, &mut [0; 10]), Err(ReadError::Blocked), "it is all there is");
    assert_eq!(p.stack.urgent_mark(id), None);
    p.send("PA 2:12 ack 1");
    assert_eq!(p.stack.read_chunk(p.now, id, 100).unwrap().unwrap(), pattern(2, 10));
    assert_eq!(p.stack.read_urgent(id, true), Ok(pattern_at(1)));
}

/// Told of before it comes; it may come before what it follows.
#[test]
fn an_urgent_byte_may_be_awaited_and_overtake() {
    let (mut p, id) = apart();
    send_urgent(&mut p, "UA 1 ack 1", 21);
    assert!(p.events_of(id).contains(Events::URGENT));
    assert_eq!(p.stack.read_urgent(id, true), Err(UrgentError::Blocked));
    send_urgent(&mut p, "UPA 11:31 ack 1", 11);
    assert!(p.events_of(id).contains(Events::URGENT), "now it is here, though ten bytes are missing");
    assert_eq!(p.stack.read_urgent(id, true), Ok(pattern_at(21)));
    p.send("PA 1:11 ack 1");
    assert_eq!(p.stack.read(p.now, id, &mut [0; 100]), Ok(20));
    assert_eq!(p.stack.read(p.now, id, &mut [0; 100]), Ok(9));
    // Without the flag on the segment that brings it, it is found in the stream.
    let (mut p, id) = apart();
    send_urgent(&mut p, "UA 1 ack 1", 3);
    p.send("PA 1:11 ack 1");
    assert_eq!(p.stack.read_urgent(id, true), Ok(pattern_at(3)));
    // Or never.
    let (mut p, id) = apart();
    send_urgent(&mut p, "UA 1 ack 1", 3);
    p.send("FA 1 ack 1");
    assert_eq!(p.stack.read_urgent(id, true), Err(UrgentError::Closed(CloseReason::Finished)));
}

/// Only the last one is apart: one that was not read in time is an ordinary byte again, unless the reader stands before it.
#[test]
fn a_later_urgent_byte_takes_the_place() {
    let (mut p, id) = apart();
    send_urgent(&mut p, "UPA 1:11 ack 1", 5);
    send_urgent(&mut p, "UPA 11:21 ack 1", 10);
    assert_eq!(p.stack.read_urgent(id, true), Ok(pattern_at(20)));
    assert_eq!(p.read(id).unwrap(), pattern(1, 19), "the fifth is in the stream");
    let (mut p, id) = apart();
    send_urgent(&mut p, "UPA 1:11 ack 1", 5);
    assert_eq!(p.stack.read(p.now, id, &mut [0; 100]), Ok(4));
    send_urgent(&mut p, "UPA 11:21 ack 1", 10);
    assert_eq!(p.read(id).unwrap(), pattern(6, 14), "the fifth is gone, as with Linux");
    assert_eq!(p.stack.read_urgent(id, true), Ok(pattern_at(20)));
}

/// The option may change, and in the stream there is nothing to be had apart.
#[test]
fn inline_there_is_nothing_apart() {
    let (mut p, id) = apart();
    send_urgent(&mut p, "UPA 1:11 ack 1", 5);
    p.stack.set_option(p.now, id, SocketOption::UrgentApart(false)).unwrap();
    assert_eq!(p.stack.read_urgent(id, true), Err(UrgentError::None));
    assert_eq!(p.read(id).unwrap(), pattern(1, 4));
    assert_eq!(p.read(id).unwrap(), pattern(5, 6));
    p.close(id);
    assert_eq!(p.stack.read_urgent(id, true), Err(UrgentError::NotFound));
}

/// However many bytes shall be left out (`SO_PEEK_OFF`), with an urgent one in front of them.
#[test]
fn a_peek_past_everything_finds_nothing() {
    let (mut p, id) = established(Config::default());
    send_urgent(&mut p, "UPA 1:11 ack 1", 1);
    let mut buf = [0; 4];
    assert_eq!(p.stack.peek_from(p.now, id, usize::MAX, &mut buf), Err(ReadError::Blocked));
}

/// A peek stops at the mark as a read does, goes on from it and behind it, and steps over a byte that is read apart.
#[test]
fn a_peek_knows_the_mark_wherever_it_begins() {
    for inline in [true, false] {
        let (mut p, id) = if inline { established(Config::default()) } else { apart() };
        send_urgent(&mut p, "UPA 1:11 ack 1", 6);
        let mut peek = |skip| {
            let mut buf = [0; 20];
            let len = p.stack.peek_from(p.now, id, skip, &mut buf)?;
            Ok::<_, ReadError>(buf[..len].to_vec())
        };
        let from = |place, len| Ok(pattern(place, len));
        assert_eq!(peek(2), from(3, 3));
        if inline {
            assert_eq!([peek(5), peek(6), peek(9)], [from(6, 5), from(7, 4), from(10, 1)]);
        } else {
            assert_eq!([peek(5), peek(6), peek(8)], [from(7, 4), from(8, 3), from(10, 1)]);
            assert_eq!(peek(9), Err(ReadError::Blocked));
        }
        assert_eq!(peek(10), Err(ReadError::Blocked));
    }
}
