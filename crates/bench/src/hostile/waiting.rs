//! Cases that wear out patience: closed and tiny windows, tiny segments, timers.

use super::arena::Arena;
use super::case::Case;
use super::client::{Client, client, end_of_text, usual};
use super::victim::Victim;
use crate::meter::Stopwatch;
use crate::report::Failure;
use bytes::Bytes;
use core::net::{Ipv4Addr, SocketAddr};
use core::time::Duration;
use proto::Stack;

const KIB: usize = 1024;
const MIB: usize = 1 << 20;
/// Connections that wait, and for how long.
const WAITING: u32 = 1000;
const HOUR: Duration = Duration::from_secs(3600);
/// Probes that come so soon after each other are one batch.
const TOGETHER: Duration = Duration::from_millis(20);
/// Bytes that each has written.
const WRITTEN: usize = 16 * KIB;

pub(super) const CASES: &[Case] = &[
    Case {
        name: "endless zero windows",
        play: zero_windows,
        most_cost: 40.0,
        most_pinned: 32 * MIB,
        most_sent_back: 2.0,
        beside_linux: false,
        bounded_by: "Probes back off to two minutes. Written data stays buffered until the application's write time-out.",
    },
    Case {
        name: "slow readers, a byte at a time",
        play: slow_readers,
        most_cost: 6.0,
        most_pinned: 4 * MIB,
        most_sent_back: 1.0,
        beside_linux: true,
        bounded_by: "Silly window avoidance (RFC 9293 §3.8.6.2.1): one byte of window is not used before the override time-out.",
    },
    Case {
        name: "an MSS of one byte",
        play: tiny_mss,
        most_cost: 15.0,
        most_pinned: 4 * MIB,
        most_sent_back: 8.0,
        beside_linux: true,
        bounded_by: "`tcp_min_snd_mss` (48) is the minimum payload of a full segment.",
    },
    Case {
        name: "a jump of the clock over 100,000 timers",
        play: clock_jump,
        most_cost: 30.0,
        most_pinned: 128 * MIB,
        most_sent_back: 1.0,
        beside_linux: false,
        bounded_by: "A call handles 256 timers of a kind, earliest first, and reports that more are due.",
    },
];

/// Each has something to send to a peer that answers every probe with a closed window, for an hour.
fn zero_windows(arena: &mut Arena) -> Result<(), Failure> {
    let mut peers = Vec::new();
    for number in 0..WAITING {
        let mut peer = client(number);
        let connection = peer.open(arena, usual(1460))?;
        peer.window = 0;
        arena.prepare(&[peer.acknowledge()])?;
        arena.victim.write(connection, WRITTEN)?;
        peers.push(peer);
    }
    arena.prepare(&[])?;
    let until = arena.ours()?.now + HOUR;
    let mut probes = 0;
    while arena.ours()?.sleep(TOGETHER) && arena.ours()?.now < until {
        let sent = arena.attack_at_once(&[])?;
        probes += sent.len();
        let answers: Vec<Bytes> = sent.iter().filter_map(|probe| answer(&peers, probe)).collect();
        arena.attack_at_once(&answers)?;
    }
    // Every two minutes from the tenth probe on.
    let most = 45 * WAITING as usize;
    if probes > most { Err(format!("{probes} probes in an hour").into()) } else { Ok(()) }
}

/// What the peer says to a probe of it.
fn answer(peers: &[Client], probe: &Bytes) -> Option<Bytes> {
    let (ip, _, _) = wire::parse_tcp_packet(probe).ok()?;
    peers.iter().find(|peer| ip.dst == peer.from.into()).map(Client::acknowledge)
}

fn slow_readers(arena: &mut Arena) -> Result<(), Failure> {
    let mut peer = client(0);
    let connection = peer.open(arena, usual(1460))?;
    peer.window = 64;
    arena.prepare(&[peer.acknowledge()])?;
    arena.victim.write(connection, 1 << 20)?;
    let sent = arena.prepare(&[])?;
    // Without what fills the window there is no reader that could be slow.
    peer.ack = end_of_text(&sent).unwrap_or(peer.ack);
    peer.window = 0;
    let mut acks = vec![peer.acknowledge()];
    for _ in 0..10_000 {
        peer.window ^= 1;
        acks.push(peer.acknowledge());
    }
    arena.attack(&acks).map(drop)
}

/// A megabyte in the smallest segments, all of them acknowledged.
fn tiny_mss(arena: &mut Arena) -> Result<(), Failure> {
    let mut peer = client(0);
    let connection = peer.open(arena, usual(1))?;
    arena.victim.write(connection, MIB)?;
    let mut end = end_of_text(&arena.prepare(&[])?).ok_or("nothing was sent")?;
    let begin = peer.ack;
    while end.since(begin) < 500_000 {
        arena.victim.write(connection, MIB)?;
        let mut acks = Vec::new();
        while peer.ack.before(end) {
            peer.ack = (peer.ack + 2 * 48).earliest(end);
            acks.push(peer.acknowledge());
        }
        let sent = end_of_text(&arena.attack(&acks)?).ok_or("nothing more was sent")?;
        end = end.latest(sent);
    }
    Ok(())
}

/// A hundred thousand SYNs wait for an answer when the clock jumps.
fn clock_jump(arena: &mut Arena) -> Result<(), Failure> {
    const TIMERS: u32 = 100_000;
    let ours = arena.ours()?;
    for number in 0..TIMERS {
        let peer = Ipv4Addr::from(u32::from(Ipv4Addr::new(10, 16, 0, 0)) + number);
        ours.connect(SocketAddr::new(peer.into(), 80))?;
        if number % 64 == 0 {
            ours.take(&[])?;
        }
    }
    ours.take(&[])?;
    ours.now = ours.now + HOUR;
    let mut handled = 0;
    while arena.ours()?.stack.poll_timeout().is_some_and(|at| at <= arena_now(arena)) {
        let ours = arena.ours()?;
        let now = ours.now;
        let before = ours.stack.counters().timeouts;
        let watch = Stopwatch::start();
        ours.stack.handle_timeout(now);
        let nanos = watch.nanos();
        let ended = (ours.stack.counters().timeouts - before) as usize;
        if ended > Stack::EXPIRED_AT_ONCE {
            return Err(format!("one call ended {ended} timers").into());
        }
        handled += ended;
        while ours.stack.poll_transmit(now).is_some() {}
        arena.note(nanos, ended)?;
    }
    if handled == TIMERS as usize { Ok(()) } else { Err(format!("{handled} timers ended").into()) }
}

fn arena_now(arena: &mut Arena) -> proto::Instant {
    arena.ours().map_or(proto::Instant::ZERO, |ours| ours.now)
}
