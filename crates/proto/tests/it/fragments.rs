//! May routers cut our packets? The "don't fragment" of IPv4's header, and the numbers of those without.

use crate::icmp::error_about;
use crate::pair::ethernet;
use crate::peer::*;
use crate::routes::with_route;
use proto::fast_open::KeyRing;
use proto::*;
use wire::{IcmpError, IpHeader};

/// Of each packet that is sent now: may it be cut, and under which number?
fn cut(p: &mut Peer) -> Vec<Option<u16>> {
    let packets = std::iter::from_fn(|| p.take_packet());
    let header = |packet: bytes::Bytes| IpHeader::parse(&packet).unwrap().0;
    packets.map(header).map(|ip| (!ip.dont_fragment).then_some(ip.ident)).collect()
}

fn established(config: Config, socket: SocketOptions) -> (Peer, ConnId) {
    let mut p = Peer::new(config);
    let listener = p.listen_with(ListenOptions { socket, ..ListenOptions::default() });
    let id = p.establish_with(listener, "S 0 win 65535 <mss 1460>");
    (p, id)
}

fn of(mode: PathMtuDiscovery) -> SocketOptions {
    SocketOptions { path_mtu_discovery: Some(mode), ..SocketOptions::default() }
}

/// What is cut bears numbers of its own (RFC 6864 §4.3).
#[test]
fn a_socket_that_does_not_discover_lets_packets_be_cut() {
    use PathMtuDiscovery::*;
    for (mode, cuts) in
        [(Dont, true), (Want, false), (Do, false), (Probe, true), (Interface, true), (Omit, true)]
    {
        let (mut p, id) = established(Config::default(), of(mode));
        p.write(id, &pattern(1, 3000));
        let seen = cut(&mut p);
        let first = seen[0].unwrap_or_default();
        let numbers =
            [first, first.wrapping_add(1), first.wrapping_add(2)].map(|ident| cuts.then_some(ident));
        assert_eq!(seen, numbers, "{mode:?}");
    }
    let (mut p, id) = established(Config::default(), SocketOptions::default());
    p.stack.set_option(p.now, id, SocketOption::PathMtuDiscovery(Dont)).unwrap();
    p.write(id, &pattern(1, 1460));
    assert!(cut(&mut p)[0].is_some());
    p.stack.set_option(p.now, id, SocketOption::PathMtuDiscovery(Do)).unwrap();
    p.write(id, &pattern(1461, 1460));
    assert_eq!(cut(&mut p), [None]);
}

/// A burst takes as many numbers as the device makes packets of it.
#[test]
fn the_packets_of_a_burst_have_a_number_each() {
    let mut p = Peer::with(Config::default(), Capabilities { gso_max_size: 65_535, ..ethernet() });
    let listener =
        p.listen_with(ListenOptions { socket: of(PathMtuDiscovery::Dont), ..ListenOptions::default() });
    let id = p.establish_with(listener, "S 0 win 65535 <mss 1460>");
    p.write(id, &pattern(1, 4380));
    p.write(id, &pattern(4381, 100));
    let seen = cut(&mut p);
    let first = seen[0].unwrap();
    let of_bytes = p.stack.info(id).unwrap().flight_size;
    assert_eq!(of_bytes, 4480);
    assert_eq!(seen.last().copied().flatten(), Some(first.wrapping_add(3)), "{seen:?}");
}

#[test]
fn the_stack_may_let_all_packets_be_cut_but_not_where_a_socket_forbids_it() {
    let config = || Config::default().ip_no_pmtu_disc(1);
    let cuts = |socket| {
        let (mut p, id) = established(config(), socket);
        p.write(id, &pattern(1, 1460));
        cut(&mut p)[0].is_some()
    };
    assert!(cuts(SocketOptions::default()));
    assert!(!cuts(of(PathMtuDiscovery::Want)));
    let mut p = Peer::new(config()).v6();
    let listener = p.listen();
    let id = p.establish_with(listener, "S 0 win 65535 <mss 1440>");
    p.write(id, &pattern(1, 1440));
    assert_eq!(cut(&mut p), [None], "routers of IPv6 cut nothing");
}

/// Less than is believed: there is nothing more to be found out, for this connection and the next ones, until it is forgotten.
#[test]
fn who_is_told_too_little_lets_packets_be_cut() {
    for (told, size, cuts) in [(551, 512, true), (552, 512, false)] {
        let (mut p, id) = established(Config::default(), SocketOptions::default());
        p.write(id, &pattern(1, 1460));
        let packet = p.take_packet().unwrap();
        error_about(&mut p, &packet, IcmpError::PacketTooBig { mtu: told });
        assert_eq!(p.stack.info(id).unwrap().snd_mss, size);
        assert_eq!(cut(&mut p).iter().map(Option::is_some).collect::<Vec<_>>(), [cuts; 3], "{told}");
        p.local = "10.0.0.2:0".parse().unwrap();
        p.connect(ConnectOptions::default());
        assert_eq!(cut(&mut p)[0].is_some(), cuts, "the next one's SYN");
        p.connect(ConnectOptions { socket: of(PathMtuDiscovery::Do), ..ConnectOptions::default() });
        assert_eq!(cut(&mut p), [None]);
        p.skip(600_000);
        p.connect(ConnectOptions::default());
        assert_eq!(cut(&mut p).pop(), Some(None));
    }
}

#[test]
fn a_locked_route_lets_packets_be_cut() {
    for (route, cuts) in [("mtu lock 1200", true), ("mtu 1200", false)] {
        let mut p = with_route(Config::default(), route);
        let listener = p.listen();
        let id = p.establish_with(listener, "S 0 win 65535 <mss 1460>");
        p.write(id, &pattern(1, 1000));
        assert_eq!(cut(&mut p)[0].is_some(), cuts, "{route}");
    }
}

/// A SYN-ACK of 68 bytes or less goes whole whatever a listener wants (Linux's `ip_build_and_send_pkt`); with a cookie it is longer.
#[test]
fn only_a_long_syn_ack_may_be_cut() {
    let mut p = Peer::new(Config::default());
    p.stack.set_fast_open_key(KeyRing::new("00112233-44556677-8899aabb-ccddeeff".parse().unwrap()));
    let socket = of(PathMtuDiscovery::Dont);
    p.listen_with(ListenOptions { socket, fast_open: Some(5), ..ListenOptions::default() });
    p.send("S 0 win 65535 <mss 1460,sackOK,TS 1 0,wscale 7>");
    assert_eq!(cut(&mut p), [None]);
    p.remote.set_port(p.remote.port() + 1);
    p.send("S 0 win 65535 <mss 1460,sackOK,TS 1 0,wscale 7,FO>");
    assert!(cut(&mut p)[0].is_some());
}

/// What ICMP tells holds for what is written later, and with `IP_PMTUDISC_DONT` nothing is retransmitted for it.
#[test]
fn who_lets_packets_be_cut_sends_none_again() {
    let (mut p, id) = established(Config::default(), of(PathMtuDiscovery::Dont));
    p.write(id, &pattern(1, 1460));
    let packet = p.take_packet().unwrap();
    error_about(&mut p, &packet, IcmpError::PacketTooBig { mtu: 1000 });
    p.expect_nothing();
    p.send("A 1 ack 1461");
    p.write(id, &pattern(1461, 1000));
    p.expect("A 1461:2421 ack 1");
}
