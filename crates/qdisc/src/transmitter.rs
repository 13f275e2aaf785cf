//! The serialiser: one packet after another at a fixed bit rate, without rounding drift.
use crate::Nanos;
use core::num::NonZeroU64;

const NANOS_PER_SECOND: u128 = 1_000_000_000;

/// Serialises at `rate` bit/s. While it stays busy, packet k of a busy period ends at
/// `start + ⌈bits of packets 1..=k / rate⌉`, so rounding never adds up.
#[derive(Clone, Debug)]
pub(crate) struct Transmitter {
    rate: Option<NonZeroU64>,
    busy_since: Nanos,
    bits: u128,
    finish_at: Nanos,
}

impl Transmitter {
    pub(crate) fn new(rate: Option<NonZeroU64>) -> Transmitter {
        Transmitter { rate, busy_since: 0, bits: 0, finish_at: 0 }
    }

    /// Starts to send `len` bytes at `now`, which is not before the previous packet's end; returns when the last bit is out.
    pub(crate) fn start(&mut self, now: Nanos, len: usize) -> Nanos {
        if now > self.finish_at || self.bits == 0 {
            self.busy_since = now;
            self.bits = 0;
        }
        let Some(rate) = self.rate else {
            self.finish_at = now;
            return now;
        };
        self.bits = self.bits.saturating_add(len as u128 * 8);
        let nanos = self.bits.saturating_mul(NANOS_PER_SECOND).div_ceil(u128::from(rate.get()));
        self.finish_at = self.busy_since.saturating_add(u64::try_from(nanos).unwrap_or(u64::MAX));
        self.finish_at
    }

    /// Changes the rate for the packets that start from now on.
    pub(crate) fn set_rate(&mut self, rate: Option<NonZeroU64>) {
        self.rate = rate;
        self.busy_since = self.finish_at;
        self.bits = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(rate: u64) -> Transmitter {
        Transmitter::new(NonZeroU64::new(rate))
    }

    #[test]
    fn no_rounding_drift_in_a_busy_period() {
        // 8 bit at 3 bit/s: 2.666… s each; three of them take exactly 8 s.
        let mut tx = at(3);
        let first = tx.start(0, 1);
        let second = tx.start(first, 1);
        let third = tx.start(second, 1);
        assert_eq!((first, second, third), (2_666_666_667, 5_333_333_334, 8_000_000_000));
    }

    #[test]
    fn an_idle_gap_starts_a_new_period() {
        let mut tx = at(5_000_000);
        assert_eq!(tx.start(0, 1500), 2_400_000);
        assert_eq!(tx.start(10_000_000, 1500), 12_400_000);
    }

    #[test]
    fn no_rate_takes_no_time_and_extremes_saturate() {
        assert_eq!(at(0).start(5, 1_000_000), 5);
        assert_eq!(at(1).start(5, usize::MAX), u64::MAX);
    }

    #[test]
    fn a_new_rate_holds_from_the_next_packet() {
        let mut tx = at(1_000_000);
        let first = tx.start(0, 125);
        assert_eq!(first, 1_000_000);
        tx.set_rate(NonZeroU64::new(2_000_000));
        assert_eq!(tx.start(first, 125), 1_500_000);
    }
}
