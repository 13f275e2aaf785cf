//! Work for a thread that may block: a bounded queue whose producers never wait.
use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A queue and the thread that empties it.
///
/// An item that finds no room is dropped and counted. So is each item behind it, until the thread
/// has taken the count. The count takes the place of the dropped items.
pub(crate) struct Backlog<T> {
    shared: Arc<Shared<T>>,
    len_max: usize,
}

struct Shared<T> {
    waiting: Mutex<Waiting<T>>,
    filled: Condvar,
    done: Condvar,
}

struct Waiting<T> {
    items: VecDeque<T>,
    /// The length of all queued items.
    len: usize,
    /// Dropped items that the thread has not counted yet.
    unreported: u64,
    /// All dropped items.
    dropped: u64,
    /// True while the thread works on items that have left the queue.
    is_busy: bool,
    /// True once no more items come.
    is_closed: bool,
}

impl<T: Send + 'static> Backlog<T> {
    /// Starts the thread. It passes the items to `work` in order, with the number of items dropped
    /// after each batch.
    pub(crate) fn start(
        name: &str,
        len_max: usize,
        mut work: impl FnMut(VecDeque<T>, u64) + Send + 'static,
    ) -> io::Result<Backlog<T>> {
        let waiting = Waiting {
            items: VecDeque::new(),
            len: 0,
            unreported: 0,
            dropped: 0,
            is_busy: false,
            is_closed: false,
        };
        let shared = Shared { waiting: Mutex::new(waiting), filled: Condvar::new(), done: Condvar::new() };
        let shared = Arc::new(shared);
        let source = shared.clone();
        std::thread::Builder::new().name(name.to_owned()).spawn(move || {
            while let Some((items, dropped)) = source.take() {
                work(items, dropped);
            }
        })?;
        Ok(Backlog { shared, len_max })
    }

    /// Queues an item, or drops it if there is no room for its length.
    pub(crate) fn put(&self, item: T, len: usize) {
        let mut waiting = self.shared.lock();
        if waiting.unreported > 0 || waiting.len + len > self.len_max {
            waiting.unreported += 1;
            waiting.dropped += 1;
            return;
        }
        waiting.len += len;
        waiting.items.push_back(item);
        self.shared.filled.notify_one();
    }

    /// Returns the number of items that found no room.
    pub(crate) fn dropped(&self) -> u64 {
        self.shared.lock().dropped
    }

    /// Waits until everything is done, at most `at_most`. Returns false if something is left.
    pub(crate) fn finish(&self, at_most: Duration) -> bool {
        let is_pending = |waiting: &mut Waiting<T>| waiting.is_busy || !waiting.items.is_empty();
        let waited = self.shared.done.wait_timeout_while(self.shared.lock(), at_most, is_pending);
        !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }
}

/// Ends the thread once the queue is empty.
impl<T> Drop for Backlog<T> {
    fn drop(&mut self) {
        self.shared.lock().is_closed = true;
        self.shared.filled.notify_one();
    }
}

impl<T> Shared<T> {
    fn lock(&self) -> MutexGuard<'_, Waiting<T>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for items, and takes them all. Returns `None` at the end.
    fn take(&self) -> Option<(VecDeque<T>, u64)> {
        let mut waiting = self.lock();
        waiting.is_busy = false;
        self.done.notify_all();
        while waiting.items.is_empty() {
            if waiting.is_closed {
                return None;
            }
            waiting = self.filled.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
        waiting.is_busy = true;
        waiting.len = 0;
        Some((std::mem::take(&mut waiting.items), std::mem::take(&mut waiting.unreported)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn items_that_find_no_room_are_dropped_and_their_number_takes_their_place() {
        let (done, results) = channel();
        let (open, gate) = channel::<()>();
        let work = move |items: VecDeque<&'static str>, dropped| {
            let _ = gate.recv();
            done.send((Vec::from(items), dropped)).unwrap();
        };
        let backlog = Backlog::start("test", 10, work).unwrap();
        backlog.put("first", 1);
        while !backlog.shared.lock().is_busy {
            std::thread::yield_now();
        }
        for name in ["a", "b", "c", "d"] {
            backlog.put(name, 5);
        }
        assert_eq!(backlog.dropped(), 2);
        assert!(!backlog.finish(Duration::from_millis(1)));
        drop(open);
        assert!(backlog.finish(Duration::from_secs(60)));
        backlog.put("last", 10);
        drop(backlog);
        let results: Vec<_> = results.iter().collect();
        assert_eq!(results, [(vec!["first"], 0), (vec!["a", "b"], 2), (vec!["last"], 0)]);
    }
}
