//! Drain: the queue that Startup has built is let go, within about one round trip.

use super::{Bbr, Sample, State};

/// Rounds after which the bandwidth itself must have been estimated too high.
const MOST_ROUNDS: u32 = 3;

impl Bbr {
    pub(super) fn enter_drain(&mut self) {
        self.state = State::Drain;
        self.drain_start_round = self.rounds.count;
    }

    /// CheckDrainDone.
    pub(super) fn check_drain_done(&mut self, sample: &Sample) {
        if self.state != State::Drain {
            return;
        }
        let rounds = self.rounds.count.wrapping_sub(self.drain_start_round);
        if sample.in_flight <= self.target_inflight_for(self.bw()) || rounds > MOST_ROUNDS {
            self.start_down(sample.now);
        }
    }
}
