//! From the engine's reasons to [`io::Error`], with the kinds a kernel's sockets give.
use host::Error;
use proto::{
    AcceptError, Barrier, CloseReason, ConnectError, ListenError, OptionError, ReadError, UrgentError,
    WriteError,
};
use std::io::{self, ErrorKind};

pub(crate) fn connect(error: Error<ConnectError>) -> io::Error {
    let Error::Stack(error) = error else { return stopped() };
    let (kind, why) = match error {
        ConnectError::AddrInUse => {
            (ErrorKind::AddrInUse, "this local address and port are in use towards this peer")
        }
        ConnectError::AddrNotAvailable => {
            (ErrorKind::AddrNotAvailable, "the local address is not one of this stack's")
        }
        ConnectError::Unreachable => {
            (ErrorKind::NetworkUnreachable, "this stack has no address of the peer's family (IPv4 or IPv6)")
        }
        ConnectError::Barred(Barrier::Prohibit) => {
            (ErrorKind::PermissionDenied, "a route of this stack says that the peer is prohibited")
        }
        ConnectError::Barred(_) => {
            (ErrorKind::HostUnreachable, "a route of this stack says that the peer is not to be reached")
        }
        ConnectError::NoPorts => {
            (ErrorKind::AddrNotAvailable, "every local port towards this peer is in use")
        }
        ConnectError::InvalidPeer => {
            (ErrorKind::InvalidInput, "not an address to connect to: unspecified, multicast, or port 0")
        }
        ConnectError::FastOpenDisabled => {
            (ErrorKind::Unsupported, "Fast Open is off for clients: set bit 0x1 of net.ipv4.tcp_fastopen")
        }
        ConnectError::TooMany => (ErrorKind::OutOfMemory, "the stack holds as many connections as it may"),
    };
    io::Error::new(kind, why)
}

pub(crate) fn listen(error: Error<ListenError>) -> io::Error {
    let (kind, why) = match error {
        Error::Stopped => return stopped(),
        Error::Stack(ListenError::AddrInUse) => {
            (ErrorKind::AddrInUse, "another listener has this address and port")
        }
        Error::Stack(ListenError::AddrNotAvailable) => {
            (ErrorKind::AddrNotAvailable, "the address is not one of this stack's")
        }
    };
    io::Error::new(kind, why)
}

pub(crate) fn accept(error: Error<AcceptError>) -> io::Error {
    match error {
        Error::Stack(AcceptError::Blocked) => ErrorKind::WouldBlock.into(),
        Error::Stack(AcceptError::Closed) | Error::Stopped => stopped(),
    }
}

pub(crate) fn read(error: Error<ReadError>) -> io::Error {
    match error {
        Error::Stopped => stopped(),
        Error::Stack(ReadError::Blocked) => ErrorKind::WouldBlock.into(),
        Error::Stack(ReadError::Closed(reason)) => closed(reason),
        Error::Stack(ReadError::NotFound) => ErrorKind::NotConnected.into(),
    }
}

pub(crate) fn urgent(error: Error<UrgentError>) -> io::Error {
    match error {
        Error::Stopped => stopped(),
        Error::Stack(UrgentError::Blocked) => ErrorKind::WouldBlock.into(),
        Error::Stack(UrgentError::Closed(reason)) => closed(reason),
        Error::Stack(UrgentError::NotFound) => ErrorKind::NotConnected.into(),
        Error::Stack(UrgentError::None) => {
            io::Error::new(ErrorKind::InvalidInput, "there is no urgent byte to be read apart")
        }
    }
}

pub(crate) fn write(error: Error<WriteError>) -> io::Error {
    match error {
        Error::Stopped => stopped(),
        Error::Stack(WriteError::Blocked) => ErrorKind::WouldBlock.into(),
        Error::Stack(WriteError::Shutdown | WriteError::Closed(CloseReason::Finished)) => {
            ErrorKind::BrokenPipe.into()
        }
        Error::Stack(WriteError::Closed(reason)) => closed(reason),
        Error::Stack(WriteError::NotFound) => ErrorKind::NotConnected.into(),
    }
}

pub(crate) fn option(error: OptionError) -> io::Error {
    match error {
        OptionError::NotFound => stopped(),
        OptionError::OutOfRange => {
            io::Error::new(ErrorKind::InvalidInput, "not a value of this socket option")
        }
    }
}

pub(crate) fn ended(error: Error<CloseReason>) -> io::Error {
    match error {
        Error::Stopped => stopped(),
        Error::Stack(reason) => closed(reason),
    }
}

/// The kinds that Linux's errno for the same event has.
fn closed(reason: CloseReason) -> io::Error {
    match reason {
        CloseReason::Finished => ErrorKind::NotConnected.into(),
        CloseReason::Aborted => ErrorKind::ConnectionAborted.into(),
        CloseReason::Reset => ErrorKind::ConnectionReset.into(),
        CloseReason::Refused => ErrorKind::ConnectionRefused.into(),
        CloseReason::TimedOut => ErrorKind::TimedOut.into(),
        CloseReason::HostUnreachable => ErrorKind::HostUnreachable.into(),
        CloseReason::Prohibited => {
            io::Error::new(ErrorKind::HostUnreachable, "administratively prohibited on the path")
        }
        CloseReason::PortUnreachable => ErrorKind::ConnectionRefused.into(),
    }
}

/// The stack under the socket is gone.
pub(crate) fn stopped() -> io::Error {
    io::Error::new(ErrorKind::ConnectionAborted, "the stack has been shut down")
}
