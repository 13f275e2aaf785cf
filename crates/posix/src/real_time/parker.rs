//! How a thread sleeps until it is woken, its time comes, or a signal handler has run.
//!
//! On a semaphore, whose rules for signals and cancellation are those of a socket.

use super::stay::Place;
use super::{Semaphore, Unmasked, Waited};
use std::sync::Arc;
use std::task::{Wake, Waker};
use std::time::Duration;
use sync::atomic::AtomicU32;
use sync::thread_local;

/// One thread's place to sleep.
#[derive(Debug)]
pub(super) struct Parker {
    /// Posted by each who wakes. There is no flag beside it that says so: a handler that runs after a wait has ended, and before the flag
    /// is cleared, would sleep with the flag set, and nobody would post for it.
    semaphore: Semaphore,
    calls: AtomicU32,
}

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

impl Parker {
    /// The calling thread's own.
    pub(super) fn current() -> Arc<Parker> {
        // A thread that is ending has given its own back.
        OWN.try_with(Arc::clone).unwrap_or_else(|_| Arc::new(Parker::new()))
    }

    fn new() -> Parker {
        Parker { semaphore: Semaphore::new(), calls: AtomicU32::new(0) }
    }

    pub(super) fn waker(self: &Arc<Parker>) -> Waker {
        Waker::from(Arc::clone(self))
    }

    /// Sleeps, for ever without `most`; handlers run meanwhile. Who was woken before does not sleep.
    pub(super) fn park(&self, most: Option<Duration>) -> Parked {
        let _handlers_run = Unmasked::new();
        match self.semaphore.wait(most) {
            Waited::Posted => {
                // The thread looks once for all of them.
                while self.semaphore.try_take() {}
                Parked::Over
            }
            Waited::TimedOut => Parked::Over,
            Waited::Interrupted if self.semaphore.try_take() => Parked::Over,
            Waited::Interrupted => Parked::Interrupted,
        }
    }
}

impl Place for Parker {
    fn calls(&self) -> &AtomicU32 {
        &self.calls
    }

    fn wake(&self) {
        self.semaphore.post();
    }
}

impl Wake for Parker {
    fn wake(self: Arc<Parker>) {
        Place::wake(&*self);
    }

    fn wake_by_ref(self: &Arc<Parker>) {
        Place::wake(&**self);
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
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
