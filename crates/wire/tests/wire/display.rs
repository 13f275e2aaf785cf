//! The lines are those of `tcpdump -n -S` 4.99, without the names of upper protocols it guesses; quotes and defects are ours.
use crate::common::{hex, v4, v6};
use wire::{
    AccurateEcnOption, AccurateEcnOrder, Cookie, FastOpenKind, FastOpenOption, Flags, Icmp, IcmpError,
    IpHeader, SeqNum, Summary, TcpHeader, TcpOptions, Timestamps, build_icmp_packet, build_tcp_packet,
    protocol,
};

fn ip() -> IpHeader {
    IpHeader::new(v4(10, 0, 0, 1), v4(10, 0, 0, 2), protocol::TCP)
}

fn ip6() -> IpHeader {
    IpHeader::new(v6("fd77::1"), v6("fd77::2"), protocol::TCP)
}

fn tcp(flags: Flags, options: TcpOptions) -> TcpHeader {
    TcpHeader { seq: SeqNum(1), ack: SeqNum(5), window: 64240, flags, options, ..TcpHeader::new(40000, 80) }
}

fn line(packet: &[u8]) -> String {
    Summary(packet).to_string()
}

fn syn_options() -> TcpOptions {
    TcpOptions {
        mss: Some(1460),
        sack_permitted: true,
        timestamps: Some(Timestamps { tsval: 1, tsecr: 0 }),
        window_scale: Some(7),
        ..TcpOptions::default()
    }
}

fn fast_open(kind: FastOpenKind, cookie: &str) -> Option<FastOpenOption> {
    Some(FastOpenOption { kind, cookie: Cookie::new(&hex(cookie)) })
}

#[test]
fn a_fast_open_syn_with_data() {
    let options =
        TcpOptions { fast_open: fast_open(FastOpenKind::Standard, "1d0aa246d060bffa"), ..syn_options() };
    let packet = build_tcp_packet(&ip(), &tcp(Flags::SYN, options), &[b'x'; 27]);
    assert_eq!(
        line(&packet),
        "IP 10.0.0.1.40000 > 10.0.0.2.80: Flags [S], seq 1:28, win 64240, options [mss 1460,sackOK,TS val 1 ecr 0,nop,wscale 7,\
         tfo  cookie 1d0aa246d060bffa,nop,nop], length 27"
    );
}

#[test]
fn a_cookie_request_in_either_format() {
    let request = |kind| TcpOptions { fast_open: fast_open(kind, ""), ..TcpOptions::default() };
    let standard = build_tcp_packet(&ip6(), &tcp(Flags::SYN, request(FastOpenKind::Standard)), b"");
    assert_eq!(
        line(&standard),
        "IP6 fd77::1.40000 > fd77::2.80: Flags [S], seq 1, win 64240, options [tfo  cookiereq,nop,nop], length 0"
    );
    let experimental = build_tcp_packet(&ip6(), &tcp(Flags::SYN, request(FastOpenKind::Experimental)), b"");
    assert_eq!(
        line(&experimental),
        "IP6 fd77::1.40000 > fd77::2.80: Flags [S], seq 1, win 64240, options [exp-tfo cookiereq], length 0"
    );
}

#[test]
fn an_acknowledgment_with_sack_blocks() {
    let sack = [(SeqNum(10), SeqNum(20)), (SeqNum(30), SeqNum(40))].into_iter().collect();
    let timestamps = Some(Timestamps { tsval: 7, tsecr: 8 });
    let packet = build_tcp_packet(
        &ip(),
        &tcp(Flags::ACK, TcpOptions { sack, timestamps, ..TcpOptions::default() }),
        b"",
    );
    assert_eq!(
        line(&packet),
        "IP 10.0.0.1.40000 > 10.0.0.2.80: Flags [.], ack 5, win 64240, options [nop,nop,TS val 7 ecr 8,nop,nop,\
         sack 2 {10:20}{30:40}], length 0"
    );
}

#[test]
fn every_flag_has_its_letter() {
    let mut all = tcp(Flags::all(), TcpOptions::default());
    all.urgent = 3;
    assert_eq!(
        line(&build_tcp_packet(&ip(), &all, b"ab")),
        "IP 10.0.0.1.40000 > 10.0.0.2.80: Flags [FSRP.UEWe], seq 1:3, ack 5, win 64240, urg 3, length 2"
    );
    let none = tcp(Flags::empty(), TcpOptions::default());
    assert_eq!(
        line(&build_tcp_packet(&ip(), &none, b"")),
        "IP 10.0.0.1.40000 > 10.0.0.2.80: Flags [none], win 64240, length 0"
    );
}

#[test]
fn counters_of_marks() {
    let shown = |order, fields| {
        let option = AccurateEcnOption::new(order, fields, |codepoint| codepoint.bits().into());
        let options = TcpOptions { accurate_ecn: Some(option), ..TcpOptions::default() };
        line(&build_tcp_packet(&ip(), &tcp(Flags::ACK | Flags::AE, options), b""))
    };
    assert_eq!(
        shown(AccurateEcnOrder::Ect1First, 3),
        "IP 10.0.0.1.40000 > 10.0.0.2.80: Flags [.e], ack 5, win 64240, options [accecn1 e1b 1 ceb 3 e0b 2,nop], \
         length 0"
    );
    assert!(shown(AccurateEcnOrder::Ect0First, 2).contains("options [accecn0 e0b 2 ceb 3],"));
    assert!(shown(AccurateEcnOrder::Ect0First, 0).contains("options [accecn0,nop,nop],"));
}

#[test]
fn other_options_and_broken_ones() {
    let unknown = vec![
        (99, hex("0102").into()),
        (98, hex("").into()),
        (34, hex("112233").into()),
        (2, hex("01").into()),
    ];
    let packet = build_tcp_packet(
        &ip(),
        &tcp(Flags::ACK, TcpOptions { unknown: unknown.into(), ..TcpOptions::default() }),
        b"",
    );
    assert_eq!(
        line(&packet),
        "IP 10.0.0.1.40000 > 10.0.0.2.80: Flags [.], ack 5, win 64240, options [unknown-99 0x0102,unknown-98,\
         tfo  (invalid),mss[len 3],nop,nop], length 0"
    );
    let mut broken = build_tcp_packet(&ip(), &tcp(Flags::ACK, syn_options()), b"").to_vec();
    broken[44..46].copy_from_slice(&[8, 40]);
    assert!(line(&broken).contains("options [mss 1460,[bad opt 8]], length 0"), "{}", line(&broken));
}

#[test]
fn echoes_and_other_icmp() {
    let echo = Icmp::EchoRequest { ident: 5, seq: 1, data: &[0; 56] };
    assert_eq!(
        line(&build_icmp_packet(&ip(), &echo)),
        "IP 10.0.0.1 > 10.0.0.2: ICMP echo request, id 5, seq 1, length 64"
    );
    let echo = Icmp::EchoReply { ident: 5, seq: 1, data: &[] };
    assert_eq!(
        line(&build_icmp_packet(&ip6(), &echo)),
        "IP6 fd77::1 > fd77::2: ICMP6, echo reply, id 5, seq 1, length 8"
    );
}

#[test]
fn icmp_errors_show_the_packet_they_quote() {
    let segment = build_tcp_packet(&ip(), &tcp(Flags::SYN, syn_options()), &[b'x'; 27]);
    let back = IpHeader::new(ip().dst, ip().src, protocol::ICMP);
    let too_big = Icmp::Error { error: IcmpError::PacketTooBig { mtu: 1400 }, quote: &segment };
    assert_eq!(
        line(&build_icmp_packet(&back, &too_big)),
        "IP 10.0.0.2 > 10.0.0.1: ICMP 10.0.0.2 unreachable - need to frag (mtu 1400), length 95 \
         [IP 10.0.0.1.40000 > 10.0.0.2.80: Flags [S], seq 1:28, win 64240, options [mss 1460,sackOK,TS val 1 ecr 0,nop,wscale 7], \
         length 27]"
    );
    let port = Icmp::Error { error: IcmpError::PortUnreachable, quote: &segment[..28] };
    assert_eq!(
        line(&build_icmp_packet(&back, &port)),
        "IP 10.0.0.2 > 10.0.0.1: ICMP 10.0.0.2 tcp port 80 unreachable, length 36 [IP 10.0.0.1.40000 > 10.0.0.2.80: tcp, seq 1]"
    );
    let segment = build_tcp_packet(&ip6(), &tcp(Flags::ACK, TcpOptions::default()), b"");
    let back = IpHeader::new(ip6().dst, ip6().src, protocol::ICMPV6);
    let port = Icmp::Error { error: IcmpError::PortUnreachable, quote: &segment };
    assert_eq!(
        line(&build_icmp_packet(&back, &port)),
        "IP6 fd77::2 > fd77::1: ICMP6, destination unreachable, unreachable port, fd77::2 tcp port 80, length 68 \
         [IP6 fd77::1.40000 > fd77::2.80: Flags [.], ack 5, win 64240, length 0]"
    );
}

#[test]
fn a_quote_in_a_quote_is_not_followed() {
    let segment = build_tcp_packet(&ip(), &tcp(Flags::ACK, TcpOptions::default()), b"");
    let mut packet = segment;
    for _ in 0..200 {
        packet = build_icmp_packet(&ip(), &Icmp::Error { error: IcmpError::TimeExceeded, quote: &packet });
    }
    assert_eq!(
        line(&packet),
        "IP 10.0.0.1 > 10.0.0.2: ICMP time exceeded in-transit, length 5620 \
         [IP 10.0.0.1 > 10.0.0.2: ICMP time exceeded in-transit, length 5592]"
    );
}

#[test]
fn udp_and_other_protocols() {
    let udp = hex("4500 001f 2cd5 4000 4011 0ff7 7f00 0001 7f00 0001 eaba 270f 000b fe1e 7879 7a");
    assert_eq!(line(&udp), "IP 127.0.0.1.60090 > 127.0.0.1.9999: UDP, length 3");
    let mut gre = vec![0; 24];
    IpHeader::new(ip().src, ip().dst, 47).emit(4, &mut gre);
    assert_eq!(line(&gre), "IP 10.0.0.1 > 10.0.0.2: ip-proto-47 4");
}

#[test]
fn malformed_packets_are_described() {
    assert_eq!(line(&[]), "[truncated: 0 of 20 bytes], length 0");
    assert_eq!(line(&[0x50; 30]), "[IP version 5], length 30");
    assert_eq!(line(&[0x45; 10]), "IP [truncated: 10 of 20 bytes], length 10");
    assert_eq!(line(&[0x60; 10]), "IP6 [truncated: 10 of 40 bytes], length 10");
    let whole = build_tcp_packet(&ip(), &tcp(Flags::ACK, TcpOptions::default()), &[0; 100]);
    assert_eq!(
        line(&whole[..60]),
        "IP 10.0.0.1.40000 > 10.0.0.2.80: Flags [.], seq 1:101, ack 5, win 64240, length 100 [truncated: 40 of 120 bytes]"
    );
    assert_eq!(
        line(&whole[..30]),
        "IP 10.0.0.1.40000 > 10.0.0.2.80: tcp, seq 1 [truncated: 10 of 20 bytes] [truncated: 10 of 120 bytes]"
    );
    let mut fragment = whole.to_vec();
    fragment[6] |= 0x20;
    assert_eq!(line(&fragment), "IP 10.0.0.1 > 10.0.0.2: [fragment], length 140");
    let mut data_offset = whole.to_vec();
    data_offset[32] = 0x40;
    assert_eq!(line(&data_offset), "IP 10.0.0.1.40000 > 10.0.0.2.80: Flags [.] [bad hdr length 16]");
}
