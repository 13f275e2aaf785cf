//! ICMP: errors count when they quote what is in flight; path MTU; echo.

use crate::peer::*;
use core::time::Duration;
use proto::*;
use wire::{Ecn, Icmp, IcmpError, IpHeader};

/// An error about `packet`, from the peer's address.
pub(crate) fn error_about(p: &mut Peer, packet: &[u8], error: IcmpError) {
    let quote = &packet[..packet.len().min(68)];
    let ip = IpHeader::new(p.remote.ip().into(), p.local.ip().into(), wire::protocol::ICMP);
    let icmp = wire::build_icmp_packet(&ip, &Icmp::Error { error, quote });
    assert!(p.stack.handle_packet(p.now, RxPacket::new(icmp)).is_none());
}

fn established(mut p: Peer, syn: &str) -> (Peer, ConnId) {
    let listener = p.listen();
    let id = p.establish_with(listener, syn);
    p.events();
    (p, id)
}

/// Writes and returns the first packet, as large as the path is thought to take.
fn first_of(p: &mut Peer, id: ConnId, len: usize) -> bytes::Bytes {
    p.write(id, &pattern(1, len));
    p.take_packet().unwrap()
}

/// The path MTU is believed for a second, and for longer than that the device takes nothing.
#[test]
fn a_path_mtu_is_believed_until_what_it_made_lost_is_retransmitted() {
    let config = Config::default().mtu_expires(Duration::from_secs(1));
    let (mut p, id) = established(Peer::new(config), "S 0 win 65535 <mss 1460>");
    let packet = first_of(&mut p, id, 1000);
    p.queue_is_full = true;
    error_about(&mut p, &packet, IcmpError::PacketTooBig { mtu: 600 });
    p.expect_nothing_for(1001);
    p.queue_is_full = false;
    p.expect_after(199, "A 1:561 ack 1");
}

#[test]
fn packet_too_big_shrinks_segments_and_sends_at_once_again() {
    let (mut p, id) = established(Peer::ours(), "S 0 win 65535 <mss 1460>");
    let packet = first_of(&mut p, id, 3000);
    assert_eq!(packet.len(), 1500);
    p.expect("A 1461:2921 ack 1");
    p.expect("PA 2921:3001 ack 1");
    error_about(&mut p, &packet, IcmpError::PacketTooBig { mtu: 1000 });
    p.expect("A 1:961 ack 1");
    p.expect("A 961:1921 ack 1");
    p.expect("A 1921:2881 ack 1");
    // The third packet was not too big.
    p.expect("A 2881:2921 ack 1");
    p.expect_nothing();
    let info = p.stack.info(id).unwrap();
    assert_eq!((info.snd_mss, info.cwnd), (960, 14_600), "not a congestion loss");
    assert_eq!(p.stack.counters().timeouts, 0);
    // The other two packets were too big as well; their errors say nothing new.
    error_about(&mut p, &packet, IcmpError::PacketTooBig { mtu: 1000 });
    error_about(&mut p, &packet, IcmpError::PacketTooBig { mtu: 1400 });
    p.expect_nothing();
}

/// Small segments that are retransmitted as one packet are too long together: all of them go again at once, and so do those of a second packet
/// that was as long, but not what is short enough behind them.
#[test]
fn small_segments_of_a_packet_that_is_too_long_go_again() {
    let socket = SocketOptions { nodelay: true, ..SocketOptions::default() };
    let mut p = Peer::new(Config::default().tcp_early_retrans(0));
    let listener = p.listen_with(ListenOptions { socket, ..ListenOptions::default() });
    let id = p.establish_with(listener, "S 0 win 65535 <mss 1460>");
    for at in (1..2401).step_by(400) {
        p.write(id, &pattern(at, 400));
        p.expect(&format!("PA {at}:{}(400) ack 1", at + 400));
    }
    p.pass(2000);
    let packet = p.take_packet().unwrap();
    assert_eq!(packet.len(), 40 + 1460);
    error_about(&mut p, &packet, IcmpError::PacketTooBig { mtu: 1000 });
    p.expect("PA 1:961 ack 1");
    assert_eq!(p.stack.counters().timeouts, 1, "it waits for no other");
}

/// A SYN-ACK with the answer is too long for the path: a plain one goes at once, and the answer behind it in segments that fit.
#[test]
fn a_syn_ack_that_is_too_long_goes_again_without_its_text() {
    let mut p = Peer::ours();
    let listener = p.listen_with(ListenOptions {
        fast_open: Some(9),
        fast_open_no_cookie: true,
        ..ListenOptions::default()
    });
    p.send("S 0:10(10) win 65535 <mss 1460>");
    let id = p.accept(listener);
    p.write(id, &pattern(1, 5000));
    let packet = p.take_packet().unwrap();
    assert_eq!(packet.len(), 1500);
    error_about(&mut p, &packet, IcmpError::PacketTooBig { mtu: 1000 });
    p.skip_until_sent();
    p.expect("SA 0 ack 11");
    p.send("A 11 ack 1");
    p.expect("A 1:961 ack 11");
    assert_eq!(p.stack.counters().timeouts, 0);
}

/// The path's MTU was not what bounds the segments: those in flight were not too long, with SACK and without, and wait for their time-out.
#[test]
fn segments_that_the_path_takes_do_not_go_again() {
    for syn in ["S 0 win 65535 <mss 1000>", "S 0 win 65535 <mss 1000,sackOK>"] {
        for config in both_profiles() {
            let capabilities = Capabilities { mtu: 9000, gso_max_size: 0, tx_checksum: false };
            let (mut p, id) = established(Peer::with(config.tcp_early_retrans(0), capabilities), syn);
            let packet = first_of(&mut p, id, 2500);
            p.expect("A 1001:2001 ack 1");
            p.expect("PA 2001:2501 ack 1");
            error_about(&mut p, &packet, IcmpError::PacketTooBig { mtu: 5000 });
            p.expect_nothing();
            error_about(&mut p, &packet, IcmpError::PacketTooBig { mtu: 600 });
            p.expect("A 1:561 ack 1");
        }
    }
}

#[test]
fn the_next_connection_remembers_the_path_mtu() {
    let (mut p, id) = established(Peer::ours(), "S 0 win 65535 <mss 1460>");
    let packet = first_of(&mut p, id, 1460);
    error_about(&mut p, &packet, IcmpError::PacketTooBig { mtu: 1000 });
    p.expect_range(1..1461);
    p.local = "10.0.0.2:0".parse().unwrap();
    let id = p.connect(ConnectOptions { first_bytes: pattern(1, 1000).into(), ..Default::default() });
    p.expect("S 0 <mss 1460,sackOK,TS 0 0,wscale 7>");
    p.send("SA 0 ack 1 <mss 1460>");
    p.expect("A 1:961 ack 1");
    p.expect("PA 961:1001 ack 1");
    assert_eq!(p.stack.info(id).unwrap().snd_mss, 960);
    // After ten minutes the path may be another one.
    p.skip(600_000);
    let id = p.connect(ConnectOptions::default());
    p.expect("S 0");
    p.send("SA 0 ack 1 <mss 1460>");
    assert_eq!(p.stack.info(id).unwrap().snd_mss, 1460);
}

/// Linux tells the peer no more than the path takes, and the plain SYN follows at once.
#[test]
fn the_mss_of_a_syn_may_follow_the_path() {
    let mut p = Peer::new(Config::default().mss_rules(MssRules::Kernel));
    p.local = "10.0.0.2:0".parse().unwrap();
    let options = || ConnectOptions {
        fast_open: FastOpen::NoCookie,
        first_bytes: pattern(1, 1000).into(),
        ..Default::default()
    };
    p.connect(options());
    let syn = p.take_packet().unwrap();
    error_about(&mut p, &syn, IcmpError::PacketTooBig { mtu: 840 });
    p.expect("S 0 <mss 800,sackOK,TS 0 0,wscale 7>");
}

/// A forger cannot make us send tiny packets.
#[test]
fn the_path_mtu_has_a_floor() {
    let (mut p, id) = established(Peer::ours(), "S 0 win 65535 <mss 1460>");
    let packet = first_of(&mut p, id, 1460);
    error_about(&mut p, &packet, IcmpError::PacketTooBig { mtu: 68 });
    assert_eq!(p.stack.info(id).unwrap().snd_mss, 512);
    let (mut p, id) = established(Peer::ours().v6(), "S 0 win 65535 <mss 1440>");
    let packet = first_of(&mut p, id, 1440);
    for (mtu, snd_mss) in [(100, 1440), (1279, 1440), (1280, 1220)] {
        error_about(&mut p, &packet, IcmpError::PacketTooBig { mtu });
        assert_eq!(p.stack.info(id).unwrap().snd_mss, snd_mss, "RFC 8201 §4");
    }
}

#[test]
fn an_unreachable_peer_fails_a_connect_at_once() {
    for (error, reason) in [
        (IcmpError::HostUnreachable, CloseReason::HostUnreachable),
        (IcmpError::Prohibited, CloseReason::Prohibited),
        (IcmpError::PortUnreachable, CloseReason::PortUnreachable),
        (IcmpError::ProtocolUnreachable, CloseReason::PortUnreachable),
    ] {
        for mut p in [Peer::ours(), Peer::ours().v6()] {
            let id = p.connect(ConnectOptions::default());
            let syn = p.take_packet().unwrap();
            error_about(&mut p, &syn, error);
            p.expect_nothing_for(10_000);
            assert_eq!(p.stack.close_reason(id), Some(reason));
            let told = Events::CLOSED | Events::READABLE | Events::WRITABLE | Events::REPORT;
            assert_eq!(p.events_of(id), told);
            assert_eq!(p.read(id), Err(ReadError::Closed(reason)));
            p.close(id);
            assert_eq!(p.sizes(), (0, 0, 0));
        }
    }
}

/// Of a half-open request nobody is told: it ends, and a late ACK finds nothing.
#[test]
fn an_unreachable_peer_ends_its_request() {
    use IcmpError::*;
    let ends = [HostUnreachable, TimeExceeded, ParameterProblem];
    for error in [HostUnreachable, TimeExceeded, ParameterProblem, Prohibited, PortUnreachable] {
        for mut p in [Peer::ours(), Peer::ours().v6(), Peer::new(Config::linux())] {
            p.listen();
            p.send("S 0 <mss 1000>");
            let syn_ack = p.take_packet().unwrap();
            let at = if p.local.is_ipv4() { 27 } else { 47 };
            let mut forged = syn_ack.to_vec();
            forged[at] ^= 1;
            error_about(&mut p, &forged, error);
            assert_eq!((p.sizes().1, p.stack.counters().out_of_window_icmps), (1, 1), "another number");
            error_about(&mut p, &syn_ack, error);
            let ended = ends.contains(&error);
            assert_eq!(p.sizes(), (0, usize::from(!ended), 0), "{error:?}");
            assert_eq!(p.stack.drops().get(DropReason::RequestUnreachable), u64::from(ended));
            assert_eq!(p.stack.counters().listen_drops, u64::from(ended));
            if ended {
                p.send("A 1 ack 1");
                p.expect("R 1");
            }
        }
    }
}

/// RFC 1122 §4.2.3.9: a soft error does not end a connection, but it is the reason when retransmission gives up.
#[test]
fn an_established_connection_outlives_unreachable_and_names_it_when_it_gives_up() {
    let mut config = Config::default();
    config.set("net.ipv4.tcp_retries2", "2").unwrap();
    let (mut p, id) = established(Peer::new(config.clone()), "S 0 win 65535 <mss 1000>");
    let packet = first_of(&mut p, id, 10);
    error_about(&mut p, &packet, IcmpError::HostUnreachable);
    assert_eq!(p.state(id), State::Established);
    p.skip(200 + 400 + 800 + 1600);
    assert_eq!(p.stack.close_reason(id), Some(CloseReason::HostUnreachable));
    // Progress in between: the path works again.
    let (mut p, id) = established(Peer::new(config), "S 0 win 65535 <mss 1000>");
    let packet = first_of(&mut p, id, 10);
    error_about(&mut p, &packet, IcmpError::HostUnreachable);
    p.send("A 1 ack 11");
    p.write(id, b"x");
    p.skip(200 + 400 + 800 + 1600);
    assert_eq!(p.stack.close_reason(id), Some(CloseReason::TimedOut));
}

#[test]
fn errors_about_what_is_not_in_flight_are_counted_and_ignored() {
    let mut p = Peer::ours();
    let id = p.connect(ConnectOptions::default());
    let syn = p.take_packet().unwrap();
    let forged = |change: fn(&mut Vec<u8>)| {
        let mut packet = syn.to_vec();
        change(&mut packet);
        packet
    };
    let wrong = [
        forged(|packet| packet[27] = packet[27].wrapping_sub(1)), // sequence number
        forged(|packet| packet[21] ^= 1),                         // source port
        forged(|packet| packet[9] = 17),                          // UDP
        forged(|packet| packet.truncate(24)),
        b"nothing like a packet".to_vec(),
    ];
    for packet in &wrong {
        error_about(&mut p, packet, IcmpError::HostUnreachable);
    }
    assert_eq!(p.stack.drops().get(DropReason::IcmpUnrelated), 5);
    assert_eq!(p.state(id), State::SynSent);
}

/// As Linux does it for every error but that of the path's MTU; RFC 5461 §4.1 says why.
#[test]
fn an_attempt_to_connect_ends_with_any_error_and_names_it() {
    let errors = [
        (IcmpError::TimeExceeded, CloseReason::HostUnreachable, 11),
        (IcmpError::ParameterProblem, CloseReason::PortUnreachable, 12),
        (IcmpError::Prohibited, CloseReason::Prohibited, 3),
    ];
    for (error, reason, kind) in errors {
        let mut p = Peer::ours();
        let id = p.connect(ConnectOptions::default());
        let syn = p.take_packet().unwrap();
        error_about(&mut p, &syn, error);
        assert_eq!((p.state(id), p.stack.close_reason(id)), (State::Closed, Some(reason)));
        let report = p.stack.take_icmp_report(id).unwrap();
        assert_eq!((report.kind, report.from), (kind, p.remote.ip()));
        assert_eq!(report.quote[..], syn[20..], "the segment it is about");
        assert_eq!(p.stack.take_icmp_report(id), None, "told once");
    }
}

#[test]
fn an_error_with_a_bad_checksum_is_dropped() {
    let mut p = Peer::ours();
    let id = p.connect(ConnectOptions::default());
    let syn = p.take_packet().unwrap();
    let ip = IpHeader::new(p.remote.ip().into(), p.local.ip().into(), wire::protocol::ICMP);
    let icmp = wire::build_icmp_packet(&ip, &Icmp::Error { error: IcmpError::HostUnreachable, quote: &syn });
    let mut packet = icmp.to_vec();
    packet[22] ^= 1;
    assert!(p.stack.handle_packet(p.now, RxPacket::new(packet.into())).is_none());
    assert_eq!((p.state(id), p.stack.drops().get(DropReason::Icmp)), (State::SynSent, 1));
}

pub(crate) fn echo(p: &mut Peer, data: &[u8]) -> Option<bytes::Bytes> {
    let ip = IpHeader::new(p.remote.ip().into(), p.local.ip().into(), wire::protocol::ICMP);
    let request = wire::build_icmp_packet(&ip, &Icmp::EchoRequest { ident: 7, seq: 9, data });
    p.stack.handle_packet(p.now, RxPacket::new(request));
    p.take_packet()
}

#[test]
fn echo_requests_are_answered_within_the_limit() {
    for mut p in [Peer::ours(), Peer::ours().v6()] {
        let reply = echo(&mut p, b"ping").unwrap();
        let (ip, range) = IpHeader::parse(&reply).unwrap();
        assert_eq!((ip.src.to_ip(), ip.dst.to_ip()), (p.local.ip(), p.remote.ip()));
        let icmp = Icmp::parse(ip.src, ip.dst, &reply[range]).unwrap();
        assert_eq!(icmp, Icmp::EchoReply { ident: 7, seq: 9, data: b"ping" });
    }
    let mut config = Config::default();
    config.set("firstbyte.echo_replies_per_peer", "20").unwrap();
    let mut p = Peer::new(config.clone());
    let answered = (0..50).filter_map(|_| echo(&mut p, b"")).count();
    assert!((10..30).contains(&answered), "{answered}");
    config.set("firstbyte.icmp_echo", "0").unwrap();
    assert!(echo(&mut Peer::new(config), b"").is_none());
}

/// Linux's `icmp_reply` and `icmpv6_echo_reply`, watched by `ping -Q`: the byte comes back as it came, with a mark of congestion too.
#[test]
fn an_echo_reply_has_the_traffic_class_of_its_request() {
    for mut p in [Peer::ours(), Peer::ours().v6()] {
        for (dscp, ecn) in [
            (0, Ecn::NotEct),
            (10, Ecn::NotEct),
            (10, Ecn::Ect1),
            (10, Ecn::Ect0),
            (10, Ecn::Ce),
            (63, Ecn::Ce),
        ] {
            let ip = IpHeader::new(p.remote.ip().into(), p.local.ip().into(), wire::protocol::ICMP);
            let ip = IpHeader { dscp, ecn, ..ip };
            let request =
                wire::build_icmp_packet(&ip, &Icmp::EchoRequest { ident: 7, seq: 9, data: b"ping" });
            p.stack.handle_packet(p.now, RxPacket::new(request));
            let (reply, _) = IpHeader::parse(&p.take_packet().unwrap()).unwrap();
            assert_eq!((reply.dscp, reply.ecn), (dscp, ecn));
        }
    }
}

/// What ICMP told of the path is forgotten while the window is less than a larger segment, and nothing is in flight: that one goes all the same.
#[test]
fn a_larger_segment_is_not_too_large_for_the_window() {
    let by = |algorithm| Config::default().tcp_congestion_control(algorithm);
    let configs = [
        Config::default(),
        by(CongestionControl::Reno),
        by(CongestionControl::Vegas),
        by(CongestionControl::Bbr),
        Config::default().window_unit(WindowUnit::Segments),
        Config::linux(),
    ];
    for (case, config) in configs.into_iter().enumerate() {
        let tcp_wmem = [4096, 262_144, 4_194_304];
        let config = config.tcp_retries2(100).tcp_mtu_probing(0).tcp_wmem(tcp_wmem);
        let (mut p, id) = established(Peer::new(config), "S 0 win 65535 <mss 1460>");
        let packet = first_of(&mut p, id, 500);
        error_about(&mut p, &packet, IcmpError::PacketTooBig { mtu: 576 });
        // Nothing is heard: the window shrinks to a segment.
        p.skip(590_000);
        p.write(id, &pattern(501, 49_500));
        assert_eq!(p.stack.info(id).unwrap().snd_mss, 536);
        p.now = p.now + core::time::Duration::from_secs(11);
        let sent = p.stack.info(id).unwrap().flight_size;
        p.send(&format!("A 1 ack {} win 65535", 1 + sent));
        p.expect_only_data();
        let mut heard = 1 + sent;
        while heard < 50_001 {
            let in_flight = p.stack.info(id).unwrap().flight_size;
            assert!(in_flight > 0 || p.stack.poll_timeout().is_some(), "{case}: stalls at {heard} of 50000");
            heard += in_flight;
            p.send(&format!("A 1 ack {heard} win 65535"));
            if p.sent_now().is_empty() {
                p.skip_until_sent();
            }
        }
    }
}
