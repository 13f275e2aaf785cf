//! Cases that abuse the opening of connections: floods of SYNs, of cookies and of handshakes.

use super::arena::Arena;
use super::case::Case;
use super::client::{Client, client, usual};
use super::victim::BACKLOG;
use crate::report::Failure;
use bytes::Bytes;
use wire::{Cookie, FastOpenKind, FastOpenOption, Flags, SeqNum, TcpHeader, TcpOptions};

const FLOOD: u32 = 20_000;
const MIB: usize = 1 << 20;

pub(super) const CASES: &[Case] = &[
    Case {
        name: "SYN flood, the queue fills",
        play: queue_fills,
        most_cost: 12.0,
        most_pinned: 2 * MIB,
        most_sent_back: 1.5,
        beside_linux: true,
        bounded_by: "The backlog (4,096 here). A half-open connection takes a fixed-size entry, not a connection's memory.",
    },
    Case {
        name: "SYN flood, the queue is full",
        play: queue_is_full,
        most_cost: 12.0,
        most_pinned: 2 * MIB,
        most_sent_back: 1.5,
        beside_linux: true,
        bounded_by: "SYN cookies: the sequence number encodes the request, and nothing is stored.",
    },
    Case {
        name: "forged ACKs of SYN cookies",
        play: forged_cookies,
        most_cost: 12.0,
        most_pinned: 2 * MIB,
        most_sent_back: 1.5,
        beside_linux: true,
        bounded_by: "One keyed hash per ACK. The reply is a reset, limited to about 1,000 a second per peer.",
    },
    Case {
        name: "Fast Open flood with a valid cookie",
        play: fast_open_flood,
        most_cost: 16.0,
        most_pinned: 3 * MIB,
        most_sent_back: 1.0,
        beside_linux: true,
        bounded_by: "The listener's Fast Open queue (256 here). Further SYNs count as plain SYNs.",
    },
    Case {
        name: "silent connections",
        play: silent_connections,
        most_cost: 25.0,
        most_pinned: 6 * MIB,
        most_sent_back: 1.5,
        beside_linux: true,
        bounded_by: "The accept queue (4,096 here). An idle connection has no buffer, no queue and no timer.",
    },
    Case {
        name: "replay guard filled by a client with a cookie",
        play: replay_guard,
        most_cost: 20.0,
        most_pinned: 8 * MIB,
        most_sent_back: 0.2,
        beside_linux: true,
        bounded_by: "`firstbyte.replay_guard_entries` (8 bytes each). A full guard rejects Fast Open, not the connection.",
    },
    Case {
        name: "path cache filled by strangers",
        play: path_cache,
        most_cost: 25.0,
        most_pinned: 4 * MIB,
        most_sent_back: 1.5,
        beside_linux: true,
        bounded_by: "`firstbyte.path_cache_entries` (4,096). The least recently used entry is evicted.",
    },
    Case {
        name: "hash tables attacked with chosen addresses",
        play: chosen_tuples,
        most_cost: 12.0,
        most_pinned: 2 * MIB,
        most_sent_back: 1.5,
        beside_linux: true,
        bounded_by: "Hashes with a secret key: chosen addresses spread like random ones.",
    },
];

fn syns(numbers: core::ops::Range<u32>) -> Vec<Bytes> {
    numbers.map(|number| client(number).syn(usual(1460))).collect()
}

fn queue_fills(arena: &mut Arena) -> Result<(), Failure> {
    arena.attack(&syns(0..BACKLOG)).map(drop)
}

fn queue_is_full(arena: &mut Arena) -> Result<(), Failure> {
    arena.prepare(&syns(0..BACKLOG + 1000))?;
    arena.attack(&syns(10_000..10_000 + FLOOD)).map(drop)
}

fn forged_cookies(arena: &mut Arena) -> Result<(), Failure> {
    arena.prepare(&syns(0..BACKLOG + 1000))?;
    let forged: Vec<Bytes> = (10_000..10_000 + FLOOD)
        .map(|number| {
            let mut forger = client(number);
            forger.ack = SeqNum(number.wrapping_mul(0x85eb_ca6b));
            forger.acknowledge()
        })
        .collect();
    arena.attack(&forged).map(drop)
}

/// A cookie of this peer's.
fn cookie(arena: &mut Arena, peer: &mut Client) -> Result<Cookie, Failure> {
    let ask = FastOpenOption { kind: FastOpenKind::Standard, cookie: None };
    let answers = arena.prepare(&[peer.syn(TcpOptions { fast_open: Some(ask), ..usual(1460) })])?;
    let option = peer.take_syn_ack(&answers)?.options.fast_open;
    option.and_then(|option| option.cookie).ok_or_else(|| "no cookie came".into())
}

/// Its SYN with data and the cookie, from another port for each number.
fn knock(peer: &Client, cookie: Cookie, number: u32) -> (Client, Bytes) {
    let mut knocks = Client { port: 2000 + (number % 60_000) as u16, ..peer.clone() };
    knocks.seq = SeqNum(number.wrapping_mul(0x9e37_79b9));
    let show = FastOpenOption { kind: FastOpenKind::Standard, cookie: Some(cookie) };
    let options =
        TcpOptions { fast_open: Some(show), sack_permitted: true, mss: Some(1460), ..TcpOptions::default() };
    let header = TcpHeader { options, ack: SeqNum(0), ..knocks.header(Flags::SYN) };
    let packet = knocks.segment(&header, &[b'x'; KNOCK_LEN as usize]);
    (knocks, packet)
}

const KNOCK_LEN: u32 = 100;

fn fast_open_flood(arena: &mut Arena) -> Result<(), Failure> {
    let mut peer = client(0);
    let cookie = cookie(arena, &mut peer)?;
    let flood: Vec<Bytes> = (0..FLOOD).map(|number| knock(&peer, cookie, number).1).collect();
    arena.attack(&flood).map(drop)
}

/// Each SYN is taken and reset, which leaves its place in the queue to the next.
fn replay_guard(arena: &mut Arena) -> Result<(), Failure> {
    let mut peer = client(0);
    let cookie = cookie(arena, &mut peer)?;
    let pairs = (0..FLOOD).flat_map(|number| {
        let (mut knocks, syn) = knock(&peer, cookie, number);
        knocks.seq += 1 + KNOCK_LEN;
        [syn, knocks.segment(&knocks.header(Flags::RST), &[])]
    });
    let packets: Vec<Bytes> = pairs.collect();
    arena.attack(&packets).map(drop)
}

fn silent_connections(arena: &mut Arena) -> Result<(), Failure> {
    open_all(arena, 0..BACKLOG)
}

fn open_all(arena: &mut Arena, numbers: core::ops::Range<u32>) -> Result<(), Failure> {
    let mut peers: Vec<Client> = numbers.map(client).collect();
    for some in peers.chunks_mut(64) {
        let syns: Vec<Bytes> = some.iter().map(|peer| peer.syn(usual(1460))).collect();
        let answers = arena.attack(&syns)?;
        for peer in &mut *some {
            peer.take_syn_ack(&answers)?;
        }
        let acks: Vec<Bytes> = some.iter().map(Client::acknowledge).collect();
        arena.attack(&acks)?;
    }
    Ok(())
}

fn path_cache(arena: &mut Arena) -> Result<(), Failure> {
    for first in (0..FLOOD).step_by(640) {
        open_all(arena, first..first + 640)?;
        arena.victim.accept_and_reset_all()?;
        arena.prepare(&[])?;
    }
    Ok(())
}

/// Address and port of all have the same sum and the same difference to others' modulo powers of
/// two.
fn chosen_tuples(arena: &mut Arena) -> Result<(), Failure> {
    let chosen: Vec<Bytes> = (0..BACKLOG)
        .map(|number| {
            let mut peer = client(0);
            peer.from = (u32::from(peer.from) & 0xff00_0000 | number << 8).into();
            peer.port = (number << 4) as u16 | 0x0f;
            peer.syn(usual(1460))
        })
        .collect();
    arena.attack(&chosen).map(drop)
}
