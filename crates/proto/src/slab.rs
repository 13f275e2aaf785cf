//! A paged slab: stable small indices, generations, and beyond the first page no doubling and no move of what it holds.

/// Entries per page: with a million of them the list of pages still lies in the nearest cache.
const PAGE: usize = 1024;
const NONE: u32 = u32::MAX;

struct Slot<T> {
    generation: u32,
    next_free: u32,
    value: Option<T>,
}

/// Values under (index, generation) handles; a removed value's handle is never valid again until 2³² reuses of its slot.
pub(crate) struct Slab<T> {
    /// All are full but the last. The first grows as it fills, the others have room for a page at once.
    pages: Vec<Vec<Slot<T>>>,
    /// The free slots, linked by `next_free`.
    free: u32,
    len: usize,
}

impl<T> Slab<T> {
    /// Bytes of memory for each value.
    pub(crate) const SLOT: usize = size_of::<Slot<T>>();

    pub(crate) fn new() -> Slab<T> {
        Slab { pages: Vec::new(), free: NONE, len: 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Stores a value; returns its index and generation.
    pub(crate) fn insert(&mut self, value: T) -> (u32, u32) {
        self.len += 1;
        let index = self.free;
        let Some(slot) = self.slot_mut(index) else { return (self.append(value), 0) };
        slot.value = Some(value);
        let (generation, next_free) = (slot.generation, slot.next_free);
        self.free = next_free;
        (index, generation)
    }

    /// In a slot behind all others.
    #[cold]
    fn append(&mut self, value: T) -> u32 {
        if self.pages.last().is_none_or(|page| page.len() == PAGE) {
            let room = if self.pages.is_empty() { 0 } else { PAGE };
            self.pages.push(Vec::with_capacity(room));
        }
        let before = (self.pages.len() - 1) * PAGE;
        let page = &mut self.pages[before / PAGE];
        page.push(Slot { generation: 0, next_free: NONE, value: Some(value) });
        (before + page.len() - 1) as u32
    }

    pub(crate) fn remove(&mut self, index: u32) -> Option<T> {
        let value = self.slot_mut(index)?.value.take()?;
        self.release(index);
        Some(value)
    }

    /// Drops a value where it lies: no move of a large one.
    pub(crate) fn drop_at(&mut self, index: u32) {
        if let Some(slot) = self.slot_mut(index)
            && slot.value.is_some()
        {
            slot.value = None;
            self.release(index);
        }
    }

    /// The slot of a removed value may be used again.
    fn release(&mut self, index: u32) {
        let slot = &mut self.pages[index as usize / PAGE][index as usize % PAGE];
        slot.generation = slot.generation.wrapping_add(1);
        slot.next_free = self.free;
        self.free = index;
        self.len -= 1;
    }

    #[inline]
    fn slot(&self, index: u32) -> Option<&Slot<T>> {
        self.pages.get(index as usize / PAGE)?.get(index as usize % PAGE)
    }

    #[inline]
    fn slot_mut(&mut self, index: u32) -> Option<&mut Slot<T>> {
        self.pages.get_mut(index as usize / PAGE)?.get_mut(index as usize % PAGE)
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

    /// The same, to be read.
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
        self.pages.iter().enumerate().flat_map(|(p, page)| {
            page.iter()
                .enumerate()
                .filter_map(move |(s, slot)| Some(((p * PAGE + s) as u32, slot.value.as_ref()?)))
        })
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
        assert_eq!(slab.len(), 3001);
        assert_eq!(slab.iter().count(), 3001);
    }
}
