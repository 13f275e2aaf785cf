//! A descriptor of the kernel's that one thread sleeps on and others set, so that it may sleep on other descriptors at once.

use crate::errno::Errno;
use crate::system::kernel;
use core::time::Duration;
use libc::{pollfd, sigset_t};
use rustix::event::{EventfdFlags, eventfd};
use std::os::fd::{AsRawFd, OwnedFd};

#[derive(Debug)]
pub(super) struct Event(OwnedFd);

impl Event {
    /// It is not set.
    ///
    /// # Errors
    /// `EMFILE`, `ENFILE`, `ENOMEM`.
    pub(super) fn new() -> Result<Event, Errno> {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        eventfd(0, flags).map(Event).map_err(|errno| Errno(errno.raw_os_error()))
    }

    pub(super) fn set(&self) {
        // Full: it is set.
        let _ = rustix::io::write(&self.0, &1_u64.to_ne_bytes());
    }

    fn clear(&self) {
        let mut count = [0; 8];
        // Nothing there: it is not set.
        let _ = rustix::io::read(&self.0, &mut count);
    }

    /// Sleeps until it is set, which it no longer is then, or one of `others` has something, for `most` at most.
    ///
    /// # Errors
    /// `EINTR`.
    pub(super) fn sleep(
        &self,
        others: &mut [pollfd],
        most: Option<Duration>,
        mask: Option<&sigset_t>,
    ) -> Result<(), Errno> {
        let own = pollfd { fd: self.0.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        let mut entries = vec![own];
        entries.extend_from_slice(others);
        kernel::sleep(&mut entries, most, mask)?;
        if entries[0].revents != 0 {
            self.clear();
        }
        others.copy_from_slice(&entries[1..]);
        Ok(())
    }
}
