//! BBR version 3 (draft-ietf-ccwg-bbr): not losses but a model of the path says how fast to send, and how much may be in flight.
//!
//! ```text
//!  max_bw    highest delivery rate of this probing cycle and the one before       × gain = pacing rate
//!  min_rtt   lowest round-trip time of the last ten seconds        max_bw · min_rtt × gain = congestion window
//!
//!  Startup ──► Drain ──► ProbeBW: DOWN ──► CRUISE ──► REFILL ──► UP ─┐       any state ──5 s──► ProbeRTT ──► back
//!  ×2.77       ×0.5        ▲      ×0.9     ×1         ×1         ×1.25│
//!                          └────────────────────────────────────────┘
//! ```
//!
//! | file | subject |
//! |---|---|
//! | `startup`, `drain`, `probe_bw`, `probe_up`, `probe_rtt` | the modes: what they do, and when they end |
//! | `full_pipe` | does the rate still grow? |
//! | `rounds`, `max_bw`, `aggregation` | round trips counted by packets; the bandwidth; how much is acknowledged at once |
//! | `bounds`, `undo` | what loss does to the model, and how it is taken back |
//! | `control` | what follows for pacing rate, burst and window |
//!
//! Loss lowers the model only in rounds in which there is some: while probing it sets `inflight_longterm` once more than 2 % are lost,
//! otherwise the short-term bounds, by at most 30 % a round. A mark of ECN counts as such a loss (the draft's §ECN). Rates are bytes per
//! second, volumes bytes, `MAX` stands for infinite. Random numbers follow from the seed alone.

mod aggregation;
mod bounds;
mod control;
mod drain;
mod full_pipe;
mod max_bw;
mod probe_bw;
mod probe_rtt;
mod probe_up;
mod rounds;
mod startup;
mod undo;

use super::{Controller, Idle, Lost, Sample, Signal, Start, Unused};
use crate::tcp::send::delivery::LostSegment;
use crate::{CongestionInfo, Instant};
use aggregation::Aggregation;
use bounds::Bounds;
use control::Control;
use core::time::Duration;
use full_pipe::FullPipe;
use max_bw::MaxBw;
use probe_bw::Cycle;
use probe_rtt::MinRtt;
use rounds::Rounds;
use undo::Undo;

/// Where the flow is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Startup,
    Drain,
    ProbeBwDown,
    ProbeBwCruise,
    ProbeBwRefill,
    ProbeBwUp,
    ProbeRtt,
}

impl State {
    /// Percent of the bandwidth at which data leaves.
    fn pacing_gain(self) -> u32 {
        match self {
            State::Startup => 277,
            State::Drain => 50,
            State::ProbeBwDown => 90,
            State::ProbeBwUp => 125,
            State::ProbeBwCruise | State::ProbeBwRefill | State::ProbeRtt => 100,
        }
    }

    /// Percent of the bandwidth-delay product that may be in flight.
    fn cwnd_gain(self) -> u32 {
        match self {
            State::ProbeBwUp => 225,
            State::ProbeRtt => 50,
            _ => 200,
        }
    }

    fn is_probe_bw(self) -> bool {
        matches!(self, State::ProbeBwDown | State::ProbeBwCruise | State::ProbeBwRefill | State::ProbeBwUp)
    }

    /// Tries to find more bandwidth.
    fn is_probing(self) -> bool {
        matches!(self, State::Startup | State::ProbeBwRefill | State::ProbeBwUp)
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Bbr {
    state: State,
    rounds: Rounds,
    max_bw: MaxBw,
    min_rtt: MinRtt,
    full_pipe: FullPipe,
    aggregation: Aggregation,
    bounds: Bounds,
    cycle: Cycle,
    undo: Undo,
    control: Control,
    /// The peer has SACK: more than one loss per round trip can be seen.
    sack: bool,
    /// Losses are being repaired.
    in_recovery: bool,
    /// The flow begins again after silence, and nothing was delivered since.
    idle_restart: bool,
    /// `rounds.count` when Drain began.
    drain_start_round: u32,
}

impl Bbr {
    pub(crate) fn new(start: &Start) -> Bbr {
        Bbr {
            state: State::Startup,
            rounds: Rounds::default(),
            max_bw: MaxBw::default(),
            min_rtt: MinRtt::default(),
            full_pipe: FullPipe::default(),
            aggregation: Aggregation::default(),
            bounds: Bounds::default(),
            cycle: Cycle::new(start.seed),
            undo: Undo::default(),
            control: Control::new(start.initial_window),
            sack: start.sack,
            in_recovery: false,
            idle_restart: false,
            drain_start_round: 0,
        }
    }

    /// The first moment anything is heard of the flow.
    fn begin(&mut self, now: Instant, srtt: Option<Duration>) {
        if self.min_rtt.begin(now, srtt) {
            self.aggregation.restart(now);
            self.control.set_initial_rate(srtt, State::Startup.pacing_gain());
        }
    }

    pub(super) fn info(&self) -> CongestionInfo {
        CongestionInfo::Bbr {
            bandwidth: self.bw(),
            min_rtt: self.min_rtt.value,
            pacing_gain: self.state.pacing_gain(),
            cwnd_gain: self.state.cwnd_gain(),
        }
    }

    /// Lower of what the path delivers in the long and in the short run.
    fn bw(&self) -> u64 {
        self.max_bw.get().min(self.bounds.bw_shortterm)
    }
}

impl Controller for Bbr {
    fn cwnd(&self) -> u32 {
        self.control.cwnd
    }

    /// There is none.
    fn ssthresh(&self) -> u32 {
        u32::MAX
    }

    /// UpdateModelAndState, UpdateControlParameters.
    fn on_sample(&mut self, sample: &Sample) {
        self.begin(sample.now, sample.rate.rtt);
        self.control.smss = sample.smss;
        self.rounds.on_sample(&sample.rate);
        self.bounds.note_delivery(sample);
        self.update_max_bw(sample);
        self.adapt_to_round();
        self.update_aggregation(sample);
        self.full_pipe.check(self.rounds.start, &sample.rate);
        self.check_startup_done(sample);
        self.check_drain_done(sample);
        self.update_cycle(sample);
        self.update_min_rtt(sample);
        self.check_probe_rtt(sample);
        self.bounds.advance_delivery(self.rounds.loss_start, sample);
        self.update_control(sample);
    }

    /// What was acknowledged is heard by `on_sample`, with what it says of the path.
    fn on_ack(&mut self, _acked: &super::Acked) {}

    /// OnEnterRTO leaves one segment beside what is on its way; other losses are heard segment by segment.
    fn on_loss(&mut self, lost: &Lost) {
        if lost.timeout {
            self.save_before_recovery();
            self.control.smss = lost.smss;
            self.control.cwnd = lost.loss_window();
        }
    }

    fn on_signal(&mut self, lost: &Lost, signal: Signal) {
        self.note_loss();
        if signal == Signal::Mark {
            self.congestion_was_marked(lost.in_flight);
        }
    }

    fn on_segment_lost(&mut self, segment: &LostSegment) {
        self.rounds.delivered = segment.total;
        self.handle_lost(segment);
    }

    fn on_recovery(&mut self) {
        self.save_before_recovery();
    }

    fn on_recovered(&mut self) {
        self.in_recovery = false;
        self.restore_cwnd();
    }

    fn on_undo(&mut self, _cwnd: u32, _ssthresh: u32) {
        self.loss_was_spurious();
    }

    /// HandleRestartFromIdle: the model knows at which rate to go on.
    fn on_idle(&mut self, idle: &Idle) {
        self.begin(idle.now, idle.srtt);
        if !idle.app_limited {
            return;
        }
        self.idle_restart = true;
        self.aggregation.restart(idle.now);
        if self.state.is_probe_bw() {
            self.set_pacing_rate(100);
        } else if self.state == State::ProbeRtt {
            self.check_probe_rtt_done(idle.now);
        }
    }

    /// A window that is not used does no harm to who paces.
    fn on_unused(&mut self, _unused: &Unused) {}

    fn pacing_rate(&self) -> Option<u64> {
        Some(self.control.pacing_rate)
    }

    fn shapes_recovery(&self) -> bool {
        true
    }

    fn holds_back(&self) -> bool {
        self.state == State::ProbeRtt
    }
}

#[cfg(test)]
mod tests;
