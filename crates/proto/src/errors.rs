//! Reasons of failed calls and of ended connections, as values and as sentences.
use crate::RejectRoute;

/// What each value of an error says.
macro_rules! sentences {
    ($($error:ident { $($value:pat => $sentence:expr,)+ })+) => {
        $(impl core::fmt::Display for $error {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                match self { $($value => write!(f, "{}", $sentence),)+ }
            }
        }

        impl core::error::Error for $error {})+
    };
}
pub(crate) use sentences;

/// Errors of `connect`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConnectError {
    /// The local port, or the 4-tuple, is in use.
    AddrInUse,
    /// The local address is not one of the stack's.
    AddrNotAvailable,
    /// No local address of that family: the peer cannot be reached.
    Unreachable,
    /// A route rejects the peer.
    Rejected(RejectRoute),
    /// Every ephemeral port towards this peer is in use.
    NoPorts,
    /// The peer's address or port is invalid (unspecified, multicast, port 0).
    InvalidPeer,
    /// `tcp_fastopen` bit 0x1 is off, and the caller requires Fast Open (`Force`).
    FastOpenDisabled,
    /// Too many connections (see `Config::max_connections`).
    TooMany,
}

/// Errors of `listen`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ListenError {
    /// Another listener has this address and port.
    AddrInUse,
    /// The address is not one of the stack's.
    AddrNotAvailable,
}

/// Errors of `accept`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AcceptError {
    /// There is no connection to accept yet.
    Blocked,
    /// No such listener.
    Closed,
}

/// Errors of `write`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteError {
    /// The send buffer is full; wait for `WRITABLE`.
    Blocked,
    /// `shutdown` or `close` was called.
    Shutdown,
    /// The connection ended.
    Closed(CloseReason),
    /// No such connection.
    NotFound,
}

/// Errors of `read`. End of stream is `Ok(0)` (or `Ok(None)` from `read_chunk`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadError {
    /// There is no data yet; wait for `READABLE`.
    Blocked,
    /// The connection ended abnormally.
    Closed(CloseReason),
    /// No such connection.
    NotFound,
}

/// Errors of reading an urgent byte out of band.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UrgentError {
    /// The peer announced none, it was read, or it is read in the stream (`EINVAL`).
    None,
    /// It has not arrived: wait for `URGENT` or `READABLE`.
    Blocked,
    /// The connection, or the peer's direction, ended before it arrived.
    Closed(CloseReason),
    /// No such connection.
    NotFound,
}

/// The reason why a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CloseReason {
    /// Both directions finished.
    Finished,
    /// `abort`, or `close` with unread data or linger 0.
    Aborted,
    /// RST from the peer on an open connection.
    Reset,
    /// RST in answer to the SYN.
    Refused,
    /// Retransmissions gave up.
    TimedOut,
    /// ICMP reported the host or network unreachable while opening, or before retransmissions gave
    /// up.
    HostUnreachable,
    /// ICMP reported an administrative prohibition while opening, or before retransmissions gave
    /// up.
    Prohibited,
    /// ICMP reported the protocol or port unreachable while opening, or before retransmissions gave
    /// up.
    PortUnreachable,
    /// The stack was short of memory, and this connection had made the least progress for its
    /// memory (`firstbyte.fair_shares`).
    NoMemory,
}

const GONE: &str = "there is no such connection: it was let go";

sentences! {
    ConnectError {
        ConnectError::AddrInUse => "this local address and port are in use towards this peer; choose another port, or port 0",
        ConnectError::AddrNotAvailable => "the local address is not one of this stack's; add it first",
        ConnectError::Unreachable => "this stack has no address of the peer's family (IPv4 or IPv6); add one",
        ConnectError::Rejected(RejectRoute::Prohibit) => "a route of this stack says that the peer is prohibited; remove the route",
        ConnectError::Rejected(_) => "a route of this stack says that the peer is not to be reached; remove the route",
        ConnectError::NoPorts => "every local port towards this peer is in use; widen net.ipv4.ip_local_port_range, or close connections",
        ConnectError::InvalidPeer => "not an address to connect to: unspecified, multicast, or port 0",
        ConnectError::FastOpenDisabled => "Fast Open is off for clients: set bit 0x1 of net.ipv4.tcp_fastopen",
        ConnectError::TooMany => "the stack holds as many connections as it may; close some, or raise firstbyte.max_connections",
    }
    ListenError {
        ListenError::AddrInUse => "another listener has this address and port; choose another port",
        ListenError::AddrNotAvailable => "the address is not one of this stack's; add it first",
    }
    AcceptError {
        AcceptError::Blocked => "no connection waits to be accepted yet; wait for ACCEPTABLE",
        AcceptError::Closed => "there is no such listener: it was closed",
    }
    WriteError {
        WriteError::Blocked => "the send buffer is full; wait for WRITABLE",
        WriteError::Shutdown => "nothing can be written after shutdown or close",
        WriteError::Closed(reason) => reason,
        WriteError::NotFound => GONE,
    }
    ReadError {
        ReadError::Blocked => "nothing has come yet; wait for READABLE",
        ReadError::Closed(reason) => reason,
        ReadError::NotFound => GONE,
    }
    UrgentError {
        UrgentError::None => "there is no urgent byte to be read apart",
        UrgentError::Blocked => "the urgent byte has not come yet; wait for URGENT",
        UrgentError::Closed(reason) => reason,
        UrgentError::NotFound => GONE,
    }
    CloseReason {
        CloseReason::Finished => "the connection has ended: both directions are finished",
        CloseReason::Aborted => "the connection was aborted on this side",
        CloseReason::Reset => "the peer reset the connection",
        CloseReason::Refused => "the peer refused the connection: nobody listens there",
        CloseReason::TimedOut => "the peer did not answer in time",
        CloseReason::HostUnreachable => "the network says that the peer cannot be reached",
        CloseReason::Prohibited => "the network says that the peer is administratively prohibited",
        CloseReason::PortUnreachable => "the peer's host says that it has no such port or protocol",
        CloseReason::NoMemory => "the stack's memory was short, and this connection made the least progress; raise net.ipv4.tcp_mem",
    }
}
