//! Waiting until a descriptor is ready: the library's, and the kernel's beside them.
//!
//! The thread sleeps in the kernel's `ppoll`, where a bell stands for ours. So signals, and the mask that holds while it sleeps, are the
//! kernel's business alone: one that only the mask lets through ends the wait, whenever it comes.

use super::RealProcess;
use super::bell::Bell;
use super::stay::Stay;
use crate::epoll::Part;
use crate::errno::{Errno, Stop};
use crate::process::{Look, Waits};
use crate::sockets::Sockets;
use crate::system::kernel;
use crate::system::masked::Masked;
use core::time::Duration;
use host::Clock;
use libc::pollfd;
use std::os::fd::AsRawFd;
use std::sync::Arc;

impl<C: Clock> RealProcess<C> {
    /// Waits until `look` finds something or the time is up.
    ///
    /// # Errors
    /// Returns the errors of `look`, `EINTR`, `ENETDOWN` if the stack ends meanwhile, or `EMFILE`
    /// if the thread cannot get a descriptor to sleep on.
    pub fn wait_ready(&self, waits: &Waits<'_>, look: &mut impl Look) -> Result<(), Errno> {
        let bell = Bell::own()?;
        let _stay = Stay::begin(Arc::clone(&bell));
        let deadline = waits.timeout.map(|timeout| self.clock().now() + timeout);
        let mut waiting = self.waiting();
        let mut parts = Parts::default();
        loop {
            parts.look()?;
            let mut others = None;
            let looked = waiting.attempt(
                waits.ours,
                || bell.waker(),
                |sockets, _| {
                    let now_there = sockets.kernel_parts(waits.read);
                    if !parts.are(&now_there) {
                        others = Some(now_there);
                        return Err(Stop::Wait(None));
                    }
                    parts.tell(sockets);
                    if look.ours(sockets)? { Ok(()) } else { Err(Stop::Wait(None)) }
                },
            );
            if let Some(others) = others {
                parts = Parts::new(others);
                continue;
            }
            let ours = match looked {
                Ok(()) => true,
                Err(Stop::Wait(_)) => false,
                Err(Stop::Errno(errno)) => return Err(errno),
            };
            if look.kernels()? || ours {
                return Ok(());
            }
            let left = deadline.map(|deadline| deadline.since(self.clock().now()));
            if left == Some(Duration::ZERO) {
                if waits.hears_at_once && waits.mask.is_some() {
                    kernel::sleep(&mut [], left, waits.mask.as_ref())?;
                }
                return Ok(());
            }
            let mut kernels: Vec<pollfd> = parts.entries.iter().chain(waits.kernels).copied().collect();
            bell.sleep(&mut kernels, left, waits.mask.or_else(Masked::asleep).as_ref())?;
        }
    }
}

/// What the watched epoll instances have of the kernel's.
#[derive(Default)]
struct Parts {
    parts: Vec<Part>,
    entries: Vec<pollfd>,
}

impl Parts {
    fn new(parts: Vec<Part>) -> Parts {
        let entry = |(_, part): &Part| pollfd { fd: part.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        let entries = parts.iter().map(entry).collect();
        Parts { parts, entries }
    }

    fn are(&self, others: &[Part]) -> bool {
        let same = |(one, other): (&Part, &Part)| one.0 == other.0 && Arc::ptr_eq(&one.1, &other.1);
        self.parts.len() == others.len() && self.parts.iter().zip(others).all(same)
    }

    /// Which have something now?
    fn look(&mut self) -> Result<(), Errno> {
        kernel::look(&mut self.entries).map(|_| ())
    }

    fn tell(&self, sockets: &mut Sockets) {
        for ((open, _), entry) in self.parts.iter().zip(&self.entries) {
            sockets.note_kernel_part(*open, entry.revents != 0);
        }
    }
}
