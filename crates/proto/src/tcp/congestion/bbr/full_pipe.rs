//! Is the pipe full? Three round trips in which an attempt to send faster did not raise the delivery rate by a quarter say so.

use crate::tcp::send::delivery::RateSample;

/// Growth that is growth, as a ratio.
const GROWTH: (u64, u64) = (5, 4);
const ROUNDS: u8 = 3;

#[derive(Clone, Debug, Default)]
pub(super) struct FullPipe {
    /// It was full once.
    pub(super) reached: bool,
    /// It is full, since this was last looked for.
    pub(super) now: bool,
    /// Rate to compare with, and rounds without growth since.
    baseline: u64,
    count: u8,
}

impl FullPipe {
    /// Looks for it anew, beginning from this rate.
    pub(super) fn reset(&mut self, baseline: u64) {
        (self.now, self.baseline, self.count) = (false, baseline, 0);
    }

    /// CheckFullBWReached. Rounds limited by the application say nothing.
    pub(super) fn check(&mut self, round_start: bool, sample: &RateSample) {
        let Some(rate) = sample.rate() else { return };
        if self.now || !round_start || rate.app_limited {
            return;
        }
        let rate = rate.per_second();
        if rate.saturating_mul(GROWTH.1) >= self.baseline.saturating_mul(GROWTH.0) {
            return self.reset(rate);
        }
        self.count += 1;
        self.now = self.count >= ROUNDS;
        self.reached |= self.now;
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::rate_sample;
    use super::*;
    use alloc::vec::Vec;

    /// Delivered bytes per 100 ms, in rounds of their own; the state after each.
    fn rounds(delivered: &[u32]) -> Vec<bool> {
        let mut pipe = FullPipe::default();
        let check = |bytes: &u32| {
            pipe.check(true, &rate_sample(*bytes, 100_000));
            pipe.now
        };
        delivered.iter().map(check).collect()
    }

    #[test]
    fn three_rounds_below_a_quarter_more_mean_full() {
        assert_eq!(rounds(&[1000, 1249, 1249, 1249]), [false, false, false, true]);
        assert_eq!(rounds(&[1000, 1249, 1250, 1500, 1500, 1500]), [false, false, false, false, false, true]);
    }

    #[test]
    fn rounds_of_the_application_do_not_count() {
        let mut pipe = FullPipe::default();
        pipe.check(true, &rate_sample(1000, 100_000));
        for _ in 0..9 {
            pipe.check(true, &RateSample { app_limited: true, ..rate_sample(900, 100_000) });
            pipe.check(false, &rate_sample(900, 100_000));
        }
        assert_eq!((pipe.now, pipe.count), (false, 0));
    }
}
