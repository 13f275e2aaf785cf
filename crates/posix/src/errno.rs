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
    EACCES EADDRINUSE EADDRNOTAVAIL EAFNOSUPPORT EAGAIN EALREADY EBADF ECONNABORTED ECONNREFUSED ECONNRESET EDEADLK EDESTADDRREQ EEXIST
    EFAULT EFBIG EHOSTDOWN EHOSTUNREACH EINPROGRESS EINTR EINVAL EIO EISCONN ELOOP EMFILE EMSGSIZE ENETDOWN ENETUNREACH ENOBUFS ENODATA ENODEV ENOENT ENOMEM ENOMSG ENONET
    ENOPROTOOPT ENOTCONN ENOTSOCK ENOTTY
    EOPNOTSUPP EPERM EPIPE EPROTO EPROTONOSUPPORT EPROTOTYPE ERANGE ESOCKTNOSUPPORT ESPIPE ESRCH ETIMEDOUT EDOM
}

/// What a socket reports once when its connection has ended so (`tcp_reset`, `tcp_write_err`, `tcp_done_with_error`); `None` for an end
/// that is no error. `icmp`: what the last ICMP error meant.
pub(crate) fn of_end(reason: CloseReason, peer_had_finished: bool, icmp: Option<Errno>) -> Option<Errno> {
    match reason {
        CloseReason::Finished | CloseReason::Aborted => None,
        CloseReason::Reset if peer_had_finished => Some(Errno::EPIPE),
        CloseReason::Reset => Some(Errno::ECONNRESET),
        CloseReason::Refused => Some(Errno::ECONNREFUSED),
        CloseReason::TimedOut => Some(Errno::ETIMEDOUT),
        CloseReason::PortUnreachable => Some(icmp.unwrap_or(Errno::ECONNREFUSED)),
        CloseReason::HostUnreachable | CloseReason::Prohibited => Some(icmp.unwrap_or(Errno::EHOSTUNREACH)),
        _ => Some(Errno::ECONNABORTED),
    }
}

/// What an ICMP error means to a socket (RFC 1122 §3.2.2, RFC 4443 §3; Linux's `icmp_err_convert`, `icmpv6_err_convert`).
pub(crate) fn of_icmp(v6: bool, kind: u8, code: u8) -> Errno {
    const UNREACHABLE: u8 = 3;
    const TIME_EXCEEDED: u8 = 11;
    const UNREACHABLE_V6: u8 = 1;
    const TIME_EXCEEDED_V6: u8 = 3;
    match (v6, kind, code) {
        (false, UNREACHABLE, 0 | 6 | 9 | 11) => Errno::ENETUNREACH,
        (false, UNREACHABLE, 2) => Errno::ENOPROTOOPT,
        (false, UNREACHABLE, 3) | (true, UNREACHABLE_V6, 4) => Errno::ECONNREFUSED,
        (false, UNREACHABLE, 5) => Errno::EOPNOTSUPP,
        (false, UNREACHABLE, 7) => Errno::EHOSTDOWN,
        (false, UNREACHABLE, 8) => Errno::ENONET,
        (false, UNREACHABLE | TIME_EXCEEDED, _) => Errno::EHOSTUNREACH,
        (true, UNREACHABLE_V6, 0) => Errno::ENETUNREACH,
        (true, UNREACHABLE_V6, 1 | 5 | 6) => Errno::EACCES,
        (true, UNREACHABLE_V6 | TIME_EXCEEDED_V6, _) => Errno::EHOSTUNREACH,
        _ => Errno::EPROTO,
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
