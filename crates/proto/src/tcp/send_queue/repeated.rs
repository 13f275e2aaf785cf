//! What a D-SACK (RFC 2883) makes of interest: what of it went more than once, and whether it tells of another round.

use super::SendQueue;
use crate::Instant;
use wire::SeqNum;

impl SendQueue {
    /// The first segment in `start..end` that is selectively acknowledged, and went more than once: if it arrived twice, its first
    /// transmission did, late (Linux's `tcp_sacktag_one`).
    pub(crate) fn repeated_in_vain(&self, (start, end): (SeqNum, SeqNum)) -> Option<SeqNum> {
        let mut inside = self.starting(start).take_while(|segment| segment.end().before_or_eq(end));
        inside
            .find(|segment| segment.sacked && segment.transmissions > 1 && segment.seq.after_or_eq(start))
            .map(|segment| segment.seq)
    }

    /// Bytes of the whole segments in `start..end` that went more than once.
    pub(crate) fn repeated_within(&self, (start, end): (SeqNum, SeqNum)) -> u32 {
        let inside = self.starting(start).take_while(|segment| segment.end().before_or_eq(end));
        let again = inside.filter(|segment| segment.transmissions > 1 && segment.seq.after_or_eq(start));
        again.map(|segment| segment.len).sum()
    }

    /// Bytes delivered so far, and when the last sent of those was that are acknowledged just now.
    pub(crate) fn delivered_and_before(&self) -> Option<(u32, u32)> {
        let before = self.held.as_ref()?.flight.delivered_before_newest()?;
        Some((self.delivery.delivered(), before))
    }

    /// Something was delivered besides what segments tell (see `Delivery`).
    pub(crate) fn delivered_besides(&mut self, now: Instant, bytes: u32) {
        self.delivery.delivered_besides(self.held.as_mut().map(|held| &mut held.flight), now, bytes);
    }
}
