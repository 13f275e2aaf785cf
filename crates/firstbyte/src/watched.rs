//! Descriptors that the runtime watches.
use std::io;
use std::os::fd::OwnedFd;
use tokio::io::unix::AsyncFd;

/// Registers `fd` with the runtime.
#[expect(deprecated, reason = "the replacement is unsafe; an `OwnedFd` that never changes keeps its promise")]
pub(crate) fn watch_fd(fd: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    AsyncFd::new(fd)
}
