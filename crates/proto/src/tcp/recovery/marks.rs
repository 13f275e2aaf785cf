//! Bits on the segments of the send queue, and their sums.

use crate::tcp::send::delivery::Snapshot;
use crate::tcp::send::send_queue::{Kind, Reweighed, SendQueue, TxSegment};
use alloc::vec::Vec;
use wire::SeqNum;

/// Sums over segments with a mark, bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sum {
    /// What they count as. Where segments are counted that is nothing for what went behind others in one packet.
    pub(super) weight: u32,
    /// What they are: something, if there are any.
    pub(super) len: u32,
}

impl Sum {
    pub(super) fn add(&mut self, segment: &TxSegment) {
        self.weight += segment.weight;
        self.len += segment.len;
    }

    fn sub(&mut self, segment: &TxSegment) {
        self.weight = self.weight.saturating_sub(segment.weight);
        self.len = self.len.saturating_sub(segment.len);
    }
}

/// Sums over the marks.
#[derive(Debug, Default)]
pub(super) struct Marks {
    pub(super) sacked: Sum,
    pub(super) lost: Sum,
    pub(super) retransmitted: Sum,
    /// What was lost again after having been retransmitted, since last asked.
    pub(super) lost_again: Sum,
    /// Transmissions found to be lost since last asked.
    pub(super) newly_lost: Vec<LostTransmission>,
}

/// Number and length of what was lost, and what is known of its transmission.
pub(crate) type LostTransmission = ((SeqNum, u32), Snapshot);

/// How much is retransmitted at once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Resend {
    /// Bytes at most.
    pub(in crate::tcp) most: u32,
    /// Several segments go together only if they are no more than this; 0: never.
    pub(in crate::tcp) together: u32,
    /// Several segments go together only if what is beyond the first ends no later than this, ...
    pub(in crate::tcp) until: SeqNum,
    /// ... and all of it is lost; otherwise the peer must only not have reported it.
    pub(in crate::tcp) all_lost: bool,
}

impl Resend {
    fn joins(&self, segment: &TxSegment, before: u32) -> bool {
        let may = if self.all_lost { segment.lost && !segment.retransmitted } else { !segment.sacked };
        may && segment.len <= self.together.saturating_sub(before) && segment.end().before_or_eq(self.until)
    }
}

impl Marks {
    pub(super) fn lose(&mut self, segment: &mut TxSegment) {
        if segment.is_thought_in_flight() {
            self.newly_lost.push(((segment.seq, segment.len), segment.snapshot));
            segment.losses = segment.losses.saturating_add(1);
        }
        if segment.retransmitted {
            segment.retransmitted = false;
            self.retransmitted.sub(segment);
            self.lost_again.add(segment);
        }
        if !segment.lost {
            segment.lost = true;
            self.lost.add(segment);
        }
    }

    /// It has not been retransmitted after all.
    pub(super) fn take_back(&mut self, segment: &mut TxSegment) {
        if segment.retransmitted {
            segment.retransmitted = false;
            self.retransmitted.sub(segment);
        }
    }

    pub(super) fn sack(&mut self, segment: &mut TxSegment) {
        self.forget(segment);
        segment.lost = false;
        segment.retransmitted = false;
        segment.sacked = true;
        self.sacked.add(segment);
    }

    /// Adds the marks of a segment to the sums.
    pub(super) fn count(&mut self, segment: &TxSegment) {
        for (marked, sum) in [
            (segment.sacked, &mut self.sacked),
            (segment.lost, &mut self.lost),
            (segment.retransmitted, &mut self.retransmitted),
        ] {
            if marked {
                sum.add(segment);
            }
        }
    }

    /// It is not lost after all.
    pub(super) fn unmark_lost(&mut self, segment: &mut TxSegment) {
        if segment.lost {
            self.lost.sub(segment);
            segment.lost = false;
        }
    }

    pub(super) fn forget(&mut self, segment: &TxSegment) {
        for (marked, sum) in [
            (segment.sacked, &mut self.sacked),
            (segment.lost, &mut self.lost),
            (segment.retransmitted, &mut self.retransmitted),
        ] {
            if marked {
                sum.sub(segment);
            }
        }
    }

    /// Segments weigh something else than they did.
    #[cold]
    pub(super) fn weigh(&mut self, queue: &SendQueue, change: &Reweighed) {
        if change.all {
            (self.sacked, self.lost, self.retransmitted) = Default::default();
            return queue.all().for_each(|segment| self.count(segment));
        }
        for (sum, change) in [
            (&mut self.sacked, change.sacked),
            (&mut self.lost, change.lost),
            (&mut self.retransmitted, change.retransmitted),
        ] {
            sum.weight = u32::try_from(i64::from(sum.weight) + change).unwrap_or_default();
        }
    }

    /// Nothing is marked.
    pub(super) fn is_clear(&self) -> bool {
        self.sacked.len == 0 && self.lost.len == 0 && self.retransmitted.len == 0
    }

    /// Marks what IsLost of RFC 6675 §4 says: "either DupThresh discontiguous SACKed sequences have arrived above 'SeqNum' or more than
    /// (DupThresh - 1) * SMSS bytes with sequence numbers greater than 'SeqNum' have been SACKed." What was retransmitted is left to the timer.
    pub(super) fn count_losses(&mut self, queue: &mut SendQueue, snd_una: SeqNum, thresh: u32, smss: u32) {
        let (mut above, mut runs, mut run_begins) = (0u32, 0, None);
        // What is enough for one is so for all before it.
        let enough = queue.sacked_from_behind().find(|segment| {
            above = above.saturating_add(segment.weight);
            runs += u32::from(run_begins != Some(segment.end()));
            run_begins = Some(segment.seq);
            above > thresh.saturating_sub(1).saturating_mul(smss) || runs >= thresh
        });
        if let Some(enough) = enough.map(|segment| segment.seq) {
            let is_below = |segment: &TxSegment| segment.seq.before(enough);
            queue.mark_each(Kind::Fresh, snd_una, is_below, |segment| self.lose(segment));
        }
    }

    /// NextSeg of RFC 6675 §4, rule 1: the first run of lost bytes that was not retransmitted.
    pub(super) fn next_lost(
        &self,
        queue: &SendQueue,
        (snd_una, snd_nxt): (SeqNum, SeqNum),
        how: &Resend,
    ) -> Option<(SeqNum, u32)> {
        let mut waiting =
            queue.starting_with(Kind::Waits, snd_una).take_while(|segment| segment.seq.before(snd_nxt));
        let first = waiting.next()?;
        let mut len = first.len;
        while len < how.most
            && let Some(segment) = waiting.next().filter(|segment| how.joins(segment, len))
        {
            len += segment.len;
        }
        Some((first.seq, len.min(how.most)))
    }
}
