//! Thread cancellation (pthread_cancel(3)): unwinds from a sleep.

use super::by_chance;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

shuttle::thread_local! {
    static IS_DUE: Cell<bool> = Cell::new(false);
}

/// The payload of the unwinding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cancelled;

/// Runs a call in which the thread is cancelled when it sleeps, unless the call ends first.
///
/// # Errors
/// The call was cancelled.
pub fn within<R>(call: impl FnOnce() -> R) -> Result<R, Cancelled> {
    IS_DUE.with(|due| due.set(true));
    let ended = catch_unwind(AssertUnwindSafe(call));
    IS_DUE.with(|due| due.set(false));
    ended.map_err(|panic| match panic.downcast::<Cancelled>() {
        Ok(cancelled) => *cancelled,
        Err(panic) => resume_unwind(panic),
    })
}

/// A cancellation point.
pub(super) fn point() {
    if is_due() && by_chance(4) {
        IS_DUE.with(|due| due.set(false));
        resume_unwind(Box::new(Cancelled));
    }
}

pub(super) fn is_due() -> bool {
    IS_DUE.with(Cell::get)
}
