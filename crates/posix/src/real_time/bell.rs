//! A descriptor of the kernel's that stands for the library's, so that a thread may sleep on both kinds at once.

use crate::errno::Errno;
use rustix::event::{EventfdFlags, eventfd};
use std::cell::RefCell;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::task::{Wake, Waker};

/// One thread's bell.
#[derive(Debug)]
pub(super) struct Bell(OwnedFd);

thread_local! {
    /// And the process it was made in: a child of fork shares it with its parent, and would hear what is not for it.
    static OWN: RefCell<Option<(u32, Arc<Bell>)>> = const { RefCell::new(None) };
}

impl Bell {
    /// The calling thread's own.
    ///
    /// # Errors
    /// `EMFILE`, `ENFILE`, `ENOMEM`.
    pub(super) fn own() -> Result<Arc<Bell>, Errno> {
        let process = std::process::id();
        let known = OWN.try_with(|own| own.borrow().clone()).ok().flatten();
        if let Some((_, bell)) = known.filter(|(made_in, _)| *made_in == process) {
            return Ok(bell);
        }
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        let fd = eventfd(0, flags).map_err(|errno| Errno(errno.raw_os_error()))?;
        let bell = Arc::new(Bell(fd));
        // A thread that is ending keeps none.
        let _ = OWN.try_with(|own| own.replace(Some((process, Arc::clone(&bell)))));
        Ok(bell)
    }

    pub(super) fn waker(self: &Arc<Bell>) -> Waker {
        Waker::from(Arc::clone(self))
    }

    /// Readable while it rings.
    pub(super) fn fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }

    pub(super) fn silence(&self) {
        let mut count = [0; 8];
        // Nothing there: it does not ring.
        let _ = rustix::io::read(&self.0, &mut count);
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Bell>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Bell>) {
        // Full: it rings.
        let _ = rustix::io::write(&self.0, &1_u64.to_ne_bytes());
    }
}
