//! Locks, atomics and threads: the standard library's, or those of a checker.
//!
//! An ordinary build re-exports `std`, and nothing else is here. With the feature `shuttle`, the same names are shuttle's: all threads of a
//! test run in one, and at each operation below a random choice, which a seed repeats, decides which goes on. So tests play many orders of
//! events with the very code that runs in production: `cargo xtask threads`.
//!
//! What the system does beside, where it takes part in the order of events, is in `model` then: semaphores and event descriptors, time,
//! signal handlers, cancellation.
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

/// The monotonic clock.
#[must_use]
pub fn monotonic() -> std::time::Instant {
    #[cfg(not(feature = "shuttle"))]
    return std::time::Instant::now();
    #[cfg(feature = "shuttle")]
    return model::time::now();
}
