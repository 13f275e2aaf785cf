//! Deadlines of many keys: hierarchical wheels, exact minimum, cheap postponement.
//!
//! A wheel has 64 slots. A slot of the lowest wheel spans 2¹⁷ ns (131 µs), one of the next 64 times
//! that, and so on; eight levels span all of time. A slot holds a short list of keys. When the list
//! grows long, the slot becomes a wheel of the next lower level:
//!
//! ```text
//!  level 7   |.|.|x|.|.|.|        few keys: one list, at the level where they were put
//!                 |
//!  level 6       |.|x|x|.|.|      more than BURST keys: a wheel of their own
//!                     |
//!  …             list: key 9 ─ key 4 ─ key 7
//! ```
//! The first occupied slot, from the highest level down, holds the minimum: its few keys are
//! compared exactly. The digits of the deadline determine the slot, so nothing moves while time
//! passes. The cost of each operation depends on the number of levels, not of keys. (With wheels
//! shared by all of time, as in a kernel, the exact minimum would require a search through all keys
//! of a slot that spans seconds.)
//!
//! Postponing a deadline only stores it: the key stays in its slot until that is the first occupied
//! one, and is then moved. Nearly every ACK postpones a retransmission timer.
//!
//! The owner of a deadline keeps a [`TimerHandle`]: memory is used only for deadlines that are set.
//!
//! Not here: the meaning of a key. The engine has one deadline per connection.

use crate::Instant;
use alloc::vec::Vec;

/// Nanoseconds of a lowest slot, as a power of two.
const TICK_BITS: u32 = 17;
/// Slots of a wheel, as a power of two.
const SLOT_BITS: u32 = 6;
const SLOTS: usize = 1 << SLOT_BITS;
/// The level of the one wheel that is always there: 17 + 6 · 8 bits are more than 64.
const TOP_LEVEL: u8 = 7;
const ROOT: u32 = 0;
const NONE: u32 = u32::MAX;
/// A list of this many keys becomes a wheel when another one comes (not on the lowest level).
const BURST: u8 = 16;
/// A wheel with no more keys than this becomes a list again, so that memory follows the number of keys.
const COLLAPSE: u32 = 4;

/// Places that an empty wheel keeps: all timers of a crowd that is at rest have run out.
const NODES_KEPT: usize = 1024;

struct Node {
    /// Exact, nanoseconds. May lie beyond the slot the node is in, never before it.
    deadline: u64,
    prev: u32,
    next: u32,
    /// Where it is; `NONE` = it is free.
    wheel: u32,
    /// Whose deadline it is.
    key: u32,
    slot: u8,
}

const _: () = assert!(size_of::<Node>() <= 32);

/// A place in the wheel, kept by the owner of the deadline; none at first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TimerHandle(u32);

impl Default for TimerHandle {
    fn default() -> TimerHandle {
        TimerHandle(NONE)
    }
}

struct Wheel {
    /// Slots that are not empty, and those of them that are wheels.
    occupied: u64,
    children: u64,
    /// A list's first key, a wheel's index, or `NONE`.
    slots: [u32; SLOTS],
    /// Keys of the lists (not counted on level 0).
    lens: [u8; SLOTS],
    /// Ticks without the digits of this level and below.
    prefix: u64,
    /// Keys in this wheel and all below it.
    len: u32,
    parent: u32,
    parent_slot: u8,
    level: u8,
}

impl Wheel {
    fn new(level: u8, prefix: u64, parent: u32, parent_slot: u8) -> Wheel {
        let (slots, lens) = ([NONE; SLOTS], [0; SLOTS]);
        Wheel { occupied: 0, children: 0, slots, lens, prefix, len: 0, parent, parent_slot, level }
    }

    fn is_child(&self, slot: u8) -> bool {
        self.children >> slot & 1 == 1
    }

    /// What the ticks of a slot have in common.
    fn slot_prefix(&self, slot: u8) -> u64 {
        self.prefix << SLOT_BITS | u64::from(slot)
    }

    /// The slot of a tick; a tick beyond this wheel goes to the last one.
    fn slot_of(&self, tick: u64) -> u8 {
        let digits = tick >> (SLOT_BITS * u32::from(self.level));
        if digits >> SLOT_BITS > self.prefix { SLOTS as u8 - 1 } else { digits as u8 & (SLOTS as u8 - 1) }
    }

    /// How a tick lies to a slot: `Less` = before it, `Equal` = inside.
    fn compare(&self, tick: u64, slot: u8) -> core::cmp::Ordering {
        (tick >> (SLOT_BITS * u32::from(self.level))).cmp(&self.slot_prefix(slot))
    }
}

/// What is known of the minimum.
#[derive(Clone, Copy)]
enum Minimum {
    /// It is this one; `None` = nothing is set.
    Known(Option<(u64, u32)>),
    /// It is not less than this.
    AtLeast(u64),
}

/// One deadline for each of many keys; 32 bytes for each that is set.
pub(crate) struct TimerWheel {
    nodes: Vec<Node>,
    /// Of free nodes, linked by `next`.
    free_node: u32,
    wheels: Vec<Wheel>,
    free_wheels: Vec<u32>,
    minimum: Minimum,
    /// Used within one call only.
    displaced: Vec<u32>,
    /// Keys looked at so far.
    #[cfg(test)]
    visits: usize,
}

impl TimerWheel {
    /// Without any deadline.
    pub(crate) fn new() -> TimerWheel {
        TimerWheel {
            nodes: Vec::new(),
            free_node: NONE,
            wheels: vec![Wheel::new(TOP_LEVEL, 0, NONE, 0)],
            free_wheels: Vec::new(),
            minimum: Minimum::Known(None),
            displaced: Vec::new(),
            #[cfg(test)]
            visits: 0,
        }
    }

    /// Sets the deadline of a key, or moves it. Later than before is cheapest.
    pub(crate) fn set(&mut self, handle: &mut TimerHandle, key: u32, at: Instant) {
        let deadline = at.as_nanos();
        if handle.0 == NONE {
            handle.0 = self.allocate(key);
        }
        let key = handle.0;
        let node = &mut self.nodes[key as usize];
        node.deadline = deadline;
        if node.wheel == NONE {
            self.insert(key);
        } else if self.wheels[node.wheel as usize].compare(tick(deadline), node.slot).is_lt() {
            self.unlink(key);
            self.insert(key);
        }
        self.minimum = match self.minimum {
            Minimum::AtLeast(bound) => Minimum::AtLeast(bound.min(deadline)),
            Minimum::Known(Some((min, holder))) if deadline >= min => match holder == key && deadline > min {
                true => Minimum::AtLeast(min),
                false => self.minimum,
            },
            Minimum::Known(_) => Minimum::Known(Some((deadline, key))),
        };
    }

    /// Removes a deadline; false if there was none.
    pub(crate) fn clear(&mut self, handle: &mut TimerHandle) -> bool {
        let TimerHandle(key) = core::mem::take(handle);
        if key == NONE {
            return false;
        }
        self.release(key);
        true
    }

    /// A node that is in no list yet.
    fn allocate(&mut self, key: u32) -> u32 {
        let fresh = Node { deadline: 0, prev: NONE, next: NONE, wheel: NONE, key, slot: 0 };
        let index = self.free_node;
        if let Some(node) = self.nodes.get_mut(index as usize) {
            self.free_node = node.next;
            *node = fresh;
            return index;
        }
        self.nodes.push(fresh);
        self.nodes.len() as u32 - 1
    }

    /// Unlinks a node and frees it.
    fn release(&mut self, key: u32) {
        self.unlink(key);
        self.nodes[key as usize].next = core::mem::replace(&mut self.free_node, key);
        if self.wheels[ROOT as usize].len == 0 && self.nodes.capacity() > NODES_KEPT {
            (self.nodes, self.free_node) = (Vec::new(), NONE);
        }
        if let Minimum::Known(Some((min, holder))) = self.minimum
            && holder == key
        {
            self.minimum = Minimum::AtLeast(min);
        }
    }

    /// When what a handle stands for is due.
    pub(crate) fn deadline(&self, handle: TimerHandle) -> Option<Instant> {
        self.nodes.get(handle.0 as usize).map(|node| Instant::from_nanos(node.deadline))
    }

    /// The earliest deadline, exactly.
    pub(crate) fn next(&mut self) -> Option<Instant> {
        self.find_minimum().map(|(deadline, _)| Instant::from_nanos(deadline))
    }

    /// Takes a key whose deadline is `now` or earlier, the earliest first; call until it returns `None`. The key's handle is no longer
    /// valid: its owner must take a new one.
    pub(crate) fn pop_expired(&mut self, now: Instant) -> Option<u32> {
        let (_, place) = self.find_minimum().filter(|(deadline, _)| *deadline <= now.as_nanos())?;
        let key = self.nodes[place as usize].key;
        self.release(place);
        Some(key)
    }

    fn find_minimum(&mut self) -> Option<(u64, u32)> {
        loop {
            let bound = match self.minimum {
                Minimum::Known(min) => return min,
                Minimum::AtLeast(bound) => bound,
            };
            let Some((wheel, slot)) = self.first_list() else {
                self.minimum = Minimum::Known(None);
                return None;
            };
            let found = self.scan(wheel, slot, bound);
            self.place_displaced();
            if found.is_some() {
                self.minimum = Minimum::Known(found);
            }
        }
    }

    /// The first occupied slot that is a list.
    fn first_list(&self) -> Option<(u32, u8)> {
        let mut index = ROOT;
        loop {
            let wheel = &self.wheels[index as usize];
            if wheel.occupied == 0 {
                return None;
            }
            let slot = wheel.occupied.trailing_zeros() as u8;
            if !wheel.is_child(slot) {
                return Some((index, slot));
            }
            index = wheel.slots[slot as usize];
        }
    }

    /// The earliest of a list's keys that belong to its slot; the others are noted in `displaced`. Nothing is earlier
    /// than `bound`, so a key at that moment ends the search.
    fn scan(&mut self, wheel: u32, slot: u8, bound: u64) -> Option<(u64, u32)> {
        let wheel = &self.wheels[wheel as usize];
        let mut earliest: Option<(u64, u32)> = None;
        let mut key = wheel.slots[slot as usize];
        while let Some(node) = self.nodes.get(key as usize) {
            #[cfg(test)]
            {
                self.visits += 1;
            }
            if wheel.compare(tick(node.deadline), slot).is_gt() {
                self.displaced.push(key);
            } else if earliest.is_none_or(|(deadline, _)| node.deadline < deadline) {
                earliest = Some((node.deadline, key));
                if node.deadline == bound {
                    break;
                }
            }
            key = node.next;
        }
        earliest
    }

    fn place_displaced(&mut self) {
        while let Some(key) = self.displaced.pop() {
            self.unlink(key);
            self.insert(key);
        }
    }

    fn insert(&mut self, key: u32) {
        let tick = tick(self.nodes[key as usize].deadline);
        let mut index = ROOT;
        loop {
            let wheel = &mut self.wheels[index as usize];
            wheel.len += 1;
            let slot = wheel.slot_of(tick);
            if wheel.is_child(slot) {
                index = wheel.slots[slot as usize];
            } else if wheel.level > 0 && wheel.lens[slot as usize] >= BURST {
                index = self.burst(index, slot);
            } else {
                return self.push(index, slot, key);
            }
        }
    }

    /// Makes a wheel of a list.
    fn burst(&mut self, parent: u32, parent_slot: u8) -> u32 {
        let wheel = &self.wheels[parent as usize];
        let mut child = Wheel::new(wheel.level - 1, wheel.slot_prefix(parent_slot), parent, parent_slot);
        child.len = u32::from(wheel.lens[parent_slot as usize]);
        let index = self.store(child);

        let mut key = self.replace_slot(parent, parent_slot, Some(index));
        while key != NONE {
            let node = &self.nodes[key as usize];
            let (next, slot) = (node.next, self.wheels[index as usize].slot_of(tick(node.deadline)));
            self.push(index, slot, key);
            key = next;
        }
        index
    }

    /// Makes a list of a wheel, whose own slots are all lists.
    fn collapse(&mut self, index: u32) {
        let (parent, parent_slot) =
            (self.wheels[index as usize].parent, self.wheels[index as usize].parent_slot);
        self.replace_slot(parent, parent_slot, None);
        while self.wheels[index as usize].occupied != 0 {
            let slot = self.wheels[index as usize].occupied.trailing_zeros() as u8;
            let mut key = self.replace_slot(index, slot, None);
            while key != NONE {
                let next = self.nodes[key as usize].next;
                self.push(parent, parent_slot, key);
                key = next;
            }
        }
        self.free_wheels.push(index);
    }

    fn store(&mut self, wheel: Wheel) -> u32 {
        if let Some(index) = self.free_wheels.pop() {
            self.wheels[index as usize] = wheel;
            return index;
        }
        self.wheels.push(wheel);
        self.wheels.len() as u32 - 1
    }

    /// Makes a slot a wheel, or empty; returns what it named before.
    fn replace_slot(&mut self, index: u32, slot: u8, child: Option<u32>) -> u32 {
        let wheel = &mut self.wheels[index as usize];
        let bit = 1 << slot;
        wheel.lens[slot as usize] = 0;
        wheel.occupied &= !bit;
        wheel.children &= !bit;
        if child.is_some() {
            wheel.occupied |= bit;
            wheel.children |= bit;
        }
        core::mem::replace(&mut wheel.slots[slot as usize], child.unwrap_or(NONE))
    }

    /// Puts a key first into a list. The wheels' `len` is the caller's.
    fn push(&mut self, index: u32, slot: u8, key: u32) {
        let wheel = &mut self.wheels[index as usize];
        let next = core::mem::replace(&mut wheel.slots[slot as usize], key);
        wheel.occupied |= 1 << slot;
        if wheel.level > 0 {
            wheel.lens[slot as usize] += 1;
        }
        if let Some(node) = self.nodes.get_mut(next as usize) {
            node.prev = key;
        }
        let node = &mut self.nodes[key as usize];
        (node.prev, node.next, node.wheel, node.slot) = (NONE, next, index, slot);
    }

    /// Takes a key out of its list, and makes lists of the wheels above that are nearly empty now.
    fn unlink(&mut self, key: u32) {
        let node = &mut self.nodes[key as usize];
        let (prev, next, mut index, slot) = (node.prev, node.next, node.wheel, node.slot);
        node.wheel = NONE;
        if let Some(node) = self.nodes.get_mut(next as usize) {
            node.prev = prev;
        }
        let wheel = &mut self.wheels[index as usize];
        match self.nodes.get_mut(prev as usize) {
            Some(node) => node.next = next,
            None => wheel.slots[slot as usize] = next,
        }
        wheel.lens[slot as usize] = wheel.lens[slot as usize].saturating_sub(1);
        if wheel.slots[slot as usize] == NONE {
            wheel.occupied &= !(1 << slot);
        }
        while index != NONE {
            let wheel = &mut self.wheels[index as usize];
            wheel.len -= 1;
            let (few, parent) = (wheel.len <= COLLAPSE, wheel.parent);
            if few && parent != NONE {
                self.collapse(index);
            }
            index = parent;
        }
    }
}

fn tick(nanos: u64) -> u64 {
    nanos >> TICK_BITS
}

#[cfg(test)]
mod tests;
