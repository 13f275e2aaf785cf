//! A listener under more load than it can take: what Linux 6.18 does, to the packet and the second, and where ours differs.

use crate::peer::*;
use core::time::Duration;
use proto::*;

fn server(config: Config, backlog: u32) -> (Peer, ListenerId) {
    let mut p = Peer::new(config);
    let listener = p.listen_with(ListenOptions { backlog, ..ListenOptions::default() });
    (p, listener)
}

/// Speaks as client number `number` from here on.
fn client(p: &mut Peer, number: u16) {
    p.remote.set_port(40_000 + number);
}

/// SYN and SYN-ACK of client `number`.
fn half_open(p: &mut Peer, number: u16) {
    client(p, number);
    p.send("S 0 <mss 1000>");
    p.expect("SA 0 ack 1");
}

fn drops(p: &Peer, listener: ListenerId) -> ListenerDrops {
    p.stack.listener_info(listener).unwrap().drops
}

/// L-ACC-1: a backlog of 4 lets five in; the SYNs of the other three are dropped, whatever `tcp_abort_on_overflow` says.
#[test]
fn clients_one_after_another() {
    for (config, abort) in
        both_profiles().into_iter().flat_map(|config| [(config.clone(), false), (config, true)])
    {
        let (mut p, listener) = server(config.tcp_abort_on_overflow(abort), 4);
        for number in 0..5 {
            half_open(&mut p, number);
            p.send("A 1 ack 1");
        }
        for number in 5..8 {
            client(&mut p, number);
            p.send("S 0 <mss 1000>");
            p.expect_nothing();
        }
        let expected = ListenerDrops { dropped: 3, accept_queue_full: 3, ..ListenerDrops::default() };
        assert_eq!(drops(&p, listener), expected);
        assert_eq!((p.stack.counters().listen_drops, p.stack.counters().listen_overflows), (3, 3));
        assert_eq!(p.sizes(), (5, 0, 0));
    }
}

/// Of three clients in the queue one closes and one resets before the program comes to them.
#[test]
fn who_has_closed_before_accept_is_counted() {
    let (mut p, listener) = server(Config::default(), 4);
    for (number, end) in [(0, "FA 1 ack 1"), (1, "R 1"), (2, "")] {
        half_open(&mut p, number);
        p.send("A 1 ack 1");
        if !end.is_empty() {
            p.send(end);
        }
        p.expect_nothing();
    }
    let closed = |p: &Peer| drops(p, listener).closed_before_accept;
    assert_eq!(closed(&p), 0);
    while p.stack.accept(p.now, listener).is_ok() {}
    assert_eq!(closed(&p), 2);
}

/// Two of backlog 2 idle in the queue, three more begin at once: one fits, two complete the handshake in vain.
fn race(config: Config) -> (Peer, ListenerId) {
    let (mut p, listener) = server(config, 2);
    for number in 0..2 {
        half_open(&mut p, number);
        p.send("A 1 ack 1");
    }
    for number in 2..5 {
        half_open(&mut p, number);
    }
    for number in 2..5 {
        client(&mut p, number);
        p.send("A 1 ack 1");
    }
    (p, listener)
}

/// L-ACC-1, the race: two stay half-open. When there is room, Linux needs another segment of theirs: the answer to the repeated
/// SYN-ACK.
#[test]
fn a_race_leaves_two_half_open() {
    for &accept_overflow in AcceptOverflow::ALL {
        let (mut p, listener) = race(Config::default().accept_overflow(accept_overflow));
        p.expect_nothing();
        assert_eq!(p.sizes(), (3, 2, 0));
        assert_eq!((drops(&p, listener).accept_queue_full, drops(&p, listener).reset), (2, 0));
        let id = p.accept(listener);
        assert_eq!(p.stack.info(id).unwrap().peer.port(), 40_000);
        if accept_overflow == AcceptOverflow::Admit {
            assert_eq!(p.sizes(), (4, 1, 0));
            for (number, half_open) in [(1, 0), (2, 0), (3, 0), (4, 0)] {
                let id = p.accept(listener);
                assert_eq!(p.stack.info(id).unwrap().peer.port(), 40_000 + number);
                assert_eq!(p.sizes(), (5, half_open, 0));
            }
            p.expect_nothing_for(5000);
            continue;
        }
        client(&mut p, 3);
        p.expect_after(1000, "SA 0 ack 1");
        p.expect("SA 0 ack 1");
        p.send("A 1 ack 1");
        assert_eq!(p.sizes(), (4, 1, 0));
    }
}

/// L-ACC-1, the race with `tcp_abort_on_overflow`: two resets.
#[test]
fn abort_on_overflow_resets_the_losers_of_a_race() {
    for config in both_profiles() {
        let (mut p, listener) = race(config.tcp_abort_on_overflow(true));
        p.expect("R 1");
        p.expect("R 1");
        p.expect_nothing();
        assert_eq!(p.sizes(), (3, 0, 0));
        assert_eq!(p.stack.counters().embryonic_rsts, 2);
        assert_eq!((drops(&p, listener).accept_queue_full, drops(&p, listener).reset), (2, 2));
    }
}

/// A server that speaks first: who waited hears it at once when he is accepted, and what he says then is heard.
#[test]
fn a_client_that_waited_is_a_client_like_any_other() {
    let (mut p, listener) = race(Config::default());
    let ids = [(); 5].map(|()| p.accept(listener));
    p.write(ids[3], &pattern(1, 10));
    client(&mut p, 3);
    p.expect("PA 1:11 ack 1");
    p.send("PA 1:11 ack 11");
    assert_eq!(p.read(ids[3]).unwrap(), pattern(1, 10));
    assert_eq!(p.stack.info(ids[3]).unwrap().state, State::Established);
}

/// Of those who wait, some go away; the next in the row gets the place.
#[test]
fn a_client_that_went_away_is_not_accepted() {
    let (mut p, listener) = race(Config::default());
    client(&mut p, 3);
    p.send("R 1");
    let ports = [(); 4].map(|()| p.stack.accept(p.now, listener).unwrap().1.port());
    assert_eq!(ports, [40_000, 40_001, 40_002, 40_004]);
    assert_eq!((p.sizes(), p.stack.accept(p.now, listener)), ((4, 0, 0), Err(AcceptError::Blocked)));
}

/// Their requests go with the listener. Ours tells them, like the connections that were never handed over.
#[test]
fn closing_a_listener_leaves_no_ghosts() {
    for (config, told) in [(Config::default(), 2), (Config::linux(), 0)] {
        let (mut p, listener) = race(config);
        p.stack.close_listener(p.now, listener);
        assert_eq!(p.sent_now().iter().filter(|text| text.starts_with("RA 1")).count(), 3 + told);
        assert_eq!((p.sizes(), p.stack.counters().embryonic_rsts), ((0, 0, 0), told as u64));
    }
}

/// Nobody accepts for a minute: ours tells the two clients, who believe themselves connected; Linux lets them believe.
#[test]
fn a_client_that_waited_in_vain_is_told() {
    for (config, resets) in [(Config::default(), 2), (Config::linux(), 0)] {
        let (mut p, listener) = race(config);
        p.skip(62_999);
        assert_eq!(p.sizes(), (3, 2, 0));
        for _ in 0..resets {
            p.expect_after(u64::from(p.sizes().1 == 2), "RA 1 ack 1");
        }
        p.expect_nothing_for(1);
        assert_eq!(p.sizes(), (3, 0, 0));
        assert_eq!((p.stack.counters().embryonic_rsts, drops(&p, listener).reset), (resets, resets));
    }
}

/// Who never completed the handshake hears nothing at the end: the address may be somebody else's.
#[test]
fn a_client_that_never_answered_is_not_reset() {
    for config in both_profiles() {
        let (mut p, _) = server(config, 2);
        half_open(&mut p, 0);
        for second in [1, 2, 4, 8, 16] {
            p.expect_after(second * 1000, "SA 0 ack 1");
        }
        p.expect_nothing_for(31_999);
        assert_eq!(p.sizes(), (0, 1, 0));
        p.expect_nothing_for(1);
        assert_eq!(p.sizes(), (0, 0, 0));
    }
}

/// L-SYN-2: nine half-open at a backlog of 8. More than half of the room is taken by old ones, so five of them are dropped at 7 s,
/// after two repetitions; the four that are left keep their five.
#[test]
fn a_crowded_syn_queue_is_pruned() {
    for config in both_profiles() {
        let (mut p, listener) = server(config, 8);
        (0..9).for_each(|number| half_open(&mut p, number));
        let info = |p: &Peer| p.stack.listener_info(listener).unwrap();
        assert_eq!((info(&p).syn_queue, info(&p).syn_queue_young), (9, 9));
        p.skip(1000);
        assert_eq!((info(&p).syn_queue, info(&p).syn_queue_young), (9, 0));
        p.skip(5999);
        assert_eq!(p.sizes().1, 9);
        p.skip(1);
        assert_eq!(p.sizes().1, 4);
        p.skip(55_999);
        assert_eq!(p.sizes().1, 4);
        p.skip(1);
        assert_eq!(p.sizes().1, 0);
        assert_eq!(p.stack.counters().syn_retrans, 9 * 2 + 4 * 3);
    }
}

/// Young ones push out the old: with eight young ones beside one old, the old one may still be repeated.
#[test]
fn young_requests_do_not_count_against_the_old() {
    let (mut p, _) = server(Config::default(), 8);
    half_open(&mut p, 0);
    p.skip(6500);
    (1..9).for_each(|number| half_open(&mut p, number));
    p.skip(500);
    assert_eq!(p.sizes().1, 9, "at its third time-out eight of nine are young");
}

fn deferring(config: Config, secs: u64) -> (Peer, ListenerId) {
    let mut p = Peer::new(config);
    let defer_accept = Duration::from_secs(secs);
    let listener = p.listen_with(ListenOptions { defer_accept, ..ListenOptions::default() });
    (p, listener)
}

/// The connection is there when the data is; no round trip of the deferral is taken for the path's.
#[test]
fn a_deferring_listener_waits_for_data() {
    for config in both_profiles() {
        let (mut p, listener) = deferring(config, 3);
        half_open(&mut p, 0);
        p.send("A 1 ack 1");
        p.send("A 1 ack 1");
        p.expect_nothing_for(500);
        assert_eq!((p.sizes(), p.stack.counters().defer_accept_drop), ((0, 1, 0), 2));
        assert_eq!(p.stack.drops().get(DropReason::Deferred), 2);
        p.send("PA 1:11 ack 1");
        let id = p.accept(listener);
        assert_eq!(p.read(id).unwrap(), pattern(1, 10));
        // The ACK that the SYN-ACK got says more of the path than the text that came when it liked; Linux measures by that.
        let of_first = p.stack.config().rtt_of_first.then(|| Duration::from_millis(500));
        assert_eq!(p.stack.info(id).unwrap().srtt, of_first);
    }
}

/// Linux's `secs_to_retrans`: the SYN-ACK is repeated when the time is over, and its ACK will do.
#[test]
fn the_deferral_ends() {
    for (secs, end) in [(1, 1), (2, 3), (3, 3), (4, 7), (30, 31)] {
        for config in both_profiles() {
            let (mut p, listener) = deferring(config, secs);
            half_open(&mut p, 0);
            p.send("A 1 ack 1");
            p.expect_after(end * 1000, "SA 0 ack 1");
            p.send("A 1 ack 1");
            p.accept(listener);
        }
    }
}

/// A client that acknowledges and never sends is deferred longer than a silent one lives, and gets a last chance at 127 s. At the end,
/// a capped time-out of 120 s later, ours tells it.
#[test]
fn a_deferral_outlasts_the_retries() {
    for (config, told) in both_profiles().into_iter().zip([true, false]) {
        let (mut p, _) = deferring(config, 100);
        half_open(&mut p, 0);
        p.send("A 1 ack 1");
        p.expect_after(127_000, "SA 0 ack 1");
        p.expect_nothing_for(119_999);
        assert_eq!(p.sizes(), (0, 1, 0));
        if told {
            p.expect_after(1, "RA 1 ack 1");
        }
        p.expect_nothing_for(1);
        assert_eq!(p.sizes(), (0, 0, 0));
        assert_eq!(p.stack.counters().syn_retrans, 1);
    }
}

/// Who does not even acknowledge is treated as everywhere.
#[test]
fn a_silent_client_is_not_deferred() {
    let (mut p, _) = deferring(Config::default(), 100);
    half_open(&mut p, 0);
    for second in [1, 2, 4, 8, 16] {
        p.expect_after(second * 1000, "SA 0 ack 1");
    }
    p.expect_nothing_for(32_000);
    assert_eq!(p.sizes(), (0, 0, 0));
}

/// First deferred, then without room: he waits like the others.
#[test]
fn a_deferred_client_may_have_to_wait_for_room() {
    let mut p = Peer::ours();
    let defer_accept = Duration::from_secs(3);
    let listener = p.listen_with(ListenOptions { backlog: 0, defer_accept, ..ListenOptions::default() });
    half_open(&mut p, 0);
    p.send("PA 1:11 ack 1");
    // Somebody else's SYN would meet the full accept queue: his comes before.
    p.accept(listener);
    half_open(&mut p, 1);
    p.send("A 1 ack 1");
    let first = p.remote;
    client(&mut p, 2);
    p.stack.set(p.now, "net.ipv4.tcp_syncookies", "2").unwrap();
    half_open(&mut p, 2);
    p.send("A 1 ack 1");
    p.remote = first;
    p.send("PA 1:11 ack 1");
    assert_eq!((p.sizes(), drops(&p, listener).accept_queue_full), ((2, 1, 0), 1));
    p.accept(listener);
    assert_eq!(p.sizes(), (3, 0, 0));
}

#[test]
fn a_fin_is_not_deferred() {
    let (mut p, listener) = deferring(Config::default(), 3);
    half_open(&mut p, 0);
    p.send("FA 1 ack 1");
    p.accept(listener);
}

#[test]
fn a_reset_by_the_peer_ends_a_request() {
    let (mut p, listener) = server(Config::default(), 2);
    half_open(&mut p, 0);
    assert_eq!(p.stack.listener_info(listener).unwrap().syn_queue_young, 1);
    p.expect_after(1000, "SA 0 ack 1");
    assert_eq!(p.stack.listener_info(listener).unwrap().syn_queue_young, 0);
    p.send("R 1");
    assert_eq!((p.sizes(), p.stack.counters().embryonic_rsts), ((0, 0, 0), 1));
}

#[test]
fn what_is_outside_the_window_of_a_request_is_acknowledged() {
    for config in both_profiles() {
        let (mut p, listener) = server(config, 4);
        half_open(&mut p, 0);
        p.send("A 200001 ack 1");
        p.expect("A 1 ack 1 <>");
        p.send("A 200001 ack 1");
        p.expect_nothing();
        assert_eq!(p.stack.counters().ack_skipped_syn_recv, 1);
        p.send("PA 200001:200011 ack 1");
        p.expect("A 1 ack 1 <>");
        p.send("A 1 ack 1");
        p.accept(listener);
    }
}

/// Who has forgotten its first SYN resets the request by its answer to our ACK; in the window Linux ends it by itself.
#[test]
fn a_syn_with_another_number_ends_a_request() {
    for (config, ends) in both_profiles().into_iter().zip([false, true]) {
        let (mut p, _) = server(config, 4);
        half_open(&mut p, 0);
        p.send("S 500000 <mss 1000>");
        p.expect("A 1 ack 1");
        assert_eq!(p.sizes(), (0, 1, 0));
        p.send("R 1");
        assert_eq!(p.sizes(), (0, 0, 0));
        half_open(&mut p, 1);
        p.send("S 5000 <mss 1000>");
        let answer = p.sent_now();
        assert!(answer.len() == 1 && answer[0].starts_with(if ends { "RA " } else { "A 1:" }), "{answer:?}");
        assert_eq!(p.sizes(), (0, usize::from(!ends), 0));
    }
}

/// RFC 5082: who asks for few hops hears only whose packets took them, listener and connection alike.
#[test]
fn what_comes_from_too_far_away_is_dropped() {
    for config in both_profiles() {
        let mut p = Peer::new(config);
        let listener = p.listen_with(ListenOptions {
            backlog: 4,
            socket: SocketOptions { min_hops: 65, ..SocketOptions::default() },
            ..ListenOptions::default()
        });
        p.send("S 0 <mss 1000>");
        p.expect_nothing();
        let near = |p: &Peer, text: &str| {
            // The header's checksum changes with the hop limit.
            let mut packet = p.packet(text).to_vec();
            let sum = u16::from_be_bytes([packet[10], packet[11]]);
            let sum = sum.checked_sub(0x0100).unwrap_or(sum.wrapping_sub(0x0101));
            packet[8] += 1;
            packet[10..12].copy_from_slice(&sum.to_be_bytes());
            RxPacket::new(packet.into())
        };
        let syn = near(&p, "S 0 <mss 1000>");
        p.send_rx(syn);
        p.expect("SA 0 ack 1");
        let ack = near(&p, "A 1 ack 1");
        p.send_rx(ack);
        let id = p.accept(listener);
        p.send_bytes("A 1 ack 1", b"far");
        assert_eq!(p.read(id), Err(ReadError::Blocked));
        assert_eq!(p.stack.counters().tcp_min_ttl_drop, 2);
        assert_eq!(p.stack.drops().get(DropReason::HopLimit), 2);
    }
}

/// What a listener keeps of a SYN is its headers, byte for byte, and only of those that come after it was told.
#[test]
fn the_headers_of_a_syn_are_kept_for_who_asks() {
    let mut p = Peer::new(Config::linux());
    let options = |save_syn| ListenOptions {
        backlog: 4,
        socket: SocketOptions { save_syn, ..SocketOptions::default() },
        ..ListenOptions::default()
    };
    let listener = p.listen_with(options(false));
    half_open(&mut p, 1);
    p.send("A 1 ack 1");
    let without = p.accept(listener);
    assert_eq!(p.stack.saved_syn(without), None);
    let now = p.now;
    p.stack.set_listen_options(now, listener, options(true));
    client(&mut p, 2);
    let syn = p.packet("S 0 <mss 1000>");
    half_open(&mut p, 2);
    p.send("A 1 ack 1");
    let id = p.accept(listener);
    assert_eq!(p.stack.saved_syn(id), Some(&syn[..]));
    p.stack.forget_saved_syn(id);
    assert_eq!(p.stack.saved_syn(id), None);
}

/// One of two listeners of a port closes: with `tcp_migrate_req` its clients are the other one's, whether accepted by the stack or half
/// open; without, they are reset. When that one closes too there is nobody.
#[test]
fn who_closes_leaves_its_clients_to_those_who_share_the_port() {
    for migrates in [true, false] {
        let options = ListenOptions { backlog: 16, share_port: true, ..ListenOptions::default() };
        let mut p = Peer::new(Config::linux().tcp_migrate_req(migrates));
        let listeners = [p.listen_with(options.clone()), p.listen_with(options)];
        for number in 0..16 {
            half_open(&mut p, number);
            if number % 2 == 0 {
                p.send("A 1 ack 1");
            }
        }
        let queues = |p: &Peer, id| {
            let info = p.stack.listener_info(id).unwrap();
            (info.accept_queue, info.syn_queue, info.syn_queue_young)
        };
        let (first, second) = (queues(&p, listeners[0]), queues(&p, listeners[1]));
        assert_eq!((first.0 + second.0, first.1 + second.1), (8, 8));
        assert!(first.0 > 0 && second.0 > 0 && first.1 > 0 && second.1 > 0, "each has some of them");
        p.events();
        p.stack.close_listener(p.now, listeners[0]);
        let counted = |p: &Peer| {
            let counters = p.stack.counters();
            (counters.migrate_req_success, counters.migrate_req_failure)
        };
        if !migrates {
            assert_eq!(queues(&p, listeners[1]), second);
            assert_eq!((p.sent_now().len(), counted(&p)), (first.0, (0, 0)), "resets");
            continue;
        }
        assert_eq!(queues(&p, listeners[1]), (8, 8, 8));
        assert_eq!(counted(&p), ((first.0 + first.1) as u64, 0));
        p.expect_nothing();
        assert!(p.events().iter().any(|(id, _)| *id == SocketId::Listener(listeners[1])), "it is told");
        for number in (1..16).step_by(2) {
            client(&mut p, number);
            p.send("A 1 ack 1");
        }
        let peers: Vec<u16> =
            (0..16).map(|_| p.stack.accept(p.now, listeners[1]).unwrap().1.port() - 40_000).collect();
        assert!((0..16).all(|number| peers.contains(&number)), "{peers:?}");
        half_open(&mut p, 20);
        p.stack.close_listener(p.now, listeners[1]);
        assert_eq!(counted(&p), ((first.0 + first.1) as u64, 1));
    }
}

/// A Fast Open child whose handshake is not complete goes along, and counts against the queue of who takes it.
#[test]
fn a_pending_fast_open_child_is_left_to_those_who_share_the_port() {
    let config = Config::linux().tcp_fastopen(0x203).tcp_migrate_req(true);
    let mut p = Peer::new(config);
    let options = ListenOptions { fast_open: Some(5), share_port: true, ..ListenOptions::default() };
    let listeners = [p.listen_with(options.clone()), p.listen_with(options)];
    p.send("S 0:10(10) <mss 1000>");
    p.expect("SA 0 ack 11");
    let pending =
        |p: &Peer, id| p.stack.listener_info(id).map(|info| (info.accept_queue, info.fast_open_pending));
    let [first, second] = listeners;
    let (old, heir) = if pending(&p, first) == Some((1, 1)) { (first, second) } else { (second, first) };
    assert_eq!((pending(&p, old), pending(&p, heir)), (Some((1, 1)), Some((0, 0))));
    p.stack.close_listener(p.now, old);
    p.expect_nothing();
    assert_eq!((pending(&p, old), pending(&p, heir)), (None, Some((1, 1))));
    p.send("A 11 ack 1");
    assert_eq!(pending(&p, heir), Some((1, 0)));
    let id = p.accept(heir);
    assert_eq!(p.read(id).unwrap().len(), 10);
}

/// A listener of IPv6 alone shares the port of one for both: it takes over what it could have been dealt.
#[test]
fn nobody_inherits_clients_of_another_family() {
    let mut p = Peer::new(Config::linux().tcp_migrate_req(true));
    let any = "[::]:80".parse().unwrap();
    let options = |v6_only| ListenOptions { v6_only, share_port: true, ..ListenOptions::default() };
    let both = p.stack.listen(p.now, any, options(false)).unwrap();
    let v6_only = p.stack.listen(p.now, any, options(true)).unwrap();
    p.send("S 0 <mss 1000>");
    p.expect("SA 0 ack 1");
    p.send("A 1 ack 1");
    half_open(&mut p, 1);
    p.stack.close_listener(p.now, both);
    p.remote.set_port(40_000);
    p.expect("RA 1 ack 1");
    let counters = p.stack.counters();
    assert_eq!((counters.migrate_req_success, counters.migrate_req_failure), (0, 2));
    assert!(p.stack.accept(p.now, v6_only).is_err());
    assert_eq!(p.sizes(), (0, 0, 0));
}
