//! The segments that are, or were, out of order: where each is found, cut and marked at a cost that does not grow with their number.
//!
//! They lie in blocks of up to 64, each with a bit for every [`Kind`] a segment of it is of, and the blocks have such bits again. So a peer
//! that reports what it likes, in whatever order, costs no walk over what is in flight. What was sent more than once is also in the order in
//! which it was last sent (as in Linux's `tsorted_sent_queue`).

use super::TxSegment;
use super::kinds::{Kind, Kinds, ROW, Row};
use super::starts::Starts;
use crate::Instant;
use crate::tcp::recv::ordered::Ordered;
use alloc::boxed::Box;
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
    blocks: VecDeque<Box<Block>>,
    /// Where each block begins: a number is looked for in these before it is in a block.
    firsts: VecDeque<SeqNum>,
    index: Index,
    len: usize,
    resent: BTreeSet<Transmission>,
}

#[derive(Debug)]
struct Block {
    segments: VecDeque<TxSegment>,
    starts: Starts,
    row: Row,
    /// What the index says of it.
    any: Kinds,
}

impl Block {
    fn new(segments: VecDeque<TxSegment>, starts: Starts, row: Row) -> Box<Block> {
        Box::new(Block { segments, starts, row, any: Kinds::default() })
    }

    /// Takes all segments from `at` on out.
    fn split_off(&mut self, at: usize) -> Box<Block> {
        Block::new(self.segments.split_off(at), self.starts.split_off(at), self.row.split_off(at))
    }
}

/// The last transmission of a segment, in the order of RFC 8985 §6.2: what was sent at the same time went in the order of its numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Transmission {
    sent_at: Instant,
    /// The number behind it.
    end: Ordered,
}

impl Transmission {
    /// When it was, and the number behind it.
    pub(super) fn value(self) -> (Instant, SeqNum) {
        (self.sent_at, self.end.0)
    }

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
        let before = self.get(place).and_then(Transmission::of_resent);
        let (result, after) = self.change(place, change)?;
        self.resent_changes(before, after);
        Some(result)
    }

    /// As [`update`](Self::update), of all of a kind from `from` on, for as long as they lie `within`. True: all did.
    pub(super) fn update_run(
        &mut self,
        kind: Kind,
        from: Place,
        mut within: impl FnMut(&TxSegment) -> bool,
        mut change: impl FnMut(&mut TxSegment),
    ) -> bool {
        let mut next = self.next(kind, from);
        while let Some(Place { block: number, at }) = next {
            let mut here = Some(at);
            while let Some(at) = here {
                let block = &mut self.blocks[number];
                let segment = &mut block.segments[at];
                if !within(segment) {
                    self.note_kinds(number);
                    return false;
                }
                let before = Transmission::of_resent(segment);
                change(segment);
                let after = Transmission::of_resent(segment);
                block.row.set(at, Kinds::of(segment));
                here = block.row.next(kind, at + 1);
                self.resent_changes(before, after);
            }
            self.note_kinds(number);
            next = self.next(kind, Place { block: number + 1, at: 0 });
        }
        true
    }

    /// As [`update`](Self::update), of what was sent more than once and is thought in flight the first transmission, if that is `within`.
    /// Returns where its segment lies; that may be `near`.
    pub(super) fn update_first_resent(
        &mut self,
        near: Option<Place>,
        within: impl Fn((Instant, SeqNum)) -> bool,
        change: impl FnOnce(&mut TxSegment),
    ) -> Option<Place> {
        let (_, end) = self.resent.first().map(|first| first.value()).filter(|first| within(*first))?;
        self.resent.pop_first();
        let is_it = |near: &Place| self.get(*near).is_some_and(|segment| segment.end() == end);
        let place = near.filter(is_it).unwrap_or_else(|| self.find(end - 1));
        let ((), after) = self.change(place, change)?;
        self.resent.extend(after);
        Some(place)
    }

    /// Changes it, and gives its transmission from now on if it belongs among the resent ones.
    fn change<R>(
        &mut self,
        place: Place,
        change: impl FnOnce(&mut TxSegment) -> R,
    ) -> Option<(R, Option<Transmission>)> {
        let block = self.blocks.get_mut(place.block)?;
        let segment = block.segments.get_mut(place.at)?;
        let kinds = Kinds::of(segment);
        let result = change(segment);
        let after = Transmission::of_resent(segment);
        if kinds != Kinds::of(segment) {
            block.row.set(place.at, Kinds::of(segment));
            self.note_kinds(place.block);
        }
        Some((result, after))
    }

    fn resent_changes(&mut self, before: Option<Transmission>, after: Option<Transmission>) {
        if before != after {
            if let Some(before) = before {
                self.resent.remove(&before);
            }
            self.resent.extend(after);
        }
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

    /// The index knows of the kinds in a block.
    fn note_kinds(&mut self, at: usize) {
        let Some(block) = self.blocks.get_mut(at) else { return };
        let any = block.row.any();
        if block.any != any {
            block.any = any;
            self.index.set(at, any);
        }
    }

    /// The first that ends behind `seq`, or the place behind all.
    pub(super) fn find(&self, seq: SeqNum) -> Place {
        if self.front().is_some_and(|first| seq.before(first.end())) {
            // What is not acknowledged begins here: the place that is asked for most.
            return Place { block: 0, at: 0 };
        }
        let block = self.firsts.partition_point(|first| first.before_or_eq(seq)).saturating_sub(1);
        let at = self.blocks.get(block).and_then(|block| block.starts.last_up_to(seq)).unwrap_or(0);
        let place = Place { block, at };
        let is_before = self.get(place).is_some_and(|segment| segment.end().before_or_eq(seq));
        if is_before { self.behind(place) } else { place }
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
        self.next(Kind::Fresh, Place { block: 0, at: 0 })?;
        let is_next_overtaken = |block, at| {
            let next = self.next(Kind::Fresh, Place { block, at });
            next.and_then(|next| self.get(next)).is_some_and(&overtaken)
        };
        let block = holding(self.blocks.len(), |block| is_next_overtaken(block, 0)).checked_sub(1)?;
        let at = holding(ROW, |at| is_next_overtaken(block, at)).checked_sub(1)?;
        self.get(Place { block, at })
    }

    /// Of what was sent more than once and is thought in flight, the last transmission before this one.
    pub(super) fn last_resent_before(&self, transmission: Transmission) -> Option<Transmission> {
        self.resent.range(..transmission).next_back().copied()
    }

    pub(super) fn push_back(&mut self, segment: TxSegment) {
        if self.blocks.back().is_none_or(|block| block.segments.len() == ROW) {
            self.blocks.push_back(Block::new(VecDeque::new(), Starts::EMPTY, Row::default()));
            self.firsts.push_back(segment.seq);
        }
        let last = self.blocks.len() - 1;
        let at = self.blocks[last].segments.len();
        self.resent.extend(Transmission::of_resent(&segment));
        self.insert(Place { block: last, at }, segment);
    }

    /// Makes two of the segment at `place`: `cut` takes off what is behind, which was sent with it. Returns where the first lies now.
    pub(super) fn split(&mut self, place: Place, cut: impl FnOnce(&mut TxSegment) -> TxSegment) -> Place {
        let Some(segment) = self.get_mut(place) else { return place };
        let rest = cut(segment);
        // The transmission of the whole is that of the rest from now on: it ends where that does.
        let shorter = Transmission::of_resent(segment);
        self.resent.extend(shorter);
        let place = self.with_room(place, rest.seq);
        self.insert(Place { at: place.at + 1, ..place }, rest);
        place
    }

    /// There is room behind `place` for what begins with `seq`. Returns where the segment that was at `place` lies now.
    fn with_room(&mut self, place: Place, seq: SeqNum) -> Place {
        let block = &mut self.blocks[place.block];
        if block.segments.len() < ROW {
            return place;
        }
        let half = ROW / 2;
        let rest = block.split_off(half);
        self.index.insert(place.block + 1, rest.any);
        self.firsts.insert(place.block + 1, rest.starts.first().unwrap_or(seq));
        self.blocks.insert(place.block + 1, rest);
        self.note_kinds(place.block);
        self.note_kinds(place.block + 1);
        match place.at.checked_sub(half) {
            Some(at) => Place { block: place.block + 1, at },
            None => place,
        }
    }

    /// The block has room, and its transmission is known.
    fn insert(&mut self, place: Place, segment: TxSegment) {
        let block = &mut self.blocks[place.block];
        let kinds = Kinds::of(&segment);
        block.row.insert(place.at, kinds);
        block.starts.insert(place.at, segment.seq);
        block.segments.insert(place.at, segment);
        if block.any != block.any | kinds {
            self.note_kinds(place.block);
        }
        self.len += 1;
    }

    pub(super) fn remove(&mut self, place: Place) -> Option<TxSegment> {
        let block = self.blocks.get_mut(place.block)?;
        let segment = block.segments.remove(place.at)?;
        block.row.remove(place.at);
        block.starts.remove(place.at);
        let first = block.starts.first();
        self.note_kinds(place.block);
        match first {
            Some(first) => self.firsts[place.block] = first,
            None => {
                self.blocks.remove(place.block);
                self.firsts.remove(place.block);
                self.index.remove(place.block);
            }
        }
        self.len -= 1;
        if let Some(gone) = Transmission::of_resent(&segment) {
            self.resent.remove(&gone);
        }
        Some(segment)
    }
}

/// How many of the numbers below `end` it holds for, which are the first.
fn holding(end: usize, holds: impl Fn(usize) -> bool) -> usize {
    let (mut first, mut end) = (0, end);
    while first < end {
        let middle = first.midpoint(end);
        match holds(middle) {
            true => first = middle + 1,
            false => end = middle,
        }
    }
    first
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
        let (row, at) = (bit / ROW, bit % ROW);
        self.within(row, |row| row.next(kind, at)).or_else(|| {
            let behind = (row + 1).min(self.rows.len());
            let rows = self.rows.range(behind..).position(|row| row.has(kind))?;
            self.within(behind + rows, |row| row.next(kind, 0))
        })
    }

    fn last_before(&self, kind: Kind, end: usize) -> Option<usize> {
        let bit = self.gone + end;
        let (row, at) = (bit / ROW, bit % ROW);
        self.within(row, |row| row.last_before(kind, at)).or_else(|| {
            let row = self.rows.range(..row.min(self.rows.len())).rposition(|row| row.has(kind))?;
            self.within(row, |row| row.last_before(kind, ROW))
        })
    }

    /// The block whose bit is `found` in a row.
    fn within(&self, row: usize, found: impl Fn(&Row) -> Option<usize>) -> Option<usize> {
        Some(row * ROW + found(self.rows.get(row)?)? - self.gone)
    }
}
