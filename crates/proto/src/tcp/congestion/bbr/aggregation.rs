//! How much more is acknowledged at once than the bandwidth explains (BBR.extra_acked): by so much the window must be larger, lest
//! the sender falls silent while acknowledgements are being gathered.

use super::{Bbr, Sample};
use crate::Instant;

/// ExtraAckedFilterLen, rounds.
const FILTER_ROUNDS: usize = 10;

#[derive(Clone, Debug)]
pub(super) struct Aggregation {
    /// What is acknowledged is compared with the bandwidth since then.
    since: Instant,
    acked: u32,
    /// Highest excess of each of the last rounds; `round` is the one being filled.
    rounds: [u32; FILTER_ROUNDS],
    round: u32,
    /// `rounds` is looked at as a whole, not only its last.
    long: bool,
}

impl Default for Aggregation {
    fn default() -> Aggregation {
        Aggregation { since: Instant::ZERO, acked: 0, rounds: [0; FILTER_ROUNDS], round: 0, long: false }
    }
}

impl Aggregation {
    /// Silence is not aggregation.
    pub(super) fn restart(&mut self, now: Instant) {
        self.since = now;
        self.acked = 0;
    }

    /// BBR.extra_acked, bytes.
    pub(super) fn extra(&self) -> u32 {
        let last = self.rounds[self.round as usize % FILTER_ROUNDS];
        if self.long { self.rounds.iter().copied().max().unwrap_or(last) } else { last }
    }

    fn note(&mut self, extra: u32, round: u32) {
        let passed = round.wrapping_sub(self.round).min(FILTER_ROUNDS as u32);
        self.round = round;
        for back in 0..passed {
            self.rounds[round.wrapping_sub(back) as usize % FILTER_ROUNDS] = 0;
        }
        let slot = &mut self.rounds[round as usize % FILTER_ROUNDS];
        *slot = extra.max(*slot);
    }
}

impl Bbr {
    /// UpdateACKAggregation.
    pub(super) fn update_aggregation(&mut self, sample: &Sample) {
        let bw = self.bw();
        let aggregation = &mut self.aggregation;
        let micros = sample.now.since(aggregation.since).as_micros();
        let expected = u128::from(bw) * micros / 1_000_000;
        let mut expected = u32::try_from(expected).unwrap_or(u32::MAX);
        if aggregation.acked <= expected {
            aggregation.restart(sample.now);
            expected = 0;
        }
        aggregation.acked = aggregation.acked.saturating_add(sample.rate.newly_acked);
        let extra = (aggregation.acked - expected).min(self.control.cwnd);
        aggregation.long = self.full_pipe.reached;
        aggregation.note(extra, self.rounds.count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_excess_is_the_highest_of_ten_rounds_and_in_startup_of_one() {
        let mut it = Aggregation::default();
        it.note(700, 1);
        it.note(300, 2);
        assert_eq!(it.extra(), 300);
        it.long = true;
        assert_eq!(it.extra(), 700);
        it.note(100, 10);
        assert_eq!(it.extra(), 700);
        it.note(50, 11);
        assert_eq!(it.extra(), 300, "the first of them is eleven rounds old");
        it.note(0, 4000);
        assert_eq!(it.extra(), 0);
    }
}
