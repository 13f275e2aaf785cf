//! The monotonic clock: it stands still until a sleeper's timeout expires, and then shows that
//! time.

use super::by_chance;
use std::cell::Cell;
use std::time::{Duration, Instant};

std::thread_local! {
    /// Start of the clock. Shuttle plays each order of events in one thread.
    static EPOCH: Instant = Instant::now();
    static PASSED: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

/// Resets the clock for a new order of events.
pub(super) fn begin() {
    PASSED.set(Duration::ZERO);
}

/// Returns the current time.
#[must_use]
pub fn now() -> Instant {
    EPOCH.with(|epoch| *epoch) + PASSED.get()
}

/// Decides whether a sleeper's timeout, `left` from now, expires. Returns true if it does.
pub(super) fn passes(left: Duration) -> bool {
    let passes = by_chance(4);
    if passes {
        PASSED.set(PASSED.get() + left);
    }
    passes
}
