//! Replay guard: a Fast Open SYN that was accepted once is not accepted again (RFC 7413 §6.1).
//!
//! Remembered is a keyed 64-bit hash of (client, server, initial sequence number) of every accepted SYN, for at least
//! one generation. The part of client and server is the secret that the tuple's own initial sequence numbers come from, a SipHash: who opens
//! a connection has it at hand.
//!
//! ```text
//!            current                previous
//!  insert ──► [ ids ] ── rotation ──► [ ids ] ── rotation ──► freed
//! ```
//!
//! A rotation happens no sooner than one generation after the last, so that an entry lives for one to two of them.
//!
//! A connection that was opened by a plain SYN and ends without TIME-WAIT here is remembered too: the plain SYN may have been the
//! fallback of a Fast Open SYN that still wanders.
//!
//! It covers copies the network makes and verbatim replays. It does not cover a restart of this host, another host
//! behind the same address, or the holder of a cookie who writes a new SYN around the old data: those need an
//! application whose requests may be repeated.

use crate::Instant;
use crate::isn::TupleSecret;
use crate::keyed_hash::HashKey;
use crate::time::nanos;
use core::time::Duration;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use wire::SeqNum;

/// What the guard says of a SYN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Guard {
    /// Not seen before; remembered now. Accept.
    Fresh,
    /// Seen before: answer with a SYN-ACK of the ISN only.
    Replay,
    /// No room to remember it: answer as to a replay.
    Full,
}

/// Remembers accepted Fast Open SYNs.
pub(crate) struct ReplayGuard {
    key: HashKey,
    capacity: usize,
    /// Nanoseconds.
    generation: u64,
    current: HashTable<u64>,
    previous: HashTable<u64>,
    current_since: Instant,
}

impl ReplayGuard {
    /// Room for `capacity` SYNs per generation (8 bytes each, allocated as they come); `key` must be secret.
    /// `generation` should exceed the time a packet may wander: 120 s, RFC 9293's MSL.
    pub(crate) fn new(key: (u64, u64), capacity: usize, generation: Duration) -> ReplayGuard {
        ReplayGuard {
            key: HashKey::new(key),
            capacity,
            generation: nanos(generation),
            current: HashTable::new(),
            previous: HashTable::new(),
            current_since: Instant::ZERO,
        }
    }

    /// Checks a SYN whose cookie has been found good, and remembers it when it is fresh.
    pub(crate) fn check_and_insert(&mut self, now: Instant, tuple: TupleSecret, isn: SeqNum) -> Guard {
        self.expire(now);
        let id = self.id(tuple, isn);
        if !self.previous.is_empty() && self.previous.find(id, |&other| other == id).is_some() {
            return Guard::Replay;
        }
        let is_full = self.current.len() >= self.capacity;
        match self.current.entry(id, |&other| other == id, |&id| id) {
            Entry::Occupied(_) => Guard::Replay,
            Entry::Vacant(_) if is_full => Guard::Full,
            Entry::Vacant(place) => {
                place.insert(id);
                Guard::Fresh
            }
        }
    }

    /// Remembers a SYN that opened a connection without Fast Open: it may have been the fallback of a Fast Open SYN with the same
    /// number that is still on its way. Such SYNs take at most half of the room.
    pub(crate) fn remember_plain(&mut self, now: Instant, tuple: TupleSecret, isn: SeqNum) {
        self.expire(now);
        let id = self.id(tuple, isn);
        if self.current.len() < self.capacity / 2 && self.current.find(id, |&other| other == id).is_none() {
            self.current.insert_unique(id, id, |&id| id);
        }
    }

    /// Forgets what is old enough and frees its memory. A check does so too; a caller that sees no SYNs for long may.
    pub(crate) fn expire(&mut self, now: Instant) {
        if now.nanos_since(self.current_since) >= self.generation {
            self.rotate(now);
        }
    }

    #[cold]
    fn rotate(&mut self, now: Instant) {
        let retired = core::mem::take(&mut self.current);
        let was_next = now.nanos_since(self.current_since) / 2 < self.generation;
        self.previous = if was_next { retired } else { HashTable::new() };
        self.current_since = now;
    }

    /// SYNs remembered.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.current.len() + self.previous.len()
    }

    fn id(&self, tuple: TupleSecret, isn: SeqNum) -> u64 {
        self.key.mix(tuple.identity(), isn.0.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isn::IsnGenerator;
    use crate::tuple::FourTuple;
    use core::net::{Ipv4Addr, Ipv6Addr};
    use proptest::prelude::*;
    use wire::Addr;

    const GENERATION: Duration = Duration::from_secs(120);

    fn at(secs: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(secs)
    }

    fn guard(capacity: usize) -> ReplayGuard {
        ReplayGuard::new((1, 2), capacity, GENERATION)
    }

    fn secret((peer, peer_port): (Addr, u16), (local, local_port): (Addr, u16)) -> TupleSecret {
        IsnGenerator::new((3, 4)).of_tuple(&FourTuple { local, local_port, peer, peer_port })
    }

    fn syn(guard: &mut ReplayGuard, now: Instant, isn: u32) -> Guard {
        let client = (Ipv4Addr::new(10, 0, 0, 1).into(), 40_000);
        let server = (Ipv4Addr::new(10, 0, 0, 2).into(), 80);
        guard.check_and_insert(now, secret(client, server), SeqNum(isn))
    }

    #[test]
    fn a_copy_is_known_for_a_generation_at_least() {
        let mut guard = guard(100);
        assert_eq!(syn(&mut guard, at(119), 1), Guard::Fresh);
        assert_eq!(syn(&mut guard, at(119), 1), Guard::Replay);
        assert_eq!(syn(&mut guard, at(239), 1), Guard::Replay);
        assert_eq!(syn(&mut guard, at(240), 2), Guard::Fresh);
        assert_eq!(syn(&mut guard, at(359), 2), Guard::Replay);
        assert_eq!(syn(&mut guard, at(600), 1), Guard::Fresh);
        assert_eq!(guard.len(), 1);
    }

    #[test]
    fn every_part_of_the_name_counts() {
        let mut guard = guard(100);
        let of_v4 = [1, 2].map(|last| Addr::from(Ipv4Addr::new(10, 0, 0, last)));
        let of_v6 = [1, 2].map(|last| Addr::from(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, last)));
        let names = [of_v4, of_v6].map(|[a, b]| {
            [
                ((a, 1), (b, 2), 3),
                ((b, 1), (b, 2), 3),
                ((a, 2), (b, 2), 3),
                ((a, 1), (a, 2), 3),
                ((a, 1), (b, 1), 3),
                ((a, 1), (b, 2), 4),
            ]
        });
        for expected in [Guard::Fresh, Guard::Replay] {
            for (client, server, isn) in names.into_iter().flatten() {
                assert_eq!(guard.check_and_insert(at(1), secret(client, server), SeqNum(isn)), expected);
            }
        }
    }

    #[test]
    fn a_full_guard_admits_nothing_and_forgets_nothing() {
        let mut guard = guard(2);
        assert_eq!(
            [1, 2, 3].map(|isn| syn(&mut guard, at(1), isn)),
            [Guard::Fresh, Guard::Fresh, Guard::Full]
        );
        assert_eq!(syn(&mut guard, at(1), 2), Guard::Replay);
        assert_eq!(syn(&mut guard, at(121), 3), Guard::Fresh);
        assert_eq!(syn(&mut guard, at(121), 1), Guard::Replay);
        assert_eq!(guard.len(), 3);
        guard.expire(at(1000));
        assert_eq!(guard.len(), 0);
    }

    proptest! {
        /// Whatever the times of the calls, no accepted SYN is accepted again within a generation.
        #[test]
        fn no_copy_passes_within_a_generation(steps in proptest::collection::vec((0u64..200, 0u32..8), 1..100)) {
            let mut guard = guard(1000);
            let mut now = Instant::ZERO;
            let mut accepted = alloc::collections::BTreeMap::new();
            for (wait, isn) in steps {
                now = now + Duration::from_secs(wait);
                if syn(&mut guard, now, isn) == Guard::Fresh {
                    let before = accepted.insert(isn, now);
                    prop_assert!(before.is_none_or(|before| now.since(before) > GENERATION));
                }
            }
        }
    }
}
