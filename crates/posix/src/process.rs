//! The caller's side: sockets and a way to wait for them, in real or in virtual time.

use crate::errno::{Errno, Stop};
use crate::sockets::Sockets;
use core::time::Duration;
use libc::{c_int, pollfd, sigset_t};
use proto::Instant;

/// The events that a call waits for.
#[derive(Clone, Copy, Debug, Default)]
pub struct Watch<'a> {
    /// Descriptors whose events are awaited. If empty, any event causes another attempt.
    pub fds: &'a [i32],
}

/// A check of descriptors. Some may belong to the kernel.
pub trait Look {
    /// Checks the library's descriptors. Returns whether one is ready.
    ///
    /// # Errors
    /// Returns the call's own errors.
    fn ours(&mut self, sockets: &mut Sockets) -> Result<bool, Errno>;

    /// At the kernel's, without sleeping.
    ///
    /// # Errors
    /// The call's own.
    fn kernels(&mut self) -> Result<bool, Errno>;
}

/// The events and limits of a call that waits for readiness.
#[derive(Clone, Copy, Default)]
pub struct Waits<'a> {
    /// The library's descriptors.
    pub ours: &'a [i32],
    /// The library's descriptors to be read. An epoll instance cannot have other events.
    pub read: &'a [i32],
    /// The kernel's.
    pub kernels: &'a [pollfd],
    /// Time limit. None by default.
    pub timeout: Option<Duration>,
    /// The signals that are blocked meanwhile; none: as they are.
    pub mask: Option<sigset_t>,
    /// True if a signal that the mask admits also ends a call that does not wait (`poll` and
    /// `select`, but not Linux's `ep_poll`).
    pub hears_at_once: bool,
}

impl std::fmt::Debug for Waits<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Waits")
            .field("ours", &self.ours)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}
/// Sockets with a way to wait for them.
pub trait Process {
    /// Makes a call that does not wait.
    fn call<R>(&self, call: impl FnOnce(&mut Sockets, Instant) -> R) -> R;

    /// Makes a call that may.
    ///
    /// # Errors
    /// The call's own.
    fn wait<R>(&self, attempt: impl FnMut(&mut Sockets, Instant) -> Result<R, Stop>) -> Result<R, Errno>;

    /// Waits like [`wait`](Self::wait) for the given descriptors, so that other events cause no new
    /// attempt.
    ///
    /// # Errors
    /// Returns the call's own errors, and `EINTR` where there are signals.
    fn wait_for<R>(
        &self,
        watch: Watch<'_>,
        attempt: impl FnMut(&mut Sockets, Instant) -> Result<R, Stop>,
    ) -> Result<R, Errno> {
        let _ = watch;
        self.wait(attempt)
    }

    /// Returns the owner of a number: only the library, if no kernel descriptor can be waited for.
    fn sides(&self, fd: c_int) -> Sides {
        Sides::ours(fd)
    }

    /// Waits until `look` finds something or the time is up. Here only the library's descriptors
    /// are checked, and no signal ends the wait.
    ///
    /// # Errors
    /// Returns the errors of `look`, and `EINTR` where there are signals.
    fn wait_ready(&self, waits: &Waits<'_>, look: &mut impl Look) -> Result<(), Errno> {
        let mut until = None;
        self.wait_for(Watch { fds: waits.ours }, |sockets, now| {
            let until = *until.get_or_insert(waits.timeout.map(|timeout| now + timeout));
            let any = look.ours(sockets)?;
            if any || until.is_some_and(|until| now >= until) { Ok(()) } else { Err(Stop::Wait(until)) }
        })
    }
}

/// The owner of a number that an application waits for: the library, the kernel, or both (an epoll
/// instance that watches both kinds).
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
