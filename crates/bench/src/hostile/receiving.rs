//! Cases of who sends, and the ordinary one that all are measured by.

use super::arena::Arena;
use super::case::Case;
use super::client::{client, usual};
use crate::report::Failure;
use bytes::Bytes;
use wire::{Flags, TcpHeader, TcpOptions};

const SEGMENTS: u32 = 20_000;
const MIB: usize = 1 << 20;

/// Segments of 1,000 bytes in order, which are read as they come.
pub(super) const ORDINARY: Case = Case {
    name: "ordinary data",
    play: ordinary,
    most_cost: 1.0,
    most_pinned: MIB,
    most_sent_back: 1.0,
    beside_linux: true,
    bounded_by: "The unit of all other costs.",
};

pub(super) const CASES: &[Case] = &[
    Case {
        name: "one-byte segments in order",
        play: bytes_in_order,
        most_cost: 4.0,
        most_pinned: MIB,
        most_sent_back: 1.0,
        beside_linux: true,
        bounded_by: "Small payloads are copied together, and the memory of their packets is freed.",
    },
    Case {
        name: "one-byte segments out of order",
        play: bytes_out_of_order,
        most_cost: 25.0,
        most_pinned: 2 * MIB,
        most_sent_back: 3.0,
        beside_linux: true,
        bounded_by: "One run of data after a gap per 1,024 bytes of the receive buffer. Further runs are dropped.",
    },
    Case {
        name: "one segment repeated",
        play: repeated,
        most_cost: 15.0,
        most_pinned: MIB,
        most_sent_back: 1.0,
        beside_linux: true,
        bounded_by: "Old data is not stored. Each copy is acknowledged with a D-SACK block.",
    },
    Case {
        name: "segments that overlap",
        play: overlapping,
        most_cost: 20.0,
        most_pinned: 2 * MIB,
        most_sent_back: 3.0,
        beside_linux: true,
        bounded_by: "Each byte is stored once. Repeated bytes are cut off.",
    },
    Case {
        name: "segments with forty bytes of options",
        play: options,
        most_cost: 4.0,
        most_pinned: MIB,
        most_sent_back: 1.0,
        beside_linux: true,
        bounded_by: "The options are parsed once. Unknown options are skipped.",
    },
];

fn ordinary(arena: &mut Arena) -> Result<(), Failure> {
    in_order(arena, &[b'x'; 1000])
}

fn bytes_in_order(arena: &mut Arena) -> Result<(), Failure> {
    in_order(arena, b"x")
}

/// Segments with this text, each behind the last.
fn in_order(arena: &mut Arena, text: &[u8]) -> Result<(), Failure> {
    let mut peer = client(0);
    let connection = peer.open(arena, usual(1460))?;
    for _ in 0..SEGMENTS / 64 {
        let packets: Vec<Bytes> = (0..64)
            .map(|_| {
                let segment = peer.segment(&peer.header(Flags::ACK), text);
                peer.seq += text.len() as u32;
                segment
            })
            .collect();
        arena.attack(&packets)?;
        arena.victim.read(connection)?;
    }
    Ok(())
}

/// Every other byte of a stream whose first is missing, the last ones first in every eighth.
fn bytes_out_of_order(arena: &mut Arena) -> Result<(), Failure> {
    let mut peer = client(0);
    peer.open(arena, usual(1460))?;
    let packets: Vec<Bytes> = (0..SEGMENTS)
        .map(|number| {
            let seq = peer.seq + 1 + 2 * (number ^ 7);
            peer.segment(&TcpHeader { seq, ..peer.header(Flags::ACK) }, b"x")
        })
        .collect();
    arena.attack(&packets).map(drop)
}

fn repeated(arena: &mut Arena) -> Result<(), Failure> {
    let mut peer = client(0);
    let connection = peer.open(arena, usual(1460))?;
    let segment = peer.segment(&peer.header(Flags::ACK), &[b'x'; 1000]);
    arena.prepare(core::slice::from_ref(&segment))?;
    arena.victim.read(connection)?;
    arena.attack(&vec![segment; SEGMENTS as usize]).map(drop)
}

/// Each begins a little behind the one before, and none is the next.
fn overlapping(arena: &mut Arena) -> Result<(), Failure> {
    let mut peer = client(0);
    peer.open(arena, usual(1460))?;
    let packets: Vec<Bytes> = (0..SEGMENTS)
        .map(|number| {
            let seq = peer.seq + 1 + number.wrapping_mul(7919) % 30_000;
            peer.segment(&TcpHeader { seq, ..peer.header(Flags::ACK) }, &[b'x'; 500])
        })
        .collect();
    arena.attack(&packets).map(drop)
}

fn options(arena: &mut Arena) -> Result<(), Failure> {
    let mut peer = client(0);
    let connection = peer.open(arena, usual(1460))?;
    // Kind 30 is nobody's here; two bytes each.
    let mut options = TcpOptions::default();
    (0..20).for_each(|_| options.unknown.push((30, Vec::new().into())));
    for _ in 0..SEGMENTS / 64 {
        let packets: Vec<Bytes> = (0..64)
            .map(|_| {
                let header = TcpHeader { options: options.clone(), ..peer.header(Flags::ACK) };
                let segment = peer.segment(&header, b"x");
                peer.seq += 1;
                segment
            })
            .collect();
        arena.attack(&packets)?;
        arena.victim.read(connection)?;
    }
    Ok(())
}
