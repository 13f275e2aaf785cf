//! Opening: handshakes from both sides, their repetition and their failure.

use crate::peer::*;
use core::time::Duration;
use proto::*;
use std::net::SocketAddr;

#[test]
fn passive_open() {
    let mut p = Peer::ours();
    let listener = p.listen();
    p.send("S 0 win 65535 <mss 1460,sackOK,TS 100 0,wscale 7>");
    p.expect("SA 0 ack 1 win 65160 <mss 1460,sackOK,TS 0 100,wscale 7>");
    assert_eq!(p.sizes(), (0, 1, 0));
    p.send("A 1 ack 1 win 512 <TS 101 0>");
    p.expect_nothing();
    assert_eq!(p.events(), [(SocketId::Listener(listener), Events::ACCEPTABLE)]);
    let id = p.accept(listener);
    let info = p.stack.info(id).unwrap();
    assert_eq!(info.state, State::Established);
    assert_eq!((info.snd_mss, info.snd_wnd), (1448, 512 << 7));
    assert_eq!((info.snd_wscale, info.rcv_wscale, info.timestamps, info.sack), (7, 7, true, true));
    assert_eq!(info.cwnd, 14480);
    assert_eq!(p.sizes(), (1, 0, 0));
    p.expect_nothing_for(100_000);
}

#[test]
fn active_open_brings_the_first_bytes_with_its_ack() {
    let mut p = Peer::ours();
    let first_bytes = pattern(1, 10).into();
    let id = p.connect(ConnectOptions { first_bytes, ..Default::default() });
    p.expect("S 0 win 64240 <mss 1460,sackOK,TS 0 0,wscale 7>");
    assert_eq!(p.state(id), State::SynSent);
    p.now = p.now + Duration::from_millis(30);
    p.send("SA 0 ack 1 win 65535 <mss 1400,sackOK,TS 700 0,wscale 3>");
    assert_eq!(p.events_of(id), Events::CONNECTED | Events::WRITABLE);
    p.expect("PA 1:11 ack 1 <TS 30 700>");
    p.expect_nothing();
    let info = p.stack.info(id).unwrap();
    assert_eq!((info.state, info.snd_mss, info.snd_wnd), (State::Established, 1388, 65535));
    assert_eq!(info.srtt, Some(Duration::from_millis(30)));
    assert_eq!(info.rto, Duration::from_millis(200));
    assert_eq!(info.min_rtt, Some(Duration::from_millis(30)));
}

#[test]
fn active_open_with_nothing_to_say_acknowledges() {
    let mut p = Peer::ours();
    p.connect(ConnectOptions::default());
    p.expect("S 0");
    p.send("SA 0 ack 1 <mss 1460>");
    p.expect("A 1 ack 1 win 65535 <>");
    p.expect_nothing_for(1000);
}

#[test]
fn ipv6_opens_both_ways_with_its_own_sizes() {
    let mut p = Peer::ours().v6();
    let id = p.connect(ConnectOptions::default());
    p.expect("S 0 win 64800 <mss 1440,sackOK,TS 0 0,wscale 7>");
    p.send("SA 0 ack 1 <>");
    p.expect("A 1 ack 1");
    assert_eq!(p.stack.info(id).unwrap().snd_mss, 1220, "RFC 9293 §3.7.1: without an MSS option");
    let mut p = Peer::ours().v6();
    let listener = p.listen();
    let id = p.establish(listener);
    p.send("PA 1:11 ack 1");
    assert_eq!(p.read(id).unwrap(), pattern(1, 10));
    p.write(id, &pattern(1, 5));
    p.expect("PA 1:6 ack 11");
}

#[test]
fn a_syn_is_sent_again_by_the_schedule_and_given_up_after_131_seconds() {
    let mut p = Peer::ours();
    let id = p.connect(ConnectOptions::default());
    p.expect("S 0 win 64240 <mss 1460,sackOK,TS 0 0,wscale 7>");
    let mut at = 0;
    for next in [1, 2, 3, 4, 5, 7, 11, 19, 35, 67] {
        p.expect_after((next - at) * 1000, "S 0");
        at = next;
    }
    p.expect_nothing_for(63_999);
    assert_eq!(p.state(id), State::SynSent);
    p.expect_nothing_for(1);
    assert_eq!(p.events_of(id), Events::CLOSED | Events::READABLE | Events::WRITABLE);
    assert_eq!(p.stack.close_reason(id), Some(CloseReason::TimedOut));
    assert_eq!(p.read(id), Err(ReadError::Closed(CloseReason::TimedOut)));
    assert_eq!(p.stack.write(p.now, id, b"x"), Err(WriteError::Closed(CloseReason::TimedOut)));
    p.close(id);
    assert_eq!(p.sizes(), (0, 0, 0));
    assert_eq!((p.stack.counters().syn_retrans, p.stack.counters().attempt_fails), (10, 1));
}

/// L-SYN-1 (the rows of 2, 5 and 6 retries were measured on Linux 6.18): retries, linear time-outs, when SYNs are sent, and when
/// `connect` fails. The linear time-outs
/// add retries, not time.
#[test]
fn when_a_connect_fails() {
    let rows: [(u32, u32, &[u64], u64); 6] = [
        (1, 0, &[1], 3),
        (2, 0, &[1, 3], 7),
        (2, 4, &[1, 2, 3, 4, 5], 7),
        (5, 0, &[1, 3, 7, 15, 31], 63),
        (6, 4, &[1, 2, 3, 4, 5, 7, 11, 19, 35, 67], 131),
        (8, 0, &[1, 3, 7, 15, 31, 63, 127, 247], 367),
    ];
    for (tcp_syn_retries, tcp_syn_linear_timeouts, sent, failed) in rows {
        for profile in both_profiles() {
            let mut p = Peer::new(
                profile.tcp_syn_retries(tcp_syn_retries).tcp_syn_linear_timeouts(tcp_syn_linear_timeouts),
            );
            let id = p.connect(ConnectOptions::default());
            p.expect("S 0");
            let mut at = 0;
            for next in sent {
                p.expect_after((next - at) * 1000, "S 0");
                at = *next;
            }
            p.expect_nothing_for((failed - at) * 1000 - 1);
            assert_eq!(p.stack.close_reason(id), None);
            p.expect_nothing_for(1);
            assert_eq!(p.stack.close_reason(id), Some(CloseReason::TimedOut));
        }
    }
}

/// RFC 6298 §5.7: a handshake with a retransmitted SYN and no timestamps starts with an RTO of 3 s.
#[test]
fn the_rtt_of_a_syn_sent_twice_is_not_measured() {
    let mut p = Peer::ours();
    let id = p.connect(ConnectOptions::default());
    p.expect("S 0");
    p.expect_after(1000, "S 0");
    p.send("SA 0 ack 1 <mss 1000>");
    p.expect("A 1 ack 1");
    let info = p.stack.info(id).unwrap();
    assert_eq!((info.srtt, info.rto), (None, Duration::from_secs(3)));
}

#[test]
fn timestamps_tell_which_syn_was_answered() {
    let mut p = Peer::ours();
    let id = p.connect(ConnectOptions::default());
    p.expect("S 0 <mss 1460,sackOK,TS 0 0,wscale 7>");
    p.expect_after(1000, "S 0 <mss 1460,sackOK,TS 1000 0,wscale 7>");
    p.now = p.now + Duration::from_millis(40);
    p.send("SA 0 ack 1 <mss 1000,TS 5 1000>");
    assert_eq!(p.stack.info(id).unwrap().srtt, Some(Duration::from_millis(40)));
}

#[test]
fn a_syn_ack_is_sent_again_by_the_schedule_and_the_request_dropped_at_63_seconds() {
    let mut p = Peer::ours();
    p.listen();
    p.send("S 0 win 65535 <mss 1460,sackOK,TS 100 0,wscale 7>");
    p.expect("SA 0 ack 1 win 65160 <mss 1460,sackOK,TS 0 100,wscale 7>");
    let mut at = 0;
    for next in [1, 3, 7, 15, 31] {
        p.expect_after((next - at) * 1000, "SA 0 ack 1 win 65160");
        at = next;
    }
    p.expect_nothing_for(31_999);
    assert_eq!(p.sizes(), (0, 1, 0));
    p.expect_nothing_for(1);
    assert_eq!(p.sizes(), (0, 0, 0));
    assert_eq!(p.stack.counters().syn_retrans, 5);
}

/// The client's own repetitions ask for the SYN-ACK again; they do not count towards the server's retry limit.
#[test]
fn a_repeated_syn_gets_the_syn_ack_again() {
    let mut p = Peer::ours();
    let listener = p.listen();
    p.send("S 0 <mss 1000>");
    p.expect("SA 0 ack 1 <mss 1460>");
    for _ in 0..20 {
        p.expect_nothing_for(500);
        p.send("S 0 <mss 1000>");
        p.expect("SA 0 ack 1 <mss 1460>");
    }
    assert_eq!(p.sizes(), (0, 1, 0));
    let mut at = 0;
    for next in [1, 3, 7, 15, 31] {
        p.expect_after((next - at) * 1000, "SA 0 ack 1");
        at = next;
    }
    p.send("A 1 ack 1");
    p.accept(listener);
}

/// `tcp_invalid_ratelimit`: whoever floods us with one SYN in somebody else's name does not make us flood him.
#[test]
fn a_flood_of_one_syn_is_answered_twice_a_second() {
    let mut p = Peer::ours();
    p.listen();
    p.send("S 0 <mss 1000>");
    p.expect("SA 0 ack 1 <mss 1460>");
    let mut answers = 0;
    for _ in 0..100 {
        p.skip(10);
        p.send("S 0 <mss 1000>");
        answers += p.sent_now().len();
    }
    assert_eq!((answers, p.stack.counters().ack_skipped_syn_recv), (2, 98));
}

#[test]
fn a_reset_refuses() {
    let mut p = Peer::ours();
    let id = p.connect(ConnectOptions::default());
    p.expect("S 0");
    p.send("RA 0 ack 1 win 0");
    p.expect_nothing_for(10_000);
    assert_eq!(p.events_of(id), Events::CLOSED | Events::READABLE | Events::WRITABLE);
    assert_eq!(p.stack.close_reason(id), Some(CloseReason::Refused));
    assert_eq!(p.state(id), State::Closed);
    p.close(id);
    assert_eq!(p.sizes(), (0, 0, 0));
}

/// RFC 9293 §3.10.7.3, first and second check.
#[test]
fn in_syn_sent_only_an_acceptable_ack_counts() {
    let mut p = Peer::ours();
    let id = p.connect(ConnectOptions::default());
    p.expect("S 0");
    p.send("RA 0 ack 2 win 0");
    p.send("R 0 win 0");
    p.send("RA 0 ack 0 win 0");
    p.expect_nothing();
    p.send("A 77 ack 2");
    p.expect("R 2");
    p.send("SA 0 ack 0");
    p.expect("R 0");
    p.send("SA 0 ack 2");
    p.expect("R 2 win 0 <>");
    p.send("A 5 ack 1");
    p.expect_nothing();
    assert_eq!(p.state(id), State::SynSent);
    p.send("SA 0 ack 1 <mss 1000>");
    p.expect("A 1 ack 1");
    assert_eq!(p.state(id), State::Established);
}

/// RFC 7323 §3.2 and Linux's PAWSACTIVEREJECTED: an echo of what we never sent is from an old connection.
#[test]
fn a_syn_ack_that_echoes_a_foreign_timestamp_is_reset() {
    let mut p = Peer::ours();
    let id = p.connect(ConnectOptions::default());
    p.expect("S 0");
    p.send("SA 0 ack 1 <mss 1000,TS 5 1>");
    p.expect("R 1");
    assert_eq!(p.stack.counters().paws_active_rejected, 1);
    p.send("SA 0 ack 1 <mss 1000,TS 5 0>");
    p.expect("A 1 ack 1 <TS 0 5>");
    assert_eq!(p.state(id), State::Established);
}

#[test]
fn simultaneous_open() {
    let mut p = Peer::ours();
    let id = p.connect(ConnectOptions { first_bytes: pattern(1, 5).into(), ..Default::default() });
    p.expect("S 0");
    p.send("S 0 win 4000 <mss 1000>");
    p.expect("SA 0 ack 1 win 64240 <mss 1460>");
    assert_eq!(p.state(id), State::SynReceived);
    p.send("SA 0 ack 1 win 5000 <mss 1000>");
    assert_eq!(p.events_of(id), Events::CONNECTED | Events::WRITABLE);
    p.expect("PA 1:6 ack 1");
    assert_eq!(p.state(id), State::Established);
    assert_eq!(p.stack.info(id).unwrap().snd_wnd, 5000);
}

#[test]
fn simultaneous_open_repeats_its_syn_ack() {
    let mut p = Peer::ours();
    let id = p.connect(ConnectOptions::default());
    p.expect("S 0");
    p.send("S 0 win 4000 <mss 1000>");
    p.expect("SA 0 ack 1");
    p.expect_after(1000, "SA 0 ack 1");
    p.send("S 0 win 4000 <mss 1000>");
    p.expect("SA 0 ack 1");
    p.send("A 1 ack 1 win 4000");
    p.expect_nothing();
    assert_eq!(p.state(id), State::Established);
}

/// The peer's window arrived, and text behind the final ACK of a crossed open is taken.
#[test]
fn simultaneous_open_takes_text_and_an_unacceptable_segment_is_acknowledged() {
    let mut p = Peer::ours();
    let id = p.connect(ConnectOptions::default());
    p.expect("S 0");
    p.send("S 0 win 4000 <mss 1000>");
    p.expect("SA 0 ack 1");
    p.send("A 70000 ack 1");
    p.expect("A 1 ack 1");
    assert_eq!(p.state(id), State::SynReceived);
    p.send("PA 1:11 ack 1");
    assert_eq!(p.read(id).unwrap(), pattern(1, 10));
    assert_eq!(p.state(id), State::Established);
}

/// The SYN offered a window; what the server sends at once behind its SYN-ACK may be in the same batch.
#[test]
fn text_in_one_batch_with_the_syn_ack_is_taken() {
    let mut p = Peer::ours();
    let id = p.connect(ConnectOptions::default());
    p.expect("S 0");
    let batch = ["SA 0 ack 1 <mss 1000>", "PA 1:11 ack 1"].map(|text| RxPacket::new(p.packet(text)));
    p.stack.handle_packets(p.now, &mut RxBatch::from_iter(batch));
    p.expect("A 1 ack 11");
    assert_eq!(p.read(id).unwrap(), pattern(1, 10));
}

#[test]
fn strangers_are_reset_with_their_own_numbers() {
    let mut p = Peer::ours();
    p.send("S 0:7 win 1000");
    p.expect("RA 0 ack 8 win 0 <>");
    p.send("A 5:10 ack 777");
    p.expect("R 777 win 0 <>");
    p.send("F 5:10");
    p.expect("RA 0 ack 11");
    p.send("RA 5 ack 1");
    p.send("R 5");
    p.expect_nothing();
    assert_eq!(p.stack.counters().out_rsts, 3);
    assert_eq!(p.stack.drops().get(DropReason::StrayReset), 2);
}

#[test]
fn resets_for_strangers_are_limited_per_second() {
    let mut config = Config::default();
    config.set("firstbyte.resets_per_peer", "3").unwrap();
    let mut p = Peer::new(config);
    for _ in 0..5 {
        p.send("A 5 ack 777");
    }
    let sent = p.sent_now().len();
    assert!((2..5).contains(&sent), "{sent}");
    p.skip(999);
    p.send("A 5 ack 777");
    p.expect_nothing();
    p.skip(1);
    p.send("A 5 ack 777");
    p.expect("R 777");
    assert_eq!(p.stack.drops().get(DropReason::RateLimited), 6 - sent as u64);
}

#[test]
fn a_listener_answers_an_ack_with_a_reset_and_nothing_else_with_nothing() {
    let mut p = Peer::ours();
    p.listen();
    p.send("A 5 ack 777");
    p.expect("R 777");
    p.send("F 5");
    p.send("P 5:6");
    p.send("R 5");
    p.expect_nothing();
    assert_eq!(p.stack.drops().get(DropReason::NotForListener), 2);
    assert_eq!(p.sizes(), (0, 0, 0));
}

#[test]
fn a_half_open_request_obeys_the_rules_of_syn_received() {
    let mut p = Peer::ours();
    let listener = p.listen();
    p.send("S 0 <mss 1000>");
    p.expect("SA 0 ack 1");
    p.send("A 1 ack 2");
    p.expect("R 2");
    p.send("R 2");
    p.send("R 0");
    assert_eq!(p.sizes(), (0, 1, 0), "a reset needs the exact number");
    p.send("A 0 ack 1");
    p.expect("A 1 ack 1");
    p.send("A 70000:70001 ack 1");
    p.expect("A 1 ack 1");
    p.send("P 1:2");
    p.expect_nothing();
    assert_eq!(p.sizes(), (0, 1, 0));
    p.send("R 1");
    p.expect_nothing();
    assert_eq!(p.sizes(), (0, 0, 0));
    assert_eq!(p.stack.accept(p.now, listener), Err(AcceptError::Blocked));
}

#[test]
fn data_may_come_with_the_final_ack() {
    let mut p = Peer::ours();
    let listener = p.listen();
    p.send("S 0 <mss 1000>");
    p.expect("SA 0 ack 1");
    p.send("PA 1:11 ack 1");
    let id = p.accept(listener);
    assert_eq!(p.read(id).unwrap(), pattern(1, 10));
    p.expect_after(5, "A 1 ack 11");
}

#[test]
fn text_may_overtake_the_final_ack() {
    let mut p = Peer::ours();
    let listener = p.listen();
    p.send("S 0 <mss 1000,sackOK>");
    p.expect("SA 0 ack 1");
    p.send("PA 11:21 ack 1");
    p.expect("A 1 ack 1 <sack 11:21>");
    let id = p.accept(listener);
    assert_eq!(p.read(id), Err(ReadError::Blocked));
    p.send("PA 1:11 ack 1");
    p.expect("A 1 ack 21 <>");
    assert_eq!(p.read(id).unwrap(), pattern(1, 20));
}

/// The final ACK is lost: the server's answer is its own SYN-ACK, and the client's data completes the handshake.
#[test]
fn a_lost_final_ack_is_made_up_for() {
    let mut p = Peer::ours();
    let listener = p.listen();
    p.send("S 0 <mss 1000>");
    p.expect("SA 0 ack 1");
    p.expect_after(1000, "SA 0 ack 1");
    p.send("PA 1:4 ack 1");
    let id = p.accept(listener);
    assert_eq!(p.read(id).unwrap(), pattern(1, 3));
    let info = p.stack.info(id).unwrap();
    assert_eq!((info.srtt, info.rto), (None, Duration::from_secs(3)));
}

#[test]
fn a_repeated_syn_ack_of_an_established_connection_is_acknowledged() {
    let mut p = Peer::ours();
    let id = p.connect(ConnectOptions::default());
    p.expect("S 0");
    p.send("SA 0 ack 1 <mss 1000>");
    p.expect("A 1 ack 1");
    p.send("SA 0 ack 1 <mss 1000>");
    p.expect("A 1 ack 1");
    assert_eq!(p.state(id), State::Established);
}

#[test]
fn a_bad_checksum_is_dropped_and_counted() {
    let mut p = Peer::ours();
    p.listen();
    let mut packet = p.packet("S 0 <mss 1000>").to_vec();
    packet[20 + 16] ^= 1;
    p.send_rx(RxPacket::new(packet.into()));
    p.expect_nothing();
    assert_eq!(p.stack.drops().get(DropReason::TcpChecksum), 1);
    assert_eq!((p.stack.counters().in_errs, p.stack.counters().in_csum_errors), (1, 1));
    p.send("S 0 <mss 1000>");
    p.expect("SA 0 ack 1");
}

#[test]
fn initial_numbers_differ_by_tuple_and_rise_with_time() {
    let mut p = Peer::ours();
    p.listen();
    let isn_of = |p: &mut Peer, port: u16| {
        p.remote.set_port(port);
        p.send("S 0");
        p.expect("SA 0 ack 1").seq
    };
    let (first, other) = (isn_of(&mut p, 40_000), isn_of(&mut p, 40_001));
    assert_ne!(first, other);
    p.send("R 1");
    p.now = p.now + Duration::from_millis(1);
    let later = isn_of(&mut p, 40_001);
    assert_eq!(later.since(other), 15_625, "RFC 6528: a tick each 64 ns");
}

#[test]
fn ephemeral_ports_come_from_the_range_until_it_is_used_up() {
    let mut config = Config::default();
    config.set("firstbyte.ip_local_port_low", "50000").unwrap();
    config.set("firstbyte.ip_local_port_high", "50009").unwrap();
    let mut p = Peer::new(config);
    let mut ports: Vec<u16> = (0..10)
        .map(|_| {
            let id = p.stack.connect(p.now, p.remote, ConnectOptions::default()).unwrap();
            p.stack.info(id).unwrap().local.port()
        })
        .collect();
    assert_ne!(ports[0], 50_000, "RFC 6056: begins anywhere");
    ports.sort_unstable();
    assert_eq!(ports, (50_000..50_010).collect::<Vec<u16>>());
    assert_eq!(p.stack.connect(p.now, p.remote, ConnectOptions::default()), Err(ConnectError::NoPorts));
    let elsewhere = "10.0.0.9:80".parse().unwrap();
    assert!(p.stack.connect(p.now, elsewhere, ConnectOptions::default()).is_ok(), "another peer has its own");
}

/// As on Linux an odd number of ports has one that is never tried: the last, or the first if the search begins behind it.
#[test]
fn of_an_odd_range_by_parity_one_port_is_left_over() {
    let order = |count, begin| {
        (0..count).map(|tried| Stack::offset_by_parity(count, begin, tried)).collect::<Vec<_>>()
    };
    assert_eq!(order(6, 2), [2, 4, 0, 3, 5, 1]);
    assert_eq!(order(6, 3), [3, 5, 1, 2, 4, 0], "bind begins with the others");
    assert_eq!(order(5, 0)[..4], [0, 2, 1, 3]);
    assert_eq!(order(5, 2)[..4], [2, 4, 3, 1]);
    assert_eq!(order(5, 3)[..4], [3, 1, 2, 4]);
    assert_eq!((order(1, 0), order(1, 1)), (vec![0], vec![0]));
    let mut p =
        Peer::new(Config::default().port_low(50_000).port_high(50_004).port_choice(PortChoice::Parity));
    let mut open = || {
        let id = p.stack.connect(p.now, p.remote, ConnectOptions::default())?;
        Ok(p.stack.info(id).unwrap().local.port())
    };
    let ports: Vec<u16> = std::iter::from_fn(|| open().ok()).collect();
    assert!(ports.len() >= 4, "{ports:?}");
    assert!(ports[..2].iter().all(|port| port % 2 == 0), "{ports:?}");
    assert_eq!(open(), Err(ConnectError::NoPorts));
}

#[test]
fn what_cannot_be_connected_is_said_at_once() {
    let mut p = Peer::ours();
    let mut connect = |peer: &str, local: Option<&str>| {
        let local: Option<SocketAddr> = local.map(|local| local.parse().unwrap());
        p.stack.connect(p.now, peer.parse().unwrap(), ConnectOptions { local, ..Default::default() })
    };
    assert_eq!(connect("10.0.0.1:0", None), Err(ConnectError::InvalidPeer));
    assert_eq!(connect("0.0.0.0:80", None), Err(ConnectError::InvalidPeer));
    assert_eq!(connect("224.0.0.1:80", None), Err(ConnectError::InvalidPeer));
    assert_eq!(connect("[ff02::1]:80", None), Err(ConnectError::InvalidPeer));
    assert_eq!(connect("10.0.0.1:80", Some("10.0.0.77:0")), Err(ConnectError::AddrNotAvailable));
    assert_eq!(connect("10.0.0.1:80", Some("[fd00::2]:0")), Err(ConnectError::AddrNotAvailable));
    assert!(connect("10.0.0.1:80", Some("10.0.0.2:1234")).is_ok());
    assert_eq!(connect("10.0.0.1:80", Some("10.0.0.2:1234")), Err(ConnectError::AddrInUse));
    assert!(connect("10.0.0.1:81", Some("10.0.0.2:1234")).is_ok(), "another peer, another tuple");
    assert!(connect("[fd00::9]:80", Some("[::]:77")).is_ok());
    let mut v4_only = Stack::new(Config::default(), crate::pair::ethernet(), [1; 32]);
    v4_only.add_address("10.0.0.2".parse().unwrap(), 24);
    let peer = "[fd00::1]:80".parse().unwrap();
    assert_eq!(
        v4_only.connect(Instant::ZERO, peer, ConnectOptions::default()),
        Err(ConnectError::Unreachable)
    );
    let mut small = Config::default();
    small.set("firstbyte.max_connections", "1").unwrap();
    let mut p = Peer::new(small);
    p.connect(ConnectOptions::default());
    assert_eq!(p.stack.connect(p.now, p.remote, ConnectOptions::default()), Err(ConnectError::TooMany));
}

#[test]
fn listeners_share_a_port_by_address_and_the_most_exact_wins() {
    let mut p = Peer::ours();
    let now = p.now;
    let mut listen = |addr: &str| p.stack.listen(now, addr.parse().unwrap(), ListenOptions::default());
    let any = listen("[::]:80").unwrap();
    let v4 = listen("0.0.0.0:80").unwrap();
    let exact = listen("10.0.0.2:80").unwrap();
    assert_eq!(listen("10.0.0.2:80"), Err(ListenError::AddrInUse));
    assert_eq!(listen("[::ffff:10.0.0.2]:80"), Err(ListenError::AddrInUse), "the same, written as IPv6");
    listen("[fd00::2]:81").unwrap();
    assert_eq!(listen("[fd00::2%7]:81"), Err(ListenError::AddrInUse), "the same, with a scope");
    assert_eq!(listen("[::]:80"), Err(ListenError::AddrInUse));
    assert_eq!(listen("10.0.0.3:80"), Err(ListenError::AddrNotAvailable));
    assert_eq!(listen("10.0.0.2:0"), Err(ListenError::AddrNotAvailable));
    p.stack.add_address("10.0.0.5".parse().unwrap(), 24);
    let mut reached = |local: &str, port: u16, listener: ListenerId| {
        p.local = local.parse().unwrap();
        p.remote =
            if p.local.is_ipv4() { "10.0.0.1:1".parse().unwrap() } else { "[fd00::1]:1".parse().unwrap() };
        p.remote.set_port(port);
        p.send("S 0");
        p.expect("SA 0 ack 1");
        p.send("A 1 ack 1");
        let (_, peer) = p.stack.accept(p.now, listener).unwrap();
        assert_eq!(peer, p.remote);
    };
    reached("10.0.0.2:80", 1001, exact);
    reached("10.0.0.5:80", 1002, v4);
    reached("[fd00::2]:80", 1003, any);
    p.stack.close_listener(now, v4);
    let mut p = p;
    p.local = "10.0.0.5:80".parse().unwrap();
    p.remote = "10.0.0.1:1004".parse().unwrap();
    p.send("S 0");
    p.expect("SA 0 ack 1");
    p.send("A 1 ack 1");
    assert!(p.stack.accept(p.now, any).is_ok(), "[::] takes both families");
}

#[test]
fn a_connection_that_was_closed_has_no_id_any_more() {
    let mut p = Peer::ours();
    let listener = p.listen();
    let id = p.establish(listener);
    p.stack.abort(p.now, id);
    p.expect("RA 1 ack 1");
    assert_eq!(p.read(id), Err(ReadError::NotFound));
    assert_eq!(p.stack.write(p.now, id, b"x"), Err(WriteError::NotFound));
    assert_eq!(p.stack.shutdown(p.now, id), Err(WriteError::NotFound));
    assert!(p.stack.info(id).is_none());
    p.remote.set_port(40_001);
    let other = p.establish(listener);
    assert_ne!(other, id, "the slot is used again under another generation");
    assert_eq!(p.read(id), Err(ReadError::NotFound));
}

/// A client that was restarted begins anew with other numbers while the old request waits: the SYN-ACK of the old one makes it reset that,
/// and its next SYN is answered.
#[test]
fn a_restarted_client_gets_through() {
    let mut p = Peer::ours();
    let listener = p.listen();
    p.send("S 0 <mss 1000>");
    p.expect("SA 0 ack 1");
    p.send("S 5000 <mss 1000>");
    p.expect("A 1 ack 1");
    p.send("R 1");
    assert_eq!(p.sizes(), (0, 0, 0));
    p.send("S 5000 <mss 1000>");
    p.expect("SA 0 ack 5001");
    p.send("A 5001 ack 1");
    p.accept(listener);
}

/// RFC 9293 §3.5.1: once the reset has cleared the way there is nothing to wait for. Only once: a peer that goes on so is not flooded.
#[test]
fn an_answer_from_an_old_connection_is_reset_and_the_next_syn_is_near() {
    let mut p = Peer::ours();
    p.connect(ConnectOptions::default());
    p.expect("S 0");
    p.expect_nothing_for(50);
    p.send("A 300 ack 3000");
    p.expect("R 3000");
    p.expect_after(2, "S 0");
    p.send("A 300 ack 3000");
    p.expect("R 3000");
    p.expect_after(1000, "S 0");
}

#[test]
fn the_window_scale_is_the_one_that_the_syn_told() {
    let mut p = Peer::ours();
    let id = p.connect(ConnectOptions::default());
    p.expect("S 0 win 64240 <mss 1460,sackOK,TS 0 0,wscale 7>");
    p.stack.set(p.now, "net.ipv4.tcp_rmem", "4096 1048576 33554432").unwrap();
    p.send("SA 0 ack 1 <mss 1460,wscale 3>");
    assert_eq!(p.stack.info(id).unwrap().rcv_wscale, 7);
}

/// What the SYN promised is delivered, unless the profile says that it is forgotten.
#[test]
fn closing_before_the_syn_is_answered() {
    for (config, delivers) in [(Config::default(), true), (Config::linux(), false)] {
        let mut p = Peer::new(config.tcp_timestamps(0));
        let first_bytes = pattern(1, 10).into();
        let id = p.connect(ConnectOptions { first_bytes, ..Default::default() });
        p.expect("S 0");
        p.close(id);
        p.send("SA 0 ack 1 <mss 1000>");
        p.expect(if delivers { "FPA 1:11 ack 1" } else { "R 1" });
    }
}
