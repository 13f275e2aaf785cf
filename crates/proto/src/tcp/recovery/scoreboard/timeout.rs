//! After a time-out: what is lost by it, and whether it was spurious (F-RTO, RFC 5682).

use super::{Marks, Phase, Scoreboard};
use crate::Instant;
use crate::tcp::recovery::arrived::Arrived;
use crate::tcp::recovery::scoreboard::RACK;
use crate::tcp::recovery::{ReoWindow, Undo};
use crate::tcp::send::send_queue::{Kind, SendQueue, TxSegment};
use alloc::vec::Vec;
use wire::SeqNum;

impl Scoreboard {
    /// The timer fired: the first segment is lost, and all else that is not selectively acknowledged, unless `spare` is given and it was
    /// sent within a round trip (RFC 8985 §6.3; without RACK nothing is spared, RFC 6675 §5.1). A peer that let go of what it had
    /// reported (its first segment was reported, and not acknowledged) has all of it to get again. True in that case.
    pub(crate) fn on_timeout(
        &mut self,
        queue: &mut SendQueue,
        (snd_una, snd_nxt): (SeqNum, SeqNum),
        spare: Option<(Instant, &ReoWindow)>,
    ) -> bool {
        let reneged = queue.starting(snd_una).next().is_some_and(|head| head.sacked);
        let spare = spare.filter(|(_, how)| !reneged && how.flags & RACK != 0);
        let spare = spare.map(|(now, how)| (now, self.rack.reo_wnd(queue, snd_una, true, how), how.srtt));
        self.weigh(queue);
        self.phase = Phase::Loss;
        self.probe = None;
        (self.fin.reported, self.fin.lost) = (false, false);
        (self.new_data_first, self.refused, self.timed_out) = (false, false, true);
        self.point = snd_nxt;
        self.marks = Marks::default();
        self.reported = self.reported.map(|_| 0);
        let mut head = true;
        let is_sent = |segment: &TxSegment| segment.seq.before(snd_nxt);
        queue.mark_each(Kind::Any, snd_una, is_sent, |segment| {
            segment.sacked &= !reneged;
            let rack = &self.rack;
            let may_come = |(now, reo_wnd, srtt): (_, _, _)| rack.may_come(segment, now, reo_wnd, srtt);
            let spared = !core::mem::take(&mut head) && spare.is_some_and(may_come);
            if !spared {
                if segment.is_thought_in_flight() {
                    self.marks.newly_lost.push(((segment.seq, segment.len), segment.snapshot));
                }
                if core::mem::take(&mut segment.retransmitted) {
                    self.marks.lost_again.add(segment);
                }
                segment.lost = !segment.sacked;
            }
            self.marks.count(segment);
        });
        if reneged {
            self.rack.fack = snd_una;
        }
        reneged
    }

    /// The timer fires although `least` segments were reported beyond what is missing: the path does not reorder as far as was thought
    /// (Linux's `tcp_enter_loss`).
    pub(crate) fn doubt_reordering(&mut self, least: u32, segment: u32) {
        if self.phase == Phase::Open && self.sums().0 >= least.saturating_mul(segment) {
            self.rack.dup_thresh = self.rack.dup_thresh.min(least);
        }
    }

    /// What lies in `from..to` is lost, and the window does not answer for it. It is retransmitted as after a time-out.
    pub(crate) fn lose_range(
        &mut self,
        queue: &mut SendQueue,
        (from, to): (SeqNum, SeqNum),
        snd_nxt: SeqNum,
    ) {
        self.lose_some(queue, (from, to), |_| true);
        self.repair_at_this_window(snd_nxt);
    }

    /// Marks as lost everything in flight that was sent in packets of more than `most` bytes,
    /// whether of one segment or of several. Other packets may have arrived (Linux's
    /// `tcp_simple_retransmit`). `packet` is the size of the largest packet sent.
    pub(crate) fn lose_longer(
        &mut self,
        queue: &mut SendQueue,
        (snd_una, snd_nxt): (SeqNum, SeqNum),
        (packet, most): (u32, u32),
    ) {
        let longer = sent_together(queue, (snd_una, snd_nxt), |len| len.min(packet) > most);
        let is_longer = |segment: &TxSegment| {
            let behind = longer.partition_point(|(from, _)| from.before_or_eq(segment.seq));
            behind.checked_sub(1).is_some_and(|last| segment.seq.before(longer[last].1))
        };
        if self.lose_some(queue, (snd_una, snd_nxt), is_longer) {
            self.repair_at_this_window(snd_nxt);
        }
    }

    /// True if there is any.
    fn lose_some(
        &mut self,
        queue: &mut SendQueue,
        (from, to): (SeqNum, SeqNum),
        is_lost: impl Fn(&TxSegment) -> bool,
    ) -> bool {
        let mut any = false;
        self.weigh(queue);
        let is_meant = |segment: &TxSegment| segment.seq.before(to);
        queue.mark_each(Kind::Missing, from, is_meant, |segment| {
            if (!segment.lost || segment.retransmitted) && is_lost(segment) {
                self.marks.lose(segment);
                any = true;
            }
        });
        any
    }

    fn repair_at_this_window(&mut self, snd_nxt: SeqNum) {
        if !self.repairs() {
            (self.phase, self.point) = (Phase::Loss, snd_nxt);
            (self.undo, self.probe) = (None, None);
        }
    }

    /// After [`on_timeout`](Self::on_timeout) of a phase: `before` are the windows of before it, and it is the `first` since progress was
    /// made. Amid a recovery that had begun the windows are those of before that, unless it was a time-out's and this is another loss. F-RTO
    /// watches it if `forward`, unless a loss had been found already (RFC 5682 §3.1 step 1; as Linux).
    pub(crate) fn watch_timeout(
        &mut self,
        (was, first): (Phase, bool),
        before: (u32, u32),
        snd_una: SeqNum,
        forward: bool,
    ) {
        let begins = match was {
            Phase::Open | Phase::Reducing => true,
            Phase::Loss => first,
            Phase::Recovery => false,
        };
        if begins || self.undo.is_none() {
            let echoed = was == Phase::Reducing;
            let mut undo =
                if echoed { Undo::of_congestion(snd_una) } else { Undo::new(before.0, before.1, snd_una) };
            if was == Phase::Loss {
                // What was retransmitted before may still be on its way.
                undo.inherit(self.resent_since, 0);
            }
            self.undo = Some(undo);
        }
        self.forward = forward && (matches!(was, Phase::Open | Phase::Reducing) || !first);
    }

    /// F-RTO's steps 2 and 3 (RFC 5682 §3.1): after the first progress new data goes if `can_send`, and what the next ACK tells
    /// decides.
    pub(crate) fn watch_forward(&mut self, arrived: &Arrived, snd_una: SeqNum, can_send: bool) {
        if !self.forward {
            return;
        }
        let first = arrived.snd_nxt.before_or_eq(self.point);
        let partial = snd_una.after(arrived.snd_una) && snd_una.before(self.point);
        if first && partial && can_send {
            self.new_data_first = true;
        } else if !first || partial {
            self.forward = false;
        }
    }
}

/// Returns the beginning and end of segments between `from` and `to` that were sent together and
/// whose total length is `wanted`, in order.
fn sent_together(
    queue: &SendQueue,
    (from, to): (SeqNum, SeqNum),
    wanted: impl Fn(u32) -> bool,
) -> Vec<(SeqNum, SeqNum)> {
    let mut together: Vec<(SeqNum, SeqNum)> = Vec::new();
    for segment in queue.starting(from).take_while(|segment| segment.seq.before(to)) {
        match together.last_mut().filter(|(_, end)| segment.follows && *end == segment.seq) {
            Some((_, end)) => *end = segment.end(),
            None => {
                together.pop_if(|(begin, end)| !wanted(end.since(*begin)));
                together.push((segment.seq, segment.end()));
            }
        }
    }
    together.pop_if(|(begin, end)| !wanted(end.since(*begin)));
    together
}
