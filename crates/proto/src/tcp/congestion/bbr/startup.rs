//! Startup: the rate doubles every round trip, until it stops growing, or too much is lost.

use super::{Bbr, Sample, State};
use crate::tcp::send::delivery::RateSample;

/// BBRStartupFullLossCnt: runs of lost segments in a round that are no accident.
const FULL_LOSS_RUNS: u32 = 6;

impl Bbr {
    pub(super) fn enter_startup(&mut self) {
        self.state = State::Startup;
    }

    /// CheckStartupDone.
    pub(super) fn check_startup_done(&mut self, sample: &Sample) {
        if self.state == State::Startup && self.is_startup_loss_high(&sample.rate) {
            self.leave_startup();
        }
        if self.rounds.loss_start {
            self.bounds.loss_runs = 0;
        }
        if self.state == State::Startup && self.full_pipe.reached {
            self.enter_drain();
        }
    }

    /// After a round of recovery that lost more than 2 %, at several places. Who sees one loss per round trip must believe it.
    fn is_startup_loss_high(&self, rate: &RateSample) -> bool {
        if !self.in_recovery {
            return false;
        }
        if !self.sack {
            return self.bounds.loss_runs > 0;
        }
        self.rounds.loss_start
            && self.bounds.loss_runs >= FULL_LOSS_RUNS
            && self.is_too_high(rate.lost, rate.tx_in_flight)
    }

    /// Congestion says that the pipe is full: what it held in the last round is what it holds.
    pub(super) fn leave_startup(&mut self) {
        self.undo.state = Some(State::Startup);
        self.full_pipe.reached = true;
        self.bounds.inflight_longterm = self.inflight_of(self.bw(), 100).max(self.bounds.inflight_latest);
    }
}
