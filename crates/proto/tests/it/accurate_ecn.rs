//! Accurate ECN (RFC 9768): agreed in the handshake, marks counted and told, and what follows from them. The codes of every handshake, and
//! when options go, are in `script/scripts/accurate-ecn` too, which hold on Linux.

use crate::pair::{CLIENT, Pair, SERVER};
use crate::peer::*;
use crate::random::Random;
use bytes::Bytes;
use core::time::Duration;
use proto::*;
use std::cell::Cell;
use std::rc::Rc;
use wire::{Ecn, Flags};

fn with_ecn(mode: u32) -> Config {
    Config::default().tcp_ecn(mode).tcp_congestion_control(CongestionControl::Reno)
}

/// As Linux, without timestamps: segments are as long as they look.
fn as_linux() -> Config {
    Config::linux().tcp_ecn(3).tcp_timestamps(0)
}

/// A copy of the packet with another ECN codepoint.
fn with_codepoint(packet: &Bytes, codepoint: Ecn) -> Bytes {
    let (ip, header, payload) = wire::parse_tcp_packet(packet).unwrap();
    let ip = wire::IpHeader { ecn: codepoint, ..ip };
    wire::build_tcp_packet(&ip, &header, &packet[payload])
}

impl Peer {
    /// A segment that arrives with this codepoint.
    fn send_as(&mut self, codepoint: Ecn, text: &str) {
        let packet = with_codepoint(&self.packet(text), codepoint);
        self.send_rx(RxPacket::new(packet));
    }

    /// The codepoint of the next packet.
    fn codepoint(&mut self) -> Ecn {
        let packet = self.take_packet().expect("a packet");
        wire::parse_tcp_packet(&packet).unwrap().0.ecn
    }

    fn marks(&self, id: ConnId) -> AccurateEcnInfo {
        self.stack.info(id).unwrap().tcp_info.accurate_ecn
    }
}

/// Passive open; the peer has sent an option, and takes segments of 1000 bytes, options included.
fn established(config: Config) -> (Peer, ConnId) {
    let mut p = Peer::new(config);
    let listener = p.listen();
    p.send("SEWe 0 win 65535 <mss 1000,sackOK>");
    p.expect("SAW 0 ack 1 <mss 1460,ECN 1 0 1,sackOK>");
    p.now = p.now + Duration::from_millis(100);
    p.send_as(Ecn::Ect0, "AW 1 ack 1 win 65535 <ECN 1 0 1>");
    let id = p.accept(listener);
    (p, id)
}

/// What two stacks agree on is the most that both know (RFC 9768 §3.1.1, table 2).
#[test]
fn two_stacks_agree_on_the_most_that_both_know() {
    for client in 0..=5 {
        for server in 0..=5 {
            let mut pair = Pair::new(with_ecn(client), with_ecn(server), 20);
            let listener = pair.listen(0);
            let id = pair.connect(ConnectOptions::default());
            pair.run(100);
            let child = pair.accept(listener).unwrap();
            pair.write(CLIENT, id, &pattern(1, 100));
            pair.run(200);
            let asked = match client {
                3 => 2,
                1 | 4 => 1,
                _ => 0,
            };
            let most = match server {
                0 => 0,
                1 | 2 => 1,
                _ => 2,
            };
            let agreed = asked.min(most);
            for (side, id) in [(CLIENT, id), (SERVER, child)] {
                let info = pair.stacks[side].info(id).unwrap();
                let kind = match (info.ecn, info.tcp_info.accurate_ecn.opt_seen) {
                    (false, _) => 0,
                    (true, 0) => 1,
                    (true, _) => 2,
                };
                assert_eq!(kind, agreed, "{client} to {server}, side {side}");
            }
            let ect = pair
                .log
                .iter()
                .filter(|sent| wire::parse_tcp_packet(&sent.packet).unwrap().0.ecn == Ecn::Ect0);
            let expected = match agreed {
                0 => 0,
                1 => 1,
                // The ACK of the SYN-ACK, data, and its ACK.
                _ => 3,
            };
            assert_eq!(ect.count(), expected, "{client} to {server}");
        }
    }
}

/// A link of 10 Mbit/s that marks what finds more than ten packets in its queue, after which it drops none: one way. Both ends count the
/// same marks, in packets and in bytes, and the sender keeps the queue short by them.
#[test]
fn both_ends_count_the_marks_of_a_path() {
    let mut pair = Pair::new(as_linux(), as_linux(), 10);
    let (marked, bytes, longest) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(0)), Rc::new(Cell::new(0)));
    let next_marked = Rc::new(Cell::new(false));
    let mut free_at = pair.now;
    let (count, sum, most, mark) = (marked.clone(), bytes.clone(), longest.clone(), next_marked.clone());
    pair.copies = Box::new(move |sent| {
        let takes = Duration::from_nanos(sent.packet.len() as u64 * 800);
        free_at = free_at.max(sent.at);
        let waits = free_at.since(sent.at);
        free_at = free_at + takes;
        let full = sent.from == CLIENT && waits > Duration::from_micros(12_000) && sent.len > 0;
        mark.set(full);
        if full {
            count.set(count.get() + 1);
            sum.set(sum.get() + sent.len as u32);
        }
        most.set(most.get().max(waits.as_micros() as u64));
        vec![waits + takes]
    });
    pair.rewrite = Box::new(move |sent| match next_marked.get() {
        true => with_codepoint(&sent.packet, Ecn::Ce),
        false => sent.packet.clone(),
    });
    let listener = pair.listen(0);
    let id = pair.connect(ConnectOptions::default());
    pair.run(100);
    let child = pair.accept(listener).unwrap();
    let mut sent = 0;
    while sent < 4_000_000 {
        let now = pair.now;
        sent += pair.stacks[CLIENT].write(now, id, &pattern(1, 50_000)).unwrap_or(0);
        pair.run(10);
        while pair.read(SERVER, child).is_ok_and(|read| !read.is_empty()) {}
    }
    pair.run(2000);
    while pair.read(SERVER, child).is_ok_and(|read| !read.is_empty()) {}
    pair.run(500);
    let told = pair.stacks[CLIENT].info(id).unwrap().tcp_info;
    let counted = pair.stacks[SERVER].info(child).unwrap().tcp_info.accurate_ecn;
    assert!(marked.get() > 20, "{} marks", marked.get());
    assert_eq!((counted.received_ce, counted.received_ce_bytes), (marked.get(), bytes.get()));
    assert_eq!((told.delivered_ce, told.accurate_ecn.delivered_ce_bytes), (marked.get(), bytes.get()));
    assert_eq!(told.accurate_ecn.delivered_e0_bytes, sent as u32 - bytes.get());
    assert_eq!(pair.stacks[CLIENT].counters().delivered_ce, u64::from(marked.get()));
    assert_eq!((told.total_retrans, told.accurate_ecn.fail_mode), (0, 0));
    assert!(longest.get() < 60_000, "{} µs of queue", longest.get());
}

/// Marks, losses, packets that come late or twice: what the sender knows in the end is what the receiver has counted.
#[test]
fn counts_agree_after_all_kinds_of_trouble() {
    for seed in 0..40 {
        let mut pair = Pair::new(as_linux(), as_linux(), 10);
        pair.trouble(seed, [3, 3, 2]);
        let dice = Rc::new(Cell::new(seed));
        pair.rewrite = Box::new(move |sent| {
            dice.set(
                dice.get().wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407),
            );
            let marked = sent.header.flags & Flags::SYN == Flags::empty() && dice.get() >> 40 & 15 == 0;
            if marked { with_codepoint(&sent.packet, Ecn::Ce) } else { sent.packet.clone() }
        });
        let listener = pair.listen(0);
        let id = pair.connect(ConnectOptions::default());
        pair.run(5000);
        let child = pair.accept(listener).unwrap();
        let mut random = Random(seed);
        for _ in 0..30 {
            let now = pair.now;
            let len = 1 + random.below(40_000) as usize;
            let _ = pair.stacks[CLIENT].write(now, id, &pattern(1, len));
            pair.run(200);
            while pair.read(SERVER, child).is_ok_and(|read| !read.is_empty()) {}
        }
        pair.filter = Box::new(|_| true);
        pair.copies = Box::new(|_| vec![Duration::ZERO]);
        pair.rewrite = Box::new(|sent| sent.packet.clone());
        pair.run(60_000);
        for len in [10, 10] {
            pair.write(CLIENT, id, &pattern(1, len));
            pair.run(1000);
        }
        let told = pair.stacks[CLIENT].info(id).unwrap().tcp_info.accurate_ecn;
        let counted = pair.stacks[SERVER].info(child).unwrap().tcp_info.accurate_ecn;
        assert_eq!(told.delivered_ce_bytes, counted.received_ce_bytes, "seed {seed}");
        assert_eq!(told.delivered_e0_bytes, counted.received_e0_bytes, "seed {seed}");
        assert_eq!(told.delivered_ce % 8, counted.received_ce % 8, "seed {seed}");
    }
}

/// RFC 9768 §3.2.2: the flags count marks modulo 8 from 5 on; §3.2.3: the option counts bytes.
#[test]
fn marks_are_told_by_flags_and_option() {
    let (mut p, id) = established(as_linux());
    let ace = |count: u32| {
        let bit = |bit: u32, letter: &str| {
            if (5 + count) >> bit & 1 == 1 { letter.to_owned() } else { String::new() }
        };
        bit(0, "E") + &bit(1, "W") + &bit(2, "e")
    };
    for packet in 0..12 {
        let (from, count) = (1 + 10 * packet, packet + 1);
        p.send_as(Ecn::Ce, &format!("AEe {from}:{} ack 1 win 65535", from + 10));
        p.expect(&format!("A{} 1 ack {} <ECN 1 {} 1>", ace(count), from + 10, 10 * count));
    }
    let marks = p.marks(id);
    assert_eq!((marks.received_ce, marks.received_ce_bytes, marks.received_e0_bytes), (12, 120, 0));
}

/// RFC 9768 §3.2.2.5.1: whoever sends hears at once that the codepoint has changed, though the ACK could wait.
#[test]
fn a_change_is_acknowledged_at_once() {
    let (mut p, _) = established(with_ecn(3));
    p.send_as(Ecn::Ect0, "AEe 1:11 ack 1 win 65535");
    p.expect_after(0, "AEe 1 ack 11");
    p.send_as(Ecn::Ect0, "AEe 11:21 ack 1 win 65535");
    p.expect_after(5, "AEe 1 ack 21");
    p.send_as(Ecn::Ce, "AEe 21:31 ack 1 win 65535");
    p.expect_after(0, "AWe 1 ack 31");
    p.send_as(Ecn::Ce, "AEe 31:41 ack 1 win 65535");
    p.expect_after(5, "AEWe 1 ack 41");
    p.send_as(Ecn::Ect0, "AEe 41:51 ack 1 win 65535");
    p.expect_after(0, "AEWe 1 ack 51");
}

/// All packets are ECT(0): what is retransmitted, pure ACKs, window probes, FIN.
#[test]
fn every_packet_can_be_marked() {
    let (mut p, id) = established(with_ecn(3));
    p.write(id, &pattern(1, 100));
    assert_eq!(p.codepoint(), Ecn::Ect0);
    p.now = p.now + p.stack.info(id).unwrap().rto;
    p.stack.handle_timeout(p.now);
    assert_eq!(p.codepoint(), Ecn::Ect0, "again");
    p.send("AEe 1:11 ack 101 win 0");
    p.now = p.now + Duration::from_millis(40);
    p.stack.handle_timeout(p.now);
    assert_eq!(p.codepoint(), Ecn::Ect0, "an ACK");
    p.write(id, &pattern(101, 100));
    p.now = p.stack.poll_timeout().unwrap();
    p.stack.handle_timeout(p.now);
    assert_eq!(p.codepoint(), Ecn::Ect0, "a probe");
    p.send("AEe 11 ack 101 win 65535");
    assert_eq!(p.codepoint(), Ecn::Ect0);
    p.send("AEe 11 ack 201 win 65535");
    p.close(id);
    assert_eq!(p.codepoint(), Ecn::Ect0, "FIN");
}

/// RFC 9768 §3.2.2.3: our SYN was Not-ECT. A server that says otherwise has seen a mangled field, whether its SYN-ACK is marked or not;
/// Linux looks at a marked one only.
#[test]
fn a_syn_that_arrives_as_something_else_ends_sending_ect() {
    for (accurate_ecn_rules, arrived, codepoint) in [
        (AccurateEcnRules::Rfc, Ecn::NotEct, Ecn::NotEct),
        (AccurateEcnRules::Rfc, Ecn::Ce, Ecn::NotEct),
        (AccurateEcnRules::Kernel, Ecn::NotEct, Ecn::Ect0),
        (AccurateEcnRules::Kernel, Ecn::Ce, Ecn::NotEct),
    ] {
        let mut p = Peer::new(with_ecn(3).accurate_ecn_rules(accurate_ecn_rules));
        let id = p.connect(ConnectOptions::default());
        p.expect("SEWe 0");
        p.send_as(arrived, "SAe 0 ack 1 win 65535 <mss 1000>");
        assert_eq!(p.codepoint(), codepoint, "{accurate_ecn_rules:?} {arrived:?}");
        let marks = p.marks(id);
        let mangled = codepoint == Ecn::NotEct;
        assert_eq!(marks.fail_mode, if mangled { 2 } else { 0 });
        assert_eq!(marks.received_ce, 0, "what is mangled counts nothing");
    }
}

/// RFC 9768 §3.2.1: packets are counted as long as they come. Linux stops when either end has closed.
#[test]
fn marks_are_counted_to_the_end_or_until_a_close() {
    for (accurate_ecn_rules, counted) in [(AccurateEcnRules::Rfc, 2), (AccurateEcnRules::Kernel, 1)] {
        let (mut p, id) = established(with_ecn(3).accurate_ecn_rules(accurate_ecn_rules));
        p.send_as(Ecn::Ce, "AEe 1:11 ack 1 win 65535");
        p.expect("AWe 1 ack 11");
        p.stack.shutdown(p.now, id).unwrap();
        p.expect("FAWe 1 ack 11");
        p.send_as(Ecn::Ce, "AEe 11:21 ack 2 win 65535");
        assert_eq!(p.marks(id).received_ce, counted, "{accurate_ecn_rules:?}");
    }
}

/// RFC 3168's SYN-ACK has ECE alone. One with a code of Accurate ECN answers a SYN that did not ask for that: Linux believes it.
#[test]
fn codes_that_nobody_asked_for() {
    for (accurate_ecn_rules, ecn) in
        [(AccurateEcnRules::Rfc, [false, false]), (AccurateEcnRules::Kernel, [true, true])]
    {
        for (answer, ecn) in ["SAW", "SAEe"].into_iter().zip(ecn) {
            let mut p = Peer::new(with_ecn(1).accurate_ecn_rules(accurate_ecn_rules));
            let id = p.connect(ConnectOptions::default());
            p.expect("SEW 0");
            p.send(&format!("{answer} 0 ack 1 win 65535 <mss 1000>"));
            assert_eq!(p.stack.info(id).unwrap().ecn, ecn, "{answer}");
        }
    }
}

/// Ten segments are acknowledged at once, and the flags are as they were: none was marked, or eight. The bytes of the option tell which
/// (RFC 9768 appendix A.2).
#[test]
fn a_wrap_of_the_flags_is_told_by_bytes() {
    for (bytes, count) in [(0, 0), (988, 8), (7904, 8)] {
        let (mut p, id) = established(as_linux());
        p.write(id, &pattern(1, 988));
        p.expect("PAEe 1:989 ack 1");
        p.send_as(Ecn::Ect0, "AEe 1 ack 989 win 65535 <ECN 1 0 989>");
        p.write(id, &pattern(989, 9880));
        assert_eq!(p.sent_now().len(), 10);
        p.send_as(Ecn::Ect0, &format!("AEe 1 ack 10869 win 65535 <ECN 1 {bytes} {}>", 10_869 - bytes));
        assert_eq!(p.marks(id).delivered_ce, count, "{bytes}");
        assert_eq!(p.marks(id).delivered_ce_bytes, bytes);
    }
}

/// Options every third of a round trip, where not all segments have one (`tcp_ecn_option` = 1).
#[test]
fn the_beacon_sends_options_now_and_then() {
    for (beacon, options) in [(3, 5), (1, 2), (0, 0)] {
        let config = as_linux().tcp_ecn_option(1).tcp_ecn_option_beacon(beacon);
        let (mut p, id) = established(config);
        let mut told = 0;
        for at in 0..44 {
            p.write(id, &pattern(1 + at, 1));
            let packet = p.take_packet().unwrap();
            let (_, header, _) = wire::parse_tcp_packet(&packet).unwrap();
            // The first two are what the handshake wants told.
            told += u32::from(at >= 4 && header.options.accurate_ecn.is_some());
            p.skip(5);
            p.send_as(Ecn::Ect0, &format!("AEe 1 ack {} win 65535", 2 + at));
        }
        let srtt = p.stack.info(id).unwrap().srtt.unwrap();
        assert!(srtt < Duration::from_millis(20), "{srtt:?}");
        assert!(told >= options, "beacon {beacon}: {told} options");
        assert!(beacon > 0 || told == 0, "{told} options");
    }
}
