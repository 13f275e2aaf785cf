//! How a thread sleeps until it is woken, its time comes, or a signal handler has run.
//!
//! On a semaphore, whose rules for signals and cancellation are those of a socket.

use crate::c::masked::Unmasked;
use crate::c::semaphore::{Semaphore, Waited};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Wake, Waker};
use std::time::Duration;

/// One thread's place to sleep.
#[derive(Debug)]
pub(super) struct Parker {
    state: AtomicU32,
    /// Posted once when the state changes to woken.
    semaphore: Semaphore,
    /// Calls of the thread that may sleep: more than one where a signal handler makes another.
    calls: AtomicU32,
}

const EMPTY: u32 = 0;
const WOKEN: u32 = 1;

/// Why a thread sleeps no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Parked {
    /// It was woken, or its time has come.
    Over,
    /// A signal handler has run.
    Interrupted,
}

thread_local! {
    static OWN: Arc<Parker> = Arc::new(Parker::new());
}

/// A call that may sleep. When one that a handler has made ends, the interrupted one looks again: it may have been meant.
pub(super) struct Stay(Arc<Parker>);

impl Stay {
    /// Of the calling thread.
    pub(super) fn new() -> Stay {
        let parker = Parker::current();
        parker.calls.fetch_add(1, Ordering::Relaxed);
        Stay(parker)
    }

    pub(super) fn parker(&self) -> &Arc<Parker> {
        &self.0
    }
}

impl Drop for Stay {
    fn drop(&mut self) {
        if self.0.calls.fetch_sub(1, Ordering::Relaxed) > 1 {
            self.0.wake_by_ref();
        }
    }
}

impl Parker {
    /// The calling thread's own.
    fn current() -> Arc<Parker> {
        // A thread that is ending has given its own back.
        OWN.try_with(Arc::clone).unwrap_or_else(|_| Arc::new(Parker::new()))
    }

    fn new() -> Parker {
        Parker { state: AtomicU32::new(EMPTY), semaphore: Semaphore::new(), calls: AtomicU32::new(0) }
    }

    pub(super) fn waker(self: &Arc<Parker>) -> Waker {
        Waker::from(Arc::clone(self))
    }

    /// Sleeps, for ever without `most`; handlers run meanwhile. Who was woken before does not sleep.
    pub(super) fn park(&self, most: Option<Duration>) -> Parked {
        let _handlers_run = Unmasked::new();
        match self.semaphore.wait(most) {
            // Woken from here on it is posted anew.
            Waited::Posted => {
                self.state.swap(EMPTY, Ordering::AcqRel);
                Parked::Over
            }
            Waited::TimedOut => Parked::Over,
            Waited::Interrupted if self.state.load(Ordering::Acquire) == WOKEN => Parked::Over,
            Waited::Interrupted => Parked::Interrupted,
        }
    }
}

impl Wake for Parker {
    fn wake(self: Arc<Parker>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Parker>) {
        if self.state.swap(WOKEN, Ordering::Release) == EMPTY {
            self.semaphore.post();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn who_was_woken_before_does_not_sleep() {
        let parker = Parker::current();
        parker.waker().wake();
        assert_eq!(parker.park(None), Parked::Over);
        let begun = Instant::now();
        assert_eq!(parker.park(Some(Duration::from_millis(5))), Parked::Over);
        assert!(begun.elapsed() >= Duration::from_millis(5), "the token was used up");
    }

    #[test]
    fn another_thread_wakes() {
        let parker = Parker::current();
        let waker = parker.waker();
        let other = std::thread::spawn(move || waker.wake());
        assert_eq!(parker.park(None), Parked::Over);
        other.join().unwrap();
    }
}
