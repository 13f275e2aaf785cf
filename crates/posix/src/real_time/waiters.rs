//! Which threads wait for which descriptors.
//!
//! A thread is entered under the lock under which its call found nothing, so nothing is missed between the two. It is woken once, and
//! takes itself out when it looks again.

use std::collections::HashMap;
use std::task::Waker;

/// The waiting threads of one process.
#[derive(Debug, Default)]
pub(super) struct Waiters {
    next: u64,
    entries: HashMap<u64, Entry>,
    /// Who waits for a descriptor, in the order they came. Never iterated.
    by_fd: HashMap<i32, Vec<u64>>,
    /// Who waits for anything.
    any: Vec<u64>,
}

#[derive(Debug)]
struct Entry {
    fds: Vec<i32>,
    waker: Waker,
}

impl Waiters {
    /// `waker` is to be woken when something happens to one of `fds`; without any, at anything.
    pub(super) fn add(&mut self, fds: &[i32], waker: Waker) -> u64 {
        let id = self.next;
        self.next += 1;
        for fd in fds {
            self.by_fd.entry(*fd).or_default().push(id);
        }
        if fds.is_empty() {
            self.any.push(id);
        }
        self.entries.insert(id, Entry { fds: fds.to_vec(), waker });
        id
    }

    pub(super) fn remove(&mut self, id: u64) {
        let Some(entry) = self.entries.remove(&id) else { return };
        if entry.fds.is_empty() {
            self.any.retain(|other| *other != id);
        }
        for fd in entry.fds {
            if let Some(ids) = self.by_fd.get_mut(&fd) {
                ids.retain(|other| *other != id);
                if ids.is_empty() {
                    self.by_fd.remove(&fd);
                }
            }
        }
    }

    /// Something happened to a descriptor.
    pub(super) fn stir(&self, fd: i32, woken: &mut Vec<Waker>) {
        let ids = self.by_fd.get(&fd).into_iter().flatten().chain(&self.any);
        woken.extend(ids.filter_map(|id| Some(self.entries.get(id)?.waker.clone())));
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
            .map(|(fds, count)| waiters.add(fds, Waker::from(Arc::clone(count))))
            .collect();
        let told = |waiters: &Waiters, fd| {
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
        assert!(waiters.by_fd.is_empty() && waiters.entries.is_empty() && waiters.any.is_empty());
    }
}
