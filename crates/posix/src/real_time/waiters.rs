//! Which threads wait for which files.
//!
//! A thread is entered under the lock under which its call found nothing, so nothing is missed between the two. It is woken once, and
//! takes itself out when it looks again.

use std::collections::HashMap;
use std::hash::Hash;
use std::task::Waker;

/// The waiting threads of one process.
#[derive(Debug)]
pub(super) struct Waiters<F> {
    next: u64,
    entries: HashMap<u64, Entry<F>>,
    /// Who waits for a file, in the order they came. Never iterated.
    by_file: HashMap<F, Vec<u64>>,
    /// Who waits for anything.
    any: Vec<u64>,
}

#[derive(Debug)]
struct Entry<F> {
    files: Vec<F>,
    waker: Waker,
}

impl<F> Default for Waiters<F> {
    fn default() -> Waiters<F> {
        Waiters { next: 0, entries: HashMap::new(), by_file: HashMap::new(), any: Vec::new() }
    }
}

impl<F: Copy + Eq + Hash> Waiters<F> {
    /// `waker` is to be woken when something happens to one of `files`; without any, at anything.
    pub(super) fn add(&mut self, files: Vec<F>, waker: Waker) -> u64 {
        let id = self.next;
        self.next += 1;
        for file in &files {
            self.by_file.entry(*file).or_default().push(id);
        }
        if files.is_empty() {
            self.any.push(id);
        }
        self.entries.insert(id, Entry { files, waker });
        id
    }

    pub(super) fn remove(&mut self, id: u64) {
        let Some(entry) = self.entries.remove(&id) else { return };
        if entry.files.is_empty() {
            self.any.retain(|other| *other != id);
        }
        for file in entry.files {
            if let Some(ids) = self.by_file.get_mut(&file) {
                ids.retain(|other| *other != id);
                if ids.is_empty() {
                    self.by_file.remove(&file);
                }
            }
        }
    }

    /// Something happened to a file.
    pub(super) fn stir(&self, file: F, woken: &mut Vec<Waker>) {
        let ids = self.by_file.get(&file).into_iter().flatten().chain(&self.any);
        woken.extend(ids.filter_map(|id| Some(self.entries.get(id)?.waker.clone())));
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn stir_all(&self, woken: &mut Vec<Waker>) {
        woken.extend(self.entries.values().map(|entry| entry.waker.clone()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    #[test]
    fn only_whom_it_concerns_is_woken() {
        let counts: [Arc<Count>; 3] = Default::default();
        let mut waiters = Waiters::default();
        let ids = [&[3, 4][..], &[4], &[]].map(|fds| fds.to_vec());
        let ids: Vec<u64> = ids
            .iter()
            .zip(&counts)
            .map(|(fds, count)| waiters.add(fds.clone(), Waker::from(Arc::clone(count))))
            .collect();
        let told = |waiters: &Waiters<i32>, fd| {
            let mut woken = Vec::new();
            waiters.stir(fd, &mut woken);
            woken.into_iter().for_each(Waker::wake);
            counts.each_ref().map(|count| count.0.swap(0, Ordering::SeqCst))
        };
        assert_eq!(told(&waiters, 3), [1, 0, 1]);
        assert_eq!(told(&waiters, 4), [1, 1, 1]);
        waiters.remove(ids[0]);
        assert_eq!(told(&waiters, 4), [0, 1, 1]);
        ids.iter().for_each(|id| waiters.remove(*id));
        assert_eq!(told(&waiters, 4), [0, 0, 0]);
        assert!(waiters.by_file.is_empty() && waiters.entries.is_empty() && waiters.any.is_empty());
    }
}
