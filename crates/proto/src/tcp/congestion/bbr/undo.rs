//! What is saved before losses are repaired, and what comes back if there were none.

use super::{Bbr, State};

#[derive(Clone, Debug, Default)]
pub(super) struct Undo {
    /// The state that was left because of the losses: Startup or ProbeBW_UP.
    pub(super) state: Option<State>,
    bw_shortterm: u64,
    inflight_shortterm: u32,
    inflight_longterm: u32,
}

impl Bbr {
    /// OnEnterFastRecovery, and the first half of OnEnterRTO.
    pub(super) fn save_before_recovery(&mut self) {
        if !self.in_recovery {
            self.save_state();
        } else {
            self.save_cwnd();
        }
        self.in_recovery = true;
    }

    /// SaveStateUponLoss.
    pub(super) fn save_state(&mut self) {
        self.save_cwnd();
        self.undo = Undo {
            state: None,
            bw_shortterm: self.bounds.bw_shortterm,
            inflight_shortterm: self.bounds.inflight_shortterm,
            inflight_longterm: self.bounds.inflight_longterm,
        };
    }

    /// SaveCwnd: the last window that neither losses nor ProbeRTT had lowered.
    pub(super) fn save_cwnd(&mut self) {
        let control = &mut self.control;
        let lowered = self.in_recovery || self.state == State::ProbeRtt;
        control.prior_cwnd = if lowered { control.prior_cwnd.max(control.cwnd) } else { control.cwnd };
    }

    /// RestoreCwnd; the model bounds it with the next acknowledgement.
    pub(super) fn restore_cwnd(&mut self) {
        self.control.cwnd = self.control.cwnd.max(self.control.prior_cwnd);
    }

    /// HandleSpuriousLossDetection.
    pub(super) fn loss_was_spurious(&mut self) {
        self.in_recovery = false;
        self.restore_cwnd();
        self.bounds.loss_in_round = false;
        self.full_pipe.reset(0);
        let (bounds, undo) = (&mut self.bounds, &mut self.undo);
        bounds.bw_shortterm = bounds.bw_shortterm.max(undo.bw_shortterm);
        bounds.inflight_shortterm = bounds.inflight_shortterm.max(undo.inflight_shortterm);
        bounds.inflight_longterm = bounds.inflight_longterm.max(undo.inflight_longterm);
        let (left, probing_rtt) = (undo.state.take(), self.state == State::ProbeRtt);
        match left {
            Some(State::Startup) if self.state != State::Startup => {
                self.full_pipe.reached = false;
                if !probing_rtt {
                    self.enter_startup();
                }
            }
            Some(State::ProbeBwUp) if self.state != State::ProbeBwUp && !probing_rtt => self.start_refill(),
            _ => {}
        }
    }
}
