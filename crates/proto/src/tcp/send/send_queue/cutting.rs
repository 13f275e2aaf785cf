//! Segments cut in two: where something that is acknowledged, reported or let out by a window ends amid one.

use super::marked::Place;
use super::weight::whole;
use super::{Held, SendQueue};
use wire::SeqNum;

impl SendQueue {
    /// A segment begins at `seq` from now on.
    pub(crate) fn cut(&mut self, seq: SeqNum) {
        if let Some(held) = &mut self.held {
            held.cut(seq, false);
        }
    }
}

impl Held {
    /// A segment begins at `seq` from now on: where, or the place behind the last. `marked`: it is about to be marked.
    pub(super) fn cut(&mut self, seq: SeqNum, marked: bool) -> Place {
        self.cut_within(self.segments.find(seq), seq, marked)
    }

    /// As [`cut`](Self::cut), where `seq` lies within the segment at `place`, or just behind it.
    pub(super) fn cut_within(&mut self, place: Place, seq: SeqNum, marked: bool) -> Place {
        match self.segments.get(place) {
            Some(segment) if segment.seq.before(seq) => {
                let place = self.cut_end(place, seq, marked);
                self.segments.behind(place)
            }
            _ => place,
        }
    }

    /// The segment at `place`, which begins before `end`, does not reach beyond it from now on: where it lies.
    pub(super) fn cut_end(&mut self, place: Place, end: SeqNum, marked: bool) -> Place {
        match self.segments.get(place) {
            Some(segment) if segment.end().after(end) => {
                let at = end.since(segment.seq);
                let place = if marked { self.segments.marked_place(place) } else { place };
                self.cut_at(place, at)
            }
            _ => place,
        }
    }

    /// The first segment is acknowledged up to `at`; the packet that is left is `begun`.
    pub(super) fn split_begun(&mut self, at: u32, begun: bool) {
        let first = self.segments.first_place();
        if let Some(first) = self.segments.get_mut(first) {
            first.begun = false;
        }
        let first = self.split_at(first, at);
        let rest = self.segments.behind(first);
        if let Some(rest) = self.segments.get_mut(rest) {
            rest.begun = begun;
        }
    }

    /// Returns where the first part lies.
    pub(super) fn split_at(&mut self, place: Place, at: u32) -> Place {
        if self.segments.is_last(place) {
            self.freeze_tail();
        }
        let unit = self.unit;
        self.segments.split(place, |first| {
            let mut rest = first.split_off(at);
            // Both weigh what they did together: a segment of which a part is acknowledged counts until all of it is.
            rest.weight = whole(rest.len, unit).min(first.weight);
            first.weight -= rest.weight;
            rest
        })
    }
}
