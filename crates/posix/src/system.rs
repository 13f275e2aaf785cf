//! Calls to the operating system while calls wait: descriptors, blocked signals, a semaphore to
//! sleep on.
#![expect(unsafe_code, reason = "system calls and functions of libc")]

pub(crate) mod inherited;
pub(crate) mod kernel;
pub(crate) mod masked;
#[cfg(not(feature = "shuttle"))]
pub(crate) mod semaphore;

/// Runs `start` with every signal blocked, so that a thread it starts takes none: they are the application's.
pub(crate) fn without_signals<R>(start: impl FnOnce() -> R) -> R {
    // SAFETY: both sets are this function's own; zeroes are a set, which `sigfillset` fills.
    let before = unsafe {
        let (mut all, mut before) = (core::mem::zeroed(), core::mem::zeroed());
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
        before
    };
    let result = start();
    // SAFETY: the set is what the thread had.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, core::ptr::null_mut()) };
    result
}
