//! The monotonic clock: it stands still until the time-out of a sleeper comes, and then shows that.

use super::by_chance;
use std::cell::Cell;
use std::time::{Duration, Instant};

std::thread_local! {
    /// Of the one thread in which shuttle plays an order of events.
    static EPOCH: Instant = Instant::now();
    static PASSED: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

/// A new order of events begins.
pub(super) fn begin() {
    PASSED.set(Duration::ZERO);
}

/// The clock.
#[must_use]
pub fn now() -> Instant {
    EPOCH.with(|epoch| *epoch) + PASSED.get()
}

/// A sleeper has `left` until its time-out. True: it has come.
pub(super) fn passes(left: Duration) -> bool {
    let passes = by_chance(4);
    if passes {
        PASSED.set(PASSED.get() + left);
    }
    passes
}
