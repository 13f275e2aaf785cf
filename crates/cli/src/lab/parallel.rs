//! Runs work on all cores, with a progress bar.

use std::io::{IsTerminal, Write};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Does `work` for every item. Returns the results in the order of the items. `name` labels an item
/// in the bar.
pub(super) fn each<T: Sync, R: Send>(
    items: &[T],
    name: impl Fn(&T) -> String + Sync,
    work: impl Fn(&T) -> R + Sync,
) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let done: Mutex<Vec<(usize, R)>> = Mutex::new(Vec::new());
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..workers.min(items.len()) {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(item) = items.get(index) else { break };
                    let one = work(item);
                    if let Ok(mut done) = done.lock() {
                        done.push((index, one));
                        progress(done.len(), items.len(), &name(item));
                    }
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap_or_default();
    done.sort_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, one)| one).collect()
}

/// Draws the progress bar, if stderr is a terminal.
fn progress(done: usize, of: usize, name: &str) {
    let mut stderr = std::io::stderr();
    if stderr.is_terminal() {
        let filled = 30 * done / of;
        let end = if done == of { "\r\x1b[K" } else { "" };
        // Failing to draw the bar does not matter.
        let _ = write!(stderr, "\r\x1b[K[{:<30}] {done}/{of} {name}{end}", "#".repeat(filled));
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn results_stand_in_the_order_of_the_items() {
        let items: Vec<u32> = (0..100).collect();
        let squares = super::each(&items, |_| String::new(), |item| item * item);
        assert_eq!(squares, items.iter().map(|item| item * item).collect::<Vec<_>>());
    }
}
