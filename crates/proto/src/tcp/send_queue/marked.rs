//! The segments that are, or were, out of order: where each is found, cut and marked at a cost that does not grow with their number.
//!
//! They lie in blocks of up to 64, each with a bit for every [`Kind`] a segment of it is of, and the blocks have such bits again. So a peer
//! that reports what it likes, in whatever order, costs no walk over what is in flight. What was sent more than once is also in the order in
//! which it was last sent (as in Linux's `tsorted_sent_queue`).

use super::TxSegment;
use super::kinds::{Kind, Kinds, ROW, Row};
use crate::Instant;
use crate::tcp::ordered::Ordered;
use alloc::collections::{BTreeSet, VecDeque};
use wire::SeqNum;

/// Where a segment lies: its block, and its place there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) block: usize,
    pub(super) at: usize,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Marked {
    blocks: VecDeque<Block>,
    index: Index,
    len: usize,
    resent: BTreeSet<Transmission>,
}

#[derive(Debug, Default)]
struct Block {
    segments: VecDeque<TxSegment>,
    row: Row,
}

/// The last transmission of a segment, in the order of RFC 8985 §6.2: what was sent at the same time went in the order of its numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Transmission {
    sent_at: Instant,
    /// The number behind it.
    end: Ordered,
}

impl Transmission {
    pub(super) fn new(sent_at: Instant, end: SeqNum) -> Transmission {
        Transmission { sent_at, end: Ordered(end) }
    }

    /// That of a segment that was sent more than once, and is thought in flight; time may show it to be lost.
    fn of_resent(segment: &TxSegment) -> Option<Transmission> {
        let resent =
            segment.transmissions > 1 && segment.is_thought_in_flight() && segment.is_judged_by_time();
        resent.then(|| Transmission::new(segment.sent_at, segment.end()))
    }
}

impl Marked {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// The number of blocks: that of the first which does not exist.
    pub(super) fn blocks(&self) -> usize {
        self.blocks.len()
    }

    pub(super) fn front(&self) -> Option<&TxSegment> {
        self.blocks.front()?.segments.front()
    }

    pub(super) fn back(&self) -> Option<&TxSegment> {
        self.blocks.back()?.segments.back()
    }

    pub(super) fn last_place(&self) -> Option<Place> {
        let block = self.blocks.len().checked_sub(1)?;
        Some(Place { block, at: self.blocks[block].segments.len() - 1 })
    }

    pub(super) fn get(&self, place: Place) -> Option<&TxSegment> {
        self.blocks.get(place.block)?.segments.get(place.at)
    }

    /// To change what makes it neither of another [`Kind`] nor sent at another time.
    pub(super) fn get_mut(&mut self, place: Place) -> Option<&mut TxSegment> {
        self.blocks.get_mut(place.block)?.segments.get_mut(place.at)
    }

    /// To change anything but its first number.
    pub(super) fn update<R>(&mut self, place: Place, change: impl FnOnce(&mut TxSegment) -> R) -> Option<R> {
        let block = self.blocks.get_mut(place.block)?;
        let segment = block.segments.get_mut(place.at)?;
        let before = Transmission::of_resent(segment);
        let result = change(segment);
        let after = Transmission::of_resent(segment);
        block.row.set(place.at, Kinds::of(segment));
        self.index.set(place.block, block.row.any());
        if before != after {
            if let Some(before) = before {
                self.resent.remove(&before);
            }
            self.resent.extend(after);
        }
        Some(result)
    }

    pub(super) fn iter_from(&self, place: Place) -> impl Iterator<Item = &TxSegment> {
        let first = self.blocks.get(place.block).into_iter();
        let first = first.flat_map(move |block| block.segments.iter().skip(place.at));
        let behind = (place.block + 1).min(self.blocks.len());
        first.chain(self.blocks.range(behind..).flat_map(|block| &block.segments))
    }

    /// All of them, to change their weights.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut TxSegment> {
        self.blocks.iter_mut().flat_map(|block| &mut block.segments)
    }

    /// The first that ends behind `seq`, or the place behind all.
    pub(super) fn find(&self, seq: SeqNum) -> Place {
        let ends = |segment: &TxSegment| segment.end().before_or_eq(seq);
        let block = self.blocks.partition_point(|block| block.segments.back().is_some_and(ends));
        let at = self.blocks.get(block).map_or(0, |block| block.segments.partition_point(ends));
        Place { block, at }
    }

    /// The place behind this one.
    pub(super) fn behind(&self, place: Place) -> Place {
        match self.blocks.get(place.block) {
            Some(block) if place.at + 1 < block.segments.len() => Place { at: place.at + 1, ..place },
            _ => Place { block: place.block + 1, at: 0 },
        }
    }

    /// The first of a kind, from `from` on.
    pub(super) fn next(&self, kind: Kind, from: Place) -> Option<Place> {
        let within = |block: usize, at| {
            let at = self.blocks.get(block)?.row.next(kind, at)?;
            Some(Place { block, at })
        };
        within(from.block, from.at).or_else(|| within(self.index.next(kind, from.block + 1)?, 0))
    }

    /// The last of a kind before `end`.
    pub(super) fn last_before(&self, kind: Kind, end: Place) -> Option<Place> {
        let within = |block: usize, end| {
            let at = self.blocks.get(block)?.row.last_before(kind, end)?;
            Some(Place { block, at })
        };
        within(end.block, end.at).or_else(|| within(self.index.last_before(kind, end.block)?, ROW))
    }

    /// The last that was sent once, is thought in flight, and was `overtaken`. Those were sent in the order of their numbers.
    pub(super) fn last_overtaken(&self, overtaken: impl Fn(&TxSegment) -> bool) -> Option<&TxSegment> {
        let found = |place: Option<Place>| place.and_then(|place| self.get(place)).is_some_and(&overtaken);
        let (mut first, mut end) = (0, self.blocks.len());
        while first < end {
            let middle = first.midpoint(end);
            match found(self.next(Kind::Fresh, Place { block: middle, at: 0 })) {
                true => first = middle + 1,
                false => end = middle,
            }
        }
        let mut last = self.last_before(Kind::Fresh, Place { block: end, at: 0 });
        while last.is_some() && !found(last) {
            last = last.and_then(|place| self.last_before(Kind::Fresh, place));
        }
        self.get(last?)
    }

    /// Of what was sent more than once and is thought in flight, the first that was sent.
    pub(super) fn first_resent(&self) -> Option<Place> {
        self.resent.first().map(|first| self.find(first.end.0 - 1))
    }

    /// The last that was sent before this transmission.
    pub(super) fn last_resent_before(&self, transmission: Transmission) -> Option<&TxSegment> {
        let last = self.resent.range(..transmission).next_back()?;
        self.get(self.find(last.end.0 - 1))
    }

    pub(super) fn push_back(&mut self, segment: TxSegment) {
        if self.blocks.back().is_none_or(|block| block.segments.len() == ROW) {
            self.blocks.push_back(Block::default());
        }
        let last = self.blocks.len() - 1;
        let at = self.blocks[last].segments.len();
        self.insert(Place { block: last, at }, segment);
    }

    /// Returns where the one that was at `place` lies now.
    pub(super) fn insert_behind(&mut self, mut place: Place, segment: TxSegment) -> Place {
        let Some(block) = self.blocks.get_mut(place.block) else { return place };
        if block.segments.len() == ROW {
            let half = ROW / 2;
            let rest = Block { segments: block.segments.split_off(half), row: block.row.split_off(half) };
            self.index.set(place.block, block.row.any());
            self.index.insert(place.block + 1, rest.row.any());
            self.blocks.insert(place.block + 1, rest);
            if place.at >= half {
                place = Place { block: place.block + 1, at: place.at - half };
            }
        }
        self.insert(Place { at: place.at + 1, ..place }, segment);
        place
    }

    /// The block has room.
    fn insert(&mut self, place: Place, segment: TxSegment) {
        self.resent.extend(Transmission::of_resent(&segment));
        let block = &mut self.blocks[place.block];
        block.row.insert(place.at, Kinds::of(&segment));
        block.segments.insert(place.at, segment);
        self.index.set(place.block, block.row.any());
        self.len += 1;
    }

    pub(super) fn remove(&mut self, place: Place) -> Option<TxSegment> {
        let block = self.blocks.get_mut(place.block)?;
        let segment = block.segments.remove(place.at)?;
        block.row.remove(place.at);
        self.index.set(place.block, block.row.any());
        if block.segments.is_empty() {
            self.blocks.remove(place.block);
            self.index.remove(place.block);
        }
        self.len -= 1;
        if let Some(gone) = Transmission::of_resent(&segment) {
            self.resent.remove(&gone);
        }
        Some(segment)
    }
}

/// The bits of all blocks.
#[derive(Debug, Default)]
struct Index {
    rows: VecDeque<Row>,
    /// Bits of the first row whose blocks are gone.
    gone: usize,
}

impl Index {
    fn set(&mut self, block: usize, kinds: Kinds) {
        let bit = self.gone + block;
        while self.rows.len() <= bit / ROW {
            self.rows.push_back(Row::default());
        }
        self.rows[bit / ROW].set(bit % ROW, kinds);
    }

    fn insert(&mut self, block: usize, kinds: Kinds) {
        let bit = self.gone + block;
        let (mut at, mut carried) = (bit % ROW, kinds);
        if bit / ROW == self.rows.len() {
            self.rows.push_back(Row::default());
        }
        for row in self.rows.range_mut(bit / ROW..) {
            carried = row.insert(at, carried);
            at = 0;
        }
        if carried != Kinds::default() {
            self.rows.push_back(Row::default());
            self.rows.back_mut().into_iter().for_each(|row| row.set(0, carried));
        }
    }

    fn remove(&mut self, block: usize) {
        if block == 0 {
            self.gone += 1;
            if self.gone == ROW {
                self.rows.pop_front();
                self.gone = 0;
            }
            return;
        }
        let bit = self.gone + block;
        let first = bit / ROW;
        self.rows[first].remove(bit % ROW);
        for row in first + 1..self.rows.len() {
            let moved = self.rows[row].get(0);
            self.rows[row - 1].set(ROW - 1, moved);
            self.rows[row].remove(0);
        }
    }

    fn next(&self, kind: Kind, from: usize) -> Option<usize> {
        let bit = self.gone + from;
        let mut at = bit % ROW;
        for row in bit / ROW..self.rows.len() {
            if let Some(found) = self.rows[row].next(kind, at) {
                return Some(row * ROW + found - self.gone);
            }
            at = 0;
        }
        None
    }

    fn last_before(&self, kind: Kind, end: usize) -> Option<usize> {
        let bit = self.gone + end;
        let mut end = bit % ROW;
        for row in (0..=bit / ROW).rev() {
            if let Some(found) = self.rows.get(row).and_then(|words| words.last_before(kind, end)) {
                return Some(row * ROW + found - self.gone);
            }
            end = ROW;
        }
        None
    }
}
