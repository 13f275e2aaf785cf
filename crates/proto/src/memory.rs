//! Memory of all buffers of a stack, compared with the three levels of `tcp_mem`. Below the first
//! there is no effect. Above the second, buffers stop growing and windows shrink, until the usage
//! is below the first again. Above the third, only data needed to make progress is accepted.
//!
//! With `firstbyte.fair_shares`, a send buffer under pressure gets a fixed fraction of the free
//! memory (dynamic thresholds, as in switches with shared memory: Choudhury and Hahn, 1998). The
//! next connection therefore finds room, however many there are. Two more levels lie between the
//! second and the third:
//!
//! ```text
//!  tcp_mem[1]          half-way            three quarters        tcp_mem[2]
//!  pressure            scarce              exhausted             full
//!  buffers do not      networks with much  nobody gets more      no SYN is
//!  grow                open no more,       than the minimum      accepted
//!                      the worst are reset (stack::timers::reclaim)
//! ```
//!
//! The last quarter is reserved for new connections of networks that use little. Without the
//! setting, exhausted and full both mean above the third level, and memory is never scarce.
//!
//! A connection is charged the real size of its buffers after every change (`stack::settle`).

use crate::{Config, Counters, Instant};

/// `tcp_mem` counts pages of this size, bytes.
const PAGE: u64 = 4096;
/// Divisor of the memory left that gives the share of a send buffer under pressure. With the
/// default sizes the first share is 256 KiB, the size of a new send buffer: 192 MiB are left
/// between pressure and exhaustion.
const SHARE: u64 = 768;
/// The smallest share, bytes. It holds RFC 6928's initial window of ten segments of 1460 bytes.
pub(crate) const FIRST_WINDOW: u32 = 16 * 1024;

/// What is held, and what that means.
#[derive(Debug)]
pub(crate) struct Memory {
    held: u64,
    /// Bytes: all is well below the first, pressure above the second, refusal above the third.
    levels: [u64; 3],
    /// Memory is scarce above this, bytes.
    scarce_above: u64,
    exhausted_above: u64,
    /// Since when there is pressure.
    pressure_since: Option<Instant>,
}

impl Memory {
    pub(crate) fn new(config: &Config) -> Memory {
        let mut memory =
            Memory { held: 0, levels: [0; 3], scarce_above: 0, exhausted_above: 0, pressure_since: None };
        memory.set_levels(config);
        memory
    }

    /// Recomputes the levels after `tcp_mem` or `firstbyte.fair_shares` has changed. The next
    /// charge applies them.
    pub(crate) fn set_levels(&mut self, config: &Config) {
        self.levels = config.tcp_mem.map(|pages| u64::from(pages) * PAGE);
        let [_, pressure, most] = self.levels;
        let half_way = pressure.midpoint(most);
        (self.scarce_above, self.exhausted_above) =
            if config.fair_shares { (half_way, half_way.midpoint(most)) } else { (u64::MAX, most) };
    }

    /// The three levels, bytes.
    pub(crate) fn levels(&self) -> [u64; 3] {
        self.levels
    }

    /// Bytes held.
    pub(crate) fn held(&self) -> u64 {
        self.held
    }

    /// Buffers must not grow.
    pub(crate) fn is_under_pressure(&self) -> bool {
        self.pressure_since.is_some()
    }

    /// Bytes that may come before anything changes; none under pressure.
    pub(crate) fn room(&self) -> u64 {
        if self.is_under_pressure() { 0 } else { self.levels[1].saturating_sub(self.held) }
    }

    /// Nothing more is taken in.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.held > self.exhausted_above
    }

    /// Returns whether there is no memory for another connection.
    pub(crate) fn is_full(&self) -> bool {
        self.held > self.levels[2]
    }

    /// Returns whether connections must be reset to free memory.
    pub(crate) fn is_scarce(&self) -> bool {
        self.held > self.scarce_above
    }

    /// Scales `whole` by the memory left between the scarce and the exhausted level.
    pub(crate) fn part_left(&self, whole: u64) -> u64 {
        let way = self.exhausted_above.saturating_sub(self.scarce_above).max(1);
        (u128::from(whole) * u128::from(self.left()) / u128::from(way)).min(whole.into()) as u64
    }

    fn left(&self) -> u64 {
        self.exhausted_above.saturating_sub(self.held)
    }

    /// Returns the most that a send buffer may hold now; `None` leaves only its own limit. `least`
    /// is its share when memory is exhausted.
    pub(crate) fn send_share(&self, least: u32) -> Option<u32> {
        if self.is_exhausted() {
            return Some(least.max(1));
        }
        if self.scarce_above == u64::MAX || !self.is_under_pressure() {
            return None;
        }
        let share = (self.left() / SHARE).min(u32::MAX.into()) as u32;
        Some(share.max(FIRST_WINDOW).max(least))
    }

    /// A connection that was charged `before` holds `after` bytes.
    #[inline]
    pub(crate) fn charge(&mut self, now: Instant, before: u32, after: u32, counters: &mut Counters) {
        self.held = (self.held + u64::from(after)).saturating_sub(before.into());
        match self.pressure_since {
            None if self.held > self.levels[1] => {
                self.pressure_since = Some(now);
                counters.memory_pressures += 1;
            }
            Some(since) if self.held <= self.levels[0] => {
                self.pressure_since = None;
                counters.memory_pressures_chrono += now.since(since).as_millis() as u64;
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn pressure_begins_above_the_second_level_and_ends_at_the_first() {
        let mut config = Config::default();
        config.set("net.ipv4.tcp_mem", "10 20 30").unwrap();
        let (mut memory, mut counters) = (Memory::new(&config), Counters::default());
        let mut before = 0;
        let mut seen = Vec::new();
        for (ms, pages) in [(0, 20), (1, 21), (2, 31), (3, 11), (14, 10), (15, 20), (16, 25)] {
            let after = pages * 4096;
            memory.charge(Instant::from_nanos(ms * 1_000_000), before, after, &mut counters);
            before = after;
            seen.push((pages, memory.is_under_pressure(), memory.is_exhausted()));
        }
        let expected = [
            (20, false, false),
            (21, true, false),
            (31, true, true),
            (11, true, false),
            (10, false, false),
            (20, false, false),
            (25, true, false),
        ];
        assert_eq!(seen, expected);
        assert_eq!((counters.memory_pressures, counters.memory_pressures_chrono), (2, 13));
        assert_eq!(memory.held(), 25 * 4096);
    }
}
