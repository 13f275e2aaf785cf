//! The grid: each trouble that a path or an application can be, alone and all together, under every congestion control there is.
//!
//! `FIRSTBYTE_SEEDS=n` runs n seeds in each cell of it.

use super::*;
use wire::{Flags, TcpHeader};

/// Seeds per cell where nothing else is asked for.
const SEEDS: u64 = 6;

/// What is wrong, and what must have been heard of it in the end.
struct Trouble {
    name: &'static str,
    set: fn(&mut World),
    counter: &'static str,
}

const TROUBLES: [Trouble; 8] = [
    Trouble { name: "loss", set: |world| world.wire.loss = 15, counter: "RetransSegs" },
    Trouble { name: "reordering", set: |world| world.wire.reorder = 50, counter: "TCPSACKReorder" },
    Trouble { name: "duplication", set: |world| world.wire.duplicate = 40, counter: "TCPDSACKOldSent" },
    Trouble { name: "corruption", set: |world| world.wire.corrupt = 20, counter: "InCsumErrors" },
    Trouble { name: "delay change", set: delay_changes, counter: "TCPTimeouts" },
    Trouble { name: "window games", set: window_games, counter: "TCPWinProbe" },
    Trouble { name: "small buffers", set: small_buffers, counter: "TCPToZeroWindowAdv" },
    Trouble { name: "everything", set: everything, counter: "RetransSegs" },
];

fn delay_changes(world: &mut World) {
    world.wire.delay = world.wire.delay.max(Duration::from_millis(10));
    world.wire.swing_ms = 700;
    world.wire.jitter_ms = 50;
}

fn window_games(world: &mut World) {
    world.wire.narrow = 40;
    world.pauses = 30;
}

/// They fill up when their reader is away for a while.
fn small_buffers(world: &mut World) {
    world.pauses = world.pauses.max(15);
    let small = |random: &mut Random| Some(2048 << random.below(4));
    let socket = world.socket.get_or_insert_default();
    socket.send_buffer = small(&mut world.random);
    socket.recv_buffer = small(&mut world.random);
}

fn everything(world: &mut World) {
    world.wire.loss = 5;
    world.wire.reorder = 15;
    world.wire.duplicate = 10;
    world.wire.corrupt = 5;
    delay_changes(world);
    world.wire.narrow = 10;
    world.pauses = 10;
    small_buffers(world);
}

impl World {
    /// A random world in which nothing is wrong but one trouble.
    fn with_trouble(seed: u64, trouble: &Trouble, congestion: CongestionControl, trace: bool) -> World {
        let mut world = World::new(seed, trace);
        world.wire = Wire {
            loss: 0,
            duplicate: 0,
            corrupt: 0,
            reorder: 0,
            narrow: 0,
            swing_ms: 0,
            jitter_ms: 0,
            ..world.wire
        };
        world.pauses = 0;
        world.socket = Some(SocketOptions { congestion: Some(congestion), ..SocketOptions::default() });
        (trouble.set)(&mut world);
        let (now, at) = (world.now, world.server_addr);
        world.stacks[SERVER].close_listener(now, world.listener);
        let socket = world.socket.clone().unwrap_or_default();
        let options = ListenOptions { fast_open: Some(16), socket, ..Default::default() };
        world.listener = world.stacks[SERVER].listen(now, at, options).unwrap();
        world
    }
}

/// The packet with a smaller window, if it acknowledges something: shifted right by `by`, or zero for 5.
pub(super) fn narrowed(packet: Bytes, by: u16) -> Bytes {
    let Ok((ip, header, payload)) = wire::parse_tcp_packet(&packet) else { return packet };
    if header.flags & (Flags::SYN | Flags::ACK) != Flags::ACK {
        return packet;
    }
    let window = if by == 5 { 0 } else { header.window >> by };
    wire::build_tcp_packet(&ip, &TcpHeader { window, ..header }, &packet[payload])
}

/// Runs one cell and says which it was when it fails; returns what `counter` counted at both ends.
fn cell(seed: u64, trouble: &Trouble, congestion: CongestionControl, trace: bool) -> u64 {
    let _said = Cell { seed, trouble: trouble.name, congestion };
    let mut world = World::with_trouble(seed, trouble, congestion, trace);
    world.run();
    world.stacks.iter().filter_map(|stack| stack.counters().get(trouble.counter)).sum()
}

struct Cell {
    seed: u64,
    trouble: &'static str,
    congestion: CongestionControl,
}

impl Drop for Cell {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let Cell { seed, trouble, congestion } = self;
            println!("{trouble} under {congestion:?}: run it again with FIRSTBYTE_SEED={seed}");
        }
    }
}

#[test]
fn every_trouble_under_every_congestion_control() {
    let one = from_environment("FIRSTBYTE_SEED");
    let seeds = match one {
        Some(seed) => seed..seed + 1,
        None => 0..from_environment("FIRSTBYTE_SEEDS").unwrap_or(SEEDS),
    };
    for trouble in &TROUBLES {
        for congestion in CongestionControl::ALL {
            let heard: u64 = seeds.clone().map(|seed| cell(seed, trouble, *congestion, one.is_some())).sum();
            assert!(
                one.is_some() || heard > 0,
                "{} under {congestion:?}: {} = 0",
                trouble.name,
                trouble.counter
            );
        }
    }
}
