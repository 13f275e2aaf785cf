//! Selective acknowledgements, at the least MSS: a peer that has not got our first segment reports
//! the others as is dearest to us.

use super::Play;
use super::peer::Peer;
use crate::report::Failure;
use core::time::Duration;
use proto::{Config, ListenOptions, SocketOptions};

/// The least MSS that is taken from a peer (`tcp_min_snd_mss`).
const MSS: u16 = 48;
/// Where segments are counted with their bookkeeping, as in Linux, a byte of payload takes up to so
/// many.
const BUFFER_PER_BYTE: u32 = 64;
/// Acknowledgements before those that are counted, and how long the last of them is waited with:
/// what was sent is found to be lost once.
const FIRST_ACKS: u32 = 8;
const REORDERING: Duration = Duration::from_millis(25);
/// Acknowledgements that are counted.
const ACKS: u32 = 480;
/// The largest first congestion window that a route may ask for, segments.
const CWND_MOST: u32 = 65_535;
/// Bytes of a burst.
const BURST: usize = 65_535 - 100;

/// `segments` in flight for a round trip.
fn in_flight(config: Config, segments: u32, burst: usize) -> Result<Peer, Failure> {
    let bytes = segments * u32::from(MSS);
    let buffer = BUFFER_PER_BYTE * bytes;
    let config = config.tcp_wmem([4096, buffer, buffer]);
    let socket = SocketOptions { nodelay: true, send_buffer: Some(buffer), ..SocketOptions::default() };
    let listen = ListenOptions { socket, ..ListenOptions::default() };
    let mut peer = Peer::connected(config, listen, (MSS, burst, segments.min(CWND_MOST)))?;
    if segments > CWND_MOST {
        // The window has doubled when all of it is acknowledged.
        send(&mut peer, CWND_MOST * u32::from(MSS))?;
        peer.acknowledge(CWND_MOST * u32::from(MSS));
    }
    send(&mut peer, bytes)?;
    Ok(peer)
}

/// So many bytes leave, and a round trip passes.
fn send(peer: &mut Peer, bytes: u32) -> Result<(), Failure> {
    let text = vec![7; bytes as usize];
    let written = peer.stack.write(peer.now, peer.connection, &text);
    let (sent, written) = (peer.drain(), written.map_err(|error| format!("write: {error:?}"))?);
    if written != text.len() || sent != written {
        return Err(format!("{sent} of {written} bytes are in flight, not {}", text.len()).into());
    }
    peer.now = peer.now + Duration::from_millis(50);
    Ok(())
}

/// Bytes of the segments `from..to`.
fn block(from: u32, to: u32) -> (u32, u32) {
    (from * u32::from(MSS), to * u32::from(MSS))
}

fn play(mut peer: Peer, blocks_of: impl Fn(u32) -> Vec<(u32, u32)>) -> Result<Play, Failure> {
    (1..FIRST_ACKS).for_each(|ack| peer.send(peer.ack(0, &blocks_of(ack - 1))));
    peer.now = peer.now + REORDERING;
    peer.send(peer.ack(0, &blocks_of(FIRST_ACKS - 1)));
    let acks = FIRST_ACKS..FIRST_ACKS + ACKS;
    let packets = acks.map(|ack| peer.ack(0, &blocks_of(ack))).collect();
    Ok(Play { stack: peer.stack, now: peer.now, packets })
}

/// One block that grows from the front.
pub(super) fn ascending(config: Config, n: u32) -> Result<Play, Failure> {
    play(in_flight(config, n, 0)?, |ack| vec![block(1, ack + 2)])
}

/// One block that grows towards the front.
pub(super) fn descending(config: Config, n: u32) -> Result<Play, Failure> {
    play(in_flight(config, n, 0)?, |ack| vec![block(n - ack - 1, n)])
}

/// By turns one that grows from the front and one that grows towards it, each of a third of all.
pub(super) fn alternating(config: Config, n: u32) -> Result<Play, Failure> {
    let mut peer = in_flight(config, n, 0)?;
    peer.send(peer.ack(0, &[block(1, n / 3)]));
    peer.send(peer.ack(0, &[block(n - n / 3, n)]));
    play(peer, |ack| match ack % 2 {
        0 => vec![block(1, n / 3 + ack / 8)],
        _ => vec![block(n - n / 3 - ack / 8, n)],
    })
}

/// Single segments, of which none touch: the place of number `i` of `half`, in an order.
type Order = fn(i: u32, half: u32) -> u32;

fn jumping(i: u32, half: u32) -> u32 {
    // A prime that divides none of the sizes, so that none comes twice.
    (u64::from(i) * 7919 % u64::from(half)) as u32
}

fn from_behind(i: u32, half: u32) -> u32 {
    half - 1 - i % half
}

fn from_both_ends(i: u32, half: u32) -> u32 {
    if i.is_multiple_of(2) { i / 2 % half } else { from_behind(i / 2, half) }
}

fn single(i: u32, n: u32, order: Order) -> (u32, u32) {
    let place = 2 * order(i % (n / 2), n / 2) + 1;
    block(place, place + 1)
}

/// Three quarters of them are reported: so many.
fn report_most(peer: &mut Peer, n: u32, order: Order) -> u32 {
    let known = n / 2 - n / 8;
    for i in (0..known).step_by(4) {
        peer.send(peer.ack(0, &[0, 1, 2, 3].map(|next| single(i + next, n, order))));
    }
    known
}

/// Then come four in each acknowledgement, of which `new` were not reported before.
fn singles(mut peer: Peer, n: u32, order: Order, new: u32) -> Result<Play, Failure> {
    let known = report_most(&mut peer, n, order);
    play(peer, |ack| (0..4).map(|next| single(known + new * ack + next, n, order)).collect())
}

/// Single segments here and there, each in four acknowledgements.
pub(super) fn scattered(config: Config, n: u32) -> Result<Play, Failure> {
    singles(in_flight(config, n, 0)?, n, jumping, 1)
}

/// Four single packets of bursts in each acknowledgement, here and there.
pub(super) fn cut(config: Config, n: u32) -> Result<Play, Failure> {
    singles(in_flight(config, n, BURST)?, n, jumping, 4)
}

/// Four single packets of bursts in each acknowledgement, from the last to the first.
pub(super) fn cut_backwards(config: Config, n: u32) -> Result<Play, Failure> {
    singles(in_flight(config, n, BURST)?, n, from_behind, 4)
}

/// Four single packets of bursts in each acknowledgement, from both ends.
pub(super) fn cut_alternating(config: Config, n: u32) -> Result<Play, Failure> {
    singles(in_flight(config, n, BURST)?, n, from_both_ends, 4)
}

/// A number that looks like chance, for each `i`.
fn chance(i: u32) -> u32 {
    (u64::from(i).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u32
}

/// Four blocks anywhere, of packets that left in bursts.
pub(super) fn random(config: Config, n: u32) -> Result<Play, Failure> {
    anywhere(in_flight(config, n, BURST)?, n)
}

/// Four blocks anywhere, of packets that left one by one.
pub(super) fn random_singles(config: Config, n: u32) -> Result<Play, Failure> {
    anywhere(in_flight(config, n, 0)?, n)
}

/// Four blocks that lie anywhere, of up to sixteen packets, and begin and end amid packets as often
/// as not.
fn anywhere(mut peer: Peer, n: u32) -> Result<Play, Failure> {
    let anywhere = |i: u32| {
        let (from, to) = (1 + chance(3 * i) % (n - 20), 1 + chance(3 * i + 1) % 16);
        let (from, to) = block(from, from + to);
        let amid = chance(3 * i + 2) % 4;
        (from + amid % 2, to + amid / 2)
    };
    let four = |ack: u32| [0, 1, 2, 3].map(|next| anywhere(4 * ack + next));
    let first = n / 64;
    for ack in 0..first {
        peer.send(peer.ack(0, &four(ack)));
    }
    play(peer, |ack| four(first + ack).to_vec())
}

/// Each acknowledgement tells of a packet of a burst that came twice, and of two that are new.
pub(super) fn duplicates(config: Config, n: u32) -> Result<Play, Failure> {
    let mut peer = in_flight(config, n, BURST)?;
    let known = report_most(&mut peer, n, jumping);
    play(peer, |ack| {
        // A D-SACK above the acknowledgement lies within the block behind it (RFC 2883 §4).
        let twice = single(chance(ack) % known, n, jumping);
        vec![twice, twice, single(known + 2 * ack, n, jumping), single(known + 2 * ack + 1, n, jumping)]
    })
}

/// Large blocks, of which each covers most of the others, and nothing is new.
pub(super) fn overlapping(config: Config, n: u32) -> Result<Play, Failure> {
    let mut peer = in_flight(config, n, 0)?;
    peer.send(peer.ack(0, &[block(1, n)]));
    play(peer, |ack| (0..4).map(|i| block(1 + ack + i, n - ack % 7 - i)).collect())
}

/// The first block tells of most of what is in flight that it came twice.
pub(super) fn duplicate(config: Config, n: u32) -> Result<Play, Failure> {
    let mut peer = in_flight(config, n, 0)?;
    peer.send(peer.ack(0, &[block(1, n - 1)]));
    play(peer, |ack| vec![block(2 + ack % 5, n - 3), block(1, n - 1)])
}

/// The path reorders, and all that was sent is late, but not yet lost.
pub(super) fn late(config: Config, n: u32) -> Result<Play, Failure> {
    let mut peer = in_flight(config, n, 0)?;
    peer.send(peer.ack(0, &[block(n - 1, n)]));
    peer.send(peer.ack(0, &[block(n - 3, n - 2)]));
    play(peer, |ack| vec![block(n - 5 - ack % 2, n - 4)])
}
