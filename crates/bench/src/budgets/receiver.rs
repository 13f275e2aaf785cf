//! Text beyond a gap: single bytes that never touch, in the order that is dearest to us, and
//! packets that take more memory than they may.

use super::Play;
use super::peer::Peer;
use crate::report::Failure;
use proto::{Config, ListenOptions, RxPacket, SocketOptions};

/// Bytes of the receive buffer.
const BUFFER: u32 = 4 << 20;
/// The packets that are counted are the last, at most so many.
const COUNTED: usize = 2000;
/// Bytes of payload, and the memory that each pins.
const LOOSE: (usize, usize) = (400, 1536);

fn connected(config: Config) -> Result<Peer, Failure> {
    let config = config.tcp_rmem([4096, BUFFER, 2 * BUFFER]);
    let socket = SocketOptions { recv_buffer: Some(BUFFER), ..SocketOptions::default() };
    let listen = ListenOptions { socket, ..ListenOptions::default() };
    Peer::connected(config, listen, (1460, 0, 10))
}

/// `n` single bytes, of which number `i` lies at the place that `order` says.
fn holes(config: Config, n: u32, order: impl Fn(u32) -> u32) -> Result<Play, Failure> {
    let peer = connected(config)?;
    let packets = (0..n).map(|i| peer.text(2 * order(i) + 1, b"x")).collect();
    play(peer, packets)
}

fn play(mut peer: Peer, mut packets: Vec<RxPacket>) -> Result<Play, Failure> {
    let counted = packets.split_off(packets.len().saturating_sub(COUNTED));
    packets.into_iter().for_each(|packet| peer.send(packet));
    Ok(Play { stack: peer.stack, now: peer.now, packets: counted })
}

pub(super) fn ascending(config: Config, n: u32) -> Result<Play, Failure> {
    holes(config, n, |i| i)
}

pub(super) fn descending(config: Config, n: u32) -> Result<Play, Failure> {
    holes(config, n, |i| n - 1 - i)
}

/// From both ends.
pub(super) fn alternating(config: Config, n: u32) -> Result<Play, Failure> {
    holes(config, n, |i| if i % 2 == 0 { i / 2 } else { n - 1 - i / 2 })
}

/// In an order that jumps about.
pub(super) fn scattered(config: Config, n: u32) -> Result<Play, Failure> {
    holes(config, n, |i| (u64::from(i) * 7919 % u64::from(n)) as u32)
}

/// Payloads that pin several times their size, so that there is too much again and again.
pub(super) fn pruning(config: Config, n: u32) -> Result<Play, Failure> {
    let peer = connected(config)?;
    let (len, truesize) = LOOSE;
    let places = (BUFFER / 4) / (len as u32 + 1);
    let payload = vec![7; len];
    let packet = |i: u32| {
        let place = (u64::from(i) * 7919 % u64::from(places)) as u32;
        RxPacket { truesize, ..peer.text(1 + place * (len as u32 + 1), &payload) }
    };
    let packets = (0..n).map(packet).collect();
    play(peer, packets)
}
