//! Packets to send: checksums left to the device, and software GSO.
use crate::common::{ip_header, tcp_header, v4, v6};
use bytes::{Bytes, BytesMut};
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use proptest::collection::vec;
use proptest::prelude::*;
use wire::{
    Addr, Ecn, Flags, IpHeader, Layout, MAX_HEADER, PlainSegment, RxChecksum, RxPacket, SeqNum,
    TCP_HEADER_LEN, TEXT_MOST, TcpHeader, TcpOptions, Timestamps, TxChecksum, TxPacket, UsualSyn,
    build_tcp_packet, parse_tcp_packet, protocol,
};

fn slices(parts: &[Vec<u8>]) -> smallvec::SmallVec<[Bytes; 2]> {
    parts.iter().map(|part| Bytes::copy_from_slice(part)).collect()
}

fn read(packet: &[u8], verify: bool) -> Option<(PlainSegment, Layout)> {
    PlainSegment::read_v4(packet, verify).or_else(|| PlainSegment::read_v6(packet, verify))
}

/// Two addresses of one family.
fn hosts() -> impl Strategy<Value = (Addr, Addr)> {
    let v4 = any::<[u32; 2]>().prop_map(|hosts| hosts.map(|host| Addr::from(Ipv4Addr::from(host))));
    let v6 = any::<[u128; 2]>().prop_map(|hosts| hosts.map(|host| Addr::from(Ipv6Addr::from(host))));
    prop_oneof![v4, v6].prop_map(|[src, dst]| (src, dst))
}

fn ip() -> IpHeader {
    IpHeader { ident: 0xfffe, ..IpHeader::new(v4(10, 0, 0, 1), v4(10, 0, 0, 2), protocol::TCP) }
}

fn tcp(flags: Flags) -> TcpHeader {
    let timestamps = Some(Timestamps { tsval: 77, tsecr: 78 });
    let options = TcpOptions { timestamps, ..TcpOptions::default() };
    TcpHeader { seq: SeqNum(u32::MAX - 1000), ack: SeqNum(9), flags, options, ..TcpHeader::new(40000, 80) }
}

#[test]
fn a_received_packet_starts_unverified_and_unmerged() {
    let packet = RxPacket::new(Bytes::from_static(b"abc"));
    assert_eq!((packet.truesize, packet.checksum, packet.gso_size), (3, RxChecksum::Verify, 0));
}

#[test]
fn header_and_payload_become_one_packet() {
    let packet = TxPacket::new(b"head", slices(&[b"er, ".to_vec(), vec![], b"payload".to_vec()]));
    assert_eq!((packet.header(), packet.len(), packet.payload_len()), (&b"head"[..], 15, 11));
    assert!(!packet.is_empty());
    let mut buf = [0xee; 17];
    assert_eq!(packet.copy_into(&mut buf), 15);
    assert_eq!(&buf, b"header, payload\xee\xee");
    assert_eq!(&packet.to_bytes()[..], b"header, payload");
}

/// The parser refuses them, and so does the short way.
#[test]
fn mapped_addresses_and_extension_headers_are_not_plain() {
    let six = |src, dst, protocol| IpHeader::new(v6(src), v6(dst), protocol);
    let of = |ip: &IpHeader| TxPacket::tcp(ip, &tcp(Flags::ACK), slices(&[]), 0, false).to_bytes().to_vec();
    let right = of(&six("fd00::1", "fd00::2", protocol::TCP));
    assert!(read(&right, true).is_some());
    for at in [8, 24] {
        let mut mapped = right.clone();
        mapped[at..at + 16].copy_from_slice(&v4(10, 0, 0, 1).0);
        assert_eq!(read(&mapped, false), None);
    }
    let mut extended = right;
    extended[6] = 0;
    assert_eq!(read(&extended, false), None);
}

#[test]
fn what_is_too_long_to_lie_inline_is_refused() {
    let mut packet = TxPacket::default();
    assert!(packet.set_text(b"text"));
    assert!(!packet.set_text(&[0; TEXT_MOST + 1]));
    assert_eq!(packet.text(), b"text");
}

#[test]
#[should_panic(expected = "header of 101 bytes")]
fn a_header_over_the_maximum_is_a_bug_of_the_caller() {
    TxPacket::new(&[0; MAX_HEADER + 1], slices(&[]));
}

/// As the kernel leaves it: the field holds the pseudo-header's sum until the device completes it.
#[test]
fn a_partial_checksum_is_completed_by_the_copy() {
    let payload = [b"odd".to_vec(), b"and even".to_vec()];
    let complete = TxPacket::tcp(&ip(), &tcp(Flags::ACK), slices(&payload), 0, false);
    let partial = TxPacket::tcp(&ip(), &tcp(Flags::ACK), slices(&payload), 0, true);
    assert_eq!(complete.checksum, TxChecksum::Complete);
    assert_eq!(partial.checksum, TxChecksum::Partial { start: 20, offset: 16 });
    assert_ne!(partial.header(), complete.header());
    let pseudo_header = wire::Checksum::pseudo_header(ip().src, ip().dst, 6, 32 + 11).folded();
    assert_eq!(partial.header()[36..38], pseudo_header.to_be_bytes());
    assert_eq!(partial.to_bytes(), complete.to_bytes());
    assert_eq!(complete.to_bytes(), build_tcp_packet(&ip(), &tcp(Flags::ACK), b"oddand even"));
}

#[test]
fn a_partial_checksum_without_payload_is_completed_too() {
    let ip = IpHeader::new(v6("fd77::1"), v6("fd77::2"), protocol::TCP);
    let partial = TxPacket::tcp(&ip, &tcp(Flags::ACK), slices(&[]), 0, true);
    assert_eq!(partial.checksum, TxChecksum::Partial { start: 40, offset: 16 });
    assert_eq!(partial.to_bytes(), build_tcp_packet(&ip, &tcp(Flags::ACK), b""));
}

#[test]
fn a_checksum_field_outside_the_header_is_left_alone() {
    for (start, offset) in [(0, 3), (4, 0), (u16::MAX, u16::MAX)] {
        let mut packet = TxPacket::new(b"head", slices(&[b"data".to_vec()]));
        packet.checksum = TxChecksum::Partial { start, offset };
        assert_eq!(&packet.to_bytes()[..], b"headdata");
    }
}

#[test]
fn gso_cuts_as_the_kernel_does() {
    let flags = Flags::ACK | Flags::PSH | Flags::FIN | Flags::CWR | Flags::ECE;
    let payload: Vec<u8> = (0..2500).map(|i| i as u8).collect();
    let packet = TxPacket::tcp(&ip(), &tcp(flags), slices(std::slice::from_ref(&payload)), 1000, true);
    let segments = packet.segments();
    let parsed: Vec<_> = segments.iter().map(|segment| parse_tcp_packet(segment).expect("valid")).collect();
    let idents: Vec<u16> = parsed.iter().map(|(ip, _, _)| ip.ident).collect();
    assert_eq!(idents, [0xfffe, 0xffff, 0]);
    let seqs: Vec<SeqNum> = parsed.iter().map(|(_, tcp, _)| tcp.seq).collect();
    assert_eq!(seqs, [SeqNum(u32::MAX - 1000), SeqNum(u32::MAX), SeqNum(999)]);
    let flags: Vec<Flags> = parsed.iter().map(|(_, tcp, _)| tcp.flags).collect();
    let middle = Flags::ACK | Flags::ECE;
    assert_eq!(flags, [middle | Flags::CWR, middle, middle | Flags::PSH | Flags::FIN]);
    assert_eq!(segments.iter().map(Bytes::len).collect::<Vec<_>>(), [1052, 1052, 552]);
    assert!(parsed.iter().all(|(_, parsed, _)| parsed.options == tcp(Flags::ACK).options));
}

/// RFC 9768 §3.2.2: the three flags are a counter, the same in each segment (Linux's `SKB_GSO_TCP_ACCECN`).
#[test]
fn a_counter_of_marks_is_cut_into_every_segment() {
    let flags = Flags::ACK | Flags::AE | Flags::CWR;
    let mut packet = TxPacket::tcp(&ip(), &tcp(flags), slices(&[vec![1; 2500]]), 1000, true);
    packet.repeats_cwr = true;
    for segment in packet.segments() {
        let (_, parsed, _) = parse_tcp_packet(&segment).expect("valid");
        assert_eq!(parsed.flags, flags);
    }
}

#[test]
fn without_sums_all_is_cut_alike_but_the_checksums() {
    let parts = [vec![1; 700], vec![2; 800], vec![3; 1]];
    let packet = TxPacket::tcp(&ip(), &tcp(Flags::ACK | Flags::PSH), slices(&parts), 1000, true);
    let (mut whole, mut bare) = (packet.cut().unwrap(), packet.cut().unwrap().without_sums());
    for len in [1052, 553] {
        let (mut summed, mut unsummed) = ([0; 2000], [0; 2000]);
        assert_eq!((whole.write_next(&mut summed), bare.write_next(&mut unsummed)), (Some(len), Some(len)));
        assert_ne!(summed[36..38], unsummed[36..38]);
        unsummed[36..38].copy_from_slice(&summed[36..38]);
        assert_eq!(summed[..len], unsummed[..len]);
    }
    assert_eq!(bare.write_next(&mut [0; 2000]), None);
}

#[test]
fn what_is_appended_is_what_would_be_written() {
    let parts = [vec![1; 700], vec![], vec![2; 800], vec![3; 1]];
    let packet = TxPacket::tcp(&ip(), &tcp(Flags::ACK | Flags::PSH), slices(&parts), 1000, true);
    for has_sums in [true, false] {
        let cut = || if has_sums { packet.cut().unwrap() } else { packet.cut().unwrap().without_sums() };
        let (mut written, mut appended) = (cut(), cut());
        let mut memory = BytesMut::from(&b"before"[..]);
        for len in [1052, 553] {
            let mut whole = vec![0; len];
            assert_eq!(
                (written.write_next(&mut whole), appended.append_next(&mut memory)),
                (Some(len), Some(len))
            );
            assert_eq!(memory[memory.len() - len..], whole);
        }
        assert_eq!((appended.append_next(&mut memory), memory.len()), (None, 6 + 1052 + 553));
        assert!(memory.starts_with(b"before"));
    }
}

#[test]
fn one_segment_is_not_cut() {
    for gso_size in [0, 100] {
        let packet = TxPacket::tcp(&ip(), &tcp(Flags::FIN), slices(&[vec![1; 100]]), gso_size, true);
        assert_eq!(packet.segments(), [packet.to_bytes()]);
    }
}

#[test]
fn what_is_not_tcp_is_not_cut() {
    let mut packet = TxPacket::new(&[0xff; 40], slices(&[vec![1; 100]]));
    packet.gso_size = 10;
    assert_eq!(packet.segments(), [packet.to_bytes()]);
}

#[test]
fn a_packet_larger_than_64_kib_is_cut_rightly() {
    let payload = vec![3; 100_000];
    let packet = TxPacket::tcp(&ip(), &tcp(Flags::ACK), slices(&[payload]), 1448, true);
    let segments = packet.segments();
    assert_eq!(segments.len(), 70);
    assert!(segments.iter().all(|segment| parse_tcp_packet(segment).is_ok()));
}

/// A plain segment with the fields of these headers, without their options.
fn plain_of(ip: &IpHeader, tcp: &TcpHeader, payload_len: usize) -> PlainSegment {
    PlainSegment {
        addresses: (ip.src, ip.dst),
        ports: (tcp.src_port, tcp.dst_port),
        seq: tcp.seq,
        ack: tcp.ack,
        flags: tcp.flags,
        window: tcp.window,
        timestamps: None,
        ecn: ip.ecn,
        dscp: ip.dscp,
        hop_limit: ip.hop_limit,
        payload_len,
    }
}

proptest! {
    #[test]
    fn the_plain_header_is_the_general_one(
        hosts in hosts(),
        header in tcp_header(),
        timestamps: Option<(u32, u32)>,
        ecn_bits in 0..4u8,
        dscp in 0..64u8,
        hop_limit: u8,
        parts in vec(vec(any::<u8>(), 0..400), 0..3),
        gso_size in 0..2u16,
        partial: bool,
    ) {
        let (src, dst) = hosts;
        let timestamps = timestamps.map(|(tsval, tsecr)| Timestamps { tsval, tsecr });
        let ecn = Ecn::from_bits(ecn_bits);
        let options = TcpOptions { timestamps, ..TcpOptions::default() };
        let tcp = TcpHeader { urgent: 0, options, ..header };
        let ip = IpHeader { ecn, dscp, hop_limit, ..IpHeader::new(src, dst, protocol::TCP) };
        let general = TxPacket::tcp(&ip, &tcp, slices(&parts), gso_size, partial);
        // Over the remains of another packet.
        let mut plain = TxPacket::new(&[0xaa; MAX_HEADER], slices(&parts));
        let segment = PlainSegment { timestamps, ..plain_of(&ip, &tcp, general.payload_len()) };
        match (src.to_ip(), dst.to_ip()) {
            (IpAddr::V4(src), IpAddr::V4(dst)) => {
                plain.write_v4(&segment, (src.to_bits(), dst.to_bits()), gso_size, partial);
            }
            _ => plain.write_v6(&segment, gso_size, partial),
        }
        prop_assert_eq!(plain.header(), general.header());
        prop_assert_eq!((plain.checksum, plain.gso_size), (general.checksum, general.gso_size));
        prop_assert_eq!(plain.to_bytes(), general.to_bytes());
        let written = general.to_bytes();
        let text = written.len() - general.payload_len()..written.len();
        let layout = Layout { options: text.start..text.start, text };
        let is_right = tcp.src_port != 0 && tcp.dst_port != 0 && !src.is_multicast();
        prop_assert_eq!(read(&written, true), is_right.then_some((segment, layout)));
    }

    /// Nobody downstream can tell which it was.
    #[test]
    fn inline_text_is_payload_like_any_other(
        inline in vec(any::<u8>(), 0..=TEXT_MOST),
        parts in vec(vec(any::<u8>(), 0..200), 0..3),
        gso_size in 0..300u16,
        partial: bool,
        key in vec(any::<u8>(), 1..20),
    ) {
        let all = [&[inline.clone()][..], &parts].concat();
        let shared = TxPacket::tcp(&ip(), &tcp(Flags::ACK), slices(&all), gso_size, partial);
        // Over the remains of another packet.
        let mut packet = TxPacket::new(&[0xaa; MAX_HEADER], slices(&parts));
        prop_assert!(packet.set_text(&[0xaa; TEXT_MOST]) && packet.set_text(&inline));
        packet.write_tcp(&ip(), &tcp(Flags::ACK), gso_size, partial);
        let mut moved = TxPacket::new(b"another", slices(&[vec![0xaa; 10]]));
        moved.take_from(&mut packet.clone());
        for mut packet in [packet, moved] {
            prop_assert_eq!((packet.header(), packet.len()), (shared.header(), shared.len()));
            prop_assert_eq!((packet.checksum, packet.gso_size), (shared.checksum, shared.gso_size));
            prop_assert_eq!(packet.slices().collect::<Vec<_>>().concat(), all.concat());
            prop_assert_eq!(packet.to_bytes(), shared.to_bytes());
            prop_assert_eq!(packet.segments(), shared.segments());
            let mut signed = shared.clone();
            prop_assert_eq!(packet.sign(&key), signed.sign(&key));
            prop_assert_eq!(packet.to_bytes(), signed.to_bytes());
            packet.clear_payload();
            prop_assert_eq!(packet.payload_len(), 0);
        }
    }

    /// The options that nearly every SYN has.
    #[test]
    fn the_header_of_a_syn_is_the_general_one(
        hosts in hosts(),
        header in tcp_header(),
        timestamps: (u32, u32),
        mss: u16,
        shift: u8,
        ecn_bits in 0..4u8,
        dscp in 0..64u8,
        hop_limit: u8,
        parts in vec(vec(any::<u8>(), 0..400), 0..3),
        partial: bool,
    ) {
        let (src, dst) = hosts;
        let options = TcpOptions {
            mss: Some(mss),
            window_scale: Some(shift),
            sack_permitted: true,
            timestamps: Some(Timestamps { tsval: timestamps.0, tsecr: timestamps.1 }),
            fast_open: header.options.fast_open,
            ..TcpOptions::default()
        };
        let ecn = Ecn::from_bits(ecn_bits);
        let tcp = TcpHeader { urgent: 0, options, ..header };
        let ip = IpHeader { ecn, dscp, hop_limit, ..IpHeader::new(src, dst, protocol::TCP) };
        let general = TxPacket::tcp(&ip, &tcp, slices(&parts), 0, partial);
        let mut packet = TxPacket::new(&[0xaa; MAX_HEADER], slices(&parts));
        let segment = plain_of(&ip, &tcp, general.payload_len());
        for missing in [
            TcpOptions { mss: None, ..tcp.options.clone() },
            TcpOptions { window_scale: None, ..tcp.options.clone() },
            TcpOptions { sack_permitted: false, ..tcp.options.clone() },
            TcpOptions { timestamps: None, ..tcp.options.clone() },
        ] {
            prop_assert!(!packet.write_syn(&segment, &missing, partial));
        }
        prop_assert!(packet.write_syn(&segment, &tcp.options, partial));
        prop_assert_eq!(packet.header(), general.header());
        prop_assert_eq!((packet.checksum, packet.gso_size), (general.checksum, general.gso_size));
        prop_assert_eq!(packet.to_bytes(), general.to_bytes());

        let mut packet = TxPacket::new(&[0xaa; MAX_HEADER], slices(&parts));
        let timestamps = Timestamps { tsval: timestamps.0, tsecr: timestamps.1 };
        let usual = UsualSyn { mss, window_scale: shift, timestamps };
        let fast_open = tcp.options.fast_open;
        prop_assert_eq!(packet.write_usual_syn(&segment, (&usual, fast_open.as_ref()), partial), src.is_v4());
        if src.is_v4() {
            prop_assert_eq!(packet.header(), general.header());
            prop_assert_eq!((packet.checksum, packet.gso_size), (general.checksum, general.gso_size));
            prop_assert_eq!(packet.to_bytes(), general.to_bytes());
        }
        let (header, behind_fixed) = (general.header(), ip.emit_len() + TCP_HEADER_LEN);
        let read = UsualSyn::read(&header[behind_fixed..]);
        prop_assert_eq!(read, fast_open.is_none().then_some(usual));
    }

    /// Whatever is wrong with it, or unusual.
    #[test]
    fn what_is_read_as_plain_is_what_the_parsers_find(
        hosts in hosts(),
        hop_limit: u8,
        tcp in tcp_header(),
        timestamps: Option<(u32, u32)>,
        usual: bool,
        payload in vec(any::<u8>(), 0..200),
        place: prop::sample::Index,
        change: u8,
        verify: bool,
    ) {
        let timestamps = timestamps.map(|(tsval, tsecr)| Timestamps { tsval, tsecr });
        let options = if usual { TcpOptions { timestamps, ..TcpOptions::default() } } else { tcp.options.clone() };
        let tcp = TcpHeader { options, ..tcp };
        let ip = IpHeader { hop_limit, ..IpHeader::new(hosts.0, hosts.1, protocol::TCP) };
        let mut packet = TxPacket::tcp(&ip, &tcp, slices(&[payload]), 0, false).to_bytes().to_vec();
        let place = place.index(packet.len());
        packet[place] ^= change;
        if let Some((plain, Layout { options, text })) = read(&packet, verify) {
            let (ip, range) = IpHeader::parse(&packet).unwrap();
            let addresses = verify.then_some(plain.addresses);
            let (tcp, rest) = TcpHeader::parse(&packet[range.clone()], addresses).unwrap();
            prop_assert_eq!((ip.src, ip.dst), plain.addresses);
            prop_assert_eq!((ip.ecn, ip.dscp, ip.hop_limit), (plain.ecn, plain.dscp, plain.hop_limit));
            let mut header = TcpHeader::new(0, 0);
            plain.fill(&mut header);
            if !options.is_empty() {
                prop_assert_eq!(options.end, text.start);
                header.options = TcpOptions::parse(&packet[options]);
            }
            prop_assert_eq!(header, tcp);
            prop_assert_eq!(text.clone(), range.start + rest.start..range.start + rest.end);
            prop_assert_eq!(text.len(), plain.payload_len);
        }
    }

    #[test]
    fn gso_segments_carry_the_same_stream(
        ip in ip_header(),
        tcp in tcp_header(),
        parts in vec(vec(any::<u8>(), 0..400), 0..6),
        gso_size in 0..500u16,
        partial: bool,
    ) {
        let ip = IpHeader { protocol: protocol::TCP, ..ip };
        let packet = TxPacket::tcp(&ip, &tcp, slices(&parts), gso_size, partial);
        let stream = parts.concat();
        prop_assert_eq!(&packet.to_bytes(), &build_tcp_packet(&ip, &tcp, &stream));
        let segments = packet.segments();
        let size = if gso_size == 0 { stream.len().max(1) } else { usize::from(gso_size) };
        prop_assert_eq!(segments.len(), stream.len().div_ceil(size).max(1));
        let mut reassembled = Vec::new();
        for (index, segment) in segments.iter().enumerate() {
            let (segment_ip, segment_tcp, range) = parse_tcp_packet(segment).expect("checksums are right");
            prop_assert_eq!(segment_tcp.seq, tcp.seq + reassembled.len() as u32);
            reassembled.extend_from_slice(&segment[range]);
            let is_last = index + 1 == segments.len();
            let first_only = if index == 0 { Flags::empty() } else { Flags::CWR };
            let last_only = if is_last { Flags::empty() } else { Flags::PSH | Flags::FIN };
            prop_assert_eq!(segment_tcp.flags, tcp.flags - first_only - last_only);
            let ident = if ip.src.is_v4() { ip.ident.wrapping_add(index as u16) } else { 0 };
            prop_assert_eq!(segment_ip, IpHeader { ident, ..ip.clone() });
            prop_assert_eq!(&segment_tcp.options, &tcp.options);
        }
        prop_assert_eq!(reassembled, stream);
    }
}
