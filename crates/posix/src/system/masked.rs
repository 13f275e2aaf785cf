//! Signal handlers held back while a thread is in one of the library's calls, but for the time it sleeps there.
//!
//! A call has a lock and allocates memory; a handler that made another call in the middle of it would wait for its own thread. As in the
//! kernel, handlers run before a call, after it, and while it sleeps.

use core::cell::Cell;
use core::mem;
use core::ptr;
use libc::{c_int, sigset_t};

thread_local! {
    /// The mask that the thread had before the library's call, while handlers are held back.
    static BEFORE: Cell<Option<sigset_t>> = const { Cell::new(None) };
}

/// While it lives, no handler runs in this thread. One inside another costs no system call.
#[derive(Debug)]
pub(crate) struct Masked {
    is_outermost: bool,
}

/// What the thread brings upon itself: held back, it would end the process without its handler.
const OWN_FAULTS: [c_int; 6] =
    [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGTRAP, libc::SIGABRT];

impl Masked {
    pub(crate) fn new() -> Masked {
        let is_outermost = BEFORE.get().is_none();
        if is_outermost {
            BEFORE.set(Some(hold_back()));
        }
        Masked { is_outermost }
    }

    /// The mask of the thread while it sleeps in a call; `None`: the one it has.
    pub(crate) fn asleep() -> Option<sigset_t> {
        BEFORE.get()
    }
}

impl Drop for Masked {
    fn drop(&mut self) {
        if self.is_outermost {
            BEFORE.take().inspect(restore);
        }
    }
}

/// Lets handlers run while a call sleeps; also when the sleep ends because the thread is cancelled.
#[cfg(not(feature = "shuttle"))]
#[derive(Debug)]
pub(crate) struct Unmasked {
    is_masked_outside: bool,
}

#[cfg(not(feature = "shuttle"))]
impl Unmasked {
    pub(crate) fn new() -> Unmasked {
        // Forgotten first: a handler's own calls are outermost ones.
        let before = BEFORE.take().inspect(restore);
        Unmasked { is_masked_outside: before.is_some() }
    }
}

#[cfg(not(feature = "shuttle"))]
impl Drop for Unmasked {
    fn drop(&mut self) {
        if self.is_masked_outside {
            BEFORE.set(Some(hold_back()));
        }
    }
}

/// Blocks what handlers could be called for; the mask before.
fn hold_back() -> sigset_t {
    // SAFETY: both sets are this function's own; zeroes are a set, which `sigfillset` fills.
    unsafe {
        let (mut all, mut before) = (mem::zeroed(), mem::zeroed());
        libc::sigfillset(&raw mut all);
        for signal in OWN_FAULTS {
            libc::sigdelset(&raw mut all, signal);
        }
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
        before
    }
}

fn restore(before: &sigset_t) {
    // SAFETY: the set is what the thread had.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before, ptr::null_mut()) };
}
