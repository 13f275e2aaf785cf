//! Time stamps of pcapng, in the unit of their interface.

use core::time::Duration;

/// The latest time that is read, some 34,000 years after 1970. Later times are replaced by it, so
/// that no sum of times overflows.
pub const TIME_MAX: Duration = Duration::from_secs(1 << 40);

const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// The format of an interface's time stamps.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unit {
    /// `if_tsresol`: the negative exponent of 10, or of 2 if the highest bit is set.
    pub(super) resolution: u8,
    /// `if_tsoffset`: seconds to add.
    pub(super) offset: i64,
}

impl Default for Unit {
    fn default() -> Unit {
        Unit { resolution: 6, offset: 0 }
    }
}

impl Unit {
    /// Converts a time stamp. Also returns whether it is in range, from 1970 to [`TIME_MAX`].
    pub(super) fn time(self, ticks: u64) -> (Duration, bool) {
        let nanos = self.nanos(ticks) + i128::from(self.offset) * i128::from(NANOS_PER_SECOND);
        let latest = TIME_MAX.as_nanos().cast_signed();
        let kept = nanos.clamp(0, latest).cast_unsigned();
        let (seconds, rest) = (kept / u128::from(NANOS_PER_SECOND), kept % u128::from(NANOS_PER_SECOND));
        // Both fit because of the clamp above.
        (Duration::new(seconds as u64, rest as u32), (0..=latest).contains(&nanos))
    }

    /// Returns nanoseconds, or the maximum if there are more.
    fn nanos(self, ticks: u64) -> i128 {
        let ticks = u128::from(ticks);
        let exponent = u32::from(self.resolution & 0x7f);
        let nanos = match (self.resolution & 0x80 != 0, exponent) {
            (true, _) => (ticks * u128::from(NANOS_PER_SECOND)) >> exponent,
            (false, ..=9) => ticks * 10_u128.pow(9 - exponent),
            (false, _) => 10_u128.checked_pow(exponent - 9).map_or(0, |parts| ticks / parts),
        };
        // At most 2^64 seconds.
        nanos.cast_signed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_unit_and_every_stamp_has_a_time() {
        let time = |resolution, offset, ticks| Unit { resolution, offset }.time(ticks);
        assert_eq!(time(6, 0, 1_500_000), (Duration::from_millis(1500), true));
        assert_eq!(time(9, 2, 1), (Duration::new(2, 1), true));
        assert_eq!(time(0x8a, 0, 1536), (Duration::from_millis(1500), true));
        assert_eq!(time(12, 0, 1_500_000_000_000), (Duration::from_millis(1500), true));
        assert_eq!(time(6, -2, 1_500_000), (Duration::ZERO, false));
        for resolution in 0..=u8::MAX {
            for offset in [i64::MIN, -1, 0, 1, i64::MAX] {
                for ticks in [0, 1, u64::MAX] {
                    let (at, _) = time(resolution, offset, ticks);
                    assert!(at <= TIME_MAX, "{resolution} {offset} {ticks}");
                }
            }
        }
    }
}
