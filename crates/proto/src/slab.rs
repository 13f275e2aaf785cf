//! A paged slab: stable small indices, generations, no doubling, no move of what it holds.

/// Entries per page.
const PAGE: usize = 64;
const NONE: u32 = u32::MAX;

struct Slot<T> {
    generation: u32,
    next_free: u32,
    value: Option<T>,
}

/// Values under (index, generation) handles; a removed value's handle is never valid again until 2³² reuses of its slot.
pub(crate) struct Slab<T> {
    pages: Vec<Box<[Slot<T>; PAGE]>>,
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
        if self.free == NONE {
            self.add_page();
        }
        let index = self.free;
        let slot = &mut self.pages[index as usize / PAGE][index as usize % PAGE];
        self.free = slot.next_free;
        slot.value = Some(value);
        self.len += 1;
        (index, slot.generation)
    }

    #[cold]
    fn add_page(&mut self) {
        let first = (self.pages.len() * PAGE) as u32;
        let next = |index: u32| if index as usize % PAGE + 1 < PAGE { index + 1 } else { NONE };
        let slot = |index| Slot { generation: 0, next_free: next(index), value: None };
        let slots: Vec<Slot<T>> = (first..first + PAGE as u32).map(slot).collect();
        if let Ok(page) = slots.into_boxed_slice().try_into() {
            self.pages.push(page);
            self.free = first;
        }
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
        Some(&self.pages.get(index as usize / PAGE)?[index as usize % PAGE])
    }

    #[inline]
    fn slot_mut(&mut self, index: u32) -> Option<&mut Slot<T>> {
        Some(&mut self.pages.get_mut(index as usize / PAGE)?[index as usize % PAGE])
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
        for i in 0..200u32 {
            assert_eq!(slab.insert(i).0, i);
        }
        slab.remove(130);
        slab.remove(5);
        assert_eq!((slab.insert(0).0, slab.insert(0).0, slab.insert(0).0), (5, 130, 200));
        assert_eq!(slab.len(), 201);
        assert_eq!(slab.iter().count(), 201);
    }
}
