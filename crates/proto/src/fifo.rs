//! A queue of small values with one insertion and removal per packet.
//!
//! It resembles `VecDeque`, but its capacity is a power of two, so that wrapping takes one mask,
//! and it has few methods.

use alloc::vec::Vec;

/// First in, first out. It keeps the memory of its longest time.
#[derive(Debug, Default)]
pub(crate) struct Fifo<T> {
    /// None, or a power of two.
    places: Vec<T>,
    first: usize,
    len: usize,
}

impl<T: Copy> Fifo<T> {
    /// An empty one, which takes no memory.
    pub(crate) const fn new() -> Fifo<T> {
        Fifo { places: Vec::new(), first: 0, len: 0 }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Puts a value behind all others.
    #[inline(always)]
    pub(crate) fn push(&mut self, value: T) {
        if self.len == self.places.len() {
            self.grow(value);
        }
        let at = self.place(self.len);
        if let Some(place) = self.places.get_mut(at) {
            *place = value;
            self.len += 1;
        }
    }

    /// Takes the value that has been here for the longest time.
    pub(crate) fn pop(&mut self) -> Option<T> {
        if self.len == 0 {
            return None;
        }
        let value = self.places.get(self.first).copied();
        self.first = self.place(1);
        self.len -= 1;
        value
    }

    /// Takes out the last that is `value`, if there is one.
    #[cold]
    pub(crate) fn take_out(&mut self, value: T)
    where
        T: PartialEq,
    {
        let is_it = |behind: &usize| self.places.get(self.place(*behind)) == Some(&value);
        let Some(found) = (0..self.len).rev().find(is_it) else { return };
        for behind in found..self.len - 1 {
            let (to, from) = (self.place(behind), self.place(behind + 1));
            self.places.copy_within(from..=from, to);
        }
        self.len -= 1;
    }

    /// So many places behind the first that is taken.
    fn place(&self, behind: usize) -> usize {
        self.first.wrapping_add(behind) & self.places.len().wrapping_sub(1)
    }

    /// All places are taken: there are twice as many now, `filling` in the new ones.
    #[cold]
    fn grow(&mut self, filling: T) {
        self.places.rotate_left(self.first);
        self.first = 0;
        self.places.resize((2 * self.len).max(FEW), filling);
    }
}

/// Places of the smallest that is not empty.
const FEW: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::VecDeque;
    use proptest::prelude::*;

    #[test]
    fn one_goes_out_of_turn() {
        let mut fifo = Fifo::new();
        (0..14).for_each(|value| fifo.push(value));
        (0..12).for_each(|value| assert_eq!(fifo.pop(), Some(value)));
        (14..20).for_each(|value| fifo.push(value));
        [15, 19, 12, 77].into_iter().for_each(|value| fifo.take_out(value));
        assert_eq!([13, 14, 16, 17, 18].map(Some), [(); 5].map(|()| fifo.pop()));
        assert!(fifo.is_empty());
    }

    proptest! {
        /// Whatever is put in, by runs of any length, comes out in its order.
        #[test]
        fn it_is_a_queue(runs in proptest::collection::vec((0_usize..70, 0_usize..70), 0..40)) {
            let (mut fifo, mut model, mut next) = (Fifo::new(), VecDeque::new(), 0_u32);
            for (pushes, pops) in runs {
                for _ in 0..pushes {
                    fifo.push(next);
                    model.push_back(next);
                    next += 1;
                }
                for _ in 0..pops {
                    prop_assert_eq!(fifo.pop(), model.pop_front());
                    prop_assert_eq!(fifo.is_empty(), model.is_empty());
                }
            }
            while let Some(value) = model.pop_front() {
                prop_assert_eq!(fifo.pop(), Some(value));
            }
            prop_assert_eq!(fifo.pop(), None);
        }
    }
}
