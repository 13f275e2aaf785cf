//! The system's semaphore, for one thread that sleeps on it.
//!
//! To sleep there is a cancellation point (pthreads(7)), and the rules for signals are those of a socket: a wait without a time-out goes on
//! after a handler installed with `SA_RESTART`; one with a time-out ends (signal(7)). `post` may be called in a handler.

use core::cell::UnsafeCell;
use core::mem;
use core::time::Duration;
use libc::{c_int, clockid_t, sem_t, timespec};

unsafe extern "C-unwind" {
    // A thread that is cancelled unwinds from here.
    fn sem_wait(semaphore: *mut sem_t) -> c_int;
    fn sem_clockwait(semaphore: *mut sem_t, clock: clockid_t, until: *const timespec) -> c_int;
}

/// It begins at 0. It lies on the heap, since it may not be moved.
#[derive(Debug)]
pub(crate) struct Semaphore(Box<UnsafeCell<sem_t>>);

// SAFETY: that is what a semaphore is for.
unsafe impl Send for Semaphore {}
// SAFETY: likewise.
unsafe impl Sync for Semaphore {}

/// How a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waited {
    Posted,
    TimedOut,
    /// A signal handler has run.
    Interrupted,
}

impl Semaphore {
    pub(crate) fn new() -> Semaphore {
        // SAFETY: zeroes are a `sem_t` that is not yet in use; it is initialised where it stays.
        unsafe {
            let semaphore = Semaphore(Box::new(UnsafeCell::new(mem::zeroed())));
            libc::sem_init(semaphore.0.get(), 0, 0);
            semaphore
        }
    }

    /// One wait may end.
    pub(crate) fn post(&self) {
        // SAFETY: it has been initialised. With 2³¹ − 1 posts outstanding one more changes nothing.
        unsafe { libc::sem_post(self.0.get()) };
    }

    /// Takes one post. False: there is none.
    pub(crate) fn try_take(&self) -> bool {
        // SAFETY: it has been initialised.
        unsafe { libc::sem_trywait(self.0.get()) == 0 }
    }

    /// Sleeps until it is posted, for `most` at most.
    pub(crate) fn wait(&self, most: Option<Duration>) -> Waited {
        // SAFETY: it has been initialised; the time is this function's own.
        let ended = unsafe {
            match most.and_then(after) {
                Some(until) => sem_clockwait(self.0.get(), libc::CLOCK_MONOTONIC, &raw const until),
                None => sem_wait(self.0.get()),
            }
        };
        match std::io::Error::last_os_error().raw_os_error() {
            _ if ended == 0 => Waited::Posted,
            Some(libc::ETIMEDOUT) => Waited::TimedOut,
            _ => Waited::Interrupted,
        }
    }
}

impl Drop for Semaphore {
    fn drop(&mut self) {
        // SAFETY: whoever waits or posts borrows it.
        unsafe { libc::sem_destroy(self.0.get()) };
    }
}

/// That much later than now; `None`: the clock does not go so far.
fn after(most: Duration) -> Option<timespec> {
    let mut now = timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the time is this function's own.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    let now = Duration::new(now.tv_sec.try_into().ok()?, now.tv_nsec.try_into().ok()?);
    let until = now.checked_add(most)?;
    Some(timespec { tv_sec: until.as_secs().try_into().ok()?, tv_nsec: until.subsec_nanos().into() })
}
