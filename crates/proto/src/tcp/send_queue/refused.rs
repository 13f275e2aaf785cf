//! What was handed over and could not leave, and what of its departure was kept.

use super::SendQueue;
use crate::Instant;
use wire::SeqNum;

impl SendQueue {
    /// What was handed over from `seq` on to `end`, for the first time, has not left; returns what it weighed.
    #[cold]
    pub(in crate::tcp) fn take_back(&mut self, (seq, end): (SeqNum, SeqNum)) -> u32 {
        let first = self.index_of(seq);
        let Some(held) = &mut self.held else { return 0 };
        let mut weight = 0;
        for segment in held.segments.range_mut(first..).take_while(|segment| segment.end().before_or_eq(end))
        {
            weight += std::mem::take(&mut segment.weight);
            segment.transmissions = 0;
        }
        held.sent_weight = held.sent_weight.saturating_sub(weight);
        weight
    }

    /// When the last segment before `end` was last sent.
    #[cold]
    pub(in crate::tcp) fn newest_sent_at(&self, end: SeqNum) -> Option<Instant> {
        let index = self.index_of(end).checked_sub(1)?;
        self.segments.get(index).map(|segment| segment.sent_at)
    }

    /// When something was last delivered, or the flight began.
    #[cold]
    pub(in crate::tcp) fn delivered_at(&self, now: Instant) -> Instant {
        self.flight.delivered_at(now)
    }
}
