//! Which numbers are ours.
//!
//! A program may use the lowest number that is free, pass it to `select`, compare it with others: so each descriptor of the stack has a
//! number of the kernel's, held by a placeholder, a socket of the kernel's that is not connected. The table is read without a lock, since
//! every `read` and `close` of the program asks it, also those that the library itself makes.

use crate::instances;
use crate::real::{self, last_error};
use crate::table::{NUMBERS_MAX, Table};
use core::mem;
use libc::c_int;
use posix::c::{Process, Sides};
use posix::{Errno, Look, RealProcess, Sockets, Stop, Waits};
use proto::Instant;
use std::sync::atomic::{AtomicBool, Ordering};

/// The stack's descriptors.
static SOCKETS: Table = Table::new();
/// Numbers held by a TCP socket of the kernel's, which may take over.
static TCP: [AtomicBool; NUMBERS_MAX] = [const { AtomicBool::new(false) }; NUMBERS_MAX];

/// The stack's descriptor behind a number.
pub(crate) fn ours(number: c_int) -> Option<c_int> {
    SOCKETS.get(number)
}

/// Sockets of the stack's: number, and descriptor.
pub(crate) fn all_sockets() -> impl Iterator<Item = (c_int, c_int)> {
    SOCKETS.all()
}

/// Is this number held by a TCP socket of the kernel's?
pub(crate) fn holds_tcp(number: c_int) -> bool {
    usize::try_from(number)
        .ok()
        .and_then(|number| TCP.get(number))
        .is_some_and(|tcp| tcp.load(Ordering::Acquire))
}

/// A number for a descriptor of the stack's that may turn out to be the kernel's: its placeholder is such a socket too.
///
/// # Errors
/// As [`publish`].
pub(crate) fn publish_fresh(fd: c_int, domain: c_int) -> Result<c_int, Errno> {
    // SAFETY: nothing is passed but numbers.
    let number = unsafe { real::socket(domain, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, libc::IPPROTO_TCP) };
    if number < 0 {
        // A kernel without this family.
        return publish(fd);
    }
    enter(number, fd, true)
}

/// As `number`, of which `new` is a duplicate.
///
/// # Errors
/// As [`publish`].
pub(crate) fn publish_again(new: c_int, number: c_int, fd: c_int) -> Result<c_int, Errno> {
    enter(new, fd, holds_tcp(number))
}

/// A number for a descriptor of the stack's.
///
/// # Errors
/// As of [`Placeholder`].
pub(crate) fn publish(fd: c_int) -> Result<c_int, Errno> {
    Placeholder::new()?.publish(fd)
}

/// A number that is held until it is known what for.
pub(crate) struct Placeholder(c_int);

impl Placeholder {
    /// The lowest number that is free.
    ///
    /// # Errors
    /// `EMFILE`, `ENFILE`, as the kernel says.
    pub(crate) fn new() -> Result<Placeholder, Errno> {
        // SAFETY: nothing is passed but numbers.
        let number = unsafe { real::socket(libc::AF_UNIX, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0) };
        if number < 0 { Err(last_error()) } else { Ok(Placeholder(number)) }
    }

    /// It is for this descriptor of the stack's.
    ///
    /// # Errors
    /// `EMFILE` where the table ends.
    pub(crate) fn publish(self, fd: c_int) -> Result<c_int, Errno> {
        let Placeholder(number) = self;
        mem::forget(self);
        enter(number, fd, false)
    }
}

impl Drop for Placeholder {
    fn drop(&mut self) {
        // SAFETY: nobody else knows this number.
        unsafe { real::close(self.0) };
    }
}

/// This number, held already, is for a descriptor of the stack's. `EMFILE`: the table ends before it, and it is the kernel's again.
fn enter(number: c_int, fd: c_int, is_tcp: bool) -> Result<c_int, Errno> {
    let Some(tcp) = TCP.get(number as usize) else {
        // SAFETY: nobody else knows this number.
        unsafe { real::close(number) };
        return Err(Errno::EMFILE);
    };
    tcp.store(is_tcp, Ordering::Release);
    SOCKETS.put(number, fd)?;
    Ok(number)
}

/// The number is ours no longer; its placeholder is still there.
pub(crate) fn withdraw(number: c_int) -> Option<c_int> {
    SOCKETS.take(number)
}

/// Is the stack asked too when this number is waited for?
pub(crate) fn is_watched(number: c_int) -> bool {
    ours(number).or(instances::part(number)).is_some()
}

/// Is there anything that follows what happens to this number?
pub(crate) fn is_followed(number: c_int) -> bool {
    ours(number).is_some() || instances::known(number).is_some()
}

/// The sockets of the stack, by the numbers that the application knows.
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
