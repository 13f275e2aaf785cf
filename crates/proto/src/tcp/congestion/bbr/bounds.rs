//! What loss does to the model.
//!
//! While more bandwidth is being sought, a loss of more than 2 % of what was in flight says how much the path holds in the long run.
//! At other times any loss in a round trip lowers the short-term bounds to what was delivered in that round, by 30 % at most.

use super::{Bbr, Sample, State};
use crate::tcp::send::delivery::{LostSegment, RateSample};
use wire::SeqNum;

/// LossThresh as a ratio: 2 %.
const LOSS_THRESH: (u64, u64) = (2, 100);
/// Beta = 0.7.
const BETA: (u64, u64) = (7, 10);

#[derive(Clone, Debug)]
pub(super) struct Bounds {
    pub(super) bw_shortterm: u64,
    pub(super) inflight_shortterm: u32,
    pub(super) inflight_longterm: u32,
    /// Highest rate and volume delivered in this round.
    bw_latest: u64,
    pub(super) inflight_latest: u32,
    /// Something was found to be lost in this round.
    pub(super) loss_in_round: bool,
    /// Runs of lost segments in this round, and where the last one ends.
    pub(super) loss_runs: u32,
    run_end: SeqNum,
}

impl Default for Bounds {
    fn default() -> Bounds {
        Bounds {
            bw_shortterm: u64::MAX,
            inflight_shortterm: u32::MAX,
            inflight_longterm: u32::MAX,
            bw_latest: 0,
            inflight_latest: 0,
            loss_in_round: false,
            loss_runs: 0,
            run_end: SeqNum(0),
        }
    }
}

impl Bounds {
    /// UpdateLatestDeliverySignals.
    pub(super) fn note_delivery(&mut self, sample: &Sample) {
        self.bw_latest = self.bw_latest.max(rate_of(&sample.rate));
        self.inflight_latest = self.inflight_latest.max(sample.rate.delivered());
    }

    /// AdvanceLatestDeliverySignals.
    pub(super) fn advance_delivery(&mut self, loss_round_start: bool, sample: &Sample) {
        if loss_round_start {
            self.bw_latest = rate_of(&sample.rate);
            self.inflight_latest = sample.rate.delivered();
        }
    }

    /// ResetCongestionSignals.
    pub(super) fn reset_signals(&mut self) {
        (self.loss_in_round, self.bw_latest, self.inflight_latest) = (false, 0, 0);
    }

    /// ResetShortTermModel.
    pub(super) fn reset_shortterm(&mut self) {
        (self.bw_shortterm, self.inflight_shortterm) = (u64::MAX, u32::MAX);
    }

    /// LossLowerBounds, from these where nothing was lost before.
    fn lower(&mut self, max_bw: u64, cwnd: u32) {
        let bw = if self.bw_shortterm == u64::MAX { max_bw } else { self.bw_shortterm };
        let inflight = if self.inflight_shortterm == u32::MAX { cwnd } else { self.inflight_shortterm };
        self.bw_shortterm = self.bw_latest.max(bw / BETA.1 * BETA.0);
        self.inflight_shortterm = self.inflight_latest.max(beta(inflight));
    }
}

impl Bbr {
    /// UpdateCongestionSignals, AdaptLowerBoundsFromCongestion: once per round.
    pub(super) fn adapt_to_round(&mut self) {
        if !self.rounds.loss_start {
            return;
        }
        if !self.state.is_probing() && self.bounds.loss_in_round {
            self.bounds.lower(self.max_bw.get(), self.control.cwnd);
        }
        self.bounds.loss_in_round = false;
    }

    /// NoteLoss. While a recovery goes on, what was saved at its beginning is kept: only then can all of it be undone.
    pub(super) fn note_loss(&mut self) {
        if !self.bounds.loss_in_round {
            self.rounds.begin_loss_round();
            if !self.in_recovery {
                self.save_state();
            }
        }
        self.bounds.loss_in_round = true;
    }

    /// HandleLostPacket.
    pub(super) fn handle_lost(&mut self, segment: &LostSegment) {
        self.note_loss();
        self.bounds.loss_runs += u32::from(self.bounds.loss_runs == 0 || segment.seq != self.bounds.run_end);
        self.bounds.run_end = segment.seq + segment.len;
        if self.cycle.is_bw_probe_sample && self.is_too_high(segment.lost, segment.tx_in_flight) {
            self.inflight_was_too_high(inflight_at_loss(segment), segment.app_limited);
        }
    }

    /// A mark says what many losses would (the draft treats it as congestion and leaves the rest to us).
    pub(super) fn congestion_was_marked(&mut self, in_flight: u32) {
        if self.state == State::Startup {
            self.leave_startup();
        } else if self.cycle.is_bw_probe_sample {
            self.inflight_was_too_high(in_flight, false);
        }
    }

    /// IsInflightTooHigh.
    pub(super) fn is_too_high(&self, lost: u32, tx_in_flight: u32) -> bool {
        if !self.sack {
            return lost > 0;
        }
        u64::from(lost) * LOSS_THRESH.1 > u64::from(tx_in_flight) * LOSS_THRESH.0
    }

    /// HandleInflightTooHigh: once per probe.
    fn inflight_was_too_high(&mut self, inflight: u32, app_limited: bool) {
        self.cycle.prev_probe_too_high = true;
        self.cycle.is_bw_probe_sample = false;
        if !app_limited {
            self.bounds.inflight_longterm = inflight.max(beta(self.target_inflight()));
        }
        if self.state == State::ProbeBwUp {
            self.undo.state = Some(State::ProbeBwUp);
            self.start_down(self.min_rtt.last_ack_at);
        }
    }
}

/// InflightAtLoss: what was in flight when the losses crossed the threshold, perhaps amid this burst.
fn inflight_at_loss(segment: &LostSegment) -> u32 {
    let inflight_prev = u64::from(segment.tx_in_flight.saturating_sub(segment.len));
    let lost_prev = u64::from(segment.lost.saturating_sub(segment.len));
    let (thresh, whole) = LOSS_THRESH;
    let prefix = (thresh * inflight_prev).saturating_sub(whole * lost_prev) / (whole - thresh);
    (inflight_prev + prefix).min(segment.tx_in_flight.into()) as u32
}

fn beta(bytes: u32) -> u32 {
    (u64::from(bytes) * BETA.0 / BETA.1) as u32
}

fn rate_of(rate: &RateSample) -> u64 {
    rate.rate().map_or(0, |rate| rate.per_second())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn burst(len: u32, tx_in_flight: u32, lost: u32) -> LostSegment {
        LostSegment { seq: SeqNum(0), len, tx_in_flight, lost, app_limited: false, total: 0 }
    }

    /// (lost_prev + x) / (inflight_prev + x) = 2 %: of a burst of ten behind 98 without loss two may be lost.
    #[test]
    fn the_threshold_is_found_amid_a_burst() {
        assert_eq!(inflight_at_loss(&burst(10_000, 108_000, 10_000)), 100_000);
        assert_eq!(inflight_at_loss(&burst(10_000, 110_000, 12_000)), 100_000, "it was crossed before");
        assert_eq!(inflight_at_loss(&burst(1_000, 100_000, 1_000)), 100_000, "not crossed at all");
    }
}
