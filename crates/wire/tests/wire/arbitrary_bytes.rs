//! Nothing that comes from a network makes a parser or the display panic, and what they return lies inside the packet.
//!
//! Two sources: bytes at random, and good packets with a few bytes changed, cut off or added, which get much further.
use crate::common::{ip_header, tcp_header};
use bytes::Bytes;
use proptest::collection::vec;
use proptest::prelude::*;
use wire::{
    Addr, Icmp, IcmpError, IpHeader, QuotedTcp, Summary, TcpHeader, TcpOptions, TxChecksum, TxPacket,
    build_icmp_packet, build_tcp_packet, parse_tcp_packet, protocol,
};

/// Gives the bytes to everything that reads bytes.
fn read(packet: &[u8]) {
    let line = Summary(packet).to_string();
    assert!(!line.is_empty() && !line.contains('\n'));
    let strict = IpHeader::parse(packet);
    let quoted = IpHeader::parse_quoted(packet);
    if let Ok((ip, range)) = &strict {
        assert!(ip.emit_len() <= range.start && range.start <= range.end && range.end <= packet.len());
        assert_eq!(quoted.as_ref(), Ok(&(ip.clone(), range.clone())), "a quote may be less, not different");
    }
    if let Ok((ip, range)) = quoted {
        read_upper_layer(&ip, &packet[range]);
    }
    if let Ok((ip, tcp, range)) = parse_tcp_packet(packet) {
        let rebuilt = build_tcp_packet(&ip, &tcp, &packet[range.clone()]);
        let (ip_again, tcp_again, range_again) = parse_tcp_packet(&rebuilt).expect("own packets are good");
        assert_eq!((ip_again, tcp_again, &rebuilt[range_again]), (ip, tcp, &packet[range]));
    }
    let _ = QuotedTcp::parse(packet);
    cut(packet);
}

fn read_upper_layer(ip: &IpHeader, data: &[u8]) {
    if let Ok((tcp, range)) = TcpHeader::parse(data, None) {
        assert!(range.start >= 20 && range.end == data.len());
        assert!(tcp.emit_len() <= 60, "what was parsed can be emitted");
    }
    let _ = TcpHeader::parse(data, Some((ip.src, ip.dst)));
    let _ = TcpOptions::parse(data);
    if let Ok(icmp) = Icmp::parse(ip.src, ip.dst, data) {
        assert!(icmp.emit_len() <= data.len());
    }
}

/// A stack never sends such a header, but a device may be handed one.
fn cut(packet: &[u8]) {
    let (header, payload) = packet.split_at(packet.len().min(60));
    let mut tx = TxPacket::new(header, [Bytes::copy_from_slice(payload)].into_iter().collect());
    tx.gso_size = 7;
    tx.checksum = TxChecksum::Partial { start: 20, offset: 16 };
    assert!(tx.segments().iter().map(Bytes::len).sum::<usize>() >= packet.len());
}

/// Good packets of every kind: TCP, ICMP errors with a quote, and both behind extension headers or options.
fn good_packet() -> impl Strategy<Value = Vec<u8>> {
    let tcp = (ip_header(), tcp_header(), vec(any::<u8>(), 0..40)).prop_map(|(ip, tcp, payload)| {
        build_tcp_packet(&IpHeader { protocol: protocol::TCP, ..ip }, &tcp, &payload).to_vec()
    });
    let tcp = tcp.boxed();
    let icmp = (ip_header(), tcp.clone()).prop_map(|(ip, quote)| {
        build_icmp_packet(&ip, &Icmp::Error { error: IcmpError::PortUnreachable, quote: &quote }).to_vec()
    });
    let extended =
        (tcp.clone(), vec(prop::sample::select(vec![0, 43, 44, 60]), 1..4)).prop_map(|(packet, kinds)| {
            if packet[0] >> 4 == 4 { packet } else { with_extension_headers(packet, &kinds) }
        });
    prop_oneof![2 => tcp, 1 => icmp, 1 => extended]
}

fn with_extension_headers(packet: Vec<u8>, kinds: &[u8]) -> Vec<u8> {
    let (ip, upper) = packet.split_at(40);
    let next_headers = kinds[1..].iter().chain([&protocol::TCP]);
    let headers: Vec<u8> = next_headers.flat_map(|next| [*next, 0, 1, 4, 0, 0, 0, 0]).collect();
    let mut extended = [ip, &headers, upper].concat();
    extended[6] = kinds[0];
    let payload_len = (extended.len() - 40) as u16;
    extended[4..6].copy_from_slice(&payload_len.to_be_bytes());
    extended
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn random_bytes(mut packet in vec(any::<u8>(), 0..200), version in prop::sample::select(vec![0x45u8, 0x4f, 0x60, 0x00])) {
        read(&packet);
        if let Some(first) = packet.first_mut() {
            *first = version;
            read(&packet);
        }
    }

    #[test]
    fn mutated_packets(
        good in good_packet(),
        changes in vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        len in 0..260usize,
        is_resized: bool,
    ) {
        read(&good);
        let mut packet = good;
        for (at, byte) in changes {
            let at = at.index(packet.len());
            packet[at] = byte;
        }
        if is_resized {
            packet.resize(len, 0);
        }
        read(&packet);
    }

    #[test]
    fn random_upper_layers((src, dst) in crate::common::addrs(), data in vec(any::<u8>(), 0..120)) {
        read_upper_layer(&IpHeader::new(src, dst, 0), &data);
    }

    #[test]
    fn any_sixteen_bytes_are_an_address(bytes: [u8; 16]) {
        let addr = Addr(bytes);
        prop_assert_eq!(Addr::from(addr.to_ip()), addr);
        prop_assert_eq!(addr.to_string(), addr.to_ip().to_string());
    }
}
