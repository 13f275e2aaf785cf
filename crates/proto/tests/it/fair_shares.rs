//! `firstbyte.fair_shares`: one network does not use up what all share. (Random worlds with greedy peers: `crates/simulation`.)

use crate::peer::*;
use core::time::Duration;
use proto::*;

const PAGE: u64 = 4096;

/// 4 MiB, of which 2 MiB are without pressure: memory is scarce above 3 MiB, and exhausted above 3.5 MiB.
fn little_memory() -> Config {
    let mut config = Config::default();
    config.set("net.ipv4.tcp_mem", "512 512 1024").unwrap();
    config
}

/// Another client: the port tells which, and its address is this host's.
fn client(p: &mut Peer, host: u8, port: u16) {
    p.remote = format!("10.0.0.{host}:{port}").parse().unwrap();
}

/// A client whose window is closed after the first thousand bytes, and to which the application has written all it could.
fn slow_reader(p: &mut Peer, listener: ListenerId, host: u8, port: u16) -> (ConnId, usize) {
    client(p, host, port);
    let id = p.establish_with(listener, "S 0 win 1000 <mss 1000>");
    let written = p.stack.write(p.now, id, &vec![1; 1 << 20]).unwrap_or(0);
    p.expect_only_data();
    (id, written)
}

/// New send buffers have their full size while memory is not short. Then each is smaller than the
/// one before, but holds a first window.
#[test]
fn under_pressure_new_send_buffers_begin_small() {
    let mut p = Peer::new(little_memory());
    let listener = p.listen();
    let mut buffers = Vec::new();
    for port in 40_000.. {
        buffers.push(slow_reader(&mut p, listener, port as u8, port).1);
        if p.stack.memory() > 700 * PAGE {
            break;
        }
    }
    let full = buffers.iter().filter(|written| **written == 262_144).count();
    assert!(full >= 6 && buffers[full..].iter().all(|written| *written == 16_384), "{buffers:?}");
    let (id, _) = slow_reader(&mut p, listener, 1, 50_000);
    assert!(!p.stack.info(id).unwrap().writable, "poll and write say the same");
    assert_eq!(p.stack.send_capacity(id), Err(WriteError::Blocked));
}

/// Fills the memory until it is scarce with connections of one host, each of which was opened after another.
fn fill(p: &mut Peer, listener: ListenerId, host: u8) -> Vec<ConnId> {
    let mut ids = Vec::new();
    while p.stack.memory() <= 768 * PAGE {
        let port = 40_000 + ids.len() as u16;
        ids.push(slow_reader(p, listener, host, port).0);
        assert!(ids.len() < 200);
    }
    ids
}

/// Two hosts hold memory and make no progress. The one with many connections loses one, in the end; that of the other stays, though it is the
/// oldest, and larger than most.
#[test]
fn the_network_that_holds_most_gives_way_first() {
    let mut p = Peer::new(little_memory());
    let listener = p.listen();
    let (lone, _) = slow_reader(&mut p, listener, 200, 40_000);
    let greedy = fill(&mut p, listener, 1);
    let aborted = |p: &Peer| p.stack.counters().abort_on_memory;
    p.events();
    let pass = |p: &mut Peer, seconds: u64| {
        for _ in 0..seconds * 10 {
            p.skip(100);
        }
    };
    pass(&mut p, 5);
    assert_eq!(aborted(&p), 0, "there is patience while some of the reserve is left");
    pass(&mut p, 10);
    assert!((1..4).contains(&aborted(&p)), "{}", aborted(&p));
    assert!(p.stack.memory() <= 768 * PAGE);
    assert_eq!(p.state(lone), State::Established);
    let gone: Vec<_> = greedy.into_iter().filter(|id| p.state(*id) == State::Closed).collect();
    assert_eq!(gone.len() as u64, aborted(&p));
    for id in gone {
        assert!(p.events_of(id).contains(Events::CLOSED));
        assert_eq!(p.stack.close_reason(id), Some(CloseReason::NoMemory));
        assert_eq!(p.stack.info(id).unwrap().memory, 0);
        let error = p.stack.write(p.now, id, b"x").unwrap_err();
        assert_eq!(error, WriteError::Closed(CloseReason::NoMemory));
    }
}

/// The peer that is reset is told so, and one whose acknowledgements go on is not reset, however much it holds.
#[test]
fn who_makes_progress_stays() {
    let mut p = Peer::new(little_memory());
    let listener = p.listen();
    client(&mut p, 1, 39_999);
    let busy = p.establish_with(listener, "S 0 win 65535 <mss 1000>");
    let mut acked = 1;
    let mut step = |p: &mut Peer| {
        while p.stack.write(p.now, busy, &[1; 8192]).is_ok() {}
        let sent = p.stack.queues(busy).unwrap();
        assert!(p.sent_now().iter().all(|sent| sent.starts_with("RA") || !sent.contains("(0)")));
        acked += (sent.unacknowledged - sent.unsent as usize) as u32;
        client(p, 1, 39_999);
        p.send(&format!("A 1 ack {acked}"));
    };
    fill(&mut p, listener, 1);
    for _ in 0..300 {
        step(&mut p);
        p.pass(50);
    }
    assert!(p.stack.counters().abort_on_memory > 0);
    assert_eq!(p.state(busy), State::Established);
}

/// A host that holds much of scarce memory opens no more connections; another does.
#[test]
fn scarce_memory_is_for_others() {
    for fair in [true, false] {
        let mut p = Peer::new(little_memory().fair_shares(fair));
        let listener = p.listen();
        fill(&mut p, listener, 1);
        client(&mut p, 1, 60_000);
        p.send("S 0 win 1000 <mss 1000>");
        let refused = p.stack.drops().get(DropReason::NoMemory);
        assert_eq!((refused, p.sent_now().len()), if fair { (1, 0) } else { (0, 1) });
        client(&mut p, 2, 60_001);
        p.send("S 0 win 1000 <mss 1000>");
        p.expect("SA 0 ack 1");
    }
}

/// One address gets 48 of 64 places, with or without SYN cookies. Each further address gets fewer
/// than the one before.
#[test]
fn the_last_quarter_of_places_is_for_others() {
    for cookies in ["1", "2"] {
        let mut config = Config::default().max_connections(64);
        config.set("net.ipv4.tcp_syncookies", cookies).unwrap();
        let mut p = Peer::new(config);
        let listener = p.listen_with(ListenOptions { backlog: 1000, ..ListenOptions::default() });
        let opens = |p: &mut Peer, host: u8| {
            for port in 40_000..40_100 {
                client(p, host, port + u16::from(host) * 100);
                p.send("S 0 win 1000 <mss 1000>");
            }
            for port in 40_000..40_100 {
                client(p, host, port + u16::from(host) * 100);
                p.expect_at_most(100);
                p.send("A 1 ack 1");
            }
            assert!(p.sent_now().iter().all(|sent| sent.starts_with('R')), "of a SYN that was dropped");
            p.sizes().0
        };
        assert_eq!(opens(&mut p, 1), 48, "SYN cookies {cookies}");
        // Each gets fewer than the one before, and leaves some.
        for host in 2..4 {
            let before = p.sizes().0;
            let after = opens(&mut p, host);
            assert!(after > before && after < 64, "host {host}: {before}, {after}");
        }
        assert!(p.stack.drops().get(DropReason::TooManyConnections) > 0);
        p.accept(listener);
    }
}

/// An accept queue that the application does not empty.
#[test]
fn the_last_quarter_of_an_accept_queue_is_for_others() {
    let mut p = Peer::ours();
    let listener = p.listen_with(ListenOptions { backlog: 64, ..ListenOptions::default() });
    let mut waiting = Vec::new();
    for host in [1, 2] {
        for port in 40_000..40_070 {
            client(&mut p, host, port + u16::from(host) * 100);
            p.send("S 0 win 1000 <mss 1000>");
            if p.sent_now().len() == 1 {
                p.send("A 1 ack 1");
            }
        }
        waiting.push(p.stack.listener_info(listener).unwrap().accept_queue);
    }
    assert_eq!(waiting[0], 48);
    assert!(waiting[1] > 50, "{waiting:?}");
    assert!(p.stack.drops().get(DropReason::AcceptQueueFull) > 0);
}

/// Memory pinned by a slow reader's send buffer is counted, even if only the end of a block is
/// unacknowledged.
#[test]
fn a_block_in_use_in_part_is_charged() {
    let mut p = Peer::ours();
    let listener = p.listen();
    let id = p.establish_with(listener, "S 0 win 65535 <mss 1000>");
    assert_eq!(p.stack.write(p.now, id, &[1; 60_000]), Ok(60_000));
    let mut acked = 1;
    while acked < 59_001 {
        let sent = p.sent_now().len() as u32;
        acked = (acked + sent * 1000).min(59_001);
        p.send(&format!("A 1 ack {acked}"));
    }
    assert_eq!(p.stack.queues(id).unwrap().unacknowledged, 1000);
    assert!(p.stack.memory() > 65_536, "{}", p.stack.memory());
    p.send("A 1 ack 60001");
    assert_eq!(p.stack.memory(), 0);
    p.now = p.now + Duration::from_secs(1);
}
