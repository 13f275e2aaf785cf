//! Snapshots of listeners: queues, drops and SYN cookies.

use core::net::SocketAddr;

/// A snapshot of one listener.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ListenerInfo {
    /// Local address.
    pub local: SocketAddr,
    /// Limit of both queues, which may hold one more.
    pub backlog: u32,
    /// Connections waiting for `accept`.
    pub accept_queue: usize,
    /// Ordinary half-open requests.
    pub syn_queue: usize,
    /// Requests whose first SYN-ACK has not timed out.
    pub syn_queue_young: usize,
    /// Pending Fast Open connections, including reset ones.
    pub fast_open_pending: u32,
    /// Limit of pending Fast Open connections.
    pub fast_open_max: u32,
    /// Drops of this listener.
    pub drops: ListenerDrops,
    /// SYN cookies of this listener.
    pub cookies: SynCookieCounts,
}

/// SYN cookies of a listener. The counters only increase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SynCookieCounts {
    /// Sent (its share of `SyncookiesSent`).
    pub sent: u64,
    /// Returned (`SyncookiesRecv`).
    pub received: u64,
    /// ACKs with an invalid or old cookie (`SyncookiesFailed`).
    pub failed: u64,
}

/// Clients that a listener could not serve at once. The counters only increase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ListenerDrops {
    /// SYNs and final ACKs dropped for any reason (the listener's share of `ListenDrops`).
    pub dropped: u64,
    /// Dropped because of a full accept queue (`ListenOverflows`).
    pub accept_queue_full: u64,
    /// Dropped because of a full SYN queue.
    pub syn_queue_full: u64,
    /// Connections that the peer had closed or reset before `accept` returned them.
    pub closed_before_accept: u64,
    /// Clients that had completed the handshake and were reset for lack of room.
    pub reset: u64,
}
