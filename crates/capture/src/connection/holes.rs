//! Skipped sequence numbers, in bounded memory.

use core::time::Duration;
use wire::SeqNum;

/// Most holes that are stored. A hostile capture may have any number.
const HOLES_MAX: usize = 64;

/// Distance behind the acknowledgements up to which a hole can be filled. Farther numbers would
/// belong to later data.
const HOLE_KEPT: u32 = 1 << 30;

/// Gaps in the data of one side.
#[derive(Clone, Debug, Default)]
pub(super) struct Holes {
    open: Vec<Hole>,
    /// Acknowledged bytes of holes that are no longer stored.
    forgotten: u64,
}

/// A range of skipped numbers, and when it was skipped.
#[derive(Clone, Copy, Debug)]
struct Hole {
    start: SeqNum,
    end: SeqNum,
    at: Duration,
}

/// The part of a segment that was missing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Filled {
    /// Sequence numbers.
    pub(super) len: u32,
    /// Time of the first of the holes.
    pub(super) since: Duration,
}

impl Hole {
    /// Returns the bytes of the hole before `una`.
    fn acknowledged(&self, una: SeqNum) -> u64 {
        if self.start.before(una) { self.end.earliest(una).since(self.start).into() } else { 0 }
    }
}

impl Holes {
    /// Adds the skipped numbers from `start` to `end`.
    pub(super) fn note(&mut self, start: SeqNum, end: SeqNum, at: Duration, una: Option<SeqNum>) {
        if self.open.len() == HOLES_MAX {
            self.forget(0, una);
        }
        self.open.push(Hole { start, end, at });
    }

    /// Fills holes with a segment from `start` to `end`. Returns `None` if it fills nothing.
    pub(super) fn fill(&mut self, start: SeqNum, end: SeqNum, una: Option<SeqNum>) -> Option<Filled> {
        let mut filled: Option<Filled> = None;
        let is_hit = |hole: &Hole| start.before(hole.end) && hole.start.before(end);
        while let Some(index) = self.open.iter().position(is_hit) {
            let hole = self.open.swap_remove(index);
            let (from, to) = (start.latest(hole.start), end.earliest(hole.end));
            let before = filled.unwrap_or(Filled { len: 0, since: hole.at });
            let len = before.len.saturating_add(to.since(from));
            filled = Some(Filled { len, since: before.since.min(hole.at) });
            for (start, end) in [(hole.start, from), (to, hole.end)] {
                if start.before(end) {
                    self.note(start, end, hole.at, una);
                }
            }
        }
        filled
    }

    /// Drops holes so far behind `una` that their numbers may be in use again.
    pub(super) fn forget_old(&mut self, una: SeqNum) {
        let is_old = |hole: &Hole| hole.end.before(una) && una.since(hole.end) > HOLE_KEPT;
        while let Some(index) = self.open.iter().position(is_old) {
            self.forget(index, Some(una));
        }
    }

    fn forget(&mut self, index: usize, una: Option<SeqNum>) {
        let hole = self.open.swap_remove(index);
        self.forgotten += una.map_or(0, |una| hole.acknowledged(una));
    }

    /// Replaces the holes by their sum.
    pub(super) fn sum_up(&mut self, una: Option<SeqNum>) {
        *self = Holes { open: Vec::new(), forgotten: self.acknowledged(una) };
    }

    /// Returns the skipped bytes that were acknowledged.
    pub(super) fn acknowledged(&self, una: Option<SeqNum>) -> u64 {
        let acknowledged = |hole: &Hole| una.map_or(0, |una| hole.acknowledged(una));
        self.forgotten + self.open.iter().map(acknowledged).sum::<u64>()
    }

    /// Returns the bytes of heap memory that it takes.
    pub(super) fn footprint(&self) -> usize {
        self.open.capacity() * size_of::<Hole>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_fills_only_what_was_missing() {
        let una = Some(SeqNum(1000));
        let mut holes = Holes::default();
        holes.note(SeqNum(100), SeqNum(200), Duration::from_millis(1), una);
        holes.note(SeqNum(300), SeqNum(400), Duration::from_millis(2), una);
        assert_eq!(holes.acknowledged(una), 200);
        let filled = holes.fill(SeqNum(150), SeqNum(350), una).unwrap();
        assert_eq!((filled.len, filled.since), (100, Duration::from_millis(1)));
        assert_eq!(holes.acknowledged(una), 100);
        assert!(holes.fill(SeqNum(150), SeqNum(350), una).is_none());
        assert_eq!(holes.fill(SeqNum(0), SeqNum(1000), una).unwrap().len, 100);
    }
}
