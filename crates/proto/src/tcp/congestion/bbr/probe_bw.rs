//! ProbeBW: where a long flow spends its time. DOWN lets go of the queue, CRUISE sends as fast as the path delivers, REFILL fills the
//! pipe, UP (`probe_up`) looks for more; two to three seconds, or as many round trips as Reno would need, lie between two probes.

use super::{Bbr, Sample, State};
use crate::Instant;
use core::time::Duration;

/// Least wait between probes; up to a second more is drawn at random.
const WAIT_MIN: Duration = Duration::from_secs(2);
const WAIT_RANDOM_MICROS: u64 = 1_000_000;
/// Most rounds between probes, however large the window is.
const RENO_ROUNDS_MAX: u32 = 63;
/// Headroom as a ratio of `inflight_longterm` that is left to others.
const HEADROOM: (u64, u64) = (15, 100);

/// What the acknowledgements that come in belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AckPhase {
    Init,
    Refilling,
    /// What was sent while probing is not yet acknowledged.
    ProbeStarting,
    ProbeFeedback,
    /// No more is sent so; what was is still being acknowledged.
    ProbeStopping,
}

/// State of the probing cycle.
#[derive(Clone, Debug)]
pub(super) struct Cycle {
    pub(super) ack_phase: AckPhase,
    /// Losses are of what was sent while probing.
    pub(super) is_bw_probe_sample: bool,
    /// The last probe lost too much; the last one was stopped before that could happen.
    pub(super) prev_probe_too_high: bool,
    pub(super) prev_probe_precautionary: bool,
    /// Bytes acknowledged since `inflight_longterm` was last raised; for so many it is raised by a segment.
    pub(super) up_acked: u32,
    pub(super) up_acked_per_segment: u32,
    pub(super) up_rounds: u32,
    /// Round count of the last probe, less the random one that may be added.
    probed_at_round: u32,
    wait: Duration,
    /// When the cycle began.
    stamp: Instant,
    random: u64,
}

impl Cycle {
    pub(super) fn new(seed: u32) -> Cycle {
        Cycle {
            ack_phase: AckPhase::Init,
            is_bw_probe_sample: false,
            prev_probe_too_high: false,
            prev_probe_precautionary: false,
            up_acked: 0,
            up_acked_per_segment: u32::MAX,
            up_rounds: 0,
            probed_at_round: 0,
            wait: Duration::ZERO,
            stamp: Instant::ZERO,
            random: seed.into(),
        }
    }

    /// Knuth's MMIX generator; its upper half is good enough to keep flows apart.
    fn random(&mut self) -> u64 {
        self.random =
            self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.random >> 32
    }

    /// PickProbeWait.
    fn pick_wait(&mut self, round: u32) {
        self.probed_at_round = round.wrapping_sub((self.random() & 1) as u32);
        self.wait = WAIT_MIN + Duration::from_micros((self.random() * WAIT_RANDOM_MICROS) >> 32);
    }
}

impl Bbr {
    /// UpdateProbeBWCyclePhase.
    pub(super) fn update_cycle(&mut self, sample: &Sample) {
        if !self.full_pipe.reached || self.adapt_longterm(sample) {
            return;
        }
        match self.state {
            State::ProbeBwDown if self.is_time_to_probe(sample) => self.start_refill(),
            State::ProbeBwDown if self.is_time_to_cruise(sample) => self.state = State::ProbeBwCruise,
            State::ProbeBwCruise if self.is_time_to_probe(sample) => self.start_refill(),
            State::ProbeBwRefill if self.rounds.start => {
                self.cycle.is_bw_probe_sample = true;
                self.start_up(sample);
            }
            State::ProbeBwUp => self.check_up_done(sample),
            _ => {}
        }
    }

    /// AdaptLongTermModel. True if it has decided what comes next.
    fn adapt_longterm(&mut self, sample: &Sample) -> bool {
        let cycle = &mut self.cycle;
        if cycle.ack_phase == AckPhase::ProbeStarting && self.rounds.start {
            cycle.ack_phase = AckPhase::ProbeFeedback;
        }
        if cycle.ack_phase == AckPhase::ProbeStopping && self.rounds.start {
            cycle.is_bw_probe_sample = false;
            cycle.ack_phase = AckPhase::Init;
            let again = cycle.prev_probe_precautionary && !cycle.prev_probe_too_high;
            if self.state.is_probe_bw() && !sample.rate.app_limited {
                self.max_bw.advance();
            }
            if self.state.is_probe_bw() && again {
                // The cautious probe lost nothing: now the bold one.
                self.start_refill();
                return true;
            }
        }
        let rate = &sample.rate;
        let bound = self.bounds.inflight_longterm;
        if bound != u32::MAX && !self.is_too_high(rate.lost, rate.tx_in_flight) {
            self.bounds.inflight_longterm = rate.tx_in_flight.max(bound);
            if self.state == State::ProbeBwUp {
                self.raise_longterm(sample);
            }
        }
        false
    }

    /// StartProbeBW_DOWN.
    pub(super) fn start_down(&mut self, now: Instant) {
        self.bounds.reset_signals();
        self.cycle.up_acked_per_segment = u32::MAX;
        self.cycle.pick_wait(self.rounds.count);
        self.cycle.stamp = now;
        self.stop_probing_bw();
        self.rounds.restart();
        self.state = State::ProbeBwDown;
    }

    /// Nothing more is sent to find bandwidth.
    pub(super) fn stop_probing_bw(&mut self) {
        self.cycle.ack_phase = AckPhase::ProbeStopping;
    }

    /// StartProbeBW_REFILL: the short term is forgotten.
    pub(super) fn start_refill(&mut self) {
        self.bounds.reset_shortterm();
        let cycle = &mut self.cycle;
        (cycle.up_rounds, cycle.up_acked) = (0, 0);
        cycle.prev_probe_precautionary = false;
        cycle.ack_phase = AckPhase::Refilling;
        self.rounds.restart();
        self.state = State::ProbeBwRefill;
    }

    /// IsTimeToProbeBW. A flow of small windows probes as often as Reno would, to share with it.
    fn is_time_to_probe(&self, sample: &Sample) -> bool {
        let rounds = (self.target_inflight() / sample.smss.max(1)).min(RENO_ROUNDS_MAX);
        sample.now > self.cycle.stamp + self.cycle.wait
            || self.rounds.count.wrapping_sub(self.cycle.probed_at_round) >= rounds
    }

    /// IsTimeToCruise.
    fn is_time_to_cruise(&self, sample: &Sample) -> bool {
        let drained = self.target_inflight_for(self.max_bw.get());
        sample.in_flight <= self.inflight_with_headroom().min(drained)
    }

    /// InflightWithHeadroom.
    pub(super) fn inflight_with_headroom(&self) -> u32 {
        let bound = self.bounds.inflight_longterm;
        if bound == u32::MAX {
            return u32::MAX;
        }
        let headroom = (u64::from(bound) * HEADROOM.0 / HEADROOM.1) as u32;
        bound.saturating_sub(headroom.max(self.control.smss)).max(self.min_pipe_cwnd())
    }
}
