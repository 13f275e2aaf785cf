//! What follows from the model: the pacing rate, how much leaves at once, and the congestion window.

use super::{Bbr, Sample, State};
use core::time::Duration;

/// What the pacing rate stays below the bandwidth, percent.
const PACING_MARGIN: u32 = 1;
/// MinPipeCwnd, segments: enough for receivers that acknowledge every other one.
const MIN_PIPE_SEGS: u32 = 4;
/// Bursts of the sender, in hardware, and at the receiver, that are on their way at the same time.
const OFFLOAD_BURSTS: u32 = 3;
/// Largest burst, bytes.
const SEND_QUANTUM_MAX: u64 = 64 * 1024;
/// RTT before one is known.
const NOMINAL_RTT: Duration = Duration::from_millis(1);

#[derive(Clone, Debug)]
pub(super) struct Control {
    pub(super) cwnd: u32,
    /// The last one that neither losses nor ProbeRTT had lowered.
    pub(super) prior_cwnd: u32,
    pub(super) pacing_rate: u64,
    pub(super) smss: u32,
    initial_window: u32,
    /// Bytes acknowledged so far, as long as that is less than the initial window.
    acked: u32,
}

impl Control {
    pub(super) fn new(initial_window: u32) -> Control {
        let mut control = Control {
            cwnd: initial_window,
            prior_cwnd: 0,
            pacing_rate: 0,
            smss: 0,
            initial_window,
            acked: 0,
        };
        control.set_initial_rate(None, State::Startup.pacing_gain());
        control
    }

    /// InitPacingRate: the initial window per round trip.
    pub(super) fn set_initial_rate(&mut self, srtt: Option<Duration>, gain: u32) {
        let micros = srtt.unwrap_or(NOMINAL_RTT).as_micros().clamp(1, u128::from(u32::MAX)) as u64;
        self.pacing_rate = u64::from(self.initial_window) * 1_000_000 / micros * u64::from(gain) / 100;
    }
}

impl Bbr {
    /// UpdateControlParameters.
    pub(super) fn update_control(&mut self, sample: &Sample) {
        self.set_pacing_rate(self.state.pacing_gain());
        self.set_cwnd(sample.rate.newly_acked);
    }

    /// SetPacingRateWithGain: before the pipe is full it only rises, for samples of an application that sends little are too low.
    pub(super) fn set_pacing_rate(&mut self, gain: u32) {
        let percent = u64::from(gain) * u64::from(100 - PACING_MARGIN);
        let rate = (u128::from(self.bw()) * u128::from(percent) / 10_000).min(u128::from(u64::MAX)) as u64;
        if rate > 0 && (self.full_pipe.reached || rate > self.control.pacing_rate) {
            self.control.pacing_rate = rate.max(self.least_rate());
        }
    }

    /// One segment per least round trip. Time-outs one after the other leave samples of a segment per time-out, which loss lowers further:
    /// without a floor the next segment would wait for hours, and no better sample could come. A path is slower than this only if its
    /// least round trip was that of small packets; there the window holds the sender back.
    fn least_rate(&self) -> u64 {
        let least = self.min_rtt.value.map_or(u128::MAX, |min_rtt| min_rtt.as_micros());
        (u128::from(self.control.smss) * 1_000_000 / least.max(1)) as u64
    }

    /// SetSendQuantum: what passes in a millisecond.
    fn send_quantum(&self) -> u32 {
        let passing = (self.control.pacing_rate / 1000).min(SEND_QUANTUM_MAX) as u32;
        passing.max(2 * self.control.smss)
    }

    pub(super) fn min_pipe_cwnd(&self) -> u32 {
        MIN_PIPE_SEGS * self.control.smss
    }

    /// BDPMultiple: what is in flight when data leaves at this rate for the least round trip, times `gain` percent.
    pub(super) fn inflight_of(&self, bw: u64, gain: u32) -> u32 {
        let Some(min_rtt) = self.min_rtt.value else { return self.control.initial_window };
        let bytes = u128::from(bw) * min_rtt.as_micros() / 1_000_000 * u128::from(gain) / 100;
        u32::try_from(bytes).unwrap_or(u32::MAX)
    }

    /// QuantizationBudget.
    fn with_bursts(&self, inflight: u32) -> u32 {
        let bursts = OFFLOAD_BURSTS * self.send_quantum();
        let inflight = inflight.max(bursts).max(self.min_pipe_cwnd());
        let probing = if self.state == State::ProbeBwUp { 2 * self.control.smss } else { 0 };
        inflight.saturating_add(probing)
    }

    /// Inflight(1.0): a full pipe without a queue.
    pub(super) fn target_inflight_for(&self, bw: u64) -> u32 {
        self.with_bursts(self.inflight_of(bw, 100))
    }

    /// TargetInflight: what should be in flight, unless congestion has cut the window.
    pub(super) fn target_inflight(&self) -> u32 {
        self.inflight_of(self.bw(), 100).min(self.control.cwnd)
    }

    /// UpdateMaxInflight, SetCwnd.
    fn set_cwnd(&mut self, newly_acked: u32) {
        let inflight = self.inflight_of(self.bw(), self.state.cwnd_gain());
        let max_inflight = self.with_bursts(inflight.saturating_add(self.aggregation.extra()));
        let (least, bound) = (self.min_pipe_cwnd(), self.bound());
        let control = &mut self.control;
        control.acked = control.acked.saturating_add(newly_acked);
        if self.full_pipe.reached {
            control.cwnd = control.cwnd.saturating_add(newly_acked).min(max_inflight);
        } else if control.cwnd < max_inflight || control.acked < control.initial_window {
            control.cwnd = control.cwnd.saturating_add(newly_acked);
        }
        control.cwnd = control.cwnd.max(least).min(bound);
    }

    /// BoundCwndForProbeRTT, BoundCwndForModel.
    fn bound(&self) -> u32 {
        let longterm = match self.state {
            State::ProbeRtt => self.inflight_with_headroom().min(self.probe_rtt_cwnd()),
            State::ProbeBwCruise => self.inflight_with_headroom(),
            State::ProbeBwDown | State::ProbeBwRefill | State::ProbeBwUp => self.bounds.inflight_longterm,
            State::Startup | State::Drain => u32::MAX,
        };
        longterm.min(self.bounds.inflight_shortterm).max(self.min_pipe_cwnd())
    }
}
