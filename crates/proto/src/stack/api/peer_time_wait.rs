//! Tuples that are in TIME-WAIT at the peer, as far as we know. A SYN that meets TIME-WAIT may be answered by a challenge ACK, and costs a round
//! trip more (RFC 9293 §3.5.1). The choice of a port therefore takes another one if one is near.
//!
//! A hint, not a table of connections: it has a fixed size, and later tuples replace earlier ones. A wrong answer costs a preference.

use crate::Instant;
use crate::time::nanos;
use alloc::boxed::Box;
use core::time::Duration;

/// Tuples remembered at most: eight bytes each.
const PLACES: usize = 1 << 12;
/// Linux's `TCP_TIMEWAIT_LEN`. Other systems keep TIME-WAIT for 30 s to four minutes.
const LASTS: Duration = Duration::from_secs(60);
/// Free tuples that a choice passes over before it takes one of these.
pub(super) const PASSED_OVER: u32 = 32;

/// See the module.
#[derive(Default)]
pub(in crate::stack) struct PeerTimeWait {
    /// By the hash's low bits: its high bits, and the second at which TIME-WAIT ends. Allocated with the first.
    places: Box<[(u32, u32)]>,
}

impl PeerTimeWait {
    /// The tuple with this hash is in TIME-WAIT at the peer from now on.
    pub(in crate::stack) fn note(&mut self, now: Instant, hash: u64) {
        if self.places.is_empty() {
            self.places = vec![(0, 0); PLACES].into_boxed_slice();
        }
        self.places[place(hash)] = (tag(hash), second(now + LASTS));
    }

    /// True if the tuple with this hash presumably is in TIME-WAIT at the peer.
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
