//! The stack's memory: `tcp_mem`'s three levels, what gives way, and that all of it comes back.

use crate::pair::*;
use crate::peer::*;
use crate::transfer::Transfer;
use core::time::Duration;
use proto::*;
use wire::{RxBatch, RxPacket};

fn with_mem(pages: &str) -> Config {
    let mut config = Config::default();
    config.set("net.ipv4.tcp_mem", pages).unwrap();
    config
}

/// Segments of 1000 bytes until the peer's window is used up; returns the next number.
fn fill(p: &mut Peer, id: ConnId, mut seq: u32) -> u32 {
    while p.stack.info(id).unwrap().rcv_wnd >= 1000 {
        p.send(&format!("A {seq}:{} ack 1", seq + 1000));
        p.expect_only_acks();
        seq += 1000;
    }
    seq
}

/// The packet of a batch that puts the stack under pressure is the last before windows shrink, as where they come one by one: each takes its
/// place in memory besides its bytes.
#[test]
fn a_batch_comes_under_pressure_where_its_packets_do() {
    let window = |is_batch: bool| {
        let mut p = Peer::new(with_mem("1 2 100"));
        let listener = p.listen();
        let id = p.establish(listener);
        let segments = (0..55).map(|n| format!("A {}:{} ack 1", 1 + n * 100, 101 + n * 100));
        let packets: Vec<RxPacket> = segments.map(|text| RxPacket::new(p.packet(&text))).collect();
        if is_batch {
            p.stack.handle_packets(p.now, &mut RxBatch::from_iter(packets));
        } else {
            packets.into_iter().for_each(|packet| drop(p.stack.handle_packet(p.now, packet)));
        }
        p.expect_only_acks();
        (p.stack.info(id).unwrap().rcv_wnd, p.stack.is_under_memory_pressure())
    };
    assert_eq!(window(true), window(false));
}

/// Pressure above 80 KiB: the window shrinks to four segments, and does not move further while it lasts. Below 40 KiB it is over.
#[test]
fn under_pressure_windows_shrink() {
    let mut p = Peer::new(with_mem("10 20 100"));
    let socket = SocketOptions { recv_buffer: Some(65_535), ..SocketOptions::default() };
    let listener = p.listen_with(ListenOptions { socket, ..ListenOptions::default() });
    let mut ids = Vec::new();
    for port in [40_000, 40_001] {
        p.remote.set_port(port);
        ids.push(p.establish(listener));
    }
    p.remote.set_port(40_000);
    fill(&mut p, ids[0], 1);
    assert_eq!(p.stack.info(ids[0]).unwrap().recv_queue, 65_000);
    assert!(!p.stack.is_under_memory_pressure());
    p.remote.set_port(40_001);
    let next = fill(&mut p, ids[1], 1);
    assert!(p.stack.is_under_memory_pressure());
    assert_eq!(p.stack.counters().memory_pressures, 1);
    assert_eq!(next, 65_001, "what was offered is taken");
    assert_eq!(p.stack.memory(), 2 * 65 * (1040 + 32), "payloads with their packets and their places");
    // Half of the first: still above the low level. A window update tells no more than four segments.
    assert_eq!(p.stack.read(p.now, ids[1], &mut vec![0; 30_000]), Ok(30_000));
    p.expect("A 1 ack 65001 win 5840");
    p.now = p.now + Duration::from_millis(250);
    assert_eq!(p.read(ids[0]).unwrap().len(), 65_000);
    assert!(!p.stack.is_under_memory_pressure());
    assert_eq!(p.stack.counters().memory_pressures_chrono, 250);
    assert_eq!(p.read(ids[1]).unwrap().len(), 35_000);
    assert_eq!(p.stack.memory(), 0);
    // The window grows again with what comes.
    p.expect("A 1 ack 65001");
    p.send("A 65001:66001 ack 1");
    p.expect_after(5, "A 1 ack 66001 win 7840");
}

/// Above the third level nothing is taken in: the peer is told of a closed window, and of an open one when there is room.
#[test]
fn without_memory_data_is_refused() {
    let mut p = Peer::new(with_mem("5 10 10"));
    let listener = p.listen();
    let id = p.establish(listener);
    let mut seq = 1;
    while p.stack.memory() <= 10 * 4096 {
        p.send(&format!("A {seq}:{} ack 1", seq + 1000));
        p.expect_only_acks();
        seq += 1000;
    }
    p.send(&format!("A {seq}:{} ack 1", seq + 1000));
    p.expect(&format!("A 1 ack {seq} win 0"));
    // What the application has written goes with a closed window, too.
    p.write(id, b"hello");
    p.expect(&format!("PA 1:6 ack {seq} win 0"));
    let counters = p.stack.counters();
    assert_eq!((counters.rcv_q_drop, counters.prune_called, counters.rcv_pruned), (1, 1, 1));
    let queued = (seq - 1) as usize;
    assert_eq!(p.stack.info(id).unwrap().recv_queue, queued);
    assert_eq!(p.read(id).unwrap().len(), queued);
    let answer = p.sent_now();
    assert_eq!(answer.len(), 1, "{answer:?}");
    assert!(!answer[0].contains("win 0"), "{answer:?}");
    p.send(&format!("A {seq}:{} ack 6", seq + 1000));
    assert_eq!(p.read(id).unwrap(), pattern(seq, 1000));
    assert_eq!(p.stack.memory(), 0);
}

/// Who was refused for what others hold hears of it with its next probe.
#[test]
fn a_probe_finds_the_memory_that_another_has_freed() {
    let mut p = Peer::new(with_mem("5 10 10"));
    let listener = p.listen();
    let mut ids = Vec::new();
    for port in [40_000, 40_001] {
        p.remote.set_port(port);
        ids.push(p.establish(listener));
    }
    for seq in (1..6001).step_by(1000) {
        p.send(&format!("A {seq}:{} ack 1", seq + 1000));
        p.expect_only_acks();
    }
    p.write(ids[0], &pattern(1, 50_000));
    p.remote.set_port(40_000);
    p.expect_range(1..10001);
    p.remote.set_port(40_001);
    p.send("A 6001:7001 ack 1");
    p.expect("A 1 ack 6001 win 0");
    p.send("A 6000 ack 1");
    p.expect("A 1 ack 6001 win 0");
    p.remote.set_port(40_000);
    p.stack.abort(p.now, ids[0]);
    p.expect("RA 10001 ack 1");
    p.remote.set_port(40_001);
    p.now = p.now + Duration::from_secs(1);
    p.send("A 6000 ack 1");
    p.expect("A 1 ack 6001 win 65535");
    p.send("A 6001:7001 ack 1");
    assert_eq!(p.read(ids[1]).unwrap(), pattern(1, 7000));
}

/// What came early goes first, then it must come again.
#[test]
fn without_memory_what_came_early_goes() {
    let mut p = Peer::new(with_mem("1 2 4"));
    let listener = p.listen();
    let id = p.establish(listener);
    for seq in (2001..20_000).step_by(1000) {
        p.send(&format!("A {seq}:{} ack 1", seq + 1000));
    }
    assert!(p.stack.counters().ofo_pruned >= 1);
    assert!(p.stack.memory() < 5 * 4096, "{}", p.stack.memory());
    p.send("A 1:1001 ack 1");
    assert_eq!(p.read(id).unwrap().len(), 1000);
}

/// A writer gets no more than the least buffer, and goes on when that is delivered.
#[test]
fn without_memory_a_writer_waits() {
    let mut p = Peer::new(with_mem("5 10 10"));
    let listener = p.listen();
    let mut ids = Vec::new();
    for port in [40_000, 40_001] {
        p.remote.set_port(port);
        ids.push(p.establish(listener));
        p.expect_nothing();
    }
    assert_eq!(p.stack.write(p.now, ids[0], &pattern(1, 50_000)), Ok(50_000));
    p.remote.set_port(40_000);
    p.expect_range(1..10001);
    assert_eq!(p.stack.write(p.now, ids[0], b"x"), Err(WriteError::Blocked));
    assert_eq!(p.stack.write(p.now, ids[1], &pattern(1, 10_000)), Ok(4096));
    assert_eq!(p.stack.send_capacity(ids[1]), Err(WriteError::Blocked));
    p.remote.set_port(40_001);
    p.expect_range(1..4097);
    assert_eq!(p.stack.write(p.now, ids[1], b"x"), Err(WriteError::Blocked));
    p.events();
    p.send("A 1 ack 4097");
    assert!(p.events_of(ids[1]).contains(Events::WRITABLE));
    assert_eq!(p.stack.write(p.now, ids[1], &pattern(4097, 10_000)), Ok(4096));
}

/// An orphan that still has much to deliver is the first to give way.
#[test]
fn without_memory_an_orphan_with_much_to_send_is_reset() {
    let mut p = Peer::new(with_mem("5 10 10"));
    let listener = p.listen();
    let id = p.establish(listener);
    p.write(id, &pattern(1, 50_000));
    p.expect_range(1..10001);
    p.close(id);
    assert!(p.sent_now().iter().any(|sent| sent.starts_with('R')), "a reset");
    assert_eq!(p.stack.counters().abort_on_memory, 1);
    assert_eq!(p.stack.memory(), 0);
}

/// Payloads in packets of three times their size: the window is made for full ones, so they are copied together.
#[test]
fn loose_payloads_are_packed() {
    let mut p = Peer::ours();
    let socket = SocketOptions { recv_buffer: Some(40_000), ..SocketOptions::default() };
    let listener = p.listen_with(ListenOptions { socket, ..ListenOptions::default() });
    let id = p.establish(listener);
    for seq in (1..40_000).step_by(1000) {
        let text = format!("A {seq}:{} ack 1", seq + 1000);
        p.send_rx(RxPacket { truesize: 4000, ..RxPacket::new(p.packet(&text)) });
        assert!(p.stack.memory() <= 80_000, "twice the buffer, as Linux doubles it: {}", p.stack.memory());
    }
    let counters = p.stack.counters();
    assert!((1..=5).contains(&counters.rcv_collapsed), "{}", counters.rcv_collapsed);
    assert_eq!(counters.rcv_pruned, 0);
    assert_eq!(p.read(id).unwrap(), pattern(1, 40_000));
    assert_eq!(p.stack.memory(), 0);
}

/// A sender and a sleeping reader in little memory at both ends: all arrives at last, and both stacks hold nothing.
#[test]
fn a_transfer_through_little_memory_ends_with_none() {
    let pair = Pair::new(with_mem("4 8 12"), with_mem("4 8 12"), 10);
    let mut transfer = Transfer::new(pair, SocketOptions::default(), SocketOptions::default());
    transfer.total = 1_000_000;
    transfer.reading_rate = Some(1_000);
    transfer.run_for(5000);
    for side in [CLIENT, SERVER] {
        let held = transfer.pair.stacks[side].memory();
        assert!(held < 26 * 4096, "{held}");
        assert_eq!(transfer.pair.stacks[side].counters().memory_pressures, 1);
    }
    transfer.reading_rate = None;
    transfer.run_to(1_000_000);
    transfer.pair.run(1000);
    for side in [CLIENT, SERVER] {
        assert_eq!(transfer.pair.stacks[side].memory(), 0);
        assert!(!transfer.pair.stacks[side].is_under_memory_pressure());
    }
}

/// Above the third level a SYN is refused and counted, and taken when it comes again and there is memory; connections go on meanwhile. In
/// Linux's profile it is taken all the same.
#[test]
fn without_memory_new_connections_are_refused_and_counted() {
    for refuses in [true, false] {
        let mut p = Peer::new(with_mem("5 10 10").refuse_without_memory(refuses));
        let listener = p.listen();
        let id = p.establish(listener);
        for seq in (1..).step_by(1000).take_while(|seq| *seq < 60_000) {
            if p.stack.memory() > p.stack.memory_levels()[2] {
                break;
            }
            p.send(&format!("A {seq}:{} ack 1", seq + 1000));
            p.expect_only_acks();
        }
        assert_eq!(p.stack.memory_levels(), [5, 10, 10].map(|pages| pages * 4096));
        p.remote.set_port(40_001);
        p.send("S 0 win 65535 <mss 1000>");
        let counted = |p: &Peer| {
            let counters = p.stack.counters();
            let drops = p.stack.drops().get(DropReason::NoMemory);
            (counters.refused_on_memory, counters.listen_drops, drops)
        };
        if !refuses {
            p.expect("SA 0 ack 1");
            assert_eq!(counted(&p), (0, 0, 0));
            continue;
        }
        p.expect_nothing();
        assert_eq!(counted(&p), (1, 1, 1));
        assert_eq!(p.stack.listener_info(listener).unwrap().drops.dropped, 1);
        assert!(p.stack.counters().nstat().any(|line| line == ("FirstbyteRefusedOnMemory".to_owned(), 1)));
        assert!(!p.read(id).unwrap().is_empty());
        p.expect_nothing();
        p.send("S 0 win 65535 <mss 1000>");
        p.expect("SA 0 ack 1");
        assert_eq!(counted(&p), (1, 1, 1));
    }
}
