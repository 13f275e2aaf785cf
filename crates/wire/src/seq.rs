//! Sequence numbers (RFC 9293 §3.4).
use core::ops::{Add, AddAssign, Sub};

/// A TCP sequence number. Arithmetic is modulo 2³² and has no total order, so there is no `Ord`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct SeqNum(pub u32);

impl SeqNum {
    /// Returns whether `self` is before `other` in sequence space.
    pub fn before(self, other: SeqNum) -> bool {
        (self.0.wrapping_sub(other.0) as i32) < 0
    }

    /// Returns whether `self` is after `other`.
    pub fn after(self, other: SeqNum) -> bool {
        other.before(self)
    }

    /// Returns whether `self` is before `other` or equal.
    pub fn before_or_eq(self, other: SeqNum) -> bool {
        !other.before(self)
    }

    /// Returns whether `self` is after `other` or equal.
    pub fn after_or_eq(self, other: SeqNum) -> bool {
        !self.before(other)
    }

    /// Returns whether `self` is one of the `len` numbers that start at `first`.
    pub fn within(self, first: SeqNum, len: u32) -> bool {
        self.since(first) < len
    }

    /// Returns the bytes from `earlier` to `self` (modulo 2³²).
    pub fn since(self, earlier: SeqNum) -> u32 {
        self.0.wrapping_sub(earlier.0)
    }

    /// Returns the later of the two.
    pub fn latest(self, other: SeqNum) -> SeqNum {
        if self.before(other) { other } else { self }
    }

    /// Returns the earlier of the two.
    pub fn earliest(self, other: SeqNum) -> SeqNum {
        if self.before(other) { self } else { other }
    }
}

impl Add<u32> for SeqNum {
    type Output = SeqNum;
    fn add(self, n: u32) -> SeqNum {
        SeqNum(self.0.wrapping_add(n))
    }
}

impl AddAssign<u32> for SeqNum {
    fn add_assign(&mut self, n: u32) {
        *self = *self + n;
    }
}

impl Sub<u32> for SeqNum {
    type Output = SeqNum;
    fn sub(self, n: u32) -> SeqNum {
        SeqNum(self.0.wrapping_sub(n))
    }
}
