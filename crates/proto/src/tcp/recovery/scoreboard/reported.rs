//! Peers without SACK: each duplicate ACK tells that some segment behind the first missing one arrived, and counts as if SACK had reported which
//! (Linux's `tcp_add_reno_sack` and `tcp_remove_reno_sacks`).

use super::{Phase, Scoreboard};
use crate::NewRenoRules;
use crate::tcp::recovery::arrived::Arrived;
use crate::tcp::send::send_queue::{Kind, SendQueue, TxSegment};
use wire::SeqNum;

/// Bytes that a segment counts as, and `tcp_max_reordering`.
pub(crate) type Measure = (u32, u32);

/// What a time-out's recovery takes the ACK for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Timeout {
    /// It was spurious: something that had never been retransmitted is acknowledged.
    Forward,
    /// New data may tell more than another repetition.
    TryNew,
    /// It goes on.
    Goes,
    /// Everything from before it is acknowledged.
    Ends,
}

/// Partial acknowledgements of a fast recovery that restart the retransmission timer.
const RESTARTS_MAX: u8 = 4;

impl Scoreboard {
    /// An acknowledgement up to `ack` makes progress.
    pub(crate) fn count_partial(&mut self, ack: SeqNum) {
        let partial = self.phase == Phase::Recovery && !self.ends_by(ack);
        self.partials = if partial { self.partials.saturating_add(1) } else { 0 };
    }

    /// Progress gives what is in flight a new time-out (see [`NewRenoRules`]).
    pub(crate) fn restarts_timer(&self, rules: NewRenoRules) -> bool {
        self.partials <= RESTARTS_MAX || !rules.later_partial_acks_leave_timer()
    }

    /// A partial acknowledgement has the next hole retransmitted, whatever is in flight.
    pub(crate) fn let_head_go(&mut self, in_flight: u32, smss: u32) {
        let pipe = self.pipe(in_flight);
        self.prr.raise(pipe.saturating_add(smss));
    }

    /// Everything sent before the loss was found is acknowledged, and nothing more: duplicates that follow may answer spurious
    /// repetitions, so the recovery is held to go on (RFC 6582 §3.2 step 1; as Linux).
    pub(crate) fn is_held(&self, snd_una: SeqNum) -> bool {
        self.reported.is_some() && self.repairs() && snd_una == self.point
    }

    /// A duplicate ACK. Returns the bytes that are known by it to be delivered, and whether it shows reordering: it is one more than
    /// there are segments behind the missing.
    pub(crate) fn hear_duplicate(&mut self, in_flight: u32, measure: Measure) -> (u32, bool) {
        let before = self.reported_bytes();
        self.reported = Some(before.saturating_add(measure.0));
        let reordered = self.limit_reported(in_flight, 0, measure);
        (self.reported_bytes().saturating_sub(before), reordered)
    }

    /// `acked` bytes were acknowledged, and `in_flight` are left: the first was missing, and what is behind it had been reported, as far
    /// as duplicates came. Returns and shows the same.
    pub(crate) fn reported_is_acknowledged(
        &mut self,
        acked: u32,
        in_flight: u32,
        measure: Measure,
    ) -> (u32, bool) {
        let reported = self.reported_bytes();
        let delivered = acked.saturating_sub(reported).max(acked.min(measure.0));
        self.reported = Some(reported.saturating_sub(acked.saturating_sub(measure.0)));
        (delivered, self.limit_reported(in_flight, acked, measure))
    }

    /// The path was seen to deliver out of order, by so many segments.
    fn reorders(&mut self, segments: u32) {
        self.rack.reordering_seen = true;
        self.rack.dup_thresh = segments;
    }

    /// No more can have arrived than is in flight without what is missing.
    fn limit_reported(&mut self, in_flight: u32, acked: u32, (segment, most): Measure) -> bool {
        let missing = self.sums().1.max(segment).min(in_flight);
        if self.reported_bytes().saturating_add(missing) <= in_flight {
            return false;
        }
        self.reported = Some(in_flight - missing);
        self.reorders((in_flight + acked).div_ceil(segment.max(1)).min(most));
        true
    }

    /// What duplicates reported belongs to what is acknowledged by now.
    pub(crate) fn forget_reported(&mut self) {
        self.reported = Some(0);
    }

    /// Duplicates have reported as many segments as make a loss.
    pub(crate) fn enough_reported(&self, segment: u32) -> bool {
        self.reported_bytes() >= self.reordering().saturating_mul(segment)
    }

    /// The first segment is lost. Several that went as one are cut where the device cut them.
    pub(crate) fn lose_head(&mut self, queue: &mut SendQueue, snd_una: SeqNum, segment: u32) {
        queue.cut(snd_una + segment);
        self.weigh(queue);
        let is_head = |head: &TxSegment| head.seq == snd_una && !head.lost;
        queue.mark_each(Kind::Any, snd_una, is_head, |head| self.marks.lose(head));
    }

    /// A time-out's recovery (F-RTO, RFC 5682 §2, and Linux's `tcp_process_loss`): what does an ACK mean to it, a `duplicate` or one that
    /// makes progress?
    pub(crate) fn judge_timeout(
        &mut self,
        arrived: &Arrived,
        snd_una: SeqNum,
        duplicate: bool,
        can_send: bool,
    ) -> Timeout {
        let ends = self.ends_by(snd_una);
        if self.forward {
            if arrived.is_original() {
                return Timeout::Forward;
            }
            let news = arrived.snd_nxt.after(self.point);
            let partial = snd_una.after(arrived.snd_una) && !ends;
            if !news && partial && can_send {
                return Timeout::TryNew;
            }
            self.forward &= if news { !duplicate } else { !partial };
        }
        if ends { Timeout::Ends } else { Timeout::Goes }
    }

    /// Nothing is lost after all. What was retransmitted is in the network twice (as in Linux's `tcp_undo_cwnd_reduction`).
    pub(crate) fn unmark(&mut self, queue: &mut SendQueue, snd_una: SeqNum) {
        self.weigh(queue);
        queue.mark_each(Kind::Lost, snd_una, |_| true, |segment| self.marks.unmark_lost(segment));
    }

    /// Nothing is held to be lost any more; with what is `reported`, segments are still out of order.
    pub(crate) fn open(&mut self) {
        self.phase = Phase::Open;
        self.new_data_first = false;
        self.forward = false;
        self.undo = None;
    }

    /// Highest number that SACK reported.
    pub(crate) fn reported_end(&self, snd_una: SeqNum) -> SeqNum {
        if self.marks.sacked.len > 0 { self.rack.fack } else { snd_una }
    }
}
