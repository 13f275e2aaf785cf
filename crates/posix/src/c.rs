//! The calls with C's types: pointers, lengths, structures of libc.
//!
//! A library that exports them names its own functions and keeps its [`Process`]; each function here takes the process first, and gives
//! what the system call would return or the errno it would set ([`returned`] makes the one into the other). A null pointer is `EFAULT`,
//! as in the kernel; any other pointer is believed, as everywhere in C.
//!
//! `addr`, `memory` and `control` are the ways between C and values, `calls`, `descriptors`, `messages`, `polling` and `epolling` the calls;
//! `kernel` is what the last two ask of the kernel, `masked` and `semaphore` what
//! threads need that have handlers and may be cancelled. [`life`] is the one stack of a process whose calls name none.
#![expect(unsafe_code, reason = "C passes pointers")]

mod addr;
mod calls;
mod control;
mod descriptors;
mod epolling;
pub(crate) mod kernel;
pub mod life;
pub(crate) mod masked;
mod memory;
mod messages;
mod polling;
#[cfg(not(shuttle))]
pub(crate) mod semaphore;
mod zerocopy;

pub(crate) use addr::name_bytes;
pub use calls::*;
pub use descriptors::*;
pub use epolling::*;
pub use messages::*;
pub use polling::*;

use crate::errno::{Errno, Stop};
use crate::real_time::{Look, Waits, Watch};
use crate::sockets::Sockets;
use core::time::Duration;
use libc::{c_int, ssize_t, timespec};
use proto::Instant;

/// Sockets, and a way to wait for them.
pub trait Process {
    /// Makes a call that does not wait.
    fn call<R>(&self, call: impl FnOnce(&mut Sockets, Instant) -> R) -> R;

    /// Makes a call that may.
    ///
    /// # Errors
    /// The call's own.
    fn wait<R>(&self, attempt: impl FnMut(&mut Sockets, Instant) -> Result<R, Stop>) -> Result<R, Errno>;

    /// As [`wait`](Self::wait), and says for what: who knows that need not try again at everything that happens.
    ///
    /// # Errors
    /// The call's own; `EINTR` where there are signals.
    fn wait_for<R>(
        &self,
        watch: Watch<'_>,
        attempt: impl FnMut(&mut Sockets, Instant) -> Result<R, Stop>,
    ) -> Result<R, Errno> {
        let _ = watch;
        self.wait(attempt)
    }

    /// Who knows a number: where there is no kernel's descriptor to be waited for, the library alone.
    fn sides(&self, fd: c_int) -> Sides {
        Sides::ours(fd)
    }

    /// Waits until `look` finds something, or time is up. Here only the library's descriptors are looked at, and no signal ends it.
    ///
    /// # Errors
    /// `look`'s own; `EINTR` where there are signals.
    fn wait_ready(&self, waits: &Waits<'_>, look: &mut impl Look) -> Result<(), Errno> {
        let mut until = None;
        self.wait_for(Watch { fds: waits.ours }, |sockets, now| {
            let until = *until.get_or_insert(waits.timeout.map(|timeout| now + timeout));
            let any = look.ours(sockets)?;
            if any || until.is_some_and(|until| now >= until) { Ok(()) } else { Err(Stop::Wait(until)) }
        })
    }
}

/// Behind a number that an application waits for: a descriptor of the library's, one of the kernel's, or both at once (an epoll instance
/// that watches both kinds).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sides {
    /// The library's own number.
    pub ours: Option<c_int>,
    /// The kernel's.
    pub kernels: Option<c_int>,
}

impl Sides {
    /// The library knows it.
    pub fn ours(fd: c_int) -> Sides {
        Sides { ours: Some(fd), kernels: None }
    }

    /// The kernel knows it.
    pub fn kernels(fd: c_int) -> Sides {
        Sides { ours: None, kernels: Some(fd) }
    }
}

impl Process for crate::VirtualProcess {
    fn call<R>(&self, call: impl FnOnce(&mut Sockets, Instant) -> R) -> R {
        crate::VirtualProcess::call(self, call)
    }

    fn wait<R>(&self, attempt: impl FnMut(&mut Sockets, Instant) -> Result<R, Stop>) -> Result<R, Errno> {
        crate::VirtualProcess::wait(self, attempt)
    }
}

/// What C is told of a call: its value, or -1 and `errno`.
pub fn returned(result: Result<usize, Errno>) -> ssize_t {
    match result {
        Ok(value) => ssize_t::try_from(value).unwrap_or(ssize_t::MAX),
        Err(errno) => {
            // SAFETY: the location of this thread's errno is valid while the thread lives.
            unsafe { *libc::__errno_location() = errno.0 };
            -1
        }
    }
}

/// As [`returned`], for calls that send: `EPIPE` comes with the signal, in the calling thread, unless the flags say no (Linux's
/// `sk_stream_error`).
pub fn returned_sent(result: Result<usize, Errno>, flags: c_int) -> ssize_t {
    if result == Err(Errno::EPIPE) && flags & libc::MSG_NOSIGNAL == 0 {
        // SAFETY: a signal to oneself; what it does is the application's wish.
        unsafe { libc::raise(libc::SIGPIPE) };
    }
    returned(result)
}

/// As [`returned`], for calls whose value is an int.
pub fn returned_int(result: Result<i32, Errno>) -> c_int {
    returned(result.map(|value| value as usize)) as c_int
}

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

/// What a call about one descriptor waits for.
fn watch(fd: &c_int) -> Watch<'_> {
    Watch { fds: core::slice::from_ref(fd) }
}

/// A `timespec` that is a time.
fn duration(time: &timespec) -> Result<Duration, Errno> {
    let secs = u64::try_from(time.tv_sec).map_err(|_| Errno::EINVAL)?;
    let nanos = u32::try_from(time.tv_nsec).ok().filter(|nanos| *nanos < 1_000_000_000);
    Ok(Duration::new(secs, nanos.ok_or(Errno::EINVAL)?))
}
