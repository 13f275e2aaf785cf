//! A bounded map that evicts what was used least recently, in O(1).
//!
//! Nodes lie in one vector without gaps and form a list in order of use; a hash table of indices, keyed so that no
//! peer can choose colliding addresses, finds them. Nothing observable depends on the table's order.

use crate::keyed_hash::HashKey;
use alloc::vec::Vec;
use core::hash::{Hash, Hasher};
use hashbrown::HashTable;

const NONE: u32 = u32::MAX;

struct Node<K, V> {
    /// Used more recently.
    prev: u32,
    /// Used less recently.
    next: u32,
    key: K,
    value: V,
}

/// See the module.
pub(super) struct Lru<K, V> {
    table: HashTable<u32>,
    nodes: Vec<Node<K, V>>,
    /// Most and least recently used.
    head: u32,
    tail: u32,
    capacity: usize,
    hash_key: HashKey,
}

impl<K: Hash + Eq + Copy, V> Lru<K, V> {
    /// Holds at most `capacity` values, and at least one.
    pub(super) fn new(capacity: usize, hash_key: (u64, u64)) -> Lru<K, V> {
        let capacity = capacity.clamp(1, NONE as usize);
        Lru {
            table: HashTable::new(),
            nodes: Vec::new(),
            head: NONE,
            tail: NONE,
            capacity,
            hash_key: HashKey::new(hash_key),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Finds without marking as used.
    pub(super) fn get(&self, key: &K) -> Option<&V> {
        self.find(key).map(|index| &self.nodes[index as usize].value)
    }

    /// Finds without marking as used.
    pub(super) fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        self.find(key).map(|index| &mut self.nodes[index as usize].value)
    }

    /// Finds, or makes room and inserts; marks as used.
    #[inline]
    pub(super) fn use_or_insert_with(&mut self, key: K, make: impl FnOnce() -> V) -> &mut V {
        if !self.is_first(&key) {
            self.bring_up(key, make);
        }
        &mut self.nodes[self.head as usize].value
    }

    /// Makes the entry of `key`, found or made, the most recently used; it was not before.
    #[inline(never)]
    fn bring_up(&mut self, key: K, make: impl FnOnce() -> V) {
        let index = match self.find_by_hash(&key) {
            Some(index) => {
                self.unlink(index);
                index
            }
            None => self.insert(key, make()),
        };
        self.link_first(index);
    }

    pub(super) fn remove(&mut self, key: &K) -> Option<V> {
        let index = self.find(key)?;
        Some(self.remove_index(index))
    }

    /// Removes everything and frees its memory.
    pub(super) fn clear(&mut self) {
        self.table = HashTable::new();
        self.nodes = Vec::new();
        (self.head, self.tail) = (NONE, NONE);
    }

    /// Most recently used first.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        let node = |index: u32| self.nodes.get(index as usize);
        core::iter::successors(node(self.head), move |last| node(last.next))
            .map(|node| (&node.key, &node.value))
    }

    fn insert(&mut self, key: K, value: V) -> u32 {
        if self.nodes.len() == self.capacity {
            self.remove_index(self.tail);
        }
        let index = self.nodes.len() as u32;
        self.nodes.push(Node { prev: NONE, next: NONE, key, value });
        let (nodes, hash_key) = (&self.nodes, self.hash_key);
        self.table.insert_unique(hash(hash_key, &key), index, |&i| hash(hash_key, &nodes[i as usize].key));
        index
    }

    fn find(&self, key: &K) -> Option<u32> {
        // Asked for in a row, mostly.
        if self.is_first(key) { Some(self.head) } else { self.find_by_hash(key) }
    }

    /// Was this used last?
    fn is_first(&self, key: &K) -> bool {
        self.nodes.get(self.head as usize).is_some_and(|node| node.key == *key)
    }

    #[inline(never)]
    fn find_by_hash(&self, key: &K) -> Option<u32> {
        self.table.find(hash(self.hash_key, key), |&i| self.nodes[i as usize].key == *key).copied()
    }

    /// The last node takes the place of the removed one.
    fn remove_index(&mut self, index: u32) -> V {
        self.unlink(index);
        self.set_table_index(index, None);
        let last = self.nodes.len() as u32 - 1;
        if index != last {
            self.set_table_index(last, Some(index));
            let (prev, next) = (self.nodes[last as usize].prev, self.nodes[last as usize].next);
            self.set_next(prev, index);
            self.set_prev(next, index);
        }
        self.nodes.swap_remove(index as usize).value
    }

    /// The table's slot of the node at `index` now names `new`, or goes.
    fn set_table_index(&mut self, index: u32, new: Option<u32>) {
        let hash = hash(self.hash_key, &self.nodes[index as usize].key);
        if let Ok(mut slot) = self.table.find_entry(hash, |&i| i == index) {
            match new {
                Some(new) => *slot.get_mut() = new,
                None => drop(slot.remove()),
            }
        }
    }

    fn unlink(&mut self, index: u32) {
        let (prev, next) = (self.nodes[index as usize].prev, self.nodes[index as usize].next);
        self.set_next(prev, next);
        self.set_prev(next, prev);
    }

    fn link_first(&mut self, index: u32) {
        let old = self.head;
        self.nodes[index as usize].prev = NONE;
        self.nodes[index as usize].next = old;
        self.set_prev(old, index);
        self.head = index;
    }

    /// Sets what follows `index`, where `NONE` stands for the list's start.
    fn set_next(&mut self, index: u32, next: u32) {
        match self.nodes.get_mut(index as usize) {
            Some(node) => node.next = next,
            None => self.head = next,
        }
    }

    /// Sets what precedes `index`, where `NONE` stands for the list's end.
    fn set_prev(&mut self, index: u32, prev: u32) {
        match self.nodes.get_mut(index as usize) {
            Some(node) => node.prev = prev,
            None => self.tail = prev,
        }
    }
}

fn hash<K: Hash>(hash_key: HashKey, key: &K) -> u64 {
    let mut hasher = hash_key.hasher();
    key.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The reference model: a plain list, most recently used first.
    #[derive(Default)]
    struct Model(Vec<(u8, u32)>);

    impl Model {
        fn use_or_insert(&mut self, key: u8, value: u32, capacity: usize) -> u32 {
            let value = match self.0.iter().position(|entry| entry.0 == key) {
                Some(at) => self.0.remove(at).1,
                None => value,
            };
            self.0.truncate(capacity - 1);
            self.0.insert(0, (key, value));
            value
        }

        fn remove(&mut self, key: u8) -> Option<u32> {
            let at = self.0.iter().position(|entry| entry.0 == key)?;
            Some(self.0.remove(at).1)
        }
    }

    proptest! {
        #[test]
        fn behaves_as_a_list_in_order_of_use(
            capacity in 1usize..12,
            ops in proptest::collection::vec((0u8..3, 0u8..20, any::<u32>()), 1..200),
        ) {
            let mut lru = Lru::new(capacity, (1, 2));
            let mut model = Model::default();
            for (op, key, value) in ops {
                match op {
                    0 | 1 => {
                        let expected = model.use_or_insert(key, value, capacity);
                        prop_assert_eq!(*lru.use_or_insert_with(key, || value), expected);
                    }
                    _ => prop_assert_eq!(lru.remove(&key), model.remove(key)),
                }
                let all: Vec<_> = lru.iter().map(|(k, v)| (*k, *v)).collect();
                prop_assert_eq!(&all, &model.0);
                prop_assert_eq!(lru.len(), model.0.len());
                for key in 0..20 {
                    prop_assert_eq!(lru.get(&key), model.0.iter().find(|e| e.0 == key).map(|e| &e.1));
                }
            }
        }
    }

    #[test]
    fn clear_leaves_an_empty_map_that_works() {
        let mut lru = Lru::new(2, (0, 0));
        lru.use_or_insert_with(1, || 'a');
        lru.clear();
        assert_eq!((lru.len(), lru.iter().count(), lru.get(&1)), (0, 0, None));
        lru.use_or_insert_with(2, || 'b');
        assert_eq!(lru.iter().collect::<Vec<_>>(), [(&2, &'b')]);
    }
}
