//! One address that wants everything, beside others that want a little.

use super::arena::Arena;
use super::case::Case;
use super::client::{Client, ROUND_TRIP, client, end_of_text, usual};
use crate::report::Failure;
use core::time::Duration;

/// A sixteenth of the default memory, so that the case needs no gigabyte; pages.
const MEMORY: &str = "6144 8192 12288";
const MEMORY_BYTES: usize = 12_288 * 4096;
/// Slow readers, all of one address.
const GREEDY: u32 = 4000;
/// Honest clients; each is served a page while the greedy ones wait.
const HONEST: u32 = 1000;
const PAGE: usize = 16_384;
/// Bytes that each greedy client asks for.
const MUCH: usize = 256 * 1024;

pub(super) const CASES: &[Case] = &[Case {
    name: "4,000 slow readers from one address",
    play: slow_readers,
    most_cost: 60.0,
    most_pinned: MEMORY_BYTES,
    most_sent_back: 4.0,
    beside_linux: false,
    bounded_by: "`firstbyte.fair_shares`: new send buffers shrink, connections without progress are reset, and each honest client is served immediately.",
}];

/// All come within some minutes and read nothing; then the honest ones come, and the greedy again
/// after each reset.
fn slow_readers(arena: &mut Arena) -> Result<(), Failure> {
    arena.ours()?.set("net.ipv4.tcp_mem", MEMORY)?;
    let mut ports = 0;
    for number in 0..GREEDY {
        comes_to_stay(arena, &mut ports)?;
        if number.is_multiple_of(GREEDY / HONEST) {
            is_served(arena, number)?;
        }
    }
    let held = arena.ours()?.stack.memory() as usize;
    let aborted = arena.ours()?.stack.counters().abort_on_memory;
    match () {
        () if held > MEMORY_BYTES => Err(format!("{held} bytes are held").into()),
        () if aborted == 0 => Err("nobody was reset: the case asks for nothing".into()),
        () => Ok(()),
    }
}

/// A slow reader opens, if it may, and has as much written to it as the stack takes.
fn comes_to_stay(arena: &mut Arena, ports: &mut u16) -> Result<(), Failure> {
    *ports += 1;
    let mut peer = Client { port: 1024 + *ports, window: 1000, ..client(0) };
    let answers = arena.attack(&[peer.syn(usual(1460))])?;
    arena.victim.wait(ROUND_TRIP);
    if peer.take_syn_ack(&answers).is_err() {
        return Ok(());
    }
    peer.window = 0;
    arena.attack(&[peer.acknowledge()])?;
    let connection = arena.victim.accept()?;
    arena.victim.write(connection, MUCH)?;
    arena.attack(&[]).map(drop)
}

/// An honest client opens, reads a page, and goes, within a second.
fn is_served(arena: &mut Arena, number: u32) -> Result<(), Failure> {
    let mut peer = client(1 + number);
    let begun = arena.ours()?.now;
    let connection =
        peer.open(arena, usual(1460)).map_err(|failure| format!("client {number}: {failure}"))?;
    let (begin, mut left) = (peer.ack, PAGE);
    let mut sent = Vec::new();
    while (peer.ack.since(begin) as usize) < PAGE {
        left -= arena.victim.write(connection, left)?;
        sent.extend(arena.prepare(&[])?);
        sent.retain(|packet| {
            wire::parse_tcp_packet(packet).is_ok_and(|(ip, _, _)| ip.dst == peer.from.into())
        });
        peer.ack = end_of_text(&sent).unwrap_or(peer.ack).latest(peer.ack);
        arena.victim.wait(ROUND_TRIP);
        sent = arena.prepare(&[peer.acknowledge()])?;
        if arena.ours()?.now.since(begun) > Duration::from_secs(1) {
            let read = peer.ack.since(begin);
            return Err(format!("client {number} has {read} bytes, and {left} are not written").into());
        }
    }
    arena.ours()?.abort(connection)
}
