//! What is lost: duplicate ACKs and the recovery that follows (RFC 5681 §3.2, RFC 6582).
//!
//! The scoreboard, RACK and PRR will live beside this; today a loss is told by three duplicate ACKs or by the timer.

use wire::SeqNum;

/// Duplicate ACKs that mean a loss (RFC 5681 §3.2).
const DUP_THRESH: u8 = 3;

/// The sender's recovery.
#[derive(Debug, Default)]
pub(crate) struct Recovery {
    dup_acks: u8,
    /// Set while recovering: everything sent before the loss was found ends here.
    recovery_point: Option<SeqNum>,
    /// Set by a time-out: up to here everything is being sent again, and duplicates say nothing new (RFC 6582 §4.1).
    resent_until: Option<SeqNum>,
    /// The first unacknowledged segment is to be sent again.
    pub(crate) retransmit_head: bool,
}

/// What an acknowledgement means for the congestion window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Nothing is lost.
    Open,
    /// Loss found just now.
    Loss,
    /// Still recovering.
    Recovering,
}

impl Recovery {
    /// Segments known to have left the network since the loss, for the window's inflation (RFC 5681 §3.2 step 4).
    pub(crate) fn inflation_segs(&self) -> u32 {
        if self.recovery_point.is_some() { u32::from(self.dup_acks) } else { 0 }
    }

    pub(crate) fn on_duplicate(&mut self, snd_una: SeqNum, snd_max: SeqNum) -> Verdict {
        if self.resent_until.is_some_and(|until| snd_una.before(until)) {
            return Verdict::Open;
        }
        self.resent_until = None;
        self.dup_acks = self.dup_acks.saturating_add(1);
        if self.recovery_point.is_some() {
            return Verdict::Recovering;
        }
        if self.dup_acks < DUP_THRESH {
            return Verdict::Open;
        }
        self.recovery_point = Some(snd_max);
        self.retransmit_head = true;
        Verdict::Loss
    }

    /// `snd_una` moved. A partial acknowledgement means the next hole is lost too (RFC 6582 §3.2 step 3).
    pub(crate) fn on_progress(&mut self, snd_una: SeqNum) -> Verdict {
        let Some(point) = self.recovery_point else {
            self.dup_acks = 0;
            return Verdict::Open;
        };
        self.dup_acks = 0;
        if snd_una.before(point) {
            self.retransmit_head = true;
            return Verdict::Recovering;
        }
        *self = Recovery::default();
        Verdict::Open
    }

    /// The timer takes over: everything is sent again from `snd_una`.
    pub(crate) fn on_timeout(&mut self, snd_max: SeqNum) {
        *self = Recovery { resent_until: Some(snd_max), ..Recovery::default() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_third_duplicate_is_a_loss_and_partial_acks_resend() {
        let mut recovery = Recovery::default();
        let max = SeqNum(5000);
        assert_eq!(
            [(); 3].map(|()| recovery.on_duplicate(SeqNum(1000), max)),
            [Verdict::Open, Verdict::Open, Verdict::Loss]
        );
        assert!(std::mem::take(&mut recovery.retransmit_head));
        assert_eq!(recovery.on_duplicate(SeqNum(1000), max), Verdict::Recovering);
        assert_eq!(recovery.inflation_segs(), 4);
        assert_eq!(recovery.on_progress(SeqNum(3000)), Verdict::Recovering);
        assert!(std::mem::take(&mut recovery.retransmit_head));
        assert_eq!(recovery.on_progress(SeqNum(5000)), Verdict::Open);
        assert_eq!(recovery.inflation_segs(), 0);
    }

    #[test]
    fn duplicates_of_what_a_timeout_sends_again_are_no_loss() {
        let mut recovery = Recovery::default();
        recovery.on_timeout(SeqNum(5000));
        assert!((0..5).all(|_| recovery.on_duplicate(SeqNum(2000), SeqNum(5000)) == Verdict::Open));
        let later = [(); 3].map(|()| recovery.on_duplicate(SeqNum(5000), SeqNum(9000)));
        assert_eq!(later, [Verdict::Open, Verdict::Open, Verdict::Loss]);
    }
}
