//! The order in which Linux lists classes: that of its hash table (`qdisc_class_hash`).

use alloc::vec::Vec;

/// Buckets with the newest first; the table doubles when it is three quarters full, which turns each bucket round.
#[derive(Clone, Debug)]
pub(super) struct Listing {
    buckets: Vec<Vec<u32>>,
    len: usize,
}

impl Default for Listing {
    fn default() -> Listing {
        Listing { buckets: vec![Vec::new(); 4], len: 0 }
    }
}

impl Listing {
    pub(super) fn insert(&mut self, id: u32) {
        self.put(id);
        self.len += 1;
        if self.len * 4 > self.buckets.len() * 3 {
            let size = self.buckets.len() * 2;
            let old = core::mem::replace(&mut self.buckets, vec![Vec::new(); size]);
            old.into_iter().flatten().for_each(|id| self.put(id));
        }
    }

    pub(super) fn remove(&mut self, id: u32) {
        let bucket = self.bucket(id);
        let before = bucket.len();
        bucket.retain(|other| *other != id);
        let removed = before - bucket.len();
        self.len -= removed;
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = u32> {
        self.buckets.iter().flatten().copied()
    }

    fn put(&mut self, id: u32) {
        self.bucket(id).insert(0, id);
    }

    fn bucket(&mut self, id: u32) -> &mut Vec<u32> {
        let mut hash = id;
        hash ^= hash >> 8;
        hash ^= hash >> 4;
        let mask = self.buckets.len() - 1;
        &mut self.buckets[hash as usize & mask]
    }
}
