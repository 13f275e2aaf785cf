//! ProbeBW_UP: a quarter faster than the path is known to be, until it proves to be full, or loses too much.
//!
//! Where a bound is known, it is raised by 1, 2, 4, 8 … segments a round trip once the flow is kept back by it. After a probe that lost
//! too much the next one only touches the bound, and goes on in a second one if that was safe.

use super::probe_bw::AckPhase;
use super::{Bbr, Sample, State};

/// More doublings change nothing.
const UP_ROUNDS_MAX: u32 = 30;

impl Bbr {
    /// StartProbeBW_UP.
    pub(super) fn start_up(&mut self, sample: &Sample) {
        self.cycle.ack_phase = AckPhase::ProbeStarting;
        self.rounds.restart();
        self.look_for_full_pipe(sample);
        self.state = State::ProbeBwUp;
        self.raise_slope();
    }

    pub(super) fn check_up_done(&mut self, sample: &Sample) {
        if self.is_time_to_go_down(sample) {
            self.cycle.prev_probe_too_high = false;
            self.start_down(sample.now);
        }
    }

    /// IsTimeToGoDown.
    fn is_time_to_go_down(&mut self, sample: &Sample) -> bool {
        if self.cycle.prev_probe_too_high && sample.in_flight >= self.bounds.inflight_longterm {
            self.cycle.prev_probe_precautionary = true;
            return true;
        }
        if sample.window_full && self.control.cwnd >= self.bounds.inflight_longterm {
            self.look_for_full_pipe(sample);
            return false;
        }
        self.full_pipe.now
    }

    /// ProbeInflightLongtermUpward.
    pub(super) fn raise_longterm(&mut self, sample: &Sample) {
        if !sample.window_full || self.control.cwnd < self.bounds.inflight_longterm {
            return;
        }
        let cycle = &mut self.cycle;
        cycle.up_acked = cycle.up_acked.saturating_add(sample.rate.newly_acked);
        let segments = cycle.up_acked / cycle.up_acked_per_segment.max(1);
        cycle.up_acked %= cycle.up_acked_per_segment.max(1);
        let added = segments.saturating_mul(sample.smss);
        self.bounds.inflight_longterm = self.bounds.inflight_longterm.saturating_add(added);
        if self.rounds.start {
            self.raise_slope();
        }
    }

    /// RaiseInflightLongtermSlope.
    fn raise_slope(&mut self) {
        let cycle = &mut self.cycle;
        cycle.up_acked_per_segment = (self.control.cwnd >> cycle.up_rounds).max(self.control.smss);
        cycle.up_rounds = (cycle.up_rounds + 1).min(UP_ROUNDS_MAX);
    }

    fn look_for_full_pipe(&mut self, sample: &Sample) {
        self.full_pipe.reset(sample.rate.rate().map_or(0, |rate| rate.per_second()));
    }
}
