//! Fair shares of everything that all peers use: places of connections, an accept queue, memory.
//! The last quarter of the places, and scarce memory, are for networks that hold little
//! (`firstbyte.fair_shares`).
//!
//! This needs no counters. When little is left, each SYN draws a random sample of connections, and
//! the share of its network in the sample decides. Fast Open queues do count: see
//! [`PendingQueue`](crate::fast_open::PendingQueue).

use super::listener::Listener;
use crate::rate_limit::network;
use crate::stack::Stack;
use crate::tcp::connection::Connection;
use crate::tuple::FourTuple;
use crate::{DropReason, Instant};

/// Fewest places of which the last quarter is reserved.
pub(crate) const SHARED_FROM: usize = 64;
/// Connections drawn for one sample.
const LOOKS: usize = 64;
/// A network holds much memory if it holds at least one part in this many.
const PART: u64 = 8;

/// Returns whether only the last quarter of `most` places, or less, is left.
pub(crate) fn is_last_quarter(taken: usize, most: usize) -> bool {
    most >= SHARED_FROM && taken >= most - most / 4
}

impl Stack {
    /// Returns why a peer that has completed its handshake, or is about to, gets no place.
    #[inline]
    pub(in crate::stack) fn lacks_place(
        &self,
        now: Instant,
        listener: &Listener,
        tuple: &FourTuple,
    ) -> Option<DropReason> {
        match () {
            () if listener.accept_queue_full() => Some(DropReason::AcceptQueueFull),
            () if self.too_many_connections() => Some(DropReason::TooManyConnections),
            () if self.few_places_left(listener) => self.takes_places_of_others(now, listener, tuple),
            () => None,
        }
    }

    /// Returns whether so few places are left that not every peer may get one.
    pub(in crate::stack) fn few_places_left(&self, listener: &Listener) -> bool {
        let most = self.shared.config.max_connections as usize;
        is_last_quarter(listener.accept_queue.len(), listener.backlog as usize)
            || is_last_quarter(self.connections.len(), most)
    }

    #[cold]
    fn takes_places_of_others(
        &self,
        now: Instant,
        listener: &Listener,
        tuple: &FourTuple,
    ) -> Option<DropReason> {
        let waiting = &listener.accept_queue;
        if !self.shared.config.fair_shares {
            return None;
        }
        if is_last_quarter(waiting.len(), listener.backlog as usize) {
            let index = |drawn: u64| waiting.get(drawn as usize % waiting.len().max(1)).map(|id| id.index);
            let left = u64::from(listener.backlog) + 1 - waiting.len() as u64;
            if Stack::has_half_of(left, waiting.len(), self.look(now, tuple, index, |_| 1)) {
                return Some(DropReason::AcceptQueueFull);
            }
        }
        let (taken, most) = (self.connections.len(), self.shared.config.max_connections);
        let crowds = is_last_quarter(taken, most as usize) && {
            let looked = self.look(now, tuple, |drawn| Some(self.any_index(drawn)), |_| 1);
            Stack::has_half_of(u64::from(most) - taken as u64, taken, looked)
        };
        crowds.then_some(DropReason::TooManyConnections)
    }

    /// Returns whether the SYN's network holds much of the memory. Asked only while memory is
    /// scarce.
    #[cold]
    pub(in crate::stack) fn takes_memory_of_others(&self, now: Instant, tuple: &FourTuple) -> bool {
        let bytes = |connection: &Connection| connection.charged.into();
        let (all, same) = self.look(now, tuple, |drawn| Some(self.any_index(drawn)), bytes);
        same > 0 && same * PART >= all
    }

    fn any_index(&self, drawn: u64) -> u32 {
        (drawn % u64::from(self.connections.reach().max(1))) as u32
    }

    /// Returns whether a network holds at least half as many of the `taken` places as are `left`.
    /// Each further network gets fewer places than the one before, so several networks cannot use
    /// up the places. `all` and `same` come from a sample.
    fn has_half_of(left: u64, taken: usize, (all, same): (u64, u64)) -> bool {
        same > 0 && 2 * same * taken as u64 >= left * all
    }

    /// Returns the total weight of a sample of connections, and the weight of those in the tuple's
    /// network. `index` maps random numbers to connections.
    fn look(
        &self,
        now: Instant,
        tuple: &FourTuple,
        index: impl Fn(u64) -> Option<u32>,
        weight: impl Fn(&Connection) -> u64,
    ) -> (u64, u64) {
        let own = network(tuple.peer);
        let mut state = self.hash_key.mix(now.as_nanos(), tuple.hash(&self.hash_key));
        // A linear congruential generator, of which the upper bits are good (Knuth's MMIX): whoever tries again and again must not meet
        // draws that look at few places.
        let draws = core::iter::repeat_with(|| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            state >> 32
        });
        let drawn = draws.take(LOOKS).filter_map(|drawn| self.connections.get(index(drawn)?));
        drawn.fold((0, 0), |(all, same), connection| {
            let weight = weight(connection);
            (all + weight, same + if network(connection.tuple.peer) == own { weight } else { 0 })
        })
    }
}
