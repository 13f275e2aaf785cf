//! The serialiser: one packet after another at a fixed bit rate, without rounding drift.
use crate::Nanos;
use core::num::NonZeroU64;

const NANOS_PER_SECOND: u64 = 1_000_000_000;
const BITS_PER_BYTE: u64 = 8;

/// Serialises at `rate` bit/s. While it stays busy, packet k of a busy period ends at
/// `start + ⌈bits of packets 1..=k / rate⌉`, so rounding never adds up.
#[derive(Clone, Debug)]
pub(crate) struct Transmitter {
    rate: Option<NonZeroU64>,
    /// The whole nanosecond before the end of the last packet, or in which it ends.
    whole: Nanos,
    /// What is left to that end, in parts of a nanosecond of which there are `rate`.
    rest: u64,
}

impl Transmitter {
    pub(crate) fn new(rate: Option<NonZeroU64>) -> Transmitter {
        Transmitter { rate, whole: 0, rest: 0 }
    }

    fn finish_at(&self) -> Nanos {
        self.whole.saturating_add(u64::from(self.rest > 0))
    }

    /// Starts to send `len` bytes at `now`, which is not before the previous packet's end; returns when the last bit is out.
    pub(crate) fn start(&mut self, now: Nanos, len: usize) -> Nanos {
        if now > self.finish_at() {
            (self.whole, self.rest) = (now, 0);
        }
        let Some(rate) = self.rate else { return now };
        let (nanos, rest) = time_of(len as u64, self.rest, rate);
        self.whole = self.whole.saturating_add(nanos);
        self.rest = rest;
        self.finish_at()
    }

    /// Changes the rate for the packets that start from now on.
    pub(crate) fn set_rate(&mut self, rate: Option<NonZeroU64>) {
        (self.whole, self.rest) = (self.finish_at(), 0);
        self.rate = rate;
    }
}

/// How long so many bytes take at this rate, behind `rest`: whole nanoseconds, and what is left of the next.
fn time_of(len: u64, rest: u64, rate: NonZeroU64) -> (Nanos, u64) {
    let parts = len.checked_mul(BITS_PER_BYTE * NANOS_PER_SECOND).and_then(|parts| parts.checked_add(rest));
    if let Some(parts) = parts {
        return (parts / rate, parts % rate);
    }
    let parts = u128::from(len) * u128::from(BITS_PER_BYTE * NANOS_PER_SECOND) + u128::from(rest);
    let rate = u128::from(rate.get());
    (u64::try_from(parts / rate).unwrap_or(u64::MAX), (parts % rate) as u64)
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
    fn the_end_of_a_busy_period_is_what_all_its_bits_take() {
        for rate in [7, 9_999_991, 1_000_000_007, u64::MAX] {
            let mut tx = at(rate);
            let (mut bits, mut end) = (0, 0);
            for len in [1, 1500, 65_535, 40, usize::MAX / 1_000_000].into_iter().cycle().take(500) {
                bits += len as u128 * 8;
                end = tx.start(end, len);
                let whole = (bits * 1_000_000_000).div_ceil(u128::from(rate));
                assert_eq!(end, u64::try_from(whole).unwrap_or(u64::MAX), "{bits} bits at {rate} bit/s");
            }
        }
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
