//! Bits on the segments of the send queue, and their sums.

use super::rack::Rack;
use crate::tcp::delivery::Snapshot;
use crate::tcp::send_queue::{SendQueue, TxSegment};
use wire::SeqNum;

/// Sums over the marks, bytes.
#[derive(Debug, Default)]
pub(super) struct Marks {
    pub(super) sacked: u32,
    pub(super) lost: u32,
    pub(super) retransmitted: u32,
    /// Nothing before it waits to be sent again.
    pub(super) resend_from: SeqNum,
    /// Segments lost again after having been sent again, since last asked.
    pub(super) lost_retransmits: u32,
    /// Transmissions found to be lost since last asked.
    pub(super) newly_lost: Vec<LostTransmission>,
}

/// Number and length of what was lost, and what was told of its transmission.
pub(crate) type LostTransmission = ((SeqNum, u32), Snapshot);

impl Marks {
    pub(super) fn lose(&mut self, segment: &mut TxSegment) {
        if segment.is_thought_in_flight() {
            self.newly_lost.push(((segment.seq, segment.len), segment.snapshot));
        }
        if segment.retransmitted {
            segment.retransmitted = false;
            self.retransmitted = self.retransmitted.saturating_sub(segment.len);
            self.lost_retransmits += 1;
        }
        if !segment.lost {
            segment.lost = true;
            self.lost += segment.len;
        }
        self.resend_from = self.resend_from.earliest(segment.seq);
    }

    pub(super) fn sack(&mut self, segment: &mut TxSegment) {
        self.forget(segment);
        segment.lost = false;
        segment.retransmitted = false;
        segment.sacked = true;
        self.sacked += segment.len;
    }

    /// Adds the marks of a segment to the sums.
    pub(super) fn count(&mut self, segment: &TxSegment) {
        for (marked, sum) in [
            (segment.sacked, &mut self.sacked),
            (segment.lost, &mut self.lost),
            (segment.retransmitted, &mut self.retransmitted),
        ] {
            *sum += if marked { segment.len } else { 0 };
        }
    }

    pub(super) fn forget(&mut self, segment: &TxSegment) {
        for (marked, sum) in [
            (segment.sacked, &mut self.sacked),
            (segment.lost, &mut self.lost),
            (segment.retransmitted, &mut self.retransmitted),
        ] {
            *sum = sum.saturating_sub(if marked { segment.len } else { 0 });
        }
    }

    /// Nothing is marked.
    pub(super) fn is_clear(&self) -> bool {
        self.sacked == 0 && self.lost == 0 && self.retransmitted == 0
    }

    /// IsLost of RFC 6675 §4: enough segments beyond it, or runs of them, are there. What was sent again is left to the timer.
    pub(super) fn count_losses(&mut self, queue: &mut SendQueue, snd_una: SeqNum, rack: &Rack, smss: u32) {
        let thresh = rack.dup_thresh;
        let mut runs = 0;
        let mut in_run = false;
        for segment in queue.starting(snd_una).take_while(|segment| segment.seq.before(rack.fack)) {
            runs += u32::from(segment.sacked && !in_run);
            in_run = segment.sacked;
        }
        let mut above = self.sacked;
        in_run = false;
        for segment in queue.mark_from(snd_una).take_while(|segment| segment.seq.before(rack.fack)) {
            if segment.sacked {
                above -= segment.len;
                runs -= u32::from(!in_run);
            } else if !segment.lost
                && segment.transmissions == 1
                && (above > (thresh.saturating_sub(1)).saturating_mul(smss) || runs >= thresh)
            {
                self.lose(segment);
            }
            in_run = segment.sacked;
        }
    }

    /// NextSeg of RFC 6675 §4, rule 1: the first run of lost bytes that was not sent again, at most `max` of it.
    pub(super) fn next_lost(
        &mut self,
        queue: &SendQueue,
        snd_nxt: SeqNum,
        max: u32,
    ) -> Option<(SeqNum, u32)> {
        let mut run: Option<(SeqNum, u32)> = None;
        let in_flight = |segment: &&TxSegment| segment.seq.before(snd_nxt);
        for segment in queue.starting(self.resend_from).take_while(in_flight) {
            let waits = segment.lost && !segment.retransmitted;
            match &mut run {
                None if waits => run = Some((segment.seq, segment.len)),
                None => {}
                Some((_, len)) if waits && *len < max => *len += segment.len,
                Some(_) => break,
            }
        }
        self.resend_from = run.map_or(snd_nxt, |(seq, _)| seq);
        run.map(|(seq, len)| (seq, len.min(max)))
    }
}
