//! The calls with C's types: pointers, lengths, libc structures.
//!
//! A library that exports them names its own functions and keeps its [`Process`]. Each function
//! here takes the process first, and returns the result of the system call or its errno
//! ([`returned`] converts it to C's convention). A null pointer is `EFAULT`, as in the kernel. Any
//! other pointer is trusted, as everywhere in C.
//!
//! `addr`, `memory` and `control` convert between C and values. `calls`, `descriptors`, `messages`,
//! `polling` and `epolling` are the calls. `kernel` has the kernel calls of the last two. `masked`
//! and `semaphore` support threads with signal handlers and cancellation. [`life`] is the one stack
//! of a process, for calls that name none.
#![expect(unsafe_code, reason = "C passes pointers")]

mod addr;
mod calls;
mod control;
mod descriptors;
mod epolling;
pub mod life;
mod memory;
mod messages;
mod polling;
mod zerocopy;

pub use crate::process::{Process, Sides};
pub use calls::*;
pub use descriptors::*;
pub use epolling::*;
pub use messages::*;
pub use polling::*;

use crate::errno::Errno;
use crate::process::Watch;
use core::time::Duration;
use libc::{c_int, ssize_t, timespec};

/// Converts a result to C: the value, or -1 with `errno` set.
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

/// Converts the result of a send like [`returned`]. `EPIPE` also raises the signal in the calling
/// thread, unless the flags prevent it (Linux's `sk_stream_error`).
pub fn returned_sent(result: Result<usize, Errno>, flags: c_int) -> ssize_t {
    if result == Err(Errno::EPIPE) && flags & libc::MSG_NOSIGNAL == 0 {
        // SAFETY: a signal to oneself; what it does is the application's wish.
        unsafe { libc::raise(libc::SIGPIPE) };
    }
    returned(result)
}

/// Converts a result like [`returned`], for calls that return an int.
pub fn returned_int(result: Result<i32, Errno>) -> c_int {
    returned(result.map(|value| value as usize)) as c_int
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
