//! The address of a call that sends.

use crate::errno::Errno;
use core::net::SocketAddr;

/// To whom `sendto` says it goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Destination {
    /// It does not say.
    None,
    /// `AF_UNSPEC`.
    Unspecified,
    /// There.
    Address(SocketAddr),
    /// What is none for this socket, and is that error where it matters.
    Unusable(Errno),
}

impl Destination {
    /// The address, if there is one.
    ///
    /// # Errors
    /// What makes it none.
    pub(crate) fn address(self) -> Result<Option<SocketAddr>, Errno> {
        match self {
            Destination::None | Destination::Unspecified => Ok(None),
            Destination::Address(addr) => Ok(Some(addr)),
            Destination::Unusable(errno) => Err(errno),
        }
    }
}
