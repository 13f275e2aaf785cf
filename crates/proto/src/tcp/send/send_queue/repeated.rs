//! What a D-SACK (RFC 2883) makes of interest: what of it went more than once, and whether it tells of another round.

use super::{Kind, SendQueue, TxSegment};
use crate::Instant;
use wire::SeqNum;

/// Segments that are looked at of a duplicate. It tells of one packet (RFC 2883 §4), though a receiver may have merged several, up to 64 KiB.
const REPEATED_MOST: usize = 64;

impl SendQueue {
    /// The first segment in `start..end` that is selectively acknowledged, and went more than once: if it arrived twice, its first
    /// transmission did, late (Linux's `tcp_sacktag_one`).
    pub(crate) fn repeated_in_vain(&self, (start, end): (SeqNum, SeqNum)) -> Option<SeqNum> {
        self.within(Kind::SackedAgain, (start, end)).next().map(|segment| segment.seq)
    }

    /// Bytes of the whole segments in `start..end` that went more than once.
    pub(crate) fn repeated_within(&self, (start, end): (SeqNum, SeqNum)) -> u32 {
        self.within(Kind::Again, (start, end)).take(REPEATED_MOST).map(|segment| segment.len).sum()
    }

    fn within(&self, kind: Kind, (start, end): (SeqNum, SeqNum)) -> impl Iterator<Item = &TxSegment> {
        let inside = self.of_kind(kind, start).take_while(move |segment| segment.end().before_or_eq(end));
        inside.skip_while(move |segment| segment.seq.before(start))
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
