//! Rates, and the clock that says when the next packet may leave (Linux's `cake_set_rate` and `cake_advance_shaper`).
use crate::Nanos;

/// Nanoseconds per byte as a fraction of 2^`shift`, with a numerator of 34 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(super) struct ByteTime {
    nanos: u64,
    shift: u32,
}

const NANOS_PER_SECOND: u64 = 1_000_000_000;
/// Below this rate, bytes per second, everything would stand still for too long.
const RATE_MIN: u64 = 64;
const FRACTION_BITS: u32 = 34;

impl ByteTime {
    /// Of a rate in bytes per second; 0 is no limit: no time at all.
    pub(super) fn of_rate(rate: u64) -> ByteTime {
        if rate == 0 {
            return ByteTime::default();
        }
        let mut nanos = (NANOS_PER_SECOND << FRACTION_BITS) / rate.max(RATE_MIN);
        let mut shift = FRACTION_BITS;
        while nanos >> FRACTION_BITS != 0 {
            nanos >>= 1;
            shift -= 1;
        }
        ByteTime { nanos, shift }
    }

    pub(super) fn is_unlimited(self) -> bool {
        self.nanos == 0
    }

    /// How long `len` bytes take.
    pub(super) fn of(self, len: u32) -> Nanos {
        // At most 32 and 34 bits: the quotient fits.
        ((u128::from(len) * u128::from(self.nanos)) >> self.shift) as Nanos
    }
}

/// The shaper of all tins together: a virtual clock instead of a bucket, so that nothing is saved up while nothing waits.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Shaper {
    pub(super) byte_time: ByteTime,
    time_next_packet: Nanos,
    /// One and a half times as slow, but it does not count what was dropped: lets something pass where drops count as sent.
    failsafe_next_packet: Nanos,
}

impl Shaper {
    /// Until when nothing may leave.
    pub(super) fn held_until(&self, now: Nanos) -> Option<Nanos> {
        let next = self.time_next_packet.min(self.failsafe_next_packet);
        (next > now).then_some(next)
    }

    /// A packet comes to empty queues: what was not sent until now is no credit.
    pub(super) fn wake(&mut self, now: Nanos) {
        if self.time_next_packet < now {
            self.time_next_packet = now;
            self.failsafe_next_packet = now;
        }
    }

    /// Counts a packet of `len` bytes on the wire, which leaves or, on the far side of the bottleneck, was dropped.
    pub(super) fn advance(&mut self, len: u32, is_dropped: bool) {
        let span = self.byte_time.of(len);
        self.time_next_packet = self.time_next_packet.saturating_add(span);
        if !is_dropped {
            let failsafe = span.saturating_add(span / 2);
            self.failsafe_next_packet = self.failsafe_next_packet.saturating_add(failsafe);
        }
    }
}

/// The clock of one tin: is it below its share?
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TinClock {
    pub(super) byte_time: ByteTime,
    time_next_packet: Nanos,
}

impl TinClock {
    /// A packet comes to an empty tin.
    pub(super) fn wake(&mut self, now: Nanos) {
        self.time_next_packet = self.time_next_packet.max(now);
    }

    pub(super) fn advance(&mut self, now: Nanos, len: u32) {
        let span = self.byte_time.of(len);
        self.time_next_packet = if self.time_next_packet < now {
            self.time_next_packet.saturating_add(span)
        } else {
            // It has sent more than its share; that is not held against it for longer than this packet takes.
            self.time_next_packet.max(now.saturating_add(span))
        };
    }

    /// Nanoseconds from now to its next packet; negative or 0: it is below its share.
    pub(super) fn until_next(&self, now: Nanos) -> i128 {
        i128::from(self.time_next_packet) - i128::from(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_at_20_mbit_takes_400_ns() {
        let byte_time = ByteTime::of_rate(2_500_000);
        assert_eq!((byte_time.of(1), byte_time.of(1514)), (400, 605_600));
        assert!(ByteTime::of_rate(0).is_unlimited() && !byte_time.is_unlimited());
    }

    #[test]
    fn no_rate_is_slower_than_64_bytes_a_second() {
        assert_eq!(ByteTime::of_rate(1).of(64), NANOS_PER_SECOND);
        assert_eq!(ByteTime::of_rate(u64::MAX).of(1500), 0);
    }

    #[test]
    fn what_was_dropped_does_not_hold_packets_back_for_ever() {
        let mut shaper = Shaper { byte_time: ByteTime::of_rate(1_000_000), ..Shaper::default() };
        shaper.wake(1000);
        assert_eq!(shaper.held_until(1000), None);
        shaper.advance(1000, true);
        assert_eq!(shaper.held_until(1000), None, "the failsafe clock has not moved");
        shaper.advance(1000, false);
        assert_eq!(shaper.held_until(1000), Some(1_501_000), "1.5 ms, though 2 ms were counted");
    }
}
