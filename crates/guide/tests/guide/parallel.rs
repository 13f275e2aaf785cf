//! Runs a function on the items of a list, several at once.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Results of `work` in the order of the items; at most `at_once` run at the same time.
pub(crate) fn each<I: Sync, T: Send>(at_once: usize, items: &[I], work: impl Fn(&I) -> T + Sync) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let take = || {
        let taken = || {
            let at = next.fetch_add(1, Ordering::Relaxed);
            items.get(at).map(|item| (at, item))
        };
        std::iter::from_fn(taken).map(|(at, item)| (at, work(item))).collect::<Vec<_>>()
    };
    let mut results: Vec<(usize, T)> = thread::scope(|scope| {
        let workers: Vec<_> = (0..at_once).map(|_| scope.spawn(take)).collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("no panic")).collect()
    });
    results.sort_by_key(|(at, _)| *at);
    results.into_iter().map(|(_, result)| result).collect()
}
