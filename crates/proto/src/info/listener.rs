//! What a listener holds, and what it could not serve.

use core::net::SocketAddr;

/// One listener.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ListenerInfo {
    /// Where.
    pub local: SocketAddr,
    /// Both queues may hold one more than this.
    pub backlog: u32,
    /// Connections waiting for `accept`.
    pub accept_queue: usize,
    /// Ordinary half-open requests.
    pub syn_queue: usize,
    /// Of those, the ones whose first SYN-ACK has not timed out.
    pub syn_queue_young: usize,
    /// Pending Fast Open connections, with reset ones still counted.
    pub fast_open_pending: u32,
    /// The limit.
    pub fast_open_max: u32,
    /// What this listener could not serve.
    pub drops: ListenerDrops,
    /// Its SYN cookies.
    pub cookies: SynCookieCounts,
}

/// SYN cookies of a listener. The counters only grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SynCookieCounts {
    /// Sent (its share of `SyncookiesSent`).
    pub sent: u64,
    /// Came back (`SyncookiesRecv`).
    pub received: u64,
    /// ACKs that brought none of ours, or an old one (`SyncookiesFailed`).
    pub failed: u64,
}

/// What became of those a listener could not serve at once. The counters only grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ListenerDrops {
    /// SYNs and final ACKs dropped, for whatever reason (the listener's share of `ListenDrops`).
    pub dropped: u64,
    /// Of those, by a full accept queue (`ListenOverflows`).
    pub accept_queue_full: u64,
    /// Of those, by a full SYN queue.
    pub syn_queue_full: u64,
    /// Connections whose peer had closed or reset them by the time `accept` came to them: it gave up waiting, or had said all.
    pub closed_before_accept: u64,
    /// Clients that had completed the handshake and were reset for want of room.
    pub reset: u64,
}
