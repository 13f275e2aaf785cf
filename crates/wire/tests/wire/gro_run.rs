//! GRO runs: a packet that is taken for a continuation is one, and is valid.
use crate::common::{addrs, v4, v6};
use bytes::Bytes;
use proptest::prelude::*;
use wire::{
    Addr, Ecn, Flags, GroRun, IpHeader, RxChecksum, RxPacket, SeqNum, TcpHeader, TcpOptions, Timestamps,
    TxPacket, build_tcp_packet, parse_tcp_packet, protocol,
};

fn headers(src: Addr, dst: Addr) -> (IpHeader, TcpHeader) {
    let options = TcpOptions { timestamps: Some(Timestamps { tsval: 7, tsecr: 8 }), ..TcpOptions::default() };
    let tcp = TcpHeader {
        seq: SeqNum(u32::MAX - 5),
        ack: SeqNum(9),
        flags: Flags::ACK,
        window: 500,
        options,
        ..TcpHeader::new(40000, 80)
    };
    (IpHeader::new(src, dst, protocol::TCP), tcp)
}

fn packet((ip, tcp): &(IpHeader, TcpHeader), payload: &[u8]) -> RxPacket {
    RxPacket::new(build_tcp_packet(ip, tcp, payload))
}

/// The second packet's number, if it goes on with the run of the first.
fn following(first: &RxPacket, second: &RxPacket) -> Option<SeqNum> {
    text(first, second).map(|(seq, _)| seq)
}

/// And whether it has PSH.
fn text(first: &RxPacket, second: &RxPacket) -> Option<(SeqNum, bool)> {
    GroRun::between(&first.data, &second.data)?.text(&second.data, second.checksum == RxChecksum::Verify)
}

#[test]
fn what_a_sender_cuts_is_a_train() {
    for (src, dst) in [(v4(10, 0, 0, 1), v4(10, 0, 0, 2)), (v6("fd77::1"), v6("fd77::2"))] {
        let (ip, tcp) = headers(src, dst);
        let tcp = TcpHeader { flags: Flags::ACK | Flags::PSH, ..tcp };
        let payload = [Bytes::from(vec![3; 5000])].into_iter().collect();
        let packets: Vec<RxPacket> =
            TxPacket::tcp(&ip, &tcp, payload, 1448, true).segments().into_iter().map(RxPacket::new).collect();
        let run = GroRun::between(&packets[0].data, &packets[1].data).expect("a run");
        assert_eq!((run.src, run.dst), ((src, 40000), (dst, 80)));
        assert_eq!(run.header_len, ip.emit_len() + 32);
        let numbers: Vec<_> = packets.iter().map(|packet| run.text(&packet.data, true)).collect();
        let expected = [(0, false), (1448, false), (2896, false), (4344, true)];
        let expected = expected.map(|(offset, push)| Some((tcp.seq + offset, push)));
        assert_eq!(numbers, expected, "the last, with PSH, is short");
    }
}

/// One by one, what must not differ.
#[test]
fn whatever_says_something_new_ends_the_train() {
    type Change = fn(&mut IpHeader, &mut TcpHeader);
    let changes: [(&str, Change); 14] = [
        ("source", |ip, _| ip.src = v4(10, 0, 0, 3)),
        ("destination", |ip, _| ip.dst = v4(10, 0, 0, 3)),
        ("hop limit", |ip, _| ip.hop_limit -= 1),
        ("CE", |ip, _| ip.ecn = Ecn::Ce),
        ("DSCP", |ip, _| ip.dscp = 8),
        ("source port", |_, tcp| tcp.src_port += 1),
        ("destination port", |_, tcp| tcp.dst_port += 1),
        ("acknowledgment", |_, tcp| tcp.ack += 1),
        ("window", |_, tcp| tcp.window += 1),
        ("FIN", |_, tcp| tcp.flags |= Flags::FIN),
        ("CWR", |_, tcp| tcp.flags |= Flags::CWR),
        ("URG", |_, tcp| tcp.flags |= Flags::URG),
        ("timestamp", |_, tcp| tcp.options.timestamps = Some(Timestamps { tsval: 8, tsecr: 8 })),
        ("no options", |_, tcp| tcp.options = TcpOptions::default()),
    ];
    let first = headers(v4(10, 0, 0, 1), v4(10, 0, 0, 2));
    let following =
        |second: &(IpHeader, TcpHeader)| following(&packet(&first, b"one"), &packet(second, b"two"));
    assert_eq!(following(&first), Some(first.1.seq));
    for (what, change) in changes {
        let (mut ip, mut tcp) = first.clone();
        change(&mut ip, &mut tcp);
        assert_eq!(following(&(ip, tcp)), None, "{what}");
    }
}

#[test]
fn a_segment_without_text_makes_no_run() {
    let ack = headers(v4(10, 0, 0, 1), v4(10, 0, 0, 2));
    assert_eq!(following(&packet(&ack, b""), &packet(&ack, b"")), None);
    assert_eq!(following(&packet(&ack, b"text"), &packet(&ack, b"")), None);
    assert_eq!(following(&packet(&ack, b""), &packet(&ack, b"text")), None);
}

#[test]
fn flags_that_mean_something_make_no_run() {
    let (ip, tcp) = headers(v4(10, 0, 0, 1), v4(10, 0, 0, 2));
    for flags in [Flags::SYN, Flags::RST, Flags::FIN, Flags::URG, Flags::ECE, Flags::CWR, Flags::AE] {
        let with = (ip.clone(), TcpHeader { flags: Flags::ACK | flags, ..tcp.clone() });
        assert_eq!(following(&packet(&with, b"text"), &packet(&with, b"text")), None, "{flags:?}");
    }
    let without = (ip, TcpHeader { flags: Flags::empty(), ..tcp });
    assert_eq!(following(&packet(&without, b"text"), &packet(&without, b"text")), None, "no ACK");
}

#[test]
fn a_trusted_checksum_is_not_looked_at() {
    let headers = headers(v4(10, 0, 0, 1), v4(10, 0, 0, 2));
    let (first, good) = (packet(&headers, b"one"), packet(&headers, b"two"));
    let mut data = good.data.to_vec();
    *data.last_mut().unwrap() ^= 1;
    let bad = RxPacket::new(data.into());
    assert_eq!(following(&first, &bad), None);
    assert_eq!(following(&first, &RxPacket { checksum: RxChecksum::Trusted, ..bad }), Some(headers.1.seq));
}

proptest! {
    /// Whatever is done to a packet: if it passes, its number is right and nothing else is different.
    #[test]
    fn what_passes_is_valid(
        (src, dst) in addrs(),
        seq: u32,
        payload in proptest::collection::vec(any::<u8>(), 1..100),
        damage in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..3),
        cut in 0..4usize,
    ) {
        let first = headers(src, dst);
        let second = (first.0.clone(), TcpHeader { seq: SeqNum(seq), ..first.1.clone() });
        let mut data = build_tcp_packet(&second.0, &second.1, &payload).to_vec();
        for (at, value) in &damage {
            let at = at.index(data.len());
            data[at] = *value;
        }
        data.truncate(data.len() - cut);
        let damaged = RxPacket::new(data.into());
        let text = text(&packet(&first, b"first"), &damaged);
        match parse_tcp_packet(&damaged.data) {
            Ok((ip, tcp, _)) if text.is_some() => {
                prop_assert_eq!(text, Some((tcp.seq, tcp.flags.contains(Flags::PSH))));
                prop_assert_eq!(&ip, &IpHeader { ident: ip.ident, ..first.0 });
                let flags = tcp.flags - Flags::PSH;
                prop_assert_eq!(TcpHeader { flags, ..tcp.clone() }, TcpHeader { seq: tcp.seq, ..first.1 });
            }
            _ => prop_assert_eq!(text, None),
        }
        prop_assert!(text.is_some() || !damage.is_empty() || cut > 0, "undamaged");
    }

    #[test]
    fn no_bytes_make_it_panic(first: Vec<u8>, second: Vec<u8>) {
        let (first, second) = (RxPacket::new(first.into()), RxPacket::new(second.into()));
        let _ = following(&first, &second);
    }

    /// Two packets of the same bytes, so that ports and lengths agree.
    #[test]
    fn no_bytes_twice_make_it_panic(mut bytes: Vec<u8>, version in prop_oneof![Just(0x45u8), Just(0x60)], cut in 0..40usize) {
        if let Some(first) = bytes.first_mut() {
            *first = version;
        }
        if let Some(protocol) = bytes.get_mut(if version == 0x45 { 9 } else { 6 }) {
            *protocol = protocol::TCP;
        }
        let shorter = bytes[..bytes.len().saturating_sub(cut)].to_vec();
        let _ = following(&RxPacket::new(bytes.into()), &RxPacket::new(shorter.into()));
    }
}
