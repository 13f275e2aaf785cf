//! ECN (RFC 3168): agreed in the handshake, marked on new data, echoed until the sender says that it has slowed down.

use crate::pair::{CLIENT, Pair, SERVER};
use crate::peer::*;
use core::time::Duration;
use proto::*;
use wire::{Ecn, Flags};

fn with_ecn(mode: u32) -> Config {
    Config::default().tcp_ecn(mode).tcp_congestion_control(CongestionControl::Reno)
}

/// Passive open by a client that asks for ECN; segments of 1000 bytes.
fn established(config: Config) -> (Peer, ConnId) {
    let mut p = Peer::new(config);
    let listener = p.listen();
    p.send("SEW 0 win 65535 <mss 1000>");
    p.expect("SAE 0 ack 1");
    p.now = p.now + Duration::from_millis(100);
    p.send("A 1 ack 1 win 65535");
    let id = p.accept(listener);
    assert!(p.stack.info(id).unwrap().ecn);
    (p, id)
}

/// With SACK, and forty segments written.
fn forty_segments(config: Config) -> (Peer, ConnId) {
    let mut p = Peer::new(config);
    let listener = p.listen();
    p.send("SEW 0 win 65535 <mss 1000,sackOK>");
    p.expect("SAE 0 ack 1");
    p.now = p.now + Duration::from_millis(100);
    p.send("A 1 ack 1 win 65535");
    let id = p.accept(listener);
    p.write(id, &pattern(1, 40_000));
    (p, id)
}

/// Everything sent now: flags of ECN, ECN field.
fn marks(p: &mut Peer) -> Vec<(Flags, Ecn)> {
    let mut all = Vec::new();
    while let Some(packet) = p.take_packet() {
        let (ip, header, _) = wire::parse_tcp_packet(&packet).unwrap();
        all.push((header.flags & (Flags::ECE | Flags::CWR), ip.ecn));
    }
    all
}

/// The peer's segment, marked on its way.
fn marked(p: &Peer, text: &str) -> RxPacket {
    with_codepoint(p, Ecn::Ce, text)
}

fn with_codepoint(p: &Peer, codepoint: Ecn, text: &str) -> RxPacket {
    let packet = p.packet(text);
    let (mut ip, header, payload) = wire::parse_tcp_packet(&packet).unwrap();
    ip.ecn = codepoint;
    RxPacket::new(wire::build_tcp_packet(&ip, &header, &packet[payload]))
}

fn send_marked(p: &mut Peer, text: &str) {
    let packet = marked(p, text);
    p.send_rx(packet);
}

const NONE: Flags = Flags::empty();

#[test]
fn two_stacks_agree_where_the_client_asks() {
    for (client, server, agreed) in
        [(0, 1, false), (2, 1, false), (2, 2, false), (1, 0, false), (1, 1, true), (1, 2, true)]
    {
        let mut pair = Pair::new(with_ecn(client), with_ecn(server), 20);
        let listener = pair.listen(0);
        let id = pair.connect(ConnectOptions::default());
        pair.run(100);
        let child = pair.accept(listener).unwrap();
        let ecn = [pair.stacks[CLIENT].info(id).unwrap().ecn, pair.stacks[SERVER].info(child).unwrap().ecn];
        assert_eq!(ecn, [agreed; 2], "{client} to {server}");
        for sent in &pair.log {
            let (ip, _, _) = wire::parse_tcp_packet(&sent.packet).unwrap();
            assert_eq!(ip.ecn, Ecn::NotEct, "neither SYNs nor ACKs are ECT");
        }
    }
}

/// RFC 3168 §6.1.1: a SYN-ACK that reflects both flags, as broken hosts do, agrees to nothing. A repeated SYN does not ask.
#[test]
fn a_reflected_request_is_no_agreement_and_a_repeated_syn_does_not_ask() {
    for (answer, agreed) in [("SA", false), ("SAE", true), ("SAEW", false)] {
        let mut p = Peer::new(with_ecn(1));
        let id = p.connect(ConnectOptions::default());
        p.expect("SEW 0");
        p.expect_after(1000, "S 0");
        p.send(&format!("{answer} 0 ack 1 win 65535 <mss 1000>"));
        assert_eq!(p.stack.info(id).unwrap().ecn, agreed, "{answer}");
    }
}

#[test]
fn a_listener_that_may_not_does_not_agree() {
    let mut p = Peer::new(with_ecn(0));
    p.listen();
    p.send("SEW 0 win 65535 <mss 1000>");
    p.expect("SA 0 ack 1");
}

/// ECT(0) on new data; not on what is retransmitted, nor on ACKs (§6.1.4, §6.1.5).
#[test]
fn only_new_data_is_ect() {
    let (mut p, id) = established(with_ecn(2));
    p.write(id, &pattern(1, 2000));
    assert_eq!(marks(&mut p), [(NONE, Ecn::Ect0); 2]);
    p.now = p.now + p.stack.info(id).unwrap().rto;
    p.stack.handle_timeout(p.now);
    assert_eq!(marks(&mut p), [(NONE, Ecn::NotEct)]);
    p.send("A 1:11 ack 2001 win 65535");
    p.now = p.now + Duration::from_millis(40);
    p.stack.handle_timeout(p.now);
    assert_eq!(marks(&mut p), [(NONE, Ecn::NotEct)]);
    p.write(id, &pattern(2001, 2000));
    assert_eq!(marks(&mut p), [(Flags::CWR, Ecn::Ect0), (NONE, Ecn::Ect0)], "reduced by the time-out");
}

/// §6.1.3: ECE on every ACK from CE until CWR; the first at once.
#[test]
fn congestion_experienced_is_echoed_until_the_sender_has_reduced() {
    let (mut p, id) = established(with_ecn(2));
    send_marked(&mut p, "A 1:101 ack 1");
    assert_eq!(marks(&mut p), [(Flags::ECE, Ecn::NotEct)]);
    p.send("A 101:201 ack 1");
    p.now = p.now + Duration::from_millis(40);
    p.stack.handle_timeout(p.now);
    assert_eq!(marks(&mut p), [(Flags::ECE, Ecn::NotEct)]);
    p.write(id, &pattern(1, 1000));
    assert_eq!(marks(&mut p), [(Flags::ECE, Ecn::Ect0)], "data acknowledges, too");
    p.send("AW 201:301 ack 1001");
    p.now = p.now + Duration::from_millis(40);
    p.stack.handle_timeout(p.now);
    assert_eq!(marks(&mut p), [(NONE, Ecn::NotEct)]);
    let packet = {
        send_marked(&mut p, "AW 301:401 ack 1001");
        marks(&mut p)
    };
    assert_eq!(packet, [(Flags::ECE, Ecn::NotEct)], "marked anew");
}

/// The window of who says that it has slowed down may be that one segment (Linux's `tcp_ecn_accept_cwr`).
#[test]
fn text_that_tells_of_a_reduction_is_acknowledged_at_once() {
    let (mut p, _) = established(with_ecn(2));
    send_marked(&mut p, "A 1:101 ack 1");
    assert_eq!(marks(&mut p), [(Flags::ECE, Ecn::NotEct)]);
    p.send("AW 101:201 ack 1");
    p.expect("A 1 ack 201");
    p.send("AW 201 ack 1");
    p.expect_nothing();
}

/// RFC 4015 §3.2: a recovery during which congestion was echoed, or that was over when it was, is not undone.
#[test]
fn an_echo_forbids_an_undo() {
    for over in [false, true] {
        let (mut p, id) = forty_segments(with_ecn(2).tcp_early_retrans(0));
        assert_eq!(marks(&mut p).len(), 10);
        p.now = p.now + Duration::from_millis(100);
        p.send("A 1 ack 1 <sack 1001:4001>");
        marks(&mut p);
        if over {
            p.send("A 1 ack 10001");
        }
        p.send(if over { "AE 1 ack 11001" } else { "AE 1 ack 4001" });
        let reduced = p.stack.info(id).unwrap().ssthresh;
        p.send(if over { "A 1 ack 11001 <sack 1:1001>" } else { "A 1 ack 4001 <sack 1:1001>" });
        assert_eq!(p.stack.counters().dsack_recv, 1);
        assert_eq!(p.stack.info(id).unwrap().ssthresh, reduced, "over: {over}");
    }
}

/// A run may begin behind a packet that was dropped before its mark was seen.
#[test]
fn a_marked_run_behind_a_copy_is_echoed() {
    let (mut p, _) = established(with_ecn(2));
    p.send("A 1:101 ack 1");
    p.expect_after(5, "A 1 ack 101");
    let run = ["A 1:101 ack 1", "A 101:201 ack 1"].map(|text| marked(&p, text));
    p.stack.handle_packets(p.now, &mut RxBatch::from_iter(run));
    assert_eq!(marks(&mut p), [(Flags::ECE, Ecn::NotEct)]);
}

/// Each packet that cannot be marked, behind one that can, begins two quick ACKs (Linux's `tcp_data_ecn_check`), also where it comes in a run.
#[test]
fn each_packet_of_a_run_without_ect_begins_quick_acks() {
    let (mut p, id) = established(with_ecn(2));
    p.send("A 1:11 ack 1");
    p.write(id, b"y");
    p.expect("AP 1:2 ack 11");
    p.send("A 11:21 ack 2");
    p.expect_after(40, "A 2 ack 21");
    let mut next = 21;
    let text = |next: &mut u32, len: u32| {
        let from = core::mem::replace(next, *next + len);
        format!("A {from}:{} ack 2", from + len)
    };
    for _ in 0..8 {
        let segment = text(&mut next, 1460);
        p.send(&segment);
        p.expect(&format!("A 2 ack {next}"));
    }
    p.send_rx(with_codepoint(&p, Ecn::Ect0, &text(&mut next, 10)));
    p.expect_nothing();
    let run = [1460, 100].map(|len| RxPacket::new(p.packet(&text(&mut next, len))));
    p.stack.handle_packets(p.now, &mut RxBatch::from_iter(run));
    p.expect(&format!("A 2 ack {next}"));
    assert_eq!(p.stack.info(id).unwrap().tcp_info.ato, Duration::from_millis(5), "quick ACKs are left");
}

/// §6.1.2: the window is halved once per round trip; the next new data says so; nothing is retransmitted.
#[test]
fn an_echo_reduces_the_window_once_per_round_trip() {
    let (mut p, id) = established(with_ecn(2));
    p.write(id, &pattern(1, 60_000));
    assert_eq!(marks(&mut p).len(), 10);
    p.now = p.now + Duration::from_millis(100);
    p.send("AE 1 ack 1001 win 65535");
    let info = p.stack.info(id).unwrap();
    assert_eq!((info.cwnd, info.ssthresh), (5000, 5000));
    for acked in 2..=5 {
        p.send(&format!("AE 1 ack {} win 65535", 1 + acked * 1000));
    }
    assert_eq!(marks(&mut p), [], "five are still in flight");
    p.send("AE 1 ack 6001 win 65535");
    assert_eq!(marks(&mut p), [(Flags::CWR, Ecn::Ect0)]);
    p.send("A 1 ack 9001 win 65535");
    assert_eq!(marks(&mut p), [(NONE, Ecn::Ect0); 3]);
    assert_eq!(p.stack.info(id).unwrap().cwnd, 5000);
    p.send("AE 1 ack 10001 win 65535");
    let info = p.stack.info(id).unwrap();
    assert_eq!((info.cwnd, info.ssthresh), (2500, 2500), "everything of then is acknowledged: a new one");
    let counters = p.stack.counters();
    assert_eq!((counters.retrans_segs, counters.timeouts), (0, 0));
}

/// A loss that SACK tells is said with CWR like one that a router marks, and both in one round trip reduce once. What is retransmitted is not ECT.
#[test]
fn a_loss_found_by_sack_and_an_echo_reduce_once() {
    let (mut p, id) = forty_segments(with_ecn(2));
    assert_eq!(marks(&mut p), [(NONE, Ecn::Ect0); 10]);
    p.now = p.now + Duration::from_millis(100);
    p.send("A 1 ack 1 win 65535 <sack 1001:4001>");
    assert_eq!(
        marks(&mut p),
        [(NONE, Ecn::NotEct), (Flags::CWR, Ecn::Ect0)],
        "the lost one again, and a new one"
    );
    p.send("AE 1 ack 1 win 65535 <sack 1001:10001>");
    let new = (NONE, Ecn::Ect0);
    assert_eq!(marks(&mut p), [new; 3]);
    let info = p.stack.info(id).unwrap();
    assert_eq!((info.cwnd, info.ssthresh), (5000, 5000));
}

/// One window of data brings an echo and then a loss: the window is reduced for the first only (RFC 3168 §6.1.2), and the loss is repaired;
/// a loss of what was sent later reduces it again.
#[test]
fn a_loss_among_what_the_echo_was_for_reduces_nothing_more() {
    let (mut p, id) = established(with_ecn(1));
    p.write(id, &pattern(1, 40_000));
    assert_eq!(p.sent_now().len(), 10);
    p.send("AE 1 ack 1001 win 65535");
    let reduced = p.stack.info(id).unwrap();
    assert_eq!((reduced.cwnd, reduced.ssthresh), (5_000, 5_000));
    (0..3).for_each(|_| p.send("A 1 ack 1001 win 65535"));
    assert_eq!(p.stack.counters().reno_recovery, 1);
    assert!(p.sent_now()[0].starts_with("A 1001:2001"), "the head is retransmitted");
    assert_eq!(p.stack.info(id).unwrap().ssthresh, 5_000);
    p.send("A 1 ack 10001 win 65535");
    assert_eq!(p.sent_now().len(), 5);
    p.send("A 1 ack 11001 win 65535");
    assert_eq!(p.sent_now().len(), 1);
    (0..3).for_each(|_| p.send("A 1 ack 11001 win 65535"));
    assert_eq!(p.stack.counters().reno_recovery, 2);
    assert_eq!(p.stack.info(id).unwrap().ssthresh, 2_500);
}

/// What says CWR is one segment, even where the device would cut.
#[test]
fn a_burst_begins_behind_cwr() {
    let device = Capabilities { gso_max_size: 65_536, ..crate::pair::ethernet() };
    let mut p = Peer::with(with_ecn(2), device);
    let listener = p.listen();
    p.send("SEW 0 win 65535 <mss 1000>");
    p.expect("SAE 0 ack 1");
    p.send("A 1 ack 1 win 65535");
    let id = p.accept(listener);
    p.write(id, &pattern(1, 60_000));
    assert_eq!(marks(&mut p).len(), 10);
    p.send("AE 1 ack 10001 win 65535");
    let packets: Vec<_> = std::iter::from_fn(|| p.stack.poll_transmit(p.now)).collect();
    let sizes: Vec<_> = packets.iter().map(|packet| packet.payload_len()).collect();
    assert_eq!(sizes, [1000, 4000]);
}

/// Flags mean nothing to a connection that has not agreed.
#[test]
fn without_agreement_nothing_is_marked_or_reduced() {
    let mut p = Peer::new(with_ecn(2));
    let listener = p.listen();
    let id = p.establish(listener);
    p.write(id, &pattern(1, 20_000));
    assert_eq!(marks(&mut p), [(NONE, Ecn::NotEct); 10]);
    p.send("AE 1 ack 2001 win 65535");
    assert!(p.stack.info(id).unwrap().cwnd > 10_000);
    send_marked(&mut p, "A 1:101 ack 2001");
    assert!(marks(&mut p).iter().all(|mark| *mark == (NONE, Ecn::NotEct)));
}
