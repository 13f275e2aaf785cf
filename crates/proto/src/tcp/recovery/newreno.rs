//! Loss at a peer without SACK: duplicate ACKs and the recovery that follows (RFC 5681 §3.2, RFC 6582, RFC 3042), and how it may prove
//! spurious (RFC 3522 by timestamps, RFC 5682 §2 by forward progress).
//!
//! Partial acknowledgements restart the retransmission timer as long as the duplicates between them are a clock; once they are none, only
//! the first does: RFC 6582 §4's slow but steady variant as long as it is steady, and then the impatient one. Half a flight that a queue
//! dropped is repaired by the time-out's slow start, not hole by hole, a round trip each. A full acknowledgement leaves the window at
//! ssthresh (§3.2 step 3, choice 2).

use super::Undo;
use crate::Instant;
use wire::SeqNum;

/// An advance of at most so many segments is a flight's own, not that of what had been received long before (RFC 6582 §4.1).
const NEAR: u32 = 4;

/// Fewer duplicates between two partial acknowledgements carry less than slow start's third round does.
const CLOCK: u16 = 4;

/// Recovery by duplicates.
#[derive(Debug)]
pub(crate) struct NewReno {
    dup_acks: u16,
    /// Duplicates that mean a loss: `tcp_reordering`, raised when the path was seen to reorder more.
    dup_thresh: u16,
    /// It was raised on this connection.
    learnt: bool,
    /// Bytes known to have left the network: so much more may be sent. Two segments before a loss is found (limited transmit,
    /// RFC 3042), and after it RFC 5681 §3.2 steps 3 to 5.
    inflation: u32,
    /// Bytes of the last advance of `snd_una`.
    last_advance: u32,
    /// Set while recovering: everything sent before the loss was found ends here.
    recovery_point: Option<SeqNum>,
    /// Set by a time-out: up to here everything is being retransmitted, and duplicates say nothing new. After either recovery they must
    /// not, until more than this is acknowledged (RFC 6582 §3.2 step 1's recover).
    recover: Option<SeqNum>,
    /// Partial acknowledgements since the last that duplicates announced, up to two.
    starved: u8,
    /// The first unacknowledged segment is to be retransmitted.
    pub(super) retransmit_head: bool,
    /// First time-out in a row, while any.
    pub(super) silent_since: Option<Instant>,
    /// What the recovery began from, while it may prove spurious.
    pub(super) undo: Option<Undo>,
    forward: Forward,
}

/// F-RTO (RFC 5682 §2): is it forward progress that the ACKs after a time-out show?
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Forward {
    #[default]
    Unwatched,
    /// The first segment went again, and nothing was acknowledged since.
    AwaitsFirst,
    /// That was; so new data went instead of more repetitions. Of `lost` bytes nothing was heard.
    AwaitsSecond { lost: u32 },
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
    /// The time-out was right: what it held to be lost is retransmitted.
    Resend,
}

/// What a duplicate is judged by.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Duplicate {
    pub(crate) snd_una: SeqNum,
    pub(crate) snd_max: SeqNum,
    /// Bytes.
    pub(crate) cwnd: u32,
    pub(crate) smss: u32,
    /// `tcp_max_reordering`.
    pub(crate) max_reordering: u32,
}

impl NewReno {
    /// `reordering`: segments beyond a hole that make it a loss, as far as is known.
    pub(super) fn new(reordering: u32) -> NewReno {
        NewReno {
            dup_acks: 0,
            dup_thresh: u16::try_from(reordering).unwrap_or(u16::MAX),
            learnt: false,
            inflation: 0,
            last_advance: 0,
            recovery_point: None,
            recover: None,
            starved: 0,
            retransmit_head: false,
            silent_since: None,
            undo: None,
            forward: Forward::Unwatched,
        }
    }

    /// What is added to the congestion window, bytes.
    pub(super) fn inflation(&self) -> u32 {
        self.inflation
    }

    /// Bytes thought to be in the network.
    pub(super) fn pipe(&self, flight_size: u32) -> u32 {
        match self.forward {
            Forward::AwaitsSecond { lost } => flight_size.saturating_sub(lost),
            _ => flight_size,
        }
    }

    /// Nothing is remembered any more.
    pub(super) fn is_over(&self) -> bool {
        self.dup_acks == 0
            && self.recovery_point.is_none()
            && self.recover.is_none()
            && !self.retransmit_head
            && !self.learnt
    }

    /// Segments beyond a hole that make it a loss, if that has been learnt.
    pub(super) fn reordering(&self) -> Option<u32> {
        self.learnt.then_some(self.dup_thresh.into())
    }

    /// Duplicate ACKs have come, too few for a loss.
    pub(super) fn is_disordered(&self) -> bool {
        self.dup_acks > 0 && self.recovery_point.is_none()
    }

    /// A loss was found, and what was sent before is not yet all acknowledged.
    pub(super) fn is_recovering(&self, snd_una: SeqNum) -> bool {
        self.recovery_point.is_some() || self.is_resending(snd_una)
    }

    /// The timer has taken over, and what it held to be lost is not all acknowledged.
    pub(super) fn is_resending(&self, snd_una: SeqNum) -> bool {
        self.recover.is_some_and(|recover| snd_una.before(recover))
    }

    /// Bytes that duplicates tell to have arrived behind the first missing segment.
    pub(super) fn reported(&self, smss: u32) -> u32 {
        u32::from(self.dup_acks).saturating_mul(smss)
    }

    pub(super) fn on_duplicate(&mut self, now: &Duplicate) -> Verdict {
        if self.is_resending(now.snd_una) {
            let wrong = matches!(self.forward, Forward::AwaitsSecond { .. });
            self.forward = Forward::Unwatched;
            return if wrong { Verdict::Resend } else { Verdict::Open };
        }
        if self.recover == Some(now.snd_una) && !self.comes_of_a_loss(now) {
            return Verdict::Open;
        }
        self.dup_acks = self.dup_acks.saturating_add(1);
        if self.recovery_point.is_some() {
            self.inflation = self.inflation.saturating_add(now.smss);
            return Verdict::Recovering;
        }
        if self.dup_acks < self.dup_thresh {
            self.inflation = u32::from(self.dup_acks.min(2)) * now.smss;
            return Verdict::Open;
        }
        self.inflation = u32::from(self.dup_acks) * now.smss;
        self.recovery_point = Some(now.snd_max);
        self.recover = None;
        self.starved = 0;
        self.retransmit_head = true;
        Verdict::Loss
    }

    /// A recovery that only creeps is left to the time-out.
    pub(super) fn restarts_timer(&self) -> bool {
        self.recovery_point.is_none() || self.starved < 2
    }

    /// Exactly what a recovery repeated is acknowledged, and duplicates follow. They answer spurious retransmissions if that ACK had
    /// leapt over what the peer held already (RFC 6582 §4.1).
    fn comes_of_a_loss(&self, now: &Duplicate) -> bool {
        now.cwnd > now.smss && self.last_advance <= NEAR * now.smss
    }

    /// More duplicates than there are segments behind the first: some segments came late, so that many duplicates mean nothing yet
    /// (Linux's `tcp_check_reno_reordering`). True if that was news.
    pub(super) fn note_reordering(&mut self, now: &Duplicate) -> bool {
        let behind = now.snd_max.since(now.snd_una).div_ceil(now.smss.max(1)).saturating_sub(1);
        u32::from(self.dup_acks) > behind && self.raise_dup_thresh(behind + 1, now.max_reordering)
    }

    fn raise_dup_thresh(&mut self, segments: u32, most: u32) -> bool {
        let segments = u16::try_from(segments.min(most)).unwrap_or(u16::MAX);
        let raised = segments > self.dup_thresh;
        self.dup_thresh = self.dup_thresh.max(segments);
        self.learnt |= raised;
        raised
    }

    /// `snd_una` moved by `acked` bytes. A partial acknowledgement means the next hole is lost too, and takes back as much inflation
    /// as it acknowledges, but for the segment that is sent in answer (RFC 6582 §3.2 step 3).
    pub(super) fn on_progress(&mut self, snd_una: SeqNum, acked: u32, smss: u32) -> Verdict {
        let starved = core::mem::take(&mut self.dup_acks) < CLOCK;
        self.silent_since = None;
        self.last_advance = acked;
        self.recover = self.recover.filter(|recover| snd_una.before_or_eq(*recover));
        let Some(point) = self.recovery_point else {
            self.inflation = 0;
            if !self.is_resending(snd_una) {
                self.forward = Forward::Unwatched;
                self.undo = None;
            }
            return Verdict::Open;
        };
        if snd_una.before(point) {
            self.starved = if starved { (self.starved + 1).min(2) } else { 0 };
            self.retransmit_head = true;
            let answer = if acked >= smss { smss } else { 0 };
            self.inflation = self.inflation.saturating_sub(acked).saturating_add(answer);
        } else {
            self.recovery_point = None;
            self.recover = (snd_una == point).then_some(point);
            self.retransmit_head = false;
            self.inflation = 0;
            self.undo = None;
        }
        Verdict::Recovering
    }

    /// The timer takes over: everything is retransmitted from `snd_una`. `begun`: what the recovery begins from, should it be the first
    /// sign of loss. F-RTO watches it if `watch`, unless a loss had been found already (as Linux).
    pub(super) fn on_timeout(
        &mut self,
        (snd_una, snd_max): (SeqNum, SeqNum),
        begun: Option<Undo>,
        watch: bool,
    ) {
        let found = self.recovery_point.take().is_some();
        self.undo = if found || self.is_resending(snd_una) { self.undo } else { begun };
        self.forward = if watch && !found { Forward::AwaitsFirst } else { Forward::Unwatched };
        self.dup_acks = 0;
        self.inflation = 0;
        self.recover = Some(snd_max);
        self.retransmit_head = false;
    }

    /// The first ACK after a time-out acknowledged the repeated segment, perhaps more, but not all (RFC 5682 §2 step 2b): new data may
    /// tell more than another repetition. True: it goes. `new_data`: there is some, and the peer's window takes it.
    pub(super) fn tries_forward(&mut self, snd_una: SeqNum, new_data: bool) -> bool {
        let first = core::mem::take(&mut self.forward) == Forward::AwaitsFirst;
        let Some(recover) = self.recover.filter(|recover| first && new_data && snd_una.before(*recover))
        else {
            return false;
        };
        self.forward = Forward::AwaitsSecond { lost: recover.since(snd_una) };
        true
    }

    /// The second makes progress too, though only what was sent once is left to acknowledge (step 3b).
    pub(super) fn went_forward(&self) -> bool {
        matches!(self.forward, Forward::AwaitsSecond { .. })
    }

    /// The recovery was spurious. Its duplicates were segments that one had fallen behind. Returns the windows of before it, and
    /// whether the path was seen to reorder more than before.
    pub(super) fn reopen(&mut self, max_reordering: u32) -> Option<(Undo, bool)> {
        let undo = self.undo.take()?;
        let reordered = self.recovery_point.take().is_some();
        let news = reordered && self.raise_dup_thresh(u32::from(self.dup_acks) + 1, max_reordering);
        self.forward = Forward::Unwatched;
        self.recover = None;
        self.retransmit_head = false;
        self.inflation = 0;
        self.dup_acks = 0;
        Some((undo, news))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u32 = 1000;

    fn recovery() -> NewReno {
        NewReno::new(3)
    }

    fn over(recovery: &NewReno) -> bool {
        recovery.is_over()
    }

    fn duplicate(una: u32, max: u32) -> Duplicate {
        let (snd_una, snd_max) = (SeqNum(una), SeqNum(max));
        Duplicate { snd_una, snd_max, cwnd: 10 * MSS, smss: MSS, max_reordering: 300 }
    }

    #[test]
    fn the_third_duplicate_is_a_loss_and_partial_acks_resend() {
        let mut recovery = recovery();
        let found = [(); 3].map(|()| recovery.on_duplicate(&duplicate(0, 5000)));
        assert_eq!(found, [Verdict::Open, Verdict::Open, Verdict::Loss]);
        assert!(core::mem::take(&mut recovery.retransmit_head));
        assert_eq!(recovery.on_duplicate(&duplicate(0, 5000)), Verdict::Recovering);
        assert_eq!(recovery.inflation(), 4 * MSS);
        assert_eq!(recovery.on_progress(SeqNum(3000), 3000, MSS), Verdict::Recovering);
        assert!(core::mem::take(&mut recovery.retransmit_head));
        assert_eq!(recovery.inflation(), 2 * MSS);
        assert_eq!(recovery.on_progress(SeqNum(5000), 2000, MSS), Verdict::Recovering);
        assert_eq!((recovery.inflation(), over(&recovery)), (0, false), "until more is acknowledged");
        assert_eq!(recovery.on_progress(SeqNum(6000), 1000, MSS), Verdict::Open);
        assert!(over(&recovery));
    }

    /// RFC 6582 §4: with a clock every partial ACK gives more time, without one only the first.
    #[test]
    fn a_recovery_without_a_clock_is_left_to_the_time_out() {
        let mut recovery = recovery();
        for _ in 0..9 {
            recovery.on_duplicate(&duplicate(0, 50_000));
        }
        let mut partial = |una, duplicates| {
            recovery.on_progress(SeqNum(una), MSS, MSS);
            for _ in 0..duplicates {
                recovery.on_duplicate(&duplicate(una, 50_000));
            }
            recovery.restarts_timer()
        };
        assert_eq!([partial(1000, 4), partial(2000, 3), partial(3000, 4)], [true; 3]);
        assert_eq!([partial(4000, 3), partial(5000, 1), partial(6000, 1)], [true, true, false]);
        assert_eq!([partial(7000, 4), partial(8000, 0)], [false, true], "the clock is back");
        recovery.on_progress(SeqNum(50_000), MSS, MSS);
        assert!(recovery.restarts_timer());
    }

    #[test]
    fn duplicates_of_what_a_timeout_repeats_are_no_loss() {
        let mut recovery = recovery();
        recovery.on_timeout((SeqNum(0), SeqNum(5000)), None, false);
        for _ in 0..9 {
            assert_eq!(recovery.on_duplicate(&duplicate(1000, 5000)), Verdict::Open);
        }
        recovery.on_progress(SeqNum(5000), 1000, MSS);
        let found = [(); 3].map(|()| recovery.on_duplicate(&duplicate(5000, 9000)));
        assert_eq!(found[2], Verdict::Loss);
    }

    /// RFC 6582 §4.1: the last ACK leapt over what had been received before, so its duplicates answer spurious retransmissions.
    #[test]
    fn duplicates_behind_a_leap_are_no_loss() {
        for (leap, verdict) in [(4, Verdict::Loss), (5, Verdict::Open)] {
            let mut recovery = recovery();
            let found = [(); 3].map(|()| recovery.on_duplicate(&duplicate(0, 6000)));
            assert_eq!(found[2], Verdict::Loss);
            recovery.on_progress(SeqNum((6 - leap) * MSS), (6 - leap) * MSS, MSS);
            recovery.on_progress(SeqNum(6000), leap * MSS, MSS);
            let found = [(); 3].map(|()| recovery.on_duplicate(&duplicate(6000, 9000)));
            assert_eq!(found[2], verdict, "{leap} segments");
            recovery.on_progress(SeqNum(7000), MSS, MSS);
            let found = [(); 3].map(|()| recovery.on_duplicate(&duplicate(7000, 9000)));
            assert_eq!(found[2], if verdict == Verdict::Loss { Verdict::Recovering } else { Verdict::Loss });
        }
    }

    #[test]
    fn the_first_two_duplicates_let_a_segment_go_each() {
        let mut recovery = recovery();
        let inflated = [(); 3].map(|()| {
            recovery.on_duplicate(&duplicate(0, 5000));
            recovery.inflation()
        });
        assert_eq!(inflated, [MSS, 2 * MSS, 3 * MSS]);
        let mut recovery = self::recovery();
        recovery.on_duplicate(&duplicate(0, 5000));
        recovery.on_progress(SeqNum(1000), MSS, MSS);
        assert!(over(&recovery) && recovery.inflation() == 0);
    }

    /// Five segments in flight and five duplicates: so one of them was no answer to a segment behind the first.
    #[test]
    fn more_duplicates_than_segments_raise_what_means_a_loss() {
        let mut recovery = recovery();
        for _ in 0..4 {
            recovery.on_duplicate(&duplicate(0, 5000));
            assert!(!recovery.note_reordering(&duplicate(0, 5000)));
        }
        recovery.on_duplicate(&duplicate(0, 5000));
        assert!(recovery.note_reordering(&duplicate(0, 5000)));
        recovery.on_progress(SeqNum(5000), 5000, MSS);
        recovery.on_progress(SeqNum(6000), MSS, MSS);
        let found = [(); 5].map(|()| recovery.on_duplicate(&duplicate(6000, 20_000)));
        assert_eq!(found[3..], [Verdict::Open, Verdict::Loss]);
        assert!(!over(&recovery), "it is remembered");
    }
}
