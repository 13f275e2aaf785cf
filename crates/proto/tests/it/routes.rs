//! Values per route: what each does to a connection, and what comes before it.

use crate::pair::*;
use crate::peer::*;
use core::time::Duration;
use proto::*;

const PEER: &str = "10.0.0.1/32";

pub(crate) fn with_route(config: Config, metrics: &str) -> Peer {
    let mut p = Peer::new(config);
    assert!(p.stack.set_route(p.now, PEER.parse().unwrap(), metrics.parse().unwrap()));
    p
}

/// Segments of 1000 bytes that leave at once of 100 written.
fn first_flight(p: &mut Peer, id: ConnId) -> usize {
    p.write(id, &pattern(1, 100_000));
    p.sent_now().len()
}

fn accepted(p: &mut Peer) -> ConnId {
    let listener = p.listen();
    p.establish_with(listener, "S 0 win 65535 <mss 1000,wscale 7>")
}

#[test]
fn initcwnd_is_the_first_flight() {
    for (metrics, segments) in [("", 10), ("initcwnd 2", 2), ("initcwnd 20", 20), ("initcwnd 20 cwnd 7", 7)] {
        let mut p = with_route(Config::default(), metrics);
        let id = accepted(&mut p);
        assert_eq!(first_flight(&mut p, id), segments, "{metrics}");
    }
}

#[test]
fn only_connections_of_that_prefix_are_concerned_and_only_new_ones() {
    let mut p = with_route(Config::default(), "initcwnd 2");
    assert!(p.stack.set_route(p.now, "10.0.0.0/8".parse().unwrap(), "initcwnd 30".parse().unwrap()));
    let first = accepted(&mut p);
    p.stack.remove_route(p.now, PEER.parse().unwrap()).unwrap();
    assert_eq!(p.stack.routes().map(|(network, _)| network.to_string()).collect::<Vec<_>>(), ["10.0.0.0/8"]);
    assert_eq!(first_flight(&mut p, first), 2);

    let mut elsewhere = Peer::ours();
    elsewhere.stack.set_route(elsewhere.now, "192.0.2.0/24".parse().unwrap(), "initcwnd 2".parse().unwrap());
    let id = accepted(&mut elsewhere);
    assert_eq!(first_flight(&mut elsewhere, id), 10);
}

/// Row 71: `ssthresh` counts for nothing on Linux as it comes; `cwnd` needs `lock` there.
#[test]
fn cwnd_and_ssthresh_hold_as_they_stand_or_as_on_linux() {
    let begins_with = |config, metrics| {
        let mut p = with_route(config, metrics);
        let id = accepted(&mut p);
        let info = p.stack.info(id).unwrap();
        (info.cwnd / 1000, info.ssthresh / 1000)
    };
    let none = u32::MAX / 1000;
    assert_eq!(begins_with(Config::default(), "ssthresh 12"), (10, 12));
    assert_eq!(begins_with(Config::linux(), "ssthresh 12"), (10, none));
    assert_eq!(begins_with(Config::linux(), "ssthresh lock 12"), (10, none));
    assert_eq!(begins_with(Config::default(), "cwnd 4"), (4, none));
    assert_eq!(begins_with(Config::linux(), "cwnd 4"), (10, none));
    // There the limit lies in the memory of the path, which begins when a connection has ended well.
    assert_eq!(begins_with(Config::linux(), "cwnd lock 4"), (10, none));
    let mut p = with_route(Config::linux(), "cwnd lock 4");
    let (now, local, peer) = (p.now, p.local.ip().into(), p.remote.ip().into());
    p.stack.path_cache_mut().entry(now, local, peer).set_rtt(Some(Duration::from_millis(10)));
    let id = accepted(&mut p);
    assert_eq!(p.stack.info(id).unwrap().cwnd / 1000, 4);
}

/// 200 kB at a round trip of 100 ms: a larger first flight saves round trips of slow start (measured on Linux with initcwnd
/// 2, 10, 15, 20, 30: 831, 604, 502, 502, 406 ms).
#[test]
fn a_larger_first_flight_saves_round_trips() {
    let takes = |metrics: &str| {
        let mut pair = Pair::new(Config::default(), Config::default(), 50);
        pair.one_by_one = true;
        let now = pair.now;
        pair.stacks[SERVER].set_route(now, "10.0.0.0/24".parse().unwrap(), metrics.parse().unwrap());
        let listener = pair.listen(0);
        let id = pair.connect(ConnectOptions::default());
        let start = pair.now;
        pair.run(150);
        let child = pair.accept(listener).unwrap();
        pair.write(SERVER, child, &[7; 200_000]);
        let mut got = 0;
        while got < 200_000 {
            pair.run(1);
            got += pair.read(CLIENT, id).map_or(0, |data| data.len());
        }
        pair.ms_since(start) / 50
    };
    // One way is 50 ms: two for the handshake, then one per flight and one per ACK.
    assert_eq!(
        ["initcwnd 2", "", "initcwnd 15", "initcwnd 30", "initcwnd 140"].map(takes),
        [16, 10, 10, 8, 4]
    );
}

#[test]
fn a_clamped_window_never_opens_further() {
    let mut p = with_route(Config::default(), "cwnd 4");
    let id = accepted(&mut p);
    p.write(id, &pattern(1, 100_000));
    let mut acked = 1;
    for _ in 0..10 {
        let flight = p.sent_now();
        assert_eq!(flight.len(), 4, "{flight:?}");
        acked += 4000;
        p.send(&format!("A 1 ack {acked} win 512"));
    }
    assert_eq!(p.stack.info(id).unwrap().cwnd, 4000);
    assert_eq!(p.sent_now().len(), 4);
    for (from, to) in [(1, 2), (1, 3), (1, 4)] {
        let (from, to) = (acked + from * 1000, acked + to * 1000);
        p.send(&format!("A 1 ack {acked} win 512 <sack {from}:{to}>"));
    }
    assert_eq!(p.stack.info(id).unwrap().ssthresh, 2800, "a loss reduces the window that was used");
}

#[test]
fn advmss_mtu_and_initrwnd_show_in_the_handshake() {
    for (metrics, syn_ack) in [
        ("", "SA 0 ack 1 win 64240 <mss 1460,wscale 7>"),
        ("advmss 1000", "SA 0 ack 1 win 65000 <mss 1000,wscale 7>"),
        ("advmss 9000", "SA 0 ack 1 win 64240 <mss 1460,wscale 7>"),
        ("mtu 1000", "SA 0 ack 1 win 65280 <mss 960,wscale 7>"),
        ("mtu 1000 advmss 800", "SA 0 ack 1 win 64800 <mss 800,wscale 7>"),
        ("initrwnd 2", "SA 0 ack 1 win 2920 <mss 1460,wscale 7>"),
        ("initrwnd 2 advmss 500", "SA 0 ack 1 win 1000 <mss 500,wscale 7>"),
    ] {
        let mut p = with_route(Config::default(), metrics);
        p.listen();
        p.send("S 0 win 65535 <mss 1460,wscale 7>");
        p.expect(syn_ack);

        let mut p = with_route(Config::default(), metrics);
        p.connect(ConnectOptions::default());
        let syn = syn_ack.replace("SA 0 ack 1", "S 0").replace(",wscale", ",sackOK,TS 0 0,wscale");
        p.expect(&syn);
    }
}

/// Row 72: the window begins with so many segments and grows by twice what arrives, as Linux's `rcv_ssthresh`; without the metric all of
/// the buffer is offered as soon as the window is scaled.
#[test]
fn initrwnd_is_where_the_window_begins_to_grow() {
    let windows = |metrics| {
        let mut p = with_route(Config::default(), metrics);
        let listener = p.listen();
        let id = p.establish_with(listener, "S 0 win 65535 <mss 1460,wscale 7>");
        let mut windows = vec![p.stack.info(id).unwrap().rcv_wnd];
        for flight in 0..3 {
            for number in 0..2 {
                let from = 1 + (2 * flight + number) * 1460;
                p.send(&format!("A {from}:{} ack 1", from + 1460));
            }
            p.expect(&format!("A 1 ack {}", 1 + 2 * (flight + 1) * 1460));
            p.read(id).unwrap();
            p.expect_nothing();
            windows.push(p.stack.info(id).unwrap().rcv_wnd);
        }
        windows
    };
    assert_eq!(windows("initrwnd 2"), [2920, 8832, 14_720, 20_480]);
    assert!(windows("")[1] > 500_000);
}

#[test]
fn mtu_limits_what_is_sent_and_lock_defies_icmp() {
    let sizes = |metrics| {
        let mut p = with_route(Config::default(), metrics);
        let listener = p.listen();
        let id = p.establish_with(listener, "S 0 win 65535 <mss 1460,wscale 7>");
        let before = p.stack.info(id).unwrap().snd_mss;
        p.write(id, &pattern(1, 5000));
        let packet = p.take_packet().unwrap();
        crate::icmp::error_about(&mut p, &packet, wire::IcmpError::PacketTooBig { mtu: 800 });
        (before, p.stack.info(id).unwrap().snd_mss)
    };
    assert_eq!(sizes(""), (1460, 760));
    assert_eq!(sizes("mtu 1200"), (1160, 760));
    assert_eq!(sizes("mtu lock 1200"), (1160, 1160));
}

#[test]
fn rto_min_is_the_routes() {
    let mut p = with_route(Config::default(), "rto_min 30ms");
    let id = accepted(&mut p);
    assert_eq!(p.stack.info(id).unwrap().rto, Duration::from_millis(30));
}

#[test]
fn quickack_acknowledges_every_segment() {
    let acks = |metrics| {
        let mut p = with_route(Config::default(), metrics);
        accepted(&mut p);
        p.send("PA 1:11 ack 1 win 512");
        p.sent_now().len()
    };
    assert_eq!((acks(""), acks("quickack 1")), (0, 1));
}

#[test]
fn a_socket_comes_before_its_route_and_that_before_the_stack() {
    let chosen = |socket, metrics| {
        let mut p = with_route(Config::default(), metrics);
        let options = ListenOptions {
            socket: SocketOptions { congestion: socket, ..SocketOptions::default() },
            ..ListenOptions::default()
        };
        let listener = p.listen_with(options);
        let id = p.establish_with(listener, "S 0 win 65535 <mss 1000,wscale 7>");
        p.stack.info(id).unwrap().congestion
    };
    assert_eq!(chosen(None, ""), CongestionControl::Cubic);
    assert_eq!(chosen(None, "congctl reno"), CongestionControl::Reno);
    assert_eq!(chosen(Some(CongestionControl::Vegas), "congctl reno"), CongestionControl::Vegas);
}

/// RFC 7413 §5.1: where both ends agreed, data goes and is taken without a cookie.
#[test]
fn fastopen_no_cookie_on_both_ends_saves_the_first_visit() {
    let mut pair = Pair::ours();
    let now = pair.now;
    let metrics: RouteMetrics = "fastopen_no_cookie 1".parse().unwrap();
    for stack in &mut pair.stacks {
        stack.set_route(now, "10.0.0.0/24".parse().unwrap(), metrics);
    }
    pair.listen(16);
    let options = ConnectOptions {
        fast_open: FastOpen::Auto,
        first_bytes: b"hello".as_slice().into(),
        ..ConnectOptions::default()
    };
    let id = pair.connect(options);
    pair.run(41);
    assert_eq!(pair.ladder()[..2], ["> S(5)", "< SA"]);
    assert_eq!(pair.stacks[CLIENT].outcome(id), Some(Outcome::Accepted));
}

fn open_to_large_segments(mut p: Peer) -> (Peer, ConnId) {
    let listener = p.listen();
    let id = p.establish_with(listener, "S 0 win 65535 <mss 1460>");
    (p, id)
}

/// The first packet after the change is still cut as before, and what follows it at once.
#[test]
fn a_larger_mtu_counts_after_the_next_packet() {
    for config in both_profiles() {
        let (mut p, id) = open_to_large_segments(with_route(config, "mtu lock 600"));
        p.stack.remove_route(p.now, PEER.parse().unwrap()).unwrap();
        p.skip(10);
        p.write(id, &pattern(1, 1120));
        p.expect("A 1:561 ack 1");
        p.expect("PA 561:1121 ack 1");
        p.skip(10);
        p.send("A 1 ack 1121");
        p.write(id, &pattern(1121, 1460));
        p.expect("PA 1121:2581 ack 1");
        assert_eq!(p.stack.info(id).unwrap().snd_mss, 1460);
    }
}

/// No packet leaves that the new route does not carry, nor is retransmitted so large.
#[test]
fn a_smaller_mtu_counts_at_once() {
    for config in both_profiles() {
        let (mut p, id) = open_to_large_segments(Peer::new(config));
        p.write(id, &pattern(1, 1460));
        p.expect("PA 1:1461 ack 1");
        assert!(p.stack.set_route(p.now, PEER.parse().unwrap(), "mtu 600".parse().unwrap()));
        p.pass(250);
        assert!(p.sent_now()[0].starts_with("A 1:561(560)"));
        p.send("A 1 ack 1461");
        p.write(id, &pattern(1461, 1120));
        p.expect("A 1461:2021 ack 1");
        p.expect("PA 2021:2581 ack 1");
    }
}

/// Only the route of the longest prefix is a connection's, whichever comes or goes beside it.
#[test]
fn another_route_beside_it_changes_nothing() {
    let (mut p, id) = open_to_large_segments(with_route(Config::default(), "mtu 600"));
    assert!(p.stack.set_route(p.now, "10.0.0.0/8".parse().unwrap(), "mtu 1000".parse().unwrap()));
    assert!(p.stack.set_route(p.now, "10.0.0.9/32".parse().unwrap(), "mtu 900".parse().unwrap()));
    for from in [1, 561] {
        p.skip(10);
        p.write(id, &pattern(from, 560));
        p.expect_range(from..from + 560);
        p.send(&format!("A 1 ack {}", from + 560));
    }
    assert_eq!(p.stack.info(id).unwrap().snd_mss, 560);
}

/// It bounds the variation of round trips where that is measured anew.
#[test]
fn only_a_smaller_rto_min_counts_for_an_open_connection() {
    for (metrics, rto) in [("rto_min 50ms", 50), ("rto_min 700ms", 200)] {
        let (mut p, id) = open_to_large_segments(Peer::ours());
        assert!(p.stack.set_route(p.now, PEER.parse().unwrap(), metrics.parse().unwrap()));
        for from in [1, 101] {
            p.skip(1);
            p.write(id, &pattern(from, 100));
            p.expect_range(from..from + 100);
            p.send(&format!("A 1 ack {}", from + 100));
        }
        assert_eq!(p.stack.info(id).unwrap().rto, Duration::from_millis(rto), "{metrics}");
    }
}
