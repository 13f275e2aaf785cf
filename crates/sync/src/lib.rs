//! Locks, atomics and threads, of the standard library or of a checker.
//!
//! A normal build re-exports `std` and adds nothing. With the feature `shuttle`, the same names are
//! shuttle's: all threads of a test run in one, and at each operation below a random choice,
//! repeatable by a seed, decides which thread continues. Tests thus play many orders of events with
//! the production code: `cargo xtask threads`.
//!
//! `model` has what the system contributes to the order of events: semaphores and event
//! descriptors, time, signal handlers, cancellation.
#![forbid(unsafe_code)]

#[cfg(feature = "shuttle")]
pub mod model;

#[cfg(not(feature = "shuttle"))]
pub use std::{
    sync::{LockResult, Mutex, MutexGuard, PoisonError, atomic},
    thread, thread_local,
};

#[cfg(feature = "shuttle")]
pub use {
    model::Mutex,
    shuttle::{
        sync::{LockResult, MutexGuard, PoisonError, atomic},
        thread, thread_local,
    },
};

/// Returns the time of the monotonic clock.
#[must_use]
pub fn monotonic() -> std::time::Instant {
    #[cfg(not(feature = "shuttle"))]
    return std::time::Instant::now();
    #[cfg(feature = "shuttle")]
    return model::time::now();
}
