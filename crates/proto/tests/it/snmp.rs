//! What Linux shows in `/proc/net/snmp` and `/proc/net/netstat`: exact figures under its names, and sums that add up.

use crate::icmp::error_about;
use crate::pair::{CLIENT, Pair, SERVER};
use crate::peer::*;
use core::time::Duration;
use proto::*;
use wire::{Icmp, IcmpError, IpHeader};

fn of(stack: &Stack, name: &str) -> u64 {
    let found = stack.nstat().into_iter().find(|(known, _)| known == name);
    found.unwrap_or_else(|| panic!("no counter {name}")).1
}

fn established(config: Config, syn: &str) -> (Peer, ConnId) {
    let mut p = Peer::new(config);
    let listener = p.listen();
    let id = p.establish_with(listener, syn);
    p.expect_nothing();
    (p, id)
}

const SACK: &str = "S 0 win 65535 <mss 1000,sackOK>";

/// Segments count when they are first known to have arrived, whether by SACK or by an acknowledgement, and once.
#[test]
fn what_is_sent_and_what_of_it_arrives() {
    let (mut p, id) = established(Config::default(), SACK);
    p.write(id, &pattern(1, 5000));
    assert_eq!(p.sent_now().len(), 5);
    let seen = |p: &Peer| {
        let counters = p.stack.counters();
        (counters.orig_data_sent, counters.delivered, p.stack.info(id).unwrap().tcp_info.delivered)
    };
    assert_eq!(seen(&p), (5, 0, 0));
    p.send("A 1 ack 1001");
    assert_eq!(seen(&p), (5, 1, 1000));
    p.send("A 1 ack 1001 <sack 2001:4001>");
    assert_eq!(seen(&p), (5, 3, 3000));
    p.send("A 1 ack 1001 <sack 2001:5001>");
    p.expect("A 1001:2001 ack 1");
    p.expect_nothing();
    assert_eq!(seen(&p), (5, 4, 4000), "a retransmission is no new data");
    p.send("A 1 ack 5001");
    assert_eq!(seen(&p), (5, 5, 5000));
    let counters = p.stack.counters();
    assert_eq!((counters.retrans_segs, counters.dsack_recv_segs), (1, 0));
    p.send("A 1 ack 5001 <sack 1001:2001>");
    assert_eq!(p.stack.counters().dsack_recv_segs, 1);
}

#[test]
fn small_segments_that_are_acknowledged_together_count_each() {
    let (mut p, id) = established(Config::default(), SACK);
    p.stack.set_option(p.now, id, SocketOption::NoDelay(true)).unwrap();
    for from in [1, 11, 21] {
        p.write(id, &pattern(from, 10));
        p.expect_range(from..from + 10);
    }
    p.send("A 1 ack 31");
    assert_eq!((p.stack.counters().orig_data_sent, p.stack.counters().delivered), (3, 3));
}

/// RFC 3168: what is acknowledged with ECE was delivered on a congested path.
#[test]
fn deliveries_with_an_echo_of_congestion() {
    let mut p = Peer::new(Config::default());
    let listener = p.listen();
    p.send("SEW 0 win 65535 <mss 1000>");
    p.expect("SAE 0 ack 1");
    p.send("A 1 ack 1 win 65535");
    let id = p.accept(listener);
    p.write(id, &pattern(1, 4000));
    p.expect_range(1..4001);
    p.send("A 1 ack 1001 win 65535");
    p.send("AE 1 ack 3001 win 65535");
    p.send("A 1 ack 4001 win 65535");
    let (counters, info) = (p.stack.counters(), p.stack.info(id).unwrap().tcp_info);
    assert_eq!((counters.delivered, counters.delivered_ce), (4, 2));
    assert_eq!((info.delivered, info.delivered_ce), (4000, 2));
}

/// A queue builds up: each round trip is longer than the one before.
#[test]
fn hystart_ends_slow_start_once() {
    for (hystart, expected) in [(true, 1), (false, 0)] {
        let mut pair = Pair::new(Config::default().hystart(hystart), Config::default(), 20);
        let mut sent = 0;
        pair.copies = Box::new(move |packet| {
            sent += u64::from(packet.len > 0);
            vec![Duration::from_micros(200 * sent)]
        });
        let listener = pair.listen(0);
        let id = pair.connect(ConnectOptions::default());
        pair.run(200);
        let child = pair.accept(listener).unwrap();
        pair.write(CLIENT, id, &[7; 200_000]);
        for _ in 0..100 {
            pair.run(20);
            let _ = pair.read(SERVER, child);
        }
        let counters = pair.stacks[CLIENT].counters().clone();
        assert_eq!((counters.hystart_delay_detect, counters.timeouts), (expected, 0), "{hystart}");
        let info = pair.stacks[CLIENT].info(id).unwrap();
        let segments = u64::from(info.ssthresh / u32::from(info.snd_mss));
        assert_eq!(counters.hystart_delay_cwnd, if hystart { segments } else { 0 });
    }
}

/// Linux's CUBIC ends slow start for either of two signs, told from each other (`hystart_update`): the round trip grows by 4 ms or an
/// eighth, or the acknowledgements of a round come for longer than half the least round trip, which is as short as ever.
#[test]
fn hystart_of_linux_tells_trains_from_delay() {
    // Each segment is later than the one before by so much, and so many are written at a time.
    for (micros, written, times, expected) in [(200, 100, 1, (0, 1)), (0, 1, 400, (1, 0))] {
        let mut pair = Pair::new(Config::linux(), Config::linux(), 20);
        let mut sent = 0;
        pair.copies = Box::new(move |packet| {
            sent += u64::from(packet.len > 0);
            vec![Duration::from_micros(micros * sent)]
        });
        let listener = pair.listen(0);
        let socket = SocketOptions { send_buffer: Some(400_000), ..SocketOptions::default() };
        let id = pair.connect(ConnectOptions { socket, ..ConnectOptions::default() });
        pair.run(200);
        let child = pair.accept(listener).unwrap();
        let segment = usize::from(pair.stacks[CLIENT].info(id).unwrap().snd_mss);
        for _ in 0..times {
            pair.write(CLIENT, id, &vec![7; written * segment]);
            pair.run(1);
            let _ = pair.read(SERVER, child);
        }
        for _ in 0..100 {
            pair.run(20);
            let _ = pair.read(SERVER, child);
        }
        let counters = pair.stacks[CLIENT].counters().clone();
        assert_eq!((counters.hystart_train_detect, counters.hystart_delay_detect), expected);
        let info = pair.stacks[CLIENT].info(id).unwrap();
        let segments = u64::from(info.ssthresh / u32::from(info.snd_mss));
        assert_eq!(counters.hystart_train_cwnd + counters.hystart_delay_cwnd, segments);
    }
}

/// The last segment fits, but nothing behind it does: a window that is open cannot be taken back.
#[test]
fn a_window_that_would_be_closed() {
    let socket = SocketOptions { recv_buffer: Some(4000), ..SocketOptions::default() };
    let mut p = Peer::ours();
    let listener = p.listen_with(ListenOptions { socket, ..ListenOptions::default() });
    let id = p.establish_with(listener, SACK);
    let wnd = p.stack.info(id).unwrap().rcv_wnd;
    assert_eq!(wnd, 4000);
    p.send("A 1:1001 ack 1");
    p.send("A 1001:2001 ack 1");
    p.expect("A 1 ack 2001 win 2000");
    assert_eq!(p.stack.counters().want_zero_window_adv, 0);
    p.send("A 2001:3001 ack 1");
    p.send("A 3001:3901 ack 1");
    p.expect_after(5, "A 1 ack 3901 win 100");
    let counters = p.stack.counters();
    assert_eq!((counters.want_zero_window_adv, counters.to_zero_window_adv), (1, 0));
    p.send("PA 3901:4001 ack 1");
    p.expect_after(5, "A 1 ack 4001 win 0");
    assert_eq!((p.stack.counters().want_zero_window_adv, p.stack.counters().to_zero_window_adv), (1, 1));
}

/// The answers to nonsense of an orphan in FIN-WAIT-2 are limited like those of TIME-WAIT, and count apart.
#[test]
fn nonsense_in_fin_wait_2() {
    let (mut p, id) = established(Config::default(), SACK);
    p.close(id);
    p.expect("FA 1 ack 1");
    p.send("A 1 ack 2");
    for _ in 0..3 {
        p.send("A 0 ack 2");
    }
    assert_eq!(p.sent_now().len(), 1);
    let counters = p.stack.counters();
    assert_eq!((counters.ack_skipped_fin_wait2, counters.ack_skipped_time_wait), (2, 0));
}

/// Whatever happens on the way: what a stack says it sent and received is what passed.
#[test]
fn packets_add_up() {
    let mut pair = Pair::ours();
    pair.one_by_one = true;
    let mut number = 0;
    pair.filter = Box::new(move |_| {
        number += 1;
        number % 7 != 0
    });
    let listener = pair.listen(0);
    let id = pair.connect(ConnectOptions::default());
    pair.run(3000);
    let child = pair.accept(listener).unwrap();
    pair.write(CLIENT, id, &[1; 100_000]);
    for _ in 0..100 {
        pair.run(50);
        let _ = pair.read(SERVER, child);
    }
    let now = pair.now;
    pair.stacks[SERVER].close(now, child);
    pair.stacks[CLIENT].close(now, id);
    pair.run(100_000);
    for side in [CLIENT, SERVER] {
        let sent = pair.log.iter().filter(|packet| packet.from == side).count() as u64;
        let came = pair.log.iter().filter(|packet| packet.from != side && packet.delivered).count() as u64;
        let stack = &pair.stacks[side];
        assert_eq!((of(stack, "IpOutRequests"), of(stack, "IpInReceives")), (sent, came), "{side}");
        assert_eq!(of(stack, "IpInDelivers"), came);
    }
    assert!(of(&pair.stacks[CLIENT], "TcpRetransSegs") > 10);
}

#[test]
fn packets_that_go_no_further_than_ip() {
    let mut p = Peer::ours();
    let mut elsewhere = p.ip();
    elsewhere.dst = std::net::Ipv4Addr::new(10, 0, 0, 99).into();
    let header = wire::TcpHeader::new(1, 2);
    let for_another = wire::build_tcp_packet(&elsewhere, &header, b"");
    let mut of_another_protocol = wire::build_tcp_packet(&p.ip(), &header, b"").to_vec();
    of_another_protocol[9] = 17;
    let sum = u16::from_be_bytes([of_another_protocol[10], of_another_protocol[11]]);
    of_another_protocol[10..12].copy_from_slice(&(sum - 11).to_be_bytes());
    for packet in [for_another, of_another_protocol.into()] {
        assert!(p.stack.handle_packet(p.now, RxPacket::new(packet)).is_some());
    }
    let mut malformed = p.packet("A 1 ack 1").to_vec();
    malformed[0] = 0x51;
    assert!(p.stack.handle_packet(p.now, RxPacket::new(malformed.into())).is_none());
    p.stack.remove_address(p.local.ip());
    let none = p.stack.connect(p.now, p.remote, ConnectOptions::default());
    assert_eq!(none, Err(ConnectError::Unreachable));
    let counts = ["IpInAddrErrors", "IpInUnknownProtos", "IpInHdrErrors", "IpOutNoRoutes", "IpInReceives"]
        .map(|name| of(&p.stack, name));
    assert_eq!(counts, [1, 1, 1, 1, 3]);
    assert_eq!(of(&p.stack, "IpInDelivers"), 0);
}

#[test]
fn icmp_by_its_kind() {
    let mut p = Peer::new(Config::default().echo_replies_per_peer(1));
    p.connect(ConnectOptions::default());
    let syn = p.take_packet().unwrap();
    for error in [IcmpError::TimeExceeded, IcmpError::ParameterProblem, IcmpError::PacketTooBig { mtu: 1400 }]
    {
        error_about(&mut p, &syn, error);
    }
    let ip = IpHeader::new(p.remote.ip().into(), p.local.ip().into(), wire::protocol::ICMP);
    let request = wire::build_icmp_packet(&ip, &Icmp::EchoRequest { ident: 7, seq: 9, data: b"" });
    for _ in 0..3 {
        p.stack.handle_packet(p.now, RxPacket::new(request.clone()));
    }
    let reply = wire::build_icmp_packet(&ip, &Icmp::EchoReply { ident: 7, seq: 9, data: b"" });
    assert!(p.stack.handle_packet(p.now, RxPacket::new(reply)).is_some(), "nobody here asked");
    let mut damaged = request.to_vec();
    damaged[22] ^= 1;
    p.stack.handle_packet(p.now, RxPacket::new(damaged.into()));
    let c = p.stack.counters();
    assert_eq!((c.icmp_in_msgs, c.icmp_in_errors, c.icmp_in_csum_errors), (8, 1, 1));
    let errors = (c.icmp_in_dest_unreachs, c.icmp_in_time_excds, c.icmp_in_parm_probs);
    assert_eq!((errors, c.icmp_in_echos, c.icmp_in_echo_reps), ((1, 1, 1), 3, 1));
    assert_eq!((c.icmp_out_echo_reps, c.icmp_out_rate_limit), (1, 2));
    assert_eq!(of(&p.stack, "IcmpOutMsgs"), 1);
}

#[test]
fn connections_by_state() {
    let mut p = Peer::ours();
    let listener = p.listen();
    let open: Vec<ConnId> = (0..4)
        .map(|n| {
            p.remote.set_port(50_000 + n);
            p.establish(listener)
        })
        .collect();
    let states = |p: &Peer| {
        let counts = p.stack.states();
        [State::SynReceived, State::Established, State::CloseWait, State::FinWait2, State::TimeWait]
            .map(|state| counts.of(state))
    };
    assert_eq!((states(&p), p.stack.states().listening), ([0, 4, 0, 0, 0], 1));
    p.remote.set_port(60_000);
    p.send("S 0 <mss 1000>");
    p.expect("SA 0 ack 1");
    // One is let go and becomes TIME-WAIT, one waits for its FIN, one was closed by its peer.
    for (n, segments) in [(0, vec!["A 1 ack 2", "FA 1 ack 2"]), (1, vec!["A 1 ack 2"])] {
        p.remote.set_port(50_000 + n);
        p.close(open[usize::from(n)]);
        p.expect("FA 1 ack 1");
        segments.iter().for_each(|segment| p.send(segment));
        p.expect_only_acks();
    }
    p.remote.set_port(50_002);
    p.send("FA 1 ack 1");
    assert_eq!(states(&p), [1, 1, 1, 1, 1]);
    let listed: Vec<(&str, u16)> = p
        .stack
        .sockets()
        .map(|socket| match socket {
            SocketInfo::Listener(listener) => ("LISTEN", listener.local.port()),
            SocketInfo::Connection(connection) => (connection.state.ss(), connection.peer.port()),
            SocketInfo::Numbers { state, peer, .. } => (state.ss(), peer.port()),
        })
        .collect();
    let expected = [
        ("LISTEN", 80),
        ("SYN-RECV", 60_000),
        ("CLOSE-WAIT", 50_002),
        ("ESTAB", 50_003),
        ("TIME-WAIT", 50_000),
        ("FIN-WAIT-2", 50_001),
    ];
    assert_eq!(listed, expected);
    assert_eq!((p.stack.states().total(), of(&p.stack, "TcpCurrEstab")), (5, 2));
    assert_eq!(
        (of(&p.stack, "TcpRtoMin"), of(&p.stack, "TcpRtoMax"), of(&p.stack, "IpDefaultTTL")),
        (200, 120_000, 64)
    );
}

/// What RFC 4022 and RFC 4293 ask of every host.
#[test]
fn constants() {
    let p = Peer::new(Config::default().max_connections(77));
    let shown = ["IpForwarding", "TcpRtoAlgorithm", "TcpMaxConn"].map(|name| of(&p.stack, name));
    assert_eq!(shown, [2, 1, 77]);
}
