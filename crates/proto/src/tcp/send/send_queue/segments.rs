//! The segments of the queue in order: first those that are or were out of order ([`Marked`]), then the others, in which nothing is marked
//! and nothing was sent twice. An ordinary connection has none of the first.

use super::TxSegment;
use super::kinds::Kind;
use super::marked::{Marked, Place, Transmission};
use crate::Instant;
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use wire::SeqNum;

/// Segments for which there may be room besides those that are there.
const SPARE: usize = 64;

/// See the module. A [`Place`] among the plain ones is in the block behind the marked ones.
#[derive(Debug)]
pub(super) struct Segments {
    marked: Option<Box<Marked>>,
    plain: VecDeque<TxSegment>,
    /// Where among the plain ones the next is likely to be looked for: behind the one that left last. Without meaning if that is gone.
    next: usize,
}

impl Segments {
    pub(super) const EMPTY: Segments = Segments { marked: None, plain: VecDeque::new(), next: 0 };

    /// Plain ones it has room for.
    pub(super) fn capacity(&self) -> usize {
        self.plain.capacity()
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.plain.len() + self.marked.as_ref().map_or(0, |marked| marked.len())
    }

    #[inline]
    pub(super) fn front(&self) -> Option<&TxSegment> {
        match &self.marked {
            None => self.plain.front(),
            Some(marked) => marked.front(),
        }
    }

    /// The one behind the front.
    #[inline]
    pub(super) fn second(&self) -> Option<&TxSegment> {
        match &self.marked {
            None => self.plain.get(1),
            Some(_) => self.iter().nth(1),
        }
    }

    #[inline]
    pub(super) fn back(&self) -> Option<&TxSegment> {
        self.plain.back().or_else(|| self.marked.as_ref()?.back())
    }

    /// To change what makes it neither of another [`Kind`] nor sent at another time.
    #[inline]
    pub(super) fn back_mut(&mut self) -> Option<&mut TxSegment> {
        if self.plain.is_empty() { self.marked_back_mut() } else { self.plain.back_mut() }
    }

    #[cold]
    fn marked_back_mut(&mut self) -> Option<&mut TxSegment> {
        let marked = self.marked.as_mut()?;
        marked.get_mut(marked.last_place()?)
    }

    /// The last, if it is plain.
    #[inline]
    pub(super) fn plain_back_mut(&mut self) -> Option<&mut TxSegment> {
        self.plain.back_mut()
    }

    #[inline]
    fn blocks(&self) -> usize {
        self.marked.as_ref().map_or(0, |marked| marked.blocks())
    }

    #[inline]
    fn plain_place(&self, at: usize) -> Place {
        Place { block: self.blocks(), at }
    }

    /// Where of the plain ones those from `place` on begin.
    #[inline]
    fn plain_from(&self, place: Place) -> usize {
        if place.block < self.blocks() { 0 } else { place.at.min(self.plain.len()) }
    }

    pub(super) fn first_place(&self) -> Place {
        Place { block: 0, at: 0 }
    }

    pub(super) fn last_place(&self) -> Option<Place> {
        match self.plain.len().checked_sub(1) {
            Some(at) => Some(self.plain_place(at)),
            None => self.marked.as_ref()?.last_place(),
        }
    }

    #[inline]
    pub(super) fn is_last(&self, place: Place) -> bool {
        match place.block < self.blocks() {
            false => place.at + 1 == self.plain.len(),
            true => self.plain.is_empty() && self.last_place() == Some(place),
        }
    }

    /// The first that ends behind `seq`, or the place behind all.
    #[inline]
    pub(super) fn find(&self, seq: SeqNum) -> Place {
        // New data is at the end, and all there is is often one segment.
        if let Some(last) = self.plain.back()
            && last.seq.before_or_eq(seq)
        {
            return self.plain_place(self.plain.len() - usize::from(seq.before(last.end())));
        }
        match &self.marked {
            None => self.plain_place(self.find_plain(seq)),
            Some(marked) => self.find_amid_marked(marked, seq),
        }
    }

    /// As [`find`](Self::find), of a number that is likely to lie in the segment at `place` or at its end, and not before it.
    pub(super) fn find_near(&self, place: Place, seq: SeqNum) -> Place {
        match self.get(place) {
            Some(segment) if segment.end().after(seq) => place,
            Some(segment) if segment.end() == seq => self.behind(place),
            _ => self.find(seq),
        }
    }

    #[inline]
    fn find_plain(&self, seq: SeqNum) -> usize {
        let is_it = |next: &TxSegment| next.seq == seq && next.len > 0;
        if self.plain.get(self.next).is_some_and(is_it) { self.next } else { self.search_plain(seq) }
    }

    fn search_plain(&self, seq: SeqNum) -> usize {
        self.plain.partition_point(|segment| segment.end().before_or_eq(seq))
    }

    fn find_amid_marked(&self, marked: &Marked, seq: SeqNum) -> Place {
        let place = marked.find(seq);
        if place.block < marked.blocks() { place } else { self.plain_place(self.find_plain(seq)) }
    }

    /// The place behind this one.
    #[inline]
    pub(super) fn behind(&self, place: Place) -> Place {
        match &self.marked {
            Some(marked) if place.block < marked.blocks() => marked.behind(place),
            _ => Place { at: place.at + 1, ..place },
        }
    }

    #[inline]
    pub(super) fn get(&self, place: Place) -> Option<&TxSegment> {
        match &self.marked {
            Some(marked) if place.block < marked.blocks() => marked.get(place),
            _ => self.plain.get(place.at),
        }
    }

    /// To change what makes it neither of another [`Kind`] nor sent at another time.
    #[inline]
    pub(super) fn get_mut(&mut self, place: Place) -> Option<&mut TxSegment> {
        match &mut self.marked {
            Some(marked) if place.block < marked.blocks() => marked.get_mut(place),
            _ => self.plain.get_mut(place.at),
        }
    }

    /// The segment, which leaves for the first time, or has not left after all. Its bytes stay as they are.
    #[inline]
    pub(super) fn update_sent<R>(
        &mut self,
        place: Place,
        change: impl FnOnce(&mut TxSegment) -> R,
    ) -> Option<R> {
        match &mut self.marked {
            Some(marked) if place.block < marked.blocks() => marked.update(place, change),
            _ => {
                self.next = place.at + 1;
                self.plain.get_mut(place.at).map(change)
            }
        }
    }

    /// The segment, whose marks change, or which is retransmitted.
    pub(super) fn mark<R>(&mut self, place: Place, change: impl FnOnce(&mut TxSegment) -> R) -> Option<R> {
        let place = self.marked_place(place);
        self.marked.as_mut()?.update(place, change)
    }

    /// Changes the marks of segments of a kind, from `from` on, for as long as they lie `within`.
    pub(super) fn mark_run(
        &mut self,
        kind: Kind,
        mut from: Place,
        mut within: impl FnMut(&TxSegment) -> bool,
        mut change: impl FnMut(&mut TxSegment),
    ) {
        if from.block < self.blocks()
            && let Some(marked) = &mut self.marked
        {
            if !marked.update_run(kind, from, &mut within, &mut change) {
                return;
            }
            from = self.plain_place(0);
        }
        while let Some(place) = self.next(kind, from)
            && self.get(place).is_some_and(&mut within)
        {
            let place = self.marked_place(place);
            self.mark(place, &mut change);
            from = self.behind(place);
        }
    }

    /// Where the segment at `place` lies when it is among the marked ones: from now on it is, and all before it.
    pub(super) fn marked_place(&mut self, place: Place) -> Place {
        if place.block < self.blocks() || place.at >= self.plain.len() {
            return place;
        }
        let marked = self.marked.get_or_insert_default();
        self.plain.drain(..=place.at).for_each(|segment| marked.push_back(segment));
        self.next = self.next.wrapping_sub(place.at + 1);
        if self.plain.capacity() > 4 * (self.plain.len() + SPARE) {
            self.plain.shrink_to(2 * (self.plain.len() + SPARE));
        }
        marked.last_place().unwrap_or(place)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &TxSegment> {
        self.iter_from(self.first_place())
    }

    #[inline]
    pub(super) fn iter_from(&self, place: Place) -> impl Iterator<Item = &TxSegment> {
        let marked = self.marked.iter().flat_map(move |marked| marked.iter_from(place));
        marked.chain(self.plain.range(self.plain_from(place)..))
    }

    /// All of them, to change their weights.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut TxSegment> {
        self.marked.iter_mut().flat_map(|marked| marked.iter_mut()).chain(&mut self.plain)
    }

    /// The first of a kind, from `from` on.
    pub(super) fn next(&self, kind: Kind, from: Place) -> Option<Place> {
        let among_marked = self.marked.as_ref().and_then(|marked| marked.next(kind, from));
        among_marked.or_else(|| {
            let at = self.plain_from(from);
            let is = |segment: &TxSegment| match kind {
                Kind::Any | Kind::Missing => true,
                Kind::Fresh => segment.transmissions == 1,
                Kind::Sacked | Kind::Waits | Kind::Lost | Kind::Again | Kind::SackedAgain => false,
            };
            self.plain.get(at).is_some_and(is).then(|| self.plain_place(at))
        })
    }

    /// The last that is selectively acknowledged, before `end` if it is given.
    pub(super) fn last_sacked(&self, end: Option<Place>) -> Option<Place> {
        let behind = self.plain_place(0);
        self.marked.as_ref()?.last_before(Kind::Sacked, end.unwrap_or(behind).min(behind))
    }

    /// The last that was sent once, is thought in flight, and was `overtaken`. Those were sent in the order of their numbers.
    pub(super) fn last_overtaken(&self, overtaken: impl Fn(&TxSegment) -> bool) -> Option<&TxSegment> {
        let found = self.plain.partition_point(|segment| segment.transmissions == 1 && overtaken(segment));
        match found.checked_sub(1) {
            Some(last) => self.plain.get(last),
            None => self.marked.as_ref()?.last_overtaken(overtaken),
        }
    }

    /// Changes, of what was sent more than once and is thought in flight, the segment that was sent first, if its transmission is `within`. Returns
    /// where it lies; that may be `near`.
    pub(super) fn mark_first_resent(
        &mut self,
        near: Option<Place>,
        within: impl Fn((Instant, SeqNum)) -> bool,
        change: impl FnOnce(&mut TxSegment),
    ) -> Option<Place> {
        self.marked.as_mut()?.update_first_resent(near, within, change)
    }

    /// Of that, the last transmission before this one.
    pub(super) fn last_resent_before(&self, transmission: Transmission) -> Option<Transmission> {
        self.marked.as_ref()?.last_resent_before(transmission)
    }

    #[inline]
    pub(super) fn push_back(&mut self, segment: TxSegment) {
        self.plain.push_back(segment);
    }

    #[inline]
    pub(super) fn pop_front(&mut self) -> Option<TxSegment> {
        if self.marked.is_some() {
            return self.pop_marked();
        }
        self.next = self.next.wrapping_sub(1);
        self.plain.pop_front()
    }

    fn pop_marked(&mut self) -> Option<TxSegment> {
        self.remove(self.first_place())
    }

    /// Makes two of the segment at `place`: `cut` takes off what is behind, which was sent with it. Returns where the first lies now.
    pub(super) fn split(&mut self, place: Place, cut: impl FnOnce(&mut TxSegment) -> TxSegment) -> Place {
        match &mut self.marked {
            Some(marked) if place.block < marked.blocks() => marked.split(place, cut),
            _ => {
                if let Some(rest) = self.plain.get_mut(place.at).map(cut) {
                    self.plain.insert(place.at + 1, rest);
                }
                place
            }
        }
    }

    pub(super) fn remove(&mut self, place: Place) -> Option<TxSegment> {
        match &mut self.marked {
            Some(marked) if place.block < marked.blocks() => {
                let segment = marked.remove(place);
                self.marked.take_if(|marked| marked.len() == 0);
                segment
            }
            _ => self.plain.remove(place.at),
        }
    }
}

#[cfg(test)]
mod tests;
