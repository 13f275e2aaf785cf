//! Where segments in a row begin: sequence numbers apart from the segments, so that finding one reads no more than a few cache lines.

use super::kinds::ROW;
use wire::SeqNum;

/// Up to [`ROW`] numbers in rising order.
#[derive(Clone, Debug)]
pub(super) struct Starts {
    numbers: [u32; ROW],
    len: usize,
}

impl Starts {
    pub(super) const EMPTY: Starts = Starts { numbers: [0; ROW], len: 0 };

    pub(super) fn first(&self) -> Option<SeqNum> {
        self.known().first().copied().map(SeqNum)
    }

    /// The last that is not behind `seq`, which is not before the first.
    pub(super) fn last_up_to(&self, seq: SeqNum) -> Option<usize> {
        let first = self.first()?;
        let offset = seq.since(first);
        self.known().partition_point(|number| SeqNum(*number).since(first) <= offset).checked_sub(1)
    }

    /// Puts one in at `at`. There is room.
    pub(super) fn insert(&mut self, at: usize, seq: SeqNum) {
        self.numbers.copy_within(at..self.len, at + 1);
        self.numbers[at] = seq.0;
        self.len += 1;
    }

    /// Takes the one at `at` out.
    pub(super) fn remove(&mut self, at: usize) {
        self.numbers.copy_within(at + 1..self.len, at);
        self.len -= 1;
    }

    /// Takes all from `at` on out.
    pub(super) fn split_off(&mut self, at: usize) -> Starts {
        let mut rest = Starts::EMPTY;
        for seq in &self.known()[at..] {
            rest.insert(rest.len, SeqNum(*seq));
        }
        self.len = at;
        rest
    }

    fn known(&self) -> &[u32] {
        &self.numbers[..self.len]
    }
}
