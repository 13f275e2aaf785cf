//! Error numbers, and which ends of a connection they stand for.

use proto::CloseReason;

/// An error number of Linux.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Errno(pub i32);

macro_rules! errnos {
    ($($name:ident)+) => {
        impl Errno {
            $(#[doc = concat!("`", stringify!($name), "`.")] pub const $name: Errno = Errno(libc::$name);)+
        }

        impl std::fmt::Debug for Errno {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                match self.0 {
                    $(libc::$name => f.write_str(stringify!($name)),)+
                    other => write!(f, "errno {other}"),
                }
            }
        }
    };
}

errnos! {
    EADDRINUSE EADDRNOTAVAIL EAFNOSUPPORT EAGAIN EALREADY EBADF ECONNABORTED ECONNREFUSED ECONNRESET EDEADLK EDESTADDRREQ EEXIST
    EFAULT EHOSTUNREACH EINPROGRESS EINTR EINVAL EIO EISCONN ELOOP EMFILE EMSGSIZE ENETDOWN ENETUNREACH ENOENT ENOPROTOOPT ENOTCONN ENOTSOCK ENOTTY
    EOPNOTSUPP EPERM EPIPE EPROTONOSUPPORT EPROTOTYPE ESOCKTNOSUPPORT ESPIPE ETIMEDOUT EDOM
}

/// What a socket reports once when its connection has ended so (`tcp_reset`, `tcp_write_err`, `icmp_err_convert`); `None` for an end
/// that is no error.
pub(crate) fn of_end(reason: CloseReason, peer_had_finished: bool) -> Option<Errno> {
    match reason {
        CloseReason::Finished | CloseReason::Aborted => None,
        CloseReason::Reset if peer_had_finished => Some(Errno::EPIPE),
        CloseReason::Reset => Some(Errno::ECONNRESET),
        CloseReason::Refused | CloseReason::PortUnreachable => Some(Errno::ECONNREFUSED),
        CloseReason::TimedOut => Some(Errno::ETIMEDOUT),
        CloseReason::HostUnreachable | CloseReason::Prohibited => Some(Errno::EHOSTUNREACH),
    }
}

/// Why a call has no result yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// It failed.
    Errno(Errno),
    /// It waits: to be tried again when something has happened, and at this time at the latest.
    Wait(Option<proto::Instant>),
}

impl From<Errno> for Stop {
    fn from(errno: Errno) -> Stop {
        Stop::Errno(errno)
    }
}
