//! Signals as a descriptor, for a loop that also waits for packets with microsecond timeouts.
use crate::signals::Signals;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Tells whether the loop should end.
pub(super) struct Ending {
    come: Arc<AtomicBool>,
    readable: OwnedFd,
}

impl Ending {
    /// Watches for the signals in a thread.
    pub(super) fn install() -> io::Result<Ending> {
        let (readable, writable) = rustix::pipe::pipe()?;
        let come = Arc::new(AtomicBool::new(false));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
        let mut signals = {
            let _inside = runtime.enter();
            Signals::install()?
        };
        let told = Arc::clone(&come);
        std::thread::spawn(move || {
            runtime.block_on(signals.next());
            told.store(true, Ordering::Release);
            // Closing it wakes up pollers of the other end.
            drop(writable);
        });
        Ok(Ending { come, readable })
    }

    /// True if a signal has arrived.
    pub(super) fn has_come(&self) -> bool {
        self.come.load(Ordering::Acquire)
    }
}

impl AsFd for Ending {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.readable.as_fd()
    }
}
