//! Signals to end as a descriptor: a loop that waits for packets to the microsecond waits for its end as well.
use crate::signals::Signals;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether it is to end.
pub(super) struct Ending {
    come: Arc<AtomicBool>,
    readable: OwnedFd,
}

impl Ending {
    /// Watches for the signals, in a thread of its own.
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
            // Closed: whoever polls the other end wakes up.
            drop(writable);
        });
        Ok(Ending { come, readable })
    }

    /// A signal came.
    pub(super) fn has_come(&self) -> bool {
        self.come.load(Ordering::Acquire)
    }
}

impl AsFd for Ending {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.readable.as_fd()
    }
}
