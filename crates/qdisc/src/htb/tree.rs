//! Rows and feeds: which classes may send, in turns.
use super::{Htb, Mode, NUMPRIO};
use crate::Packet;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::ops::Bound;

/// Classes that take turns in the order of their numbers.
#[derive(Clone, Debug, Default)]
pub(super) struct Ring {
    /// Class number to place.
    members: BTreeMap<u32, usize>,
    turn: Turn,
}

/// A ring of those that send without borrowing further up.
pub(super) type Row = Ring;

/// Whose turn it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Turn {
    /// The round is over: the lowest number begins the next.
    #[default]
    Over,
    At(u32),
    /// Of the first at or after this number: the class whose turn it was has left.
    From(u32),
}

impl Ring {
    pub(super) fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    fn insert(&mut self, id: u32, number: usize) {
        self.members.insert(id, number);
    }

    /// Passes the turn on; after the last the round is over.
    fn advance(&mut self) {
        if let Turn::At(id) = self.turn {
            let next = self.members.range((Bound::Excluded(id), Bound::Unbounded)).next();
            self.turn = next.map_or(Turn::Over, |(id, _)| Turn::At(*id));
        }
    }

    /// Whose turn it is; `None`: the round has ended, and the next call begins another.
    fn current(&mut self) -> Option<usize> {
        if let Turn::From(id) = self.turn {
            self.turn = self.members.range(id..).next().map_or(Turn::Over, |(id, _)| Turn::At(*id));
        }
        if let Turn::At(id) = self.turn {
            return self.members.get(&id).copied();
        }
        self.turn = self.members.first_key_value().map_or(Turn::Over, |(id, _)| Turn::At(*id));
        None
    }

    /// Leaves a row: its turn passes on.
    fn leave(&mut self, id: u32) {
        if self.turn == Turn::At(id) {
            self.advance();
        }
        self.members.remove(&id);
    }

    /// Leaves a feed: its number is remembered, so that it finds its turn should it come back.
    fn pause(&mut self, id: u32) {
        if self.turn == Turn::At(id) {
            self.turn = Turn::From(id);
        }
        self.members.remove(&id);
    }
}

/// The bits that are set, the lowest first.
pub(super) fn bits(mut mask: u8) -> impl Iterator<Item = usize> {
    core::iter::from_fn(move || {
        let bit = mask.trailing_zeros() as usize;
        mask &= mask.wrapping_sub(1);
        (bit < NUMPRIO).then_some(bit)
    })
}

impl<P: Packet> Htb<P> {
    /// A leaf has packets.
    pub(super) fn activate(&mut self, number: usize) {
        let Some(class) = self.class_mut(number) else { return };
        if class.activity == 0 {
            class.activity = 1 << class.prio();
            self.activate_prios(number);
        }
    }

    /// A leaf has none.
    pub(super) fn deactivate(&mut self, number: usize) {
        if self.class(number).is_some_and(|class| class.activity != 0) {
            self.deactivate_prios(number);
            if let Some(class) = self.class_mut(number) {
                class.activity = 0;
            }
        }
    }

    /// Puts a class into its row, or into its parent's feed and so on upwards while they must borrow.
    pub(super) fn activate_prios(&mut self, mut number: usize) {
        let Some(class) = self.class(number) else { return };
        let mut mask = class.activity;
        loop {
            let Some(class) = self.class(number) else { return };
            let (id, level, mode) = (class.id.into(), class.level, class.mode);
            let Some(parent) = class.parent.filter(|_| mode == Mode::MayBorrow && mask != 0) else {
                if mode == Mode::CanSend {
                    bits(mask).for_each(|prio| self.levels[level].rows[prio].insert(id, number));
                    self.levels[level].row_mask |= mask;
                }
                return;
            };
            let Some(lender) = self.class_mut(parent) else { return };
            for prio in bits(mask) {
                if !lender.feeds[prio].is_empty() {
                    // It stands where it must because of another child.
                    mask &= !(1 << prio);
                }
                lender.feeds[prio].insert(id, number);
            }
            lender.activity |= mask;
            number = parent;
        }
    }

    pub(super) fn deactivate_prios(&mut self, mut number: usize) {
        let Some(class) = self.class(number) else { return };
        let mut mask = class.activity;
        loop {
            let Some(class) = self.class(number) else { return };
            let (id, level, mode) = (class.id.into(), class.level, class.mode);
            let Some(parent) = class.parent.filter(|_| mode == Mode::MayBorrow && mask != 0) else {
                if mode == Mode::CanSend {
                    for prio in bits(mask) {
                        let level = &mut self.levels[level];
                        level.rows[prio].leave(id);
                        if level.rows[prio].is_empty() {
                            level.row_mask &= !(1 << prio);
                        }
                    }
                }
                return;
            };
            let Some(lender) = self.class_mut(parent) else { return };
            for prio in bits(mask) {
                lender.feeds[prio].pause(id);
                if !lender.feeds[prio].is_empty() {
                    mask &= !(1 << prio);
                }
            }
            lender.activity &= !mask;
            number = parent;
        }
    }

    /// The leaf whose turn it is in a row: down the feeds from the class whose turn it is. A feed whose round has ended
    /// passes the turn of its class on.
    pub(super) fn lookup_leaf(&mut self, level: usize, prio: usize) -> Option<usize> {
        let mut path: Vec<usize> = Vec::new();
        // Every second step goes down or ends a round; Linux gives up after 65535.
        for _ in 0..u16::MAX {
            let current = match path.last() {
                None => self.levels[level].rows[prio].current(),
                Some(inner) => self.class_mut(*inner)?.feeds[prio].current(),
            };
            match current {
                Some(number) if self.class(number)?.is_leaf() => return Some(number),
                Some(number) => path.push(number),
                None if path.is_empty() && self.levels[level].rows[prio].is_empty() => return None,
                None => {
                    if path.pop().is_some() {
                        self.ring_mut(&path, level, prio)?.advance();
                    }
                }
            }
        }
        None
    }

    fn ring_mut(&mut self, path: &[usize], level: usize, prio: usize) -> Option<&mut Ring> {
        match path.last() {
            None => Some(&mut self.levels[level].rows[prio]),
            Some(inner) => self.class_mut(*inner).map(|class| &mut class.feeds[prio]),
        }
    }

    /// Passes the turn on in the ring where a leaf stands: its parent's feed, or the row of level 0.
    pub(super) fn next_turn(&mut self, leaf: usize, level: usize, prio: usize) {
        let parent = self.class(leaf).and_then(|class| class.parent).filter(|_| level > 0);
        match parent {
            None => self.levels[0].rows[prio].advance(),
            Some(parent) => {
                if let Some(parent) = self.class_mut(parent) {
                    parent.feeds[prio].advance();
                }
            }
        }
    }
}
