//! Converts errors of the engine to [`io::Error`], with the kinds of the kernel's sockets.
use host::Error;
use proto::{
    AcceptError, CloseReason, ConnectError, ListenError, OptionError, ReadError, RejectRoute, UrgentError,
    WriteError,
};
use std::fmt;
use std::io::{self, ErrorKind};
use std::sync::Arc;

pub(crate) fn connect(error: Error<ConnectError>) -> io::Error {
    let Error::Stack(error) = error else { return stopped() };
    let kind = match error {
        ConnectError::AddrInUse => ErrorKind::AddrInUse,
        ConnectError::AddrNotAvailable | ConnectError::NoPorts => ErrorKind::AddrNotAvailable,
        ConnectError::Unreachable => ErrorKind::NetworkUnreachable,
        ConnectError::Rejected(RejectRoute::Prohibit) => ErrorKind::PermissionDenied,
        ConnectError::Rejected(_) => ErrorKind::HostUnreachable,
        ConnectError::InvalidPeer => ErrorKind::InvalidInput,
        ConnectError::FastOpenDisabled => ErrorKind::Unsupported,
        ConnectError::TooMany => ErrorKind::OutOfMemory,
        _ => ErrorKind::Other,
    };
    io::Error::new(kind, error)
}

pub(crate) fn listen(error: Error<ListenError>) -> io::Error {
    let Error::Stack(error) = error else { return stopped() };
    let kind = match error {
        ListenError::AddrInUse => ErrorKind::AddrInUse,
        ListenError::AddrNotAvailable => ErrorKind::AddrNotAvailable,
        _ => ErrorKind::Other,
    };
    io::Error::new(kind, error)
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
        Error::Stack(error @ UrgentError::None) => io::Error::new(ErrorKind::InvalidInput, error),
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
        error => io::Error::new(ErrorKind::InvalidInput, error),
    }
}

pub(crate) fn ended(error: Error<CloseReason>) -> io::Error {
    match error {
        Error::Stopped => stopped(),
        Error::Stack(reason) => closed(reason),
    }
}

/// Returns an error of the kind that Linux's errno has for the same event.
fn closed(reason: CloseReason) -> io::Error {
    let kind = match reason {
        CloseReason::Finished => ErrorKind::NotConnected,
        CloseReason::Aborted => ErrorKind::ConnectionAborted,
        CloseReason::Reset => ErrorKind::ConnectionReset,
        CloseReason::Refused | CloseReason::PortUnreachable => ErrorKind::ConnectionRefused,
        CloseReason::TimedOut => ErrorKind::TimedOut,
        CloseReason::HostUnreachable | CloseReason::Prohibited => ErrorKind::HostUnreachable,
        _ => ErrorKind::Other,
    };
    io::Error::new(kind, reason)
}

/// Returns the error of a call that the kernel's sockets cannot serve.
pub(crate) fn unsupported(what: &str) -> io::Error {
    io::Error::new(
        ErrorKind::Unsupported,
        format!("the kernel's sockets do not have {what}: use a stack of our own (`Net::builder`)"),
    )
}

/// Returns the error of a call that only the kernel's sockets can serve.
pub(crate) fn unsupported_on_stack(what: &str) -> io::Error {
    io::Error::new(
        ErrorKind::Unsupported,
        format!("a stack of our own does not have {what}: use the kernel's sockets (`Net::kernel`)"),
    )
}

/// Returns the error of a socket whose stack has ended.
pub(crate) fn stopped() -> io::Error {
    io::Error::new(ErrorKind::ConnectionAborted, Stopped { device: None })
}

/// Returns the error of a call on a stack whose device failed.
pub(crate) fn device_failed(error: Arc<io::Error>) -> io::Error {
    io::Error::new(ErrorKind::ConnectionAborted, Stopped { device: Some(error) })
}

/// True if `error` reports the end of a stack.
pub(crate) fn is_stopped(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|inner| inner.is::<Stopped>())
}

/// The end of a stack, with the device's error if that was the reason.
#[derive(Debug)]
struct Stopped {
    device: Option<Arc<io::Error>>,
}

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.device {
            None => f.write_str("the stack has been shut down"),
            Some(error) => write!(f, "the stack has ended, because its device failed: {error}"),
        }
    }
}

impl std::error::Error for Stopped {}
