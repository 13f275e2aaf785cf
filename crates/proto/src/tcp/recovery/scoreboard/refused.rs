//! What was handed over and could not leave.

use super::{Prr, Scoreboard};
use crate::tcp::send::send_queue::{Kind, SendQueue, TxSegment};
use wire::SeqNum;

impl Scoreboard {
    /// The window, still `window`, comes down to `ssthresh` with the next ACKs.
    pub(crate) fn begin_reduction_between(&mut self, snd_nxt: SeqNum, window: u32, ssthresh: u32) {
        self.begin_reduction(snd_nxt, window, ssthresh);
        self.prr = Prr::begin_between(window, ssthresh);
    }

    /// What weighs so much, and was handed over, has not left.
    pub(crate) fn take_back_sent(&mut self, weight: u32) {
        self.prr.take_back(weight);
    }

    /// What was to be retransmitted from `seq` to `end`, and was refused, waits for its retransmission again.
    pub(crate) fn take_back_resent(&mut self, queue: &mut SendQueue, (seq, end): (SeqNum, SeqNum)) {
        self.refused = true;
        self.weigh(queue);
        let mut weight = 0;
        let is_taken_back = |segment: &TxSegment| segment.end().before_or_eq(end);
        queue.mark_each(Kind::Any, seq, is_taken_back, |segment| {
            weight += segment.weight;
            self.marks.take_back(segment);
        });
        self.prr.take_back(weight);
    }
}
