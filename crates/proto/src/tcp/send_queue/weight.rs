//! What segments in flight count as for the congestion window: their bytes, or whole segments (`count_segments`).

use super::{Held, SendQueue};
use wire::SeqNum;

impl SendQueue {
    /// What is in flight weighs, if segments are counted.
    pub(crate) fn sent_weight(&self) -> Option<u32> {
        (self.unit > 1).then_some(self.sent_weight)
    }

    /// What was acknowledged last weighed.
    #[cold]
    pub(crate) fn acked_weight(&self) -> u32 {
        self.acked_weight
    }

    /// Segments take so many bytes from now on.
    pub(crate) fn resize(&mut self, segment: u32) {
        if let Some(held) = self.held.as_mut().filter(|held| held.unit > 1 && held.unit != segment) {
            held.rescale(segment);
        }
    }

    /// One weighs something else than it did when last asked.
    #[inline]
    pub(crate) fn take_reweighed(&mut self) -> bool {
        self.held.as_mut().is_some_and(|held| std::mem::take(&mut held.reweighed))
    }

    /// What is in flight is all that was sent up to `nxt`.
    pub(crate) fn weigh(&mut self, nxt: SeqNum) {
        if let Some(held) = &mut self.held {
            let sent = held.segments.iter().take_while(|segment| segment.seq.before(nxt));
            held.sent_weight = sent.map(|segment| segment.weight).sum();
        }
    }
}

impl Held {
    /// Splits a segment where each part is a packet from now on, and counts as one (Linux's `tcp_fragment`).
    pub(super) fn cut_at(&mut self, index: usize, at: u32) {
        self.split_at(index, at);
        if self.unit > 1 && self.segments[index + 1].transmissions > 0 {
            self.reweigh(index, whole(at, self.unit));
            self.reweigh(index + 1, whole(self.segments[index + 1].len, self.unit));
        }
    }

    /// One that is in flight weighs so much from now on.
    pub(super) fn reweigh(&mut self, index: usize, weight: u32) {
        let was = std::mem::replace(&mut self.segments[index].weight, weight);
        if was != weight {
            self.sent_weight = (self.sent_weight + weight).saturating_sub(was);
            self.reweighed = true;
        }
    }

    /// A segment takes `unit` bytes from now on. What was sent counts as many segments as it did.
    #[cold]
    fn rescale(&mut self, unit: u32) {
        let was = std::mem::replace(&mut self.unit, unit).max(1);
        for weight in
            self.segments.iter_mut().map(|segment| &mut segment.weight).chain([&mut self.sent_weight])
        {
            *weight = *weight / was * unit;
        }
        self.reweighed = true;
    }
}

/// `len` in whole segments of `unit`, bytes.
pub(super) fn whole(len: u32, unit: u32) -> u32 {
    if unit == 1 { len } else { len.next_multiple_of(unit) }
}

/// What `len` bytes weigh that follow `before` others in one transmission, of which a packet takes `packet`.
pub(super) fn weight((before, len): (u32, u32), unit: u32, packet: u32) -> u32 {
    match unit {
        1 => len,
        _ => ((before + len).div_ceil(packet) - before.div_ceil(packet)) * unit,
    }
}
