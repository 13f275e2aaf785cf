//! Tuples that are presumably in TIME-WAIT at the peer. The peer may answer a SYN for such a tuple
//! with a challenge ACK, which costs another round trip (RFC 9293 §3.5.1). Port choice therefore
//! prefers another tuple nearby.
//!
//! This is a hint, not a table of connections. It has a fixed size, and later tuples replace
//! earlier ones. A wrong answer only costs a preference.

use crate::Instant;
use crate::time::nanos;
use alloc::boxed::Box;
use core::time::Duration;

/// Most tuples remembered. Each takes eight bytes.
const PLACES: usize = 1 << 12;
/// Duration of TIME-WAIT: Linux's `TCP_TIMEWAIT_LEN`. Other systems use 30 s to four minutes.
const LASTS: Duration = Duration::from_secs(60);
/// Free tuples in TIME-WAIT at the peer that port choice skips before it accepts one.
pub(super) const PASSED_OVER: u32 = 32;

/// Recent tuples in TIME-WAIT at the peer. See the module.
#[derive(Default)]
pub(in crate::stack) struct PeerTimeWait {
    /// Entries, indexed by the low bits of the hash: its high bits, and the second at which
    /// TIME-WAIT ends. Allocated with the first tuple.
    places: Box<[(u32, u32)]>,
}

impl PeerTimeWait {
    /// Records that the tuple with this hash is now in TIME-WAIT at the peer.
    pub(in crate::stack) fn note(&mut self, now: Instant, hash: u64) {
        if self.places.is_empty() {
            self.places = vec![(0, 0); PLACES].into_boxed_slice();
        }
        self.places[place(hash)] = (tag(hash), second(now + LASTS));
    }

    /// Returns whether the tuple with this hash is presumably in TIME-WAIT at the peer.
    pub(super) fn contains(&self, now: Instant, hash: u64) -> bool {
        self.places.get(place(hash)).is_some_and(|(known, until)| *known == tag(hash) && second(now) < *until)
    }
}

fn place(hash: u64) -> usize {
    hash as usize % PLACES
}

fn tag(hash: u64) -> u32 {
    (hash >> 32) as u32
}

fn second(now: Instant) -> u32 {
    (now.as_nanos() / nanos(Duration::from_secs(1))) as u32
}
