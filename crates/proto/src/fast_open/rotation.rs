//! New cookie keys by the clock (`firstbyte.fast_open_key_rotation`).
//!
//! Looked at when a key is needed, so that a stack at rest has no timer for it. Every interval the ring gets a new primary, and the one
//! before becomes the backup: a cookie is good for one interval at least. The keys follow from the stack's seed.

use super::{Key, KeyRing};
use crate::Instant;
use crate::rng::Rng;
use core::time::Duration;

/// What makes keys, and since when the newest is in use.
pub(crate) struct Rotation {
    rng: Rng,
    since: Option<Instant>,
}

impl Rotation {
    pub(crate) fn new(rng: Rng) -> Rotation {
        Rotation { rng, since: None }
    }

    /// The ring was set: its interval begins when it is next needed.
    pub(crate) fn restart(&mut self) {
        self.since = None;
    }

    /// Brings `keys` up to `now`; returns how many were made. After two intervals none of before is left, however many have passed.
    #[inline]
    pub(crate) fn bring_up(&mut self, now: Instant, every: Duration, keys: &mut KeyRing) -> u64 {
        if every.is_zero() {
            self.since = None;
            return 0;
        }
        let since = *self.since.get_or_insert(now);
        let passed = now.since(since).as_nanos() / every.as_nanos();
        if passed == 0 {
            return 0;
        }
        let made = passed.min(2);
        for _ in 0..made {
            keys.rotate(Key::from_bytes(self.rng.next_bytes16()));
        }
        // At the border that has passed, whenever it was noticed. It lies before `now`, which is a `u64` of nanoseconds.
        self.since = Some(since + Duration::from_nanos((passed * every.as_nanos()) as u64));
        made as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_change_at_borders_and_not_between() {
        let mut rotation = Rotation::new(Rng::new([1; 32]));
        let first = Key::from_bytes([9; 16]);
        let mut keys = KeyRing::new(first);
        let every = Duration::from_secs(10);
        let mut at = |secs, keys: &mut KeyRing| {
            rotation.bring_up(Instant::ZERO + Duration::from_secs(secs), every, keys)
        };
        // The first look begins the first interval.
        assert_eq!([100, 109].map(|secs| at(secs, &mut keys)), [0, 0]);
        assert_eq!(keys.primary(), first);
        assert_eq!([115, 119].map(|secs| at(secs, &mut keys)), [1, 0]);
        let second = keys.primary();
        assert_eq!(keys.backup(), Some(first));
        // Borders are at 110, 120 …, though the first was noticed at 115.
        assert_eq!(at(120, &mut keys), 1);
        assert_eq!(keys.backup(), Some(second));
        let third = keys.primary();
        assert_eq!(at(1000, &mut keys), 2, "two make all of before worthless");
        assert!(keys.primary() != third && keys.backup() != Some(third));
        assert_eq!([1009, 1010].map(|secs| at(secs, &mut keys)), [0, 1]);
    }

    #[test]
    fn without_an_interval_keys_stay_and_a_set_ring_begins_its_own() {
        let mut rotation = Rotation::new(Rng::new([1; 32]));
        let mut keys = KeyRing::new(Key::from_bytes([9; 16]));
        let at = |secs| Instant::ZERO + Duration::from_secs(secs);
        assert_eq!(rotation.bring_up(at(1000), Duration::ZERO, &mut keys), 0);
        let every = Duration::from_secs(10);
        assert_eq!(rotation.bring_up(at(2000), every, &mut keys), 0);
        rotation.restart();
        assert_eq!(rotation.bring_up(at(2011), every, &mut keys), 0);
        assert_eq!(rotation.bring_up(at(2021), every, &mut keys), 1);
    }
}
