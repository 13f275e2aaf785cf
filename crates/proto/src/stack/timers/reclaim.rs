//! Resets the connections that make the least progress while memory is scarce, to make room for new
//! ones.
//!
//! A peer that reads slowly, or never fills a hole, holds the memory of its connection
//! indefinitely. A limit per connection does not help against a peer with thousands of connections.
//! While memory is scarce ([`Memory::is_scarce`](crate::memory::Memory::is_scarce)), laps therefore
//! go over all connections, [`STEP`] in one call. A connection makes progress when as many bytes
//! were acknowledged or read as it holds.
//!
//! The score of a connection is the time since its last progress, times the memory it holds, times
//! the memory its network holds. An address with thousands of slow connections loses them long
//! before another address loses its only one. At the end of a lap, the connections with the highest
//! scores are reset, as few as needed. Each is counted in `TCPAbortOnMemory`.

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
/// Number of counters for networks. Networks that share a counter do so for one lap only.
const NETWORKS: usize = 1024;
/// Tolerated time without progress when memory begins to be scarce.
const PATIENCE: Duration = Duration::from_secs(10);
/// Tolerated time without progress when memory is exhausted: the RTO of a new connection (RFC 6298
/// §2.1).
const PATIENCE_LEAST: Duration = Duration::from_secs(1);
/// Tolerated time when memory is exhausted, for a network that has [`MANY`] connections and holds
/// one part in [`PART`].
const PATIENCE_WITH_MANY: Duration = Duration::from_millis(100);
const MANY: u64 = 8;
const PART: u64 = 8;
/// Pause after a lap that found no connection to reset.
const PAUSE: Duration = Duration::from_millis(250);

/// The laps over all connections; empty while memory is not scarce.
#[derive(Default)]
pub(in crate::stack) struct Reclaim {
    laps: u64,
    cursor: u32,
    resumes_at: Instant,
    /// The last progress of each connection, by the connection's index.
    marks: Vec<Mark>,
    /// Totals by network: of the lap before, and of this lap so far.
    totals: [Vec<Total>; 2],
    /// The highest scores of this lap, in ascending order.
    worst: Vec<(u128, ConnId)>,
}

/// Memory and connections of one network.
#[derive(Clone, Copy, Default)]
struct Total {
    bytes: u64,
    connections: u64,
}

/// The last progress of a connection.
#[derive(Clone, Copy, Default)]
struct Mark {
    generation: u32,
    at: Instant,
    turned_over: u64,
}

/// The state of a connection that its score depends on.
struct Held {
    id: ConnId,
    bytes: u32,
    turned_over: u64,
    opened_at: Instant,
    peer: Addr,
}

impl Reclaim {
    /// Returns whether a lap has begun since memory became scarce.
    pub(in crate::stack) fn is_running(&self) -> bool {
        !self.marks.is_empty()
    }

    /// Returns when the next step is due.
    pub(in crate::stack) fn resumes_at(&self) -> Instant {
        self.resumes_at
    }

    /// Scores a connection, and keeps the score if it is one of the highest.
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

    /// Updates the last progress of a connection, and returns it.
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

    /// Ends the lap, and returns its highest scores in ascending order.
    fn end_lap(&mut self) -> Vec<(u128, ConnId)> {
        self.totals.swap(0, 1);
        self.totals[1].clear();
        self.totals[1].resize(NETWORKS, Total::default());
        self.laps += 1;
        self.cursor = 0;
        core::mem::take(&mut self.worst)
    }
}

/// Maps a network to its counter in one lap. Networks that share a counter do not share the next
/// one.
fn network_place(key: &HashKey, lap: u64, peer: Addr) -> usize {
    let [high, low] = network(peer);
    key.mix(key.mix(high, low), lap) as usize % NETWORKS
}

impl Stack {
    /// Returns whether memory is scarce, or was scarce when the last lap began.
    pub(in crate::stack) fn wants_reclaim(&self) -> bool {
        self.shared.memory.is_scarce() || self.reclaim.is_running()
    }

    /// Continues the lap, and resets the worst connections at its end. A reset is settled like any
    /// other change.
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

    /// Ends a lap, and resets its worst connections while memory stays scarce.
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
        let read = self.rcv.bytes_read();
        Held {
            id,
            bytes: self.charged,
            turned_over: self.bytes_acked + read,
            opened_at: self.moments.opened_at,
            peer: self.tuple.peer,
        }
    }

    /// Resets the connection to free its memory: data that the peer has not acknowledged, and data
    /// that the application has not read.
    fn give_way(&mut self, cx: &mut Context) {
        cx.counters.abort_on_memory += 1;
        self.reset(&mut cx.counters, CloseReason::NoMemory);
        self.rcv.discard();
        self.packets_were_read(cx);
        self.rcv.ack_owed = AckOwed::No;
    }
}
