//! Memory is scarce: the connections that make the least progress are reset, so that new ones find room.
//!
//! A peer that reads slowly, or never fills a hole, keeps the memory of its connection for as long as it likes. No limit for one connection
//! helps against a peer with thousands of them. So once memory is scarce ([`Memory::is_scarce`](crate::memory::Memory::is_scarce)), laps go
//! over all connections, [`STEP`] in one call. A connection has made progress when as many bytes were acknowledged or read as it holds. The
//! measure of who gives way is the time since then, times what the connection holds, times what its network holds in all: an address with
//! thousands of slow connections loses them long before another one loses its only one. At the end of a lap the worst are reset, as few as
//! needed, and counted as `TCPAbortOnMemory`.

use crate::keyed_hash::HashKey;
use crate::memory::{FIRST_WINDOW, Memory};
use crate::rate_limit::network;
use crate::stack::Stack;
use crate::tcp::connection::{Connection, Context};
use crate::tcp::recv::receiver::AckOwed;
use crate::{CloseReason, ConnId, Instant};
use alloc::vec::Vec;
use core::time::Duration;
use wire::Addr;

/// Connections looked at in one call.
const STEP: usize = 256;
/// Most connections reset at the end of one lap.
const WORST: usize = 64;
/// Networks are told apart by so many counts; those that share one do so for a lap.
const NETWORKS: usize = 1024;
/// Without progress for less than this a connection is left alone, when memory begins to be scarce.
const PATIENCE: Duration = Duration::from_secs(10);
/// The least that becomes of it when memory is exhausted: the RTO of a new connection (RFC 6298 §2.1).
const PATIENCE_LEAST: Duration = Duration::from_secs(1);
/// The least with a network that holds one part in [`PART`] with so many connections.
const PATIENCE_WITH_MANY: Duration = Duration::from_millis(100);
const MANY: u64 = 8;
const PART: u64 = 8;
/// After a lap that found nobody to reset the next one begins so much later.
const PAUSE: Duration = Duration::from_millis(250);

/// The laps over all connections; empty while memory is not scarce.
#[derive(Default)]
pub(in crate::stack) struct Reclaim {
    laps: u64,
    cursor: u32,
    resumes_at: Instant,
    /// By the index of the connection.
    marks: Vec<Mark>,
    /// By network: found in the lap before, and in this one until now.
    totals: [Vec<Total>; 2],
    /// In this lap, the worst last.
    worst: Vec<(u128, ConnId)>,
}

/// What a network has.
#[derive(Clone, Copy, Default)]
struct Total {
    bytes: u64,
    connections: u64,
}

/// When a connection last had made progress.
#[derive(Clone, Copy, Default)]
struct Mark {
    generation: u32,
    at: Instant,
    turned_over: u64,
}

/// A connection that is looked at.
struct Held {
    id: ConnId,
    bytes: u32,
    turned_over: u64,
    opened_at: Instant,
    peer: Addr,
}

impl Reclaim {
    /// It has looked at some connections since memory became scarce.
    pub(in crate::stack) fn is_running(&self) -> bool {
        !self.marks.is_empty()
    }

    /// When it wants to go on.
    pub(in crate::stack) fn resumes_at(&self) -> Instant {
        self.resumes_at
    }

    /// Notes a connection, and whether it is one of the worst.
    fn look(&mut self, now: Instant, key: &HashKey, memory: &Memory, held: &Held) {
        let place = network_place(key, self.laps, held.peer);
        let total = self.totals[0].get(place).copied().unwrap_or_default();
        if let Some(count) = self.totals[1].get_mut(network_place(key, self.laps + 1, held.peer)) {
            count.bytes += u64::from(held.bytes);
            count.connections += 1;
        }
        let stalled = now.since(self.mark(now, held).at);
        let has_much = total.connections >= MANY && total.bytes * PART >= memory.held();
        let least = if has_much { PATIENCE_WITH_MANY } else { PATIENCE_LEAST };
        let patience = least + Duration::from_nanos(memory.part_left((PATIENCE - least).as_nanos() as u64));
        let spared = memory.part_left(FIRST_WINDOW.into());
        if self.laps > 0 && stalled >= patience && u64::from(held.bytes) > spared {
            self.rank(u128::from(total.bytes) * u128::from(held.bytes) * stalled.as_millis(), held.id);
        }
    }

    /// The mark of a connection, brought up to now.
    fn mark(&mut self, now: Instant, held: &Held) -> Mark {
        let index = held.id.index as usize;
        if self.marks.len() <= index {
            self.marks.resize(index + 1, Mark::default());
        }
        let Some(mark) = self.marks.get_mut(index) else { return Mark::default() };
        let begun = Mark { generation: held.id.generation, at: held.opened_at, turned_over: 0 };
        let before =
            if mark.at != Instant::ZERO && mark.generation == begun.generation { *mark } else { begun };
        let progress = held.turned_over.saturating_sub(before.turned_over) >= u64::from(held.bytes);
        *mark = if progress { Mark { at: now, turned_over: held.turned_over, ..before } } else { before };
        *mark
    }

    fn rank(&mut self, score: u128, id: ConnId) {
        if self.worst.len() == WORST && self.worst[0].0 >= score {
            return;
        }
        let place = self.worst.partition_point(|(other, _)| *other < score);
        self.worst.insert(place, (score, id));
        if self.worst.len() > WORST {
            self.worst.remove(0);
        }
    }

    /// The worst of the lap that ends, the worst last.
    fn end_lap(&mut self) -> Vec<(u128, ConnId)> {
        self.totals.swap(0, 1);
        self.totals[1].clear();
        self.totals[1].resize(NETWORKS, Total::default());
        self.laps += 1;
        self.cursor = 0;
        core::mem::take(&mut self.worst)
    }
}

/// Another one in each lap: networks that share a place do not share the next.
fn network_place(key: &HashKey, lap: u64, peer: Addr) -> usize {
    let [high, low] = network(peer);
    key.mix(key.mix(high, low), lap) as usize % NETWORKS
}

impl Stack {
    /// Somebody may have to give way, or memory is not scarce any more.
    #[inline(always)]
    pub(in crate::stack) fn wants_reclaim(&self) -> bool {
        self.shared.memory.is_scarce() || self.reclaim.is_running()
    }

    /// Goes on with the lap, and ends it. What follows a reset is settled as after any change.
    #[inline(never)]
    pub(in crate::stack) fn reclaim(&mut self, now: Instant) {
        if !self.shared.memory.is_scarce() {
            self.reclaim = Reclaim::default();
            return;
        }
        if now < self.reclaim.resumes_at {
            return;
        }
        let begin = self.reclaim.cursor;
        let end = begin.saturating_add(STEP as u32).min(self.connections.reach());
        for index in begin..end {
            let Some((generation, connection)) = self.connections.entry_mut(index) else { continue };
            let held = connection.held(ConnId { index, generation });
            self.reclaim.look(now, &self.hash_key, &self.shared.memory, &held);
        }
        self.reclaim.cursor = end;
        if end == self.connections.reach() {
            self.reset_worst(now);
        }
    }

    /// A lap has ended.
    fn reset_worst(&mut self, now: Instant) {
        let mut worst = self.reclaim.end_lap();
        // The first lap only finds out what each network has.
        let mut goes_on = self.reclaim.laps == 1;
        // Who is alone has nobody to give way to.
        while self.shared.memory.is_scarce()
            && self.connections.len() > 1
            && let Some((_, id)) = worst.pop()
        {
            if let Some(connection) = self.connections.find_mut(id.index, id.generation) {
                connection.give_way(self.shared.context(now));
                self.settle(now, id.index);
                goes_on = true;
            }
        }
        self.reclaim.resumes_at = if goes_on { now } else { now + PAUSE };
    }
}

impl Connection {
    fn held(&self, id: ConnId) -> Held {
        let read = self.rcv.bytes_received.saturating_sub(self.rcv.buffer.len() as u64);
        Held {
            id,
            bytes: self.charged,
            turned_over: self.bytes_acked + read,
            opened_at: self.moments.opened_at,
            peer: self.tuple.peer,
        }
    }

    /// Resets it to free its memory: what the peer has not acknowledged, and what the application has not read.
    fn give_way(&mut self, cx: &mut Context) {
        cx.counters.abort_on_memory += 1;
        self.reset(&mut cx.counters, CloseReason::NoMemory);
        self.rcv.discard();
        self.packets_were_read(cx);
        self.rcv.ack_owed = AckOwed::No;
    }
}
