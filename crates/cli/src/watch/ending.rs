//! Ends of the command without a key: a signal, or a terminal that was closed.
use crate::signals::is_hangup_ignored;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use std::fs::File;
use std::io::{self, IsTerminal};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

/// Longest wait between checks for a signal.
const SLICE: Duration = Duration::from_millis(200);

/// Watches for signals and for the end of the terminal.
pub(super) struct Ending {
    /// The signal received, or 0.
    caught: Arc<AtomicUsize>,
    /// The terminal that sends the keys, if it is not standard input.
    terminal: Option<File>,
}

impl Ending {
    /// Starts watching. A hangup stays ignored if it was ignored before, as under nohup(1).
    pub(super) fn install() -> io::Result<Ending> {
        let caught = Arc::new(AtomicUsize::new(0));
        for signal in [SIGINT, SIGTERM, SIGQUIT, SIGHUP] {
            if signal != SIGHUP || !is_hangup_ignored() {
                let number = usize::try_from(signal).unwrap_or_default();
                signal_hook::flag::register_usize(signal, caught.clone(), number)?;
            }
        }
        let terminal = if io::stdin().is_terminal() { None } else { Some(File::open("/dev/tty")?) };
        Ok(Ending { caught, terminal })
    }

    /// True if a signal asks the command to end.
    pub(super) fn is_asked(&self) -> bool {
        self.caught.load(Relaxed) != 0
    }

    /// Waits for a key, at most for `wait` and at most for [`SLICE`].
    ///
    /// # Errors
    /// The terminal was closed. Reading it would never end.
    pub(super) fn wait(&self, wait: Duration) -> io::Result<()> {
        let stdin = io::stdin();
        let fd: BorrowedFd<'_> = self.terminal.as_ref().map_or(stdin.as_fd(), AsFd::as_fd);
        let mut asked = [PollFd::from_borrowed_fd(fd, PollFlags::IN)];
        let timeout = Timespec::try_from(wait.min(SLICE)).map_err(|_| io::ErrorKind::InvalidInput)?;
        match poll(&mut asked, Some(&timeout)) {
            // A signal, or a new size of the terminal.
            Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
            Ok(_) if asked[0].revents().intersects(PollFlags::HUP | PollFlags::ERR) => {
                Err(io::Error::other("it was closed"))
            }
            Ok(_) => Ok(()),
        }
    }

    /// Ends this process by the received signal, if any, as its parent expects.
    pub(super) fn follow(&self) {
        if let Ok(signal @ 1..) = i32::try_from(self.caught.load(Relaxed)) {
            // Fallback: the exit code.
            let _ = signal_hook::low_level::emulate_default_handler(signal);
        }
    }
}
