//! The address of a call that sends.

use crate::errno::Errno;
use core::net::SocketAddr;

/// The destination of a `sendto`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Destination {
    /// It does not say.
    None,
    /// `AF_UNSPEC`.
    Unspecified,
    /// There.
    Address(SocketAddr),
    /// An invalid address for this socket, with the error to report if the address is used.
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
