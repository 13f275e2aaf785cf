//! What is looked for among the segments, and a bit of it for each of 64 things in a row.

use super::TxSegment;
use core::ops::BitOr;

/// What a segment may be looked for as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Whatever it is.
    Any,
    /// Not selectively acknowledged.
    Missing,
    /// Selectively acknowledged.
    Sacked,
    /// Sent once, and thought in flight; time may show it to be lost.
    Fresh,
    /// Held to be lost, and not retransmitted since.
    Waits,
    /// Held to be lost, once at least.
    Lost,
    /// Sent more than once.
    Again,
    /// Sent more than once, and selectively acknowledged.
    SackedAgain,
}

const KINDS: usize = 8;

/// Those of one thing: a bit for each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Kinds(u8);

impl Kinds {
    pub(super) fn of(segment: &TxSegment) -> Kinds {
        let again = segment.transmissions > 1;
        let fresh =
            segment.transmissions == 1 && !segment.sacked && !segment.lost && segment.is_judged_by_time();
        let all = [
            (Kind::Any, true),
            (Kind::Missing, !segment.sacked),
            (Kind::Sacked, segment.sacked),
            (Kind::Fresh, fresh),
            (Kind::Waits, segment.lost && !segment.retransmitted),
            (Kind::Lost, segment.lost),
            (Kind::Again, again),
            (Kind::SackedAgain, again && segment.sacked),
        ];
        Kinds(all.into_iter().fold(0, |bits, (kind, is)| bits | u8::from(is) << kind as u8))
    }
}

impl BitOr for Kinds {
    type Output = Kinds;

    fn bitor(self, other: Kinds) -> Kinds {
        Kinds(self.0 | other.0)
    }
}

/// Things in a row that a word has bits for.
pub(super) const ROW: usize = 64;

/// The kinds of up to [`ROW`] things: a word for each kind.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Row([u64; KINDS]);

impl Row {
    /// What any of them is.
    pub(super) fn any(&self) -> Kinds {
        Kinds(self.0.iter().enumerate().fold(0, |bits, (kind, word)| bits | u8::from(*word != 0) << kind))
    }

    pub(super) fn get(&self, at: usize) -> Kinds {
        let bit = |(kind, word): (usize, &u64)| ((word >> at & 1) as u8) << kind;
        Kinds(self.0.iter().enumerate().map(bit).fold(0, |bits, bit| bits | bit))
    }

    pub(super) fn set(&mut self, at: usize, kinds: Kinds) {
        for (kind, word) in self.0.iter_mut().enumerate() {
            *word = *word & !(1 << at) | u64::from(kinds.0 >> kind & 1) << at;
        }
    }

    /// Puts one in at `at`; those behind it move on. Returns what the last was, which has no room any more.
    pub(super) fn insert(&mut self, at: usize, kinds: Kinds) -> Kinds {
        let mut out = 0;
        for (kind, word) in self.0.iter_mut().enumerate() {
            out |= ((*word >> (ROW - 1)) as u8) << kind;
            let before = *word & below(at);
            *word = before | u64::from(kinds.0 >> kind & 1) << at | (*word ^ before) << 1;
        }
        Kinds(out)
    }

    /// Takes the one at `at` out; those behind it move up.
    pub(super) fn remove(&mut self, at: usize) {
        for word in &mut self.0 {
            let before = *word & below(at);
            *word = before | (*word ^ before) >> 1 & !below(at);
        }
    }

    /// Takes all from `at` on out: they are a row of their own.
    pub(super) fn split_off(&mut self, at: usize) -> Row {
        let rest = Row(self.0.map(|word| word >> at));
        self.0 = self.0.map(|word| word & below(at));
        rest
    }

    /// Is there one?
    pub(super) fn has(&self, kind: Kind) -> bool {
        self.0[kind as usize] != 0
    }

    /// The first from `from` on.
    pub(super) fn next(&self, kind: Kind, from: usize) -> Option<usize> {
        let word = self.0[kind as usize] & !below(from);
        (word != 0).then(|| word.trailing_zeros() as usize)
    }

    /// The last before `end`.
    pub(super) fn last_before(&self, kind: Kind, end: usize) -> Option<usize> {
        let word = self.0[kind as usize] & below(end);
        (word != 0).then(|| word.ilog2() as usize)
    }
}

/// The bits of the first `at`, all of them from [`ROW`] on.
fn below(at: usize) -> u64 {
    if at >= ROW { u64::MAX } else { (1 << at) - 1 }
}
