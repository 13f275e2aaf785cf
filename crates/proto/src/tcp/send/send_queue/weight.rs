//! What segments in flight count as for the congestion window: their bytes, or whole segments (`window_unit`).

use super::marked::Place;
use super::{Held, SendQueue, TxSegment};
use wire::SeqNum;

/// By how much those with a mark weigh more than they did when last asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reweighed {
    pub(in crate::tcp) sacked: i64,
    pub(in crate::tcp) lost: i64,
    pub(in crate::tcp) retransmitted: i64,
    /// All may.
    pub(in crate::tcp) all: bool,
}

impl Reweighed {
    pub(super) const NOTHING: Reweighed = Reweighed { sacked: 0, lost: 0, retransmitted: 0, all: false };

    fn note(&mut self, segment: &TxSegment, change: i64) {
        for (marked, sum) in [
            (segment.sacked, &mut self.sacked),
            (segment.lost, &mut self.lost),
            (segment.retransmitted, &mut self.retransmitted),
        ] {
            if marked {
                *sum += change;
            }
        }
    }
}

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

    /// Some with a mark weigh something else than they did when last asked.
    #[inline]
    pub(crate) fn take_reweighed(&mut self) -> Option<Reweighed> {
        let held = self.held.as_mut().filter(|held| held.reweighed != Reweighed::NOTHING)?;
        Some(core::mem::replace(&mut held.reweighed, Reweighed::NOTHING))
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
    /// Returns where the first part lies.
    pub(super) fn cut_at(&mut self, place: Place, at: u32) -> Place {
        let place = self.split_at(place, at);
        let behind = self.segments.behind(place);
        let rest = self.segments.get(behind).filter(|rest| rest.transmissions > 0 && self.unit > 1);
        if let Some(rest) = rest.map(|rest| rest.len) {
            self.reweigh(place, whole(at, self.unit));
            self.reweigh(behind, whole(rest, self.unit));
        }
        place
    }

    /// One that is in flight weighs so much from now on.
    pub(super) fn reweigh(&mut self, place: Place, weight: u32) {
        let Some(segment) = self.segments.get_mut(place) else { return };
        let was = core::mem::replace(&mut segment.weight, weight);
        self.sent_weight = (self.sent_weight + weight).saturating_sub(was);
        self.reweighed.note(segment, i64::from(weight) - i64::from(was));
    }

    /// A segment takes `unit` bytes from now on. What was sent counts as many segments as it did.
    #[cold]
    fn rescale(&mut self, unit: u32) {
        let was = core::mem::replace(&mut self.unit, unit).max(1);
        for weight in
            self.segments.iter_mut().map(|segment| &mut segment.weight).chain([&mut self.sent_weight])
        {
            *weight = *weight / was * unit;
        }
        self.reweighed.all = true;
    }
}

/// `len` in whole segments of `unit`, bytes.
pub(super) fn whole(len: u32, unit: u32) -> u32 {
    if unit == 1 { len } else { len.next_multiple_of(unit) }
}

/// What `len` bytes weigh that follow `before` others in one transmission, of which a packet takes `packet`.
pub(super) fn weight(before: u32, len: u32, unit: u32, packet: u32) -> u32 {
    match unit {
        1 => len,
        _ => ((before + len).div_ceil(packet) - before.div_ceil(packet)) * unit,
    }
}
