//! Cases of who receives: what acknowledgements can say.

use super::arena::Arena;
use super::case::Case;
use super::client::{Client, ROUND_TRIP, client, end_of_text, usual};
use crate::report::Failure;
use bytes::Bytes;
use wire::SeqNum;

const ACKS: u32 = 20_000;
const MIB: usize = 1 << 20;
/// Payload of the least segments.
const LEAST: u32 = 48;

pub(super) const CASES: &[Case] = &[
    Case {
        name: "stretch ACKs, one for 64 segments",
        play: stretch,
        most_cost: 15.0,
        most_pinned: 8 * MIB,
        most_sent_back: 3000.0,
        beside_linux: true,
        bounded_by: "Slow start and congestion avoidance count bytes. The traffic sent is new data within the windows.",
    },
    Case {
        name: "divided ACKs, a byte each",
        play: divided,
        most_cost: 12.0,
        most_pinned: MIB,
        most_sent_back: 1.0,
        beside_linux: true,
        bounded_by: "The window grows by acknowledged bytes, not by the number of ACKs (RFC 3465).",
    },
    Case {
        name: "optimistic ACKs of data not sent",
        play: optimistic,
        most_cost: 4.0,
        most_pinned: MIB,
        most_sent_back: 0.2,
        beside_linux: true,
        bounded_by: "Rejected, and answered once per `tcp_invalid_ratelimit`. A peer that acknowledges data before it arrives may lose the data.",
    },
    Case {
        name: "duplicate ACKs",
        play: duplicates,
        most_cost: 6.0,
        most_pinned: MIB,
        most_sent_back: 1.0,
        beside_linux: true,
        bounded_by: "With SACK a duplicate ACK without blocks is ignored. A segment is retransmitted once per round trip.",
    },
    Case {
        name: "reneging, SACK blocks that disappear",
        play: reneging,
        most_cost: 25.0,
        most_pinned: MIB,
        most_sent_back: 1.0,
        beside_linux: true,
        bounded_by: "A SACKed segment stays marked until a time-out, and stays in the send buffer until it is acknowledged.",
    },
    Case {
        name: "false D-SACK blocks",
        play: duplicate_reports,
        most_cost: 18.0,
        most_pinned: MIB,
        most_sent_back: 1.0,
        beside_linux: true,
        bounded_by: "A D-SACK block is accepted once per retransmission. Without a retransmission it is only counted.",
    },
    Case {
        name: "SACK blocks over 21,845 segments of 48 bytes",
        play: many_small_segments,
        most_cost: 400.0,
        most_pinned: 16 * MIB,
        most_sent_back: 1.0,
        beside_linux: true,
        bounded_by: "The send buffer limits the bytes in flight, and `tcp_min_snd_mss` the size of segments from below.",
    },
];

/// A connection of which this much is in flight: the peer, the first number that is not
/// acknowledged, and the one behind all that was sent.
fn with_flight(arena: &mut Arena, mss: u16, flight: u32) -> Result<(Client, usize, SeqNum), Failure> {
    let mut peer = client(0);
    let connection = peer.open(arena, usual(mss))?;
    let mut end = peer.ack;
    for _ in 0..1000 {
        arena.victim.write(connection, 1 << 20)?;
        end = end_of_text(&arena.prepare(&[])?).map_or(end, |sent| end.latest(sent));
        if end.since(peer.ack) >= flight {
            return Ok((peer, connection, end));
        }
        // Half of what is in flight, a few segments at a time: the window grows, and is used.
        let mut acks = Vec::new();
        let until = peer.ack + end.since(peer.ack) / 2;
        while peer.ack.before(until) {
            peer.ack = (peer.ack + 8 * u32::from(mss)).earliest(until);
            acks.push(peer.acknowledge());
        }
        arena.victim.wait(ROUND_TRIP);
        end = end_of_text(&arena.prepare(&acks)?).map_or(end, |sent| end.latest(sent));
    }
    Err(format!("no more than {} bytes came in flight", end.since(peer.ack)).into())
}

fn stretch(arena: &mut Arena) -> Result<(), Failure> {
    let (mut peer, connection, mut end) = with_flight(arena, 1460, 200_000)?;
    for _ in 0..200 {
        arena.victim.write(connection, 1 << 20)?;
        peer.ack = (peer.ack + 64 * 1460).earliest(end);
        let answers = arena.attack(&[peer.acknowledge()])?;
        end = end_of_text(&answers).map_or(end, |sent| end.latest(sent));
    }
    Ok(())
}

fn divided(arena: &mut Arena) -> Result<(), Failure> {
    let (mut peer, _, _) = with_flight(arena, 1460, 100_000)?;
    let acks: Vec<Bytes> = (0..ACKS)
        .map(|_| {
            peer.ack += 1;
            peer.acknowledge()
        })
        .collect();
    arena.attack(&acks).map(drop)
}

fn optimistic(arena: &mut Arena) -> Result<(), Failure> {
    let (peer, _, end) = with_flight(arena, 1460, 100_000)?;
    let acks: Vec<Bytes> = (1..=ACKS).map(|ahead| peer.report(end + ahead * 100, &[])).collect();
    arena.attack(&acks).map(drop)
}

fn duplicates(arena: &mut Arena) -> Result<(), Failure> {
    let (peer, _, _) = with_flight(arena, 1460, 100_000)?;
    arena.attack(&vec![peer.acknowledge(); ACKS as usize]).map(drop)
}

fn reneging(arena: &mut Arena) -> Result<(), Failure> {
    let (peer, _, end) = with_flight(arena, 1460, 100_000)?;
    let all = peer.report(peer.ack, &[(peer.ack + 1460, end)]);
    let none = peer.acknowledge();
    let packets: Vec<Bytes> =
        (0..ACKS).map(|number| if number % 2 == 0 { all.clone() } else { none.clone() }).collect();
    arena.attack(&packets).map(drop)
}

fn duplicate_reports(arena: &mut Arena) -> Result<(), Failure> {
    let (peer, _, _) = with_flight(arena, 1460, 100_000)?;
    let lies: Vec<Bytes> = (0..ACKS)
        .map(|number| {
            // Below what is acknowledged, as if it had arrived twice.
            let start = peer.ack - (1 + number % 20) * 1460;
            peer.report(peer.ack, &[(start, start + 1460)])
        })
        .collect();
    arena.attack(&lies).map(drop)
}

fn many_small_segments(arena: &mut Arena) -> Result<(), Failure> {
    let (peer, _, _) = with_flight(arena, LEAST as u16, 21_845 * LEAST)?;
    let acks: Vec<Bytes> = (0..1024u32)
        .map(|number| {
            let block = |salt: u32| {
                let at = number.wrapping_mul(salt) % 21_800;
                let start = peer.ack + (at + 1) * LEAST;
                (start, start + LEAST)
            };
            peer.report(peer.ack, &[block(7919), block(104_729), block(1_299_709)])
        })
        .collect();
    arena.attack(&acks).map(drop)
}
