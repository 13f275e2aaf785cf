//! ICMP types and codes, checksums, and quotes.
use crate::common::{hex, naive_sum, v4, v6};
use wire::{
    Addr, Icmp, IcmpError, IcmpParseError, IpHeader, QuotedTcp, SeqNum, TcpHeader, build_icmp_packet,
    build_tcp_packet, protocol,
};

/// A message of the version of `src`, checksum right.
fn message(src: Addr, dst: Addr, start: [u8; 8], body: &[u8]) -> Vec<u8> {
    let mut message = [&start[..], body].concat();
    message[2..4].fill(0);
    let mut summed = Vec::new();
    if !src.is_v4() {
        summed.extend_from_slice(&[src.0, dst.0].concat());
        summed.extend_from_slice(&(message.len() as u32).to_be_bytes());
        summed.extend_from_slice(&[0, 0, 0, 58]);
    }
    summed.extend_from_slice(&message);
    let checksum = !naive_sum(&summed);
    message[2..4].copy_from_slice(&checksum.to_be_bytes());
    message
}

fn error_of(kind: u8, code: u8, word: u32, is_v4: bool) -> Option<IcmpError> {
    let (src, dst) = if is_v4 { (v4(10, 0, 0, 9), v4(10, 0, 0, 1)) } else { (v6("fd77::9"), v6("fd77::1")) };
    let [a, b, c, d] = word.to_be_bytes();
    match Icmp::parse(src, dst, &message(src, dst, [kind, code, 0, 0, a, b, c, d], &[5; 28])) {
        Ok(Icmp::Error { error, quote }) => {
            assert_eq!(quote, [5; 28]);
            Some(error)
        }
        Ok(Icmp::Other { kind: other_kind, code: other_code }) => {
            assert_eq!((other_kind, other_code), (kind, code));
            None
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn ipv4_codes() {
    let unreachable = |code| error_of(3, code, 0, true);
    for code in [0, 1, 5, 6, 7, 8, 11, 12, 14, 15] {
        assert_eq!(unreachable(code), Some(IcmpError::HostUnreachable), "code {code}");
    }
    for code in [9, 10, 13] {
        assert_eq!(unreachable(code), Some(IcmpError::Prohibited), "code {code}");
    }
    assert_eq!(unreachable(2), Some(IcmpError::ProtocolUnreachable));
    assert_eq!(unreachable(3), Some(IcmpError::PortUnreachable));
    assert_eq!(error_of(3, 4, 0x0000_0578, true), Some(IcmpError::PacketTooBig { mtu: 1400 }));
    assert_eq!(unreachable(16), None);
    assert_eq!(error_of(11, 0, 0, true), Some(IcmpError::TimeExceeded));
    assert_eq!(error_of(12, 0, 0, true), Some(IcmpError::ParameterProblem));
    assert_eq!(error_of(4, 0, 0, true), None, "source quench (RFC 6633)");
    assert_eq!(error_of(5, 0, 0, true), None, "redirect");
}

#[test]
fn ipv6_codes() {
    let unreachable = |code| error_of(1, code, 0, false);
    assert_eq!([0, 2, 3].map(unreachable), [Some(IcmpError::HostUnreachable); 3]);
    assert_eq!([1, 5, 6].map(unreachable), [Some(IcmpError::Prohibited); 3]);
    assert_eq!(unreachable(4), Some(IcmpError::PortUnreachable));
    assert_eq!(unreachable(7), None);
    assert_eq!(error_of(2, 0, 1280, false), Some(IcmpError::PacketTooBig { mtu: 1280 }));
    assert_eq!(error_of(3, 0, 0, false), Some(IcmpError::TimeExceeded));
    assert_eq!(error_of(4, 0, 0, false), Some(IcmpError::ParameterProblem));
    assert_eq!(error_of(4, 1, 0, false), Some(IcmpError::ProtocolUnreachable));
    assert_eq!(error_of(133, 0, 0, false), None, "router solicitation");
}

#[test]
fn one_version_does_not_read_the_other() {
    let (src, dst) = (v6("fd77::9"), v6("fd77::1"));
    let ipv4_echo = message(src, dst, [8, 0, 0, 0, 0, 1, 0, 2], &[]);
    assert_eq!(Icmp::parse(src, dst, &ipv4_echo), Ok(Icmp::Other { kind: 8, code: 0 }));
}

#[test]
fn checksums_and_lengths_are_checked() {
    let (src, dst) = (v4(10, 0, 0, 9), v4(10, 0, 0, 1));
    let good = message(src, dst, [8, 0, 0, 0, 0x12, 0x34, 0, 7], b"ping");
    assert_eq!(Icmp::parse(src, dst, &good), Ok(Icmp::EchoRequest { ident: 0x1234, seq: 7, data: b"ping" }));
    assert_eq!(Icmp::parse(src, dst, &good[..7]), Err(IcmpParseError::Truncated));
    let mut bad = good;
    bad[8] ^= 1;
    assert_eq!(Icmp::parse(src, dst, &bad), Err(IcmpParseError::Checksum));
    let (src, dst) = (v6("fd77::9"), v6("fd77::1"));
    let good = message(src, dst, [128, 0, 0, 0, 0, 1, 0, 2], b"ping");
    assert_eq!(Icmp::parse(src, dst, &good), Ok(Icmp::EchoRequest { ident: 1, seq: 2, data: b"ping" }));
    assert_eq!(
        Icmp::parse(src, v6("fd77::2"), &good),
        Err(IcmpParseError::Checksum),
        "the pseudo-header counts"
    );
}

#[test]
fn extensions_behind_a_quote_are_cut_off() {
    let (src, dst) = (v4(10, 0, 0, 9), v4(10, 0, 0, 1));
    let quote_of = |start: [u8; 8]| match Icmp::parse(src, dst, &message(src, dst, start, &[5; 144])) {
        Ok(Icmp::Error { quote, .. }) => quote.len(),
        other => panic!("{other:?}"),
    };
    assert_eq!(quote_of([11, 0, 0, 0, 0, 32, 0, 0]), 128);
    assert_eq!(quote_of([3, 4, 0, 0, 0, 34, 5, 120]), 136);
    assert_eq!(quote_of([11, 0, 0, 0, 0, 31, 0, 0]), 144, "shorter than RFC 4884 allows: not a length");
    assert_eq!(quote_of([11, 0, 0, 0, 0, 37, 0, 0]), 144, "longer than the message: not a length");
    let (src, dst) = (v6("fd77::9"), v6("fd77::1"));
    let start = [3, 0, 0, 0, 16, 0, 0, 0];
    match Icmp::parse(src, dst, &message(src, dst, start, &[5; 144])) {
        Ok(Icmp::Error { quote, .. }) => assert_eq!(quote.len(), 128),
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_ipv4_mtu_is_at_most_16_bits() {
    let icmp = Icmp::Error { error: IcmpError::PacketTooBig { mtu: 70_000 }, quote: &[] };
    let mut buf = [0; 8];
    icmp.emit(v4(10, 0, 0, 9), v4(10, 0, 0, 1), &mut buf);
    assert_eq!(buf[6..], [0xff, 0xff]);
}

#[test]
fn other_messages_are_not_emitted() {
    let mut buf = [0xee; 8];
    let icmp = Icmp::Other { kind: 5, code: 0 };
    icmp.emit(v4(10, 0, 0, 9), v4(10, 0, 0, 1), &mut buf);
    assert_eq!((icmp.emit_len(), buf), (0, [0xee; 8]));
}

/// What Linux 6.18 sends for a closed UDP port of its own, checksums complete.
#[test]
fn a_linux_port_unreachable_is_read_and_written_back() {
    let packet = hex("45c0 003b d935 0000 4001 a2ca 7f00 0001 7f00 0001 0303 fa8e 0000 0000
        4500 001f 65dd 4000 4011 d6ee 7f00 0001 7f00 0001 eaba 270f 000b fe1e 7879 7a");
    let (ip, range) = IpHeader::parse(&packet).expect("valid");
    let parsed = Icmp::parse(ip.src, ip.dst, &packet[range]).expect("valid");
    assert_eq!(parsed, Icmp::Error { error: IcmpError::PortUnreachable, quote: &packet[28..] });
    let rebuilt = build_icmp_packet(&ip, &parsed);
    assert_eq!(rebuilt[..], packet);
}

#[test]
fn quotes_of_something_else_name_nothing() {
    let ip = IpHeader::new(v4(10, 0, 0, 1), v4(10, 0, 0, 2), protocol::TCP);
    let segment = build_tcp_packet(&ip, &TcpHeader { seq: SeqNum(9), ..TcpHeader::new(5, 6) }, b"");
    assert_eq!(QuotedTcp::parse(&segment[..28]).map(|quote| quote.seq), Some(SeqNum(9)));
    assert_eq!(QuotedTcp::parse(&segment[..27]), None);
    let mut cut = segment.to_vec();
    cut[6..8].copy_from_slice(&[0x20, 0x00]);
    assert_eq!(
        QuotedTcp::parse(&cut).map(|quote| quote.seq),
        Some(SeqNum(9)),
        "a first fragment has the header"
    );
    cut[6..8].copy_from_slice(&[0x20, 0x01]);
    assert_eq!(QuotedTcp::parse(&cut), None, "a later one has not");
    let mut udp = segment.to_vec();
    udp[9] = protocol::UDP;
    assert_eq!(QuotedTcp::parse(&udp), None);
    assert_eq!(QuotedTcp::parse(&[]), None);
}
