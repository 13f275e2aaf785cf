//! What is emitted is parsed back as the same value.
use crate::common::{addrs, ip_header, tcp_header, tcp_options};
use proptest::collection::vec;
use proptest::prelude::*;
use wire::{
    Icmp, IcmpError, IpHeader, QuotedTcp, TcpHeader, TcpOptions, build_icmp_packet, build_tcp_packet,
    parse_tcp_packet, protocol,
};

fn icmp_error(is_v4: bool) -> impl Strategy<Value = IcmpError> {
    let mtu_max = if is_v4 { 0xffff } else { u32::MAX };
    prop_oneof![
        Just(IcmpError::HostUnreachable),
        Just(IcmpError::Prohibited),
        Just(IcmpError::ProtocolUnreachable),
        Just(IcmpError::PortUnreachable),
        (0..=mtu_max).prop_map(|mtu| IcmpError::PacketTooBig { mtu }),
        Just(IcmpError::TimeExceeded),
        Just(IcmpError::ParameterProblem),
    ]
}

proptest! {
    #[test]
    fn ip_headers(ip in ip_header(), payload_len in 0..2000usize, padding in 0..20usize) {
        let header_len = ip.emit_len();
        let mut packet = vec![0xee; header_len + payload_len + padding];
        ip.emit(payload_len, &mut packet);
        prop_assert!(packet[header_len..].iter().all(|byte| *byte == 0xee));
        prop_assert_eq!(IpHeader::parse(&packet), Ok((ip, header_len..header_len + payload_len)));
    }

    #[test]
    fn tcp_headers(tcp in tcp_header(), payload_len in 0..100usize) {
        let header_len = tcp.emit_len();
        prop_assert!(header_len % 4 == 0 && (20..=60).contains(&header_len));
        let mut segment = vec![0xee; header_len + payload_len];
        tcp.emit(&mut segment);
        prop_assert!(segment[header_len..].iter().all(|byte| *byte == 0xee));
        prop_assert_eq!(TcpHeader::parse(&segment, None), Ok((tcp, header_len..header_len + payload_len)));
    }

    #[test]
    fn tcp_packets(ip in ip_header(), tcp in tcp_header(), payload in vec(any::<u8>(), 0..200)) {
        let ip = IpHeader { protocol: protocol::TCP, ..ip };
        let packet = build_tcp_packet(&ip, &tcp, &payload);
        let range = packet.len() - payload.len()..packet.len();
        prop_assert_eq!(&packet[range.clone()], &payload[..]);
        prop_assert_eq!(parse_tcp_packet(&packet), Ok((ip, tcp, range)));
    }

    #[test]
    fn whatever_options_are_parsed_can_be_emitted(bytes in vec(any::<u8>(), 0..=40), seed in tcp_options()) {
        let as_parsed = TcpOptions::parse(&bytes);
        for options in [as_parsed, seed] {
            let header = TcpHeader { options, ..TcpHeader::new(1, 2) };
            let mut buf = vec![0; header.emit_len()];
            header.emit(&mut buf);
            prop_assert_eq!(TcpHeader::parse(&buf, None).map(|(parsed, _)| parsed), Ok(header));
        }
    }

    #[test]
    fn echoes((src, dst) in addrs(), ident: u16, seq: u16, data in vec(any::<u8>(), 0..200)) {
        let data = &data[..];
        for icmp in [Icmp::EchoRequest { ident, seq, data }, Icmp::EchoReply { ident, seq, data }] {
            let mut message = vec![0; icmp.emit_len()];
            icmp.emit(src, dst, &mut message);
            prop_assert_eq!(Icmp::parse(src, dst, &message), Ok(icmp));
        }
    }

    #[test]
    fn icmp_errors(
        ((src, dst), error) in addrs().prop_flat_map(|pair| (Just(pair), icmp_error(pair.0.is_v4()))),
        quote in vec(any::<u8>(), 0..600),
    ) {
        let icmp = Icmp::Error { error, quote: &quote };
        let packet = build_icmp_packet(&IpHeader::new(src, dst, 0), &icmp);
        let (ip, range) = IpHeader::parse(&packet).expect("valid");
        prop_assert_eq!(ip.protocol, if src.is_v4() { protocol::ICMP } else { protocol::ICMPV6 });
        prop_assert_eq!(Icmp::parse(src, dst, &packet[range]), Ok(icmp));
    }

    #[test]
    fn quotes_name_the_connection(ip in ip_header(), tcp in tcp_header(), cut in 8..80usize) {
        let ip = IpHeader { protocol: protocol::TCP, ..ip };
        let packet = build_tcp_packet(&ip, &tcp, &[7; 1000]);
        let quote = QuotedTcp::parse(&packet[..ip.emit_len() + cut]);
        let (src_port, dst_port, seq) = (tcp.src_port, tcp.dst_port, tcp.seq);
        prop_assert_eq!(quote, Some(QuotedTcp { src: ip.src, dst: ip.dst, src_port, dst_port, seq }));
    }
}
