//! Signals held back while a thread has the lock: a handler that ran there, and made a call of its own, would wait for its own thread.

use core::mem;
use core::ptr;
use libc::{c_int, sigset_t};

/// While it lives, no handler runs in this thread.
#[derive(Debug)]
pub(crate) struct Masked(sigset_t);

/// What the thread brings upon itself: held back, it would end the process without its handler.
const OWN_FAULTS: [c_int; 6] =
    [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGTRAP, libc::SIGABRT];

impl Masked {
    pub(crate) fn new() -> Masked {
        // SAFETY: both sets are this function's own; zeroes are a set, which `sigfillset` fills.
        unsafe {
            let (mut all, mut before) = (mem::zeroed(), mem::zeroed());
            libc::sigfillset(&raw mut all);
            for signal in OWN_FAULTS {
                libc::sigdelset(&raw mut all, signal);
            }
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
            Masked(before)
        }
    }
}

impl Drop for Masked {
    fn drop(&mut self) {
        // SAFETY: the set is what the thread had.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.0, ptr::null_mut()) };
    }
}
