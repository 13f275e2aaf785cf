//! The ends of a pipe and the bytes between them.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// One end of a pipe; the other end shares the bytes.
#[derive(Debug)]
pub(crate) struct PipeEnd {
    pub(super) shared: Arc<Mutex<Shared>>,
    pub(super) writes: bool,
    pub(crate) nonblocking: bool,
}

#[derive(Debug, Default)]
pub(super) struct Shared {
    pub(super) bytes: VecDeque<u8>,
    pub(super) reader_gone: bool,
    pub(super) writer_gone: bool,
}

impl PipeEnd {
    /// `O_RDONLY` or `O_WRONLY`.
    pub(crate) fn mode(&self) -> i32 {
        if self.writes { libc::O_WRONLY } else { libc::O_RDONLY }
    }

    /// Bytes written and not read yet.
    pub(crate) fn queued(&self) -> usize {
        self.lock().bytes.len()
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
