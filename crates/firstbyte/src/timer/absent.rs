//! Systems without our timer, on which no stack can start.
use host::RealClock;
use proto::Instant;
use std::io;
use std::task::{Context, Poll};

/// A timer that does not exist.
#[derive(Debug)]
pub(crate) enum Timer {}

impl Timer {
    pub(crate) fn new() -> io::Result<Timer> {
        Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "cannot start a stack: it needs Linux; use the kernel's sockets (`Net::kernel`)",
        ))
    }

    pub(crate) fn poll(
        &mut self,
        _: &mut Context<'_>,
        _: &RealClock,
        _: Option<Instant>,
    ) -> Poll<io::Result<()>> {
        match *self {}
    }
}
