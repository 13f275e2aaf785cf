//! An event descriptor for each thread that stands for the library's descriptors, so that it may sleep on the kernel's at once.

use super::Event;
use super::stay::Place;
use crate::errno::Errno;
use core::time::Duration;
use libc::{pollfd, sigset_t};
use std::cell::RefCell;
use std::sync::Arc;
use std::task::{Wake, Waker};
use sync::atomic::AtomicU32;
use sync::thread_local;

/// One thread's bell.
#[derive(Debug)]
pub(super) struct Bell {
    event: Event,
    calls: AtomicU32,
}

thread_local! {
    /// The bell of this thread, and the process it was made in: a child of fork shares it with its parent, and would hear what is not for it.
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
        let bell = Arc::new(Bell { event: Event::new()?, calls: AtomicU32::new(0) });
        // A thread that is ending keeps none.
        let _ = OWN.try_with(|own| own.replace(Some((process, Arc::clone(&bell)))));
        Ok(bell)
    }

    pub(super) fn waker(self: &Arc<Bell>) -> Waker {
        Waker::from(Arc::clone(self))
    }

    /// Sleeps until it rings, or one of the kernel's has something, for `most` at most.
    ///
    /// # Errors
    /// `EINTR`.
    pub(super) fn sleep(
        &self,
        kernels: &mut [pollfd],
        most: Option<Duration>,
        mask: Option<&sigset_t>,
    ) -> Result<(), Errno> {
        self.event.sleep(kernels, most, mask)
    }
}

impl Place for Bell {
    fn calls(&self) -> &AtomicU32 {
        &self.calls
    }

    fn wake(&self) {
        self.event.set();
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Bell>) {
        Place::wake(&*self);
    }

    fn wake_by_ref(self: &Arc<Bell>) {
        Place::wake(&**self);
    }
}
