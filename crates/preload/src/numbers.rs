//! The numbers of the stack's descriptors.
//!
//! Programs rely on numbers: the lowest free one comes first, `select` has a limit. Therefore each
//! descriptor of the stack has a number of the kernel's, which an unconnected socket of the kernel
//! holds as a placeholder. The table is read without a lock, because every `read` and `close` of
//! the program looks it up, as do those of the library itself.

use crate::instances;
use crate::real::{self, last_error};
use crate::table::{NUMBERS_MAX, Table};
use core::mem;
use libc::c_int;
use posix::c::{Process, Sides};
use posix::{Errno, Look, RealProcess, Sockets, Stop, Waits};
use proto::Instant;
use std::sync::atomic::{AtomicBool, Ordering};

/// The stack's descriptors, by number.
static SOCKETS: Table = Table::new();
/// Numbers whose placeholder is a TCP socket, which can take over.
static TCP: [AtomicBool; NUMBERS_MAX] = [const { AtomicBool::new(false) }; NUMBERS_MAX];

/// Returns the stack's descriptor behind a number.
pub(crate) fn ours(number: c_int) -> Option<c_int> {
    SOCKETS.get(number)
}

/// Returns the number and the descriptor of each socket of the stack.
pub(crate) fn all_sockets() -> impl Iterator<Item = (c_int, c_int)> {
    SOCKETS.all()
}

/// Returns whether the placeholder of this number is a TCP socket.
pub(crate) fn holds_tcp(number: c_int) -> bool {
    usize::try_from(number)
        .ok()
        .and_then(|number| TCP.get(number))
        .is_some_and(|tcp| tcp.load(Ordering::Acquire))
}

/// Returns a number for a socket that may become the kernel's: its placeholder is a TCP socket.
///
/// # Errors
/// The errors of [`publish`].
pub(crate) fn publish_fresh(fd: c_int, domain: c_int) -> Result<c_int, Errno> {
    // SAFETY: only numbers are passed.
    let number = unsafe { real::socket(domain, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, libc::IPPROTO_TCP) };
    if number < 0 {
        // This kernel lacks the address family.
        return publish(fd);
    }
    enter(number, fd, true)
}

/// Enters `new`, a duplicate of `number`.
///
/// # Errors
/// The errors of [`publish`].
pub(crate) fn publish_again(new: c_int, number: c_int, fd: c_int) -> Result<c_int, Errno> {
    enter(new, fd, holds_tcp(number))
}

/// Returns a number for a descriptor of the stack.
///
/// # Errors
/// The errors of [`Placeholder`].
pub(crate) fn publish(fd: c_int) -> Result<c_int, Errno> {
    Placeholder::new()?.publish(fd)
}

/// A number that is reserved before its descriptor exists.
pub(crate) struct Placeholder(c_int);

impl Placeholder {
    /// Reserves the lowest free number.
    ///
    /// # Errors
    /// The kernel's: `EMFILE`, `ENFILE`.
    pub(crate) fn new() -> Result<Placeholder, Errno> {
        // SAFETY: only numbers are passed.
        let number = unsafe { real::socket(libc::AF_UNIX, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0) };
        if number < 0 { Err(last_error()) } else { Ok(Placeholder(number)) }
    }

    /// Maps the number to a descriptor of the stack.
    ///
    /// # Errors
    /// `EMFILE` if the number is beyond the table.
    pub(crate) fn publish(self, fd: c_int) -> Result<c_int, Errno> {
        let Placeholder(number) = self;
        mem::forget(self);
        enter(number, fd, false)
    }
}

impl Drop for Placeholder {
    fn drop(&mut self) {
        // SAFETY: no one else knows this number.
        unsafe { real::close(self.0) };
    }
}

/// Maps a number that has a placeholder to a descriptor of the stack. Closes the number and returns
/// `EMFILE` if it is beyond the table.
fn enter(number: c_int, fd: c_int, is_tcp: bool) -> Result<c_int, Errno> {
    let Some(tcp) = TCP.get(number as usize) else {
        // SAFETY: no one else knows this number.
        unsafe { real::close(number) };
        return Err(Errno::EMFILE);
    };
    tcp.store(is_tcp, Ordering::Release);
    SOCKETS.put(number, fd)?;
    Ok(number)
}

/// Unmaps the number. Its placeholder stays.
pub(crate) fn withdraw(number: c_int) -> Option<c_int> {
    SOCKETS.take(number)
}

/// Returns whether waiting for this number also involves the stack.
pub(crate) fn is_watched(number: c_int) -> bool {
    ours(number).or(instances::part(number)).is_some()
}

/// Returns whether `close` and `dup` of this number concern the stack.
pub(crate) fn is_followed(number: c_int) -> bool {
    ours(number).is_some() || instances::known(number).is_some()
}

/// The stack's sockets, by the numbers that the application uses.
pub(crate) struct Both(pub(crate) &'static RealProcess);

impl Process for Both {
    fn call<R>(&self, call: impl FnOnce(&mut Sockets, Instant) -> R) -> R {
        self.0.call(call)
    }

    fn wait<R>(&self, attempt: impl FnMut(&mut Sockets, Instant) -> Result<R, Stop>) -> Result<R, Errno> {
        Process::wait(self.0, attempt)
    }

    fn sides(&self, number: c_int) -> Sides {
        match (ours(number), instances::part(number)) {
            (Some(fd), _) => Sides::ours(fd),
            (None, ours) => Sides { ours, kernels: Some(number) },
        }
    }

    fn wait_ready(&self, waits: &Waits<'_>, look: &mut impl Look) -> Result<(), Errno> {
        self.0.wait_ready(waits, look)
    }
}
