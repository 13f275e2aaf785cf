//! What was handed over and could not leave, and what of its departure was kept.

use super::SendQueue;
use crate::Instant;
use wire::SeqNum;

impl SendQueue {
    /// What was handed over from `seq` on to `end`, for the first time, has not left; returns what it weighed.
    #[cold]
    pub(in crate::tcp) fn take_back(&mut self, (seq, end): (SeqNum, SeqNum)) -> u32 {
        let Some(held) = &mut self.held else { return 0 };
        let mut place = held.segments.find(seq);
        let mut weight = 0;
        while held.segments.get(place).is_some_and(|segment| segment.end().before_or_eq(end)) {
            let taken = held.segments.update_sent(place, |segment| {
                segment.transmissions = 0;
                core::mem::take(&mut segment.weight)
            });
            weight += taken.unwrap_or_default();
            place = held.segments.behind(place);
        }
        held.sent_weight = held.sent_weight.saturating_sub(weight);
        weight
    }

    /// When the last segment before `end` was last sent.
    #[cold]
    pub(in crate::tcp) fn newest_sent_at(&self, end: SeqNum) -> Option<Instant> {
        self.segments.get(self.place_before(end)?).map(|segment| segment.sent_at)
    }

    /// When something was last delivered, or the flight began.
    #[cold]
    pub(in crate::tcp) fn delivered_at(&self, now: Instant) -> Instant {
        self.flight.delivered_at(now)
    }
}
