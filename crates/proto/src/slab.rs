//! A paged slab: stable small indices with generations. Beyond the first page it never doubles or
//! moves its contents.

use alloc::vec::Vec;

/// Entries per page: with a million of them the list of the other pages still lies in the nearest cache.
const PAGE: usize = 1024;
const NONE: u32 = u32::MAX;

struct Slot<T> {
    generation: u32,
    next_free: u32,
    value: Option<T>,
}

impl<T> Slot<T> {
    /// Its value is gone: it may be used again, before the slot that was to be used next.
    fn release(&mut self, free: u32) {
        self.generation = self.generation.wrapping_add(1);
        self.next_free = free;
    }
}

/// Values under (index, generation) handles; a removed value's handle is never valid again until 2³² reuses of its slot.
pub(crate) struct Slab<T> {
    /// Mostly all there is; it grows as it fills.
    first: Vec<Slot<T>>,
    /// The pages behind. All are full but the last, and have room for a page at once.
    others: Vec<Vec<Slot<T>>>,
    /// The free slots, linked by `next_free`.
    free: u32,
    len: usize,
}

impl<T> Slab<T> {
    /// Bytes of memory for each value.
    pub(crate) const SLOT: usize = size_of::<Slot<T>>();

    pub(crate) fn new() -> Slab<T> {
        Slab { first: Vec::new(), others: Vec::new(), free: NONE, len: 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Returns an exclusive upper bound of all indices.
    pub(crate) fn reach(&self) -> u32 {
        let full = self.others.len().saturating_sub(1) * PAGE;
        (self.first.len() + full + self.others.last().map_or(0, Vec::len)) as u32
    }

    /// Stores a value; returns its index and generation.
    pub(crate) fn insert(&mut self, value: T) -> (u32, u32) {
        self.insert_with(|| value)
    }

    /// Stores a value that is made in its slot, so that a large one is not moved; returns its index and generation.
    pub(crate) fn insert_with(&mut self, make: impl FnOnce() -> T) -> (u32, u32) {
        if self.free == NONE {
            self.free = self.append();
        }
        let index = self.free;
        let Some(slot) = self.slot_mut(index) else { return (NONE, 0) };
        debug_assert!(slot.value.is_none());
        // Nothing is to be dropped there.
        if let vacant @ None = &mut slot.value {
            *vacant = Some(make());
        }
        let (generation, next_free) = (slot.generation, slot.next_free);
        self.free = next_free;
        self.len += 1;
        (index, generation)
    }

    /// The index of a new, empty slot behind all others.
    #[cold]
    fn append(&mut self) -> u32 {
        let slot = Slot { generation: 0, next_free: NONE, value: None };
        if self.first.len() < PAGE {
            self.first.push(slot);
            return self.first.len() as u32 - 1;
        }
        if self.others.last().is_none_or(|page| page.len() == PAGE) {
            self.others.push(Vec::with_capacity(PAGE));
        }
        let before = self.others.len() * PAGE;
        let page = &mut self.others[before / PAGE - 1];
        page.push(slot);
        (before + page.len() - 1) as u32
    }

    pub(crate) fn remove(&mut self, index: u32) -> Option<T> {
        let free = self.free;
        let slot = self.slot_mut(index)?;
        let value = slot.value.take()?;
        slot.release(free);
        (self.free, self.len) = (index, self.len - 1);
        Some(value)
    }

    /// Drops a value where it lies: no move of a large one.
    pub(crate) fn drop_at(&mut self, index: u32) {
        let free = self.free;
        if let Some(slot) = self.slot_mut(index)
            && slot.value.is_some()
        {
            slot.value = None;
            slot.release(free);
            (self.free, self.len) = (index, self.len - 1);
        }
    }

    fn slot(&self, index: u32) -> Option<&Slot<T>> {
        match self.first.get(index as usize) {
            None => self.slot_behind(index),
            first => first,
        }
    }

    fn slot_mut(&mut self, index: u32) -> Option<&mut Slot<T>> {
        if (index as usize) < self.first.len() {
            self.first.get_mut(index as usize)
        } else {
            self.slot_behind_mut(index)
        }
    }

    #[cold]
    fn slot_behind(&self, index: u32) -> Option<&Slot<T>> {
        let behind = (index as usize).checked_sub(PAGE)?;
        self.others.get(behind / PAGE)?.get(behind % PAGE)
    }

    #[cold]
    fn slot_behind_mut(&mut self, index: u32) -> Option<&mut Slot<T>> {
        let behind = (index as usize).checked_sub(PAGE)?;
        self.others.get_mut(behind / PAGE)?.get_mut(behind % PAGE)
    }

    pub(crate) fn get(&self, index: u32) -> Option<&T> {
        self.slot(index)?.value.as_ref()
    }

    pub(crate) fn get_mut(&mut self, index: u32) -> Option<&mut T> {
        self.slot_mut(index)?.value.as_mut()
    }

    /// A stored value by its index, with its generation.
    pub(crate) fn entry_mut(&mut self, index: u32) -> Option<(u32, &mut T)> {
        let slot = self.slot_mut(index)?;
        Some((slot.generation, slot.value.as_mut()?))
    }

    /// A stored value by its handle.
    pub(crate) fn find_mut(&mut self, index: u32, generation: u32) -> Option<&mut T> {
        self.entry_mut(index).filter(|(now, _)| *now == generation).map(|(_, value)| value)
    }

    /// A stored value by its handle, to be read.
    pub(crate) fn find(&self, index: u32, generation: u32) -> Option<&T> {
        let slot = self.slot(index)?;
        slot.value.as_ref().filter(|_| slot.generation == generation)
    }

    /// The generation an occupied index has now.
    pub(crate) fn generation(&self, index: u32) -> Option<u32> {
        self.slot(index).filter(|slot| slot.value.is_some()).map(|slot| slot.generation)
    }

    /// Is (index, generation) the handle of a stored value?
    pub(crate) fn contains(&self, index: u32, generation: u32) -> bool {
        self.generation(index) == Some(generation)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        let slots = self.first.iter().chain(self.others.iter().flatten());
        slots.zip(0..).filter_map(|(slot, index)| Some((index, slot.value.as_ref()?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_removed_handle_is_not_valid_when_its_slot_is_used_again() {
        let mut slab = Slab::new();
        let (index, generation) = slab.insert("a");
        assert!(slab.contains(index, generation));
        assert_eq!(slab.remove(index), Some("a"));
        assert_eq!(slab.remove(index), None);
        let (again, next) = slab.insert("b");
        assert_eq!(again, index);
        assert!(!slab.contains(index, generation) && slab.contains(index, next));
    }

    #[test]
    fn indices_stay_dense_over_pages() {
        let mut slab = Slab::new();
        for i in 0..3000u32 {
            assert_eq!(slab.insert(i).0, i);
        }
        slab.remove(1030);
        slab.remove(5);
        assert_eq!((slab.insert(0).0, slab.insert(0).0, slab.insert(0).0), (5, 1030, 3000));
        assert_eq!((slab.len(), slab.reach()), (3001, 3001));
        assert_eq!(slab.iter().count(), 3001);
    }
}
