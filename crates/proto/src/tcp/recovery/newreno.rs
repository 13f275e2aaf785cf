//! Loss at a peer without SACK: duplicate ACKs and the recovery that follows (RFC 5681 §3.2, RFC 6582, RFC 3042).

use crate::Instant;
use wire::SeqNum;

/// Duplicate ACKs that mean a loss (RFC 5681 §3.2).
const DUP_THRESH: u8 = 3;

/// Recovery by duplicates.
#[derive(Debug, Default)]
pub(crate) struct NewReno {
    dup_acks: u8,
    /// Bytes known to have left the network: so much more may be sent. Two segments before a loss is found (limited transmit,
    /// RFC 3042), and after it RFC 5681 §3.2 steps 3 to 5.
    inflation: u32,
    /// Set while recovering: everything sent before the loss was found ends here.
    recovery_point: Option<SeqNum>,
    /// Set by a time-out: up to here everything is being sent again, and duplicates say nothing new (RFC 6582 §4.1).
    resent_until: Option<SeqNum>,
    /// The first unacknowledged segment is to be sent again.
    pub(super) retransmit_head: bool,
    /// First time-out in a row, while any.
    pub(super) silent_since: Option<Instant>,
}

/// What an acknowledgement means for the congestion window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Nothing is lost.
    Open,
    /// Loss found just now.
    Loss,
    /// Still recovering, or recovered by just this acknowledgement: the window does not grow by it.
    Recovering,
}

impl NewReno {
    /// What is added to the congestion window, bytes.
    pub(super) fn inflation(&self) -> u32 {
        self.inflation
    }

    /// Nothing is remembered any more.
    pub(super) fn is_over(&self) -> bool {
        self.dup_acks == 0
            && self.recovery_point.is_none()
            && self.resent_until.is_none()
            && !self.retransmit_head
    }

    /// A loss was found, and what was sent before is not yet all acknowledged.
    pub(super) fn is_recovering(&self, snd_una: SeqNum) -> bool {
        self.recovery_point.is_some() || self.resent_until.is_some_and(|until| snd_una.before(until))
    }

    pub(super) fn on_duplicate(&mut self, snd_una: SeqNum, snd_max: SeqNum, smss: u32) -> Verdict {
        if self.resent_until.is_some_and(|until| snd_una.before(until)) {
            return Verdict::Open;
        }
        self.resent_until = None;
        self.dup_acks = self.dup_acks.saturating_add(1);
        if self.recovery_point.is_some() {
            self.inflation = self.inflation.saturating_add(smss);
            return Verdict::Recovering;
        }
        if self.dup_acks < DUP_THRESH {
            self.inflation = u32::from(self.dup_acks) * smss;
            return Verdict::Open;
        }
        self.inflation = u32::from(DUP_THRESH) * smss;
        self.recovery_point = Some(snd_max);
        self.retransmit_head = true;
        Verdict::Loss
    }

    /// `snd_una` moved by `acked` bytes. A partial acknowledgement means the next hole is lost too, and takes back as much inflation
    /// as it acknowledges, but for the segment that is sent in answer (RFC 6582 §3.2 step 3).
    pub(super) fn on_progress(&mut self, snd_una: SeqNum, acked: u32, smss: u32) -> Verdict {
        self.dup_acks = 0;
        self.resent_until = self.resent_until.filter(|until| snd_una.before(*until));
        let Some(point) = self.recovery_point else {
            self.inflation = 0;
            return Verdict::Open;
        };
        if snd_una.before(point) {
            self.retransmit_head = true;
            let answer = if acked >= smss { smss } else { 0 };
            self.inflation = self.inflation.saturating_sub(acked).saturating_add(answer);
        } else {
            *self = NewReno::default();
        }
        Verdict::Recovering
    }

    /// The timer takes over: everything is sent again from `snd_una`.
    pub(super) fn on_timeout(&mut self, snd_max: SeqNum) {
        let silent_since = self.silent_since;
        *self = NewReno { resent_until: Some(snd_max), silent_since, ..NewReno::default() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u32 = 1000;

    #[test]
    fn the_third_duplicate_is_a_loss_and_partial_acks_resend() {
        let mut recovery = NewReno::default();
        let (una, max) = (SeqNum(0), SeqNum(5000));
        let found = [(); 3].map(|()| recovery.on_duplicate(una, max, MSS));
        assert_eq!(found, [Verdict::Open, Verdict::Open, Verdict::Loss]);
        assert!(std::mem::take(&mut recovery.retransmit_head));
        assert_eq!(recovery.on_duplicate(una, max, MSS), Verdict::Recovering);
        assert_eq!(recovery.inflation(), 4 * MSS);
        assert_eq!(recovery.on_progress(SeqNum(3000), 3000, MSS), Verdict::Recovering);
        assert!(std::mem::take(&mut recovery.retransmit_head));
        assert_eq!(recovery.inflation(), 2 * MSS);
        assert_eq!(recovery.on_progress(SeqNum(5000), 2000, MSS), Verdict::Recovering);
        assert_eq!(recovery.inflation(), 0);
        assert_eq!(recovery.on_progress(SeqNum(6000), 1000, MSS), Verdict::Open);
    }

    #[test]
    fn duplicates_of_what_a_timeout_repeats_are_no_loss() {
        let mut recovery = NewReno::default();
        recovery.on_timeout(SeqNum(5000));
        for _ in 0..9 {
            assert_eq!(recovery.on_duplicate(SeqNum(1000), SeqNum(5000), MSS), Verdict::Open);
        }
        let found = [(); 3].map(|()| recovery.on_duplicate(SeqNum(5000), SeqNum(9000), MSS));
        assert_eq!(found[2], Verdict::Loss);
    }

    #[test]
    fn the_first_two_duplicates_let_a_segment_go_each() {
        let mut recovery = NewReno::default();
        let (una, max) = (SeqNum(0), SeqNum(5000));
        let inflated = [(); 3].map(|()| {
            recovery.on_duplicate(una, max, MSS);
            recovery.inflation()
        });
        assert_eq!(inflated, [MSS, 2 * MSS, 3 * MSS]);
        let mut recovery = NewReno::default();
        recovery.on_duplicate(una, max, MSS);
        recovery.on_progress(SeqNum(1000), MSS, MSS);
        assert!(recovery.is_over() && recovery.inflation() == 0);
    }
}
