//! How a thread sleeps until it is woken, its time comes, or a signal handler has run.
//!
//! A futex, since its rules for signals are those of a socket: a wait without a time-out goes on after a handler installed with
//! `SA_RESTART`; one with a time-out ends (signal(7)).

use rustix::io::Errno;
use rustix::thread::futex::{self, Flags, Timespec};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Wake, Waker};
use std::time::Duration;

/// One thread's place to sleep.
#[derive(Debug, Default)]
pub(super) struct Parker {
    state: AtomicU32,
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
    static OWN: Arc<Parker> = Arc::default();
}

impl Parker {
    /// The calling thread's own.
    pub(super) fn current() -> Arc<Parker> {
        // A thread that is ending has given its own back.
        OWN.try_with(Arc::clone).unwrap_or_default()
    }

    pub(super) fn waker(self: &Arc<Parker>) -> Waker {
        Waker::from(Arc::clone(self))
    }

    /// Sleeps, for ever without `most`. Who was woken before does not sleep.
    pub(super) fn park(&self, most: Option<Duration>) -> Parked {
        loop {
            if self.state.swap(EMPTY, Ordering::Acquire) == WOKEN {
                return Parked::Over;
            }
            let time = most.and_then(|most| Timespec::try_from(most).ok());
            match futex::wait(&self.state, Flags::PRIVATE, EMPTY, time.as_ref()) {
                Err(Errno::INTR) if self.state.swap(EMPTY, Ordering::Acquire) == EMPTY => {
                    return Parked::Interrupted;
                }
                Err(Errno::INTR | Errno::TIMEDOUT) => return Parked::Over,
                // Woken, or never asleep.
                _ => {}
            }
        }
    }
}

impl Wake for Parker {
    fn wake(self: Arc<Parker>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Parker>) {
        if self.state.swap(WOKEN, Ordering::Release) == EMPTY {
            // It cannot fail: the place is ours and aligned.
            let _ = futex::wake(&self.state, Flags::PRIVATE, 1);
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
