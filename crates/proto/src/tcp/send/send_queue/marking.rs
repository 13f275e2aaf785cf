//! What recovery asks of the queue: segments by their marks, and to change those. None of it costs a walk over what is in flight, but for
//! what it changes.

use super::kinds::Kind;
use super::marked::{Place, Transmission};
use super::{Held, SendQueue, TxSegment};
use crate::Instant;
use wire::SeqNum;

/// Whole packets that a peer reports.
pub(crate) struct Packets {
    first: Place,
    /// The number behind the last.
    end: SeqNum,
}

impl SendQueue {
    /// What of `block` is whole packets, with a segment beginning and ending there from now on. Packets were of `smss`, the last of a
    /// segment perhaps smaller; one that is covered in part is not there (Linux's `tcp_match_skb_to_sack`).
    pub(crate) fn cut_packets(&mut self, block: (SeqNum, SeqNum), smss: u32) -> Option<Packets> {
        let held = self.held.as_deref_mut()?;
        let first = held.segments.find(block.0);
        let last = held.segments.find_near(first, block.1);
        let start = held.packet_edge(first, block.0, |at| at.next_multiple_of(smss));
        let end = held.packet_edge(last, block.1, |at| at / smss * smss);
        if !start.before(end) {
            return None;
        }
        let first = if last == first {
            let first = held.cut_within(first, start, true);
            held.cut_end(first, end, true)
        } else {
            held.cut_within(last, end, true);
            held.cut_within(held.segments.find(start), start, true)
        };
        Some(Packets { first, end })
    }

    /// Those packets that were not selectively acknowledged are now, as `mark` notes: they are delivered.
    pub(crate) fn deliver(&mut self, packets: Packets, mut mark: impl FnMut(&mut TxSegment)) {
        let Some(held) = self.held.as_deref_mut() else { return };
        let Held { segments, flight, .. } = held;
        let is_whole = |segment: &TxSegment| !segment.end().after(packets.end);
        segments.mark_run(Kind::Missing, packets.first, is_whole, |segment| {
            mark(segment);
            self.delivery.on_delivered(flight, segment.departure(), &segment.snapshot);
        });
    }

    /// Changes segments of a kind, from the one that holds `from` on, for as long as they lie `within`.
    pub(crate) fn mark_each(
        &mut self,
        kind: Kind,
        from: SeqNum,
        within: impl FnMut(&TxSegment) -> bool,
        change: impl FnMut(&mut TxSegment),
    ) {
        let Some(held) = &mut self.held else { return };
        let from = held.segments.find(from);
        held.segments.mark_run(kind, from, within, change);
    }

    /// Of what was sent more than once and is thought in flight, changes segments in the order in which they were sent, for as long as the time of
    /// a transmission and the number behind it are `within`: they are not thought in flight then.
    pub(crate) fn lose_resent(
        &mut self,
        within: impl Fn((Instant, SeqNum)) -> bool,
        mut lose: impl FnMut(&mut TxSegment),
    ) {
        let Some(held) = &mut self.held else { return };
        let mut near = None;
        while let Some(place) = held.segments.mark_first_resent(near, &within, &mut lose) {
            // What was lost together was mostly sent together.
            near = Some(held.segments.behind(place));
        }
    }

    /// Of what was sent more than once and is thought in flight, the last transmission before another, which ended at `end`.
    pub(crate) fn last_resent_before(&self, (sent_at, end): (Instant, SeqNum)) -> Option<(Instant, SeqNum)> {
        self.segments.last_resent_before(Transmission::new(sent_at, end)).map(Transmission::value)
    }

    /// The last that was sent once, is thought in flight, and was `overtaken`: those were sent in the order of their numbers.
    pub(crate) fn last_overtaken(&self, overtaken: impl Fn(&TxSegment) -> bool) -> Option<&TxSegment> {
        self.segments.last_overtaken(overtaken)
    }

    /// Segments from the first of a kind on that holds `seq`, or lies behind it.
    pub(crate) fn starting_with(&self, kind: Kind, seq: SeqNum) -> impl Iterator<Item = &TxSegment> {
        let first = self.segments.next(kind, self.segments.find(seq));
        first.into_iter().flat_map(|first| self.segments.iter_from(first))
    }

    /// Segments of a kind, from the one that holds `seq` on.
    pub(crate) fn of_kind(&self, kind: Kind, seq: SeqNum) -> impl Iterator<Item = &TxSegment> {
        let behind = move |place: Place| self.segments.next(kind, self.segments.behind(place));
        let places =
            core::iter::successors(self.segments.next(kind, self.segments.find(seq)), move |place| {
                behind(*place)
            });
        places.filter_map(|place| self.segments.get(place))
    }

    /// Those that are selectively acknowledged, from the last on.
    pub(crate) fn sacked_from_behind(&self) -> impl Iterator<Item = &TxSegment> {
        let places = core::iter::successors(self.segments.last_sacked(None), |last| {
            self.segments.last_sacked(Some(*last))
        });
        places.filter_map(|place| self.segments.get(place))
    }
}

impl Held {
    /// `seq`, or if it lies within the segment at `place` the edge of a packet that `rounded` makes of the offset.
    fn packet_edge(&self, place: Place, seq: SeqNum, rounded: impl Fn(u32) -> u32) -> SeqNum {
        match self.segments.get(place) {
            Some(segment) if segment.seq.before(seq) => {
                segment.seq + rounded(seq.since(segment.seq)).min(segment.len)
            }
            _ => seq,
        }
    }
}
