//! A SYN flood, found by rules in a window.
use std::collections::BTreeSet;
use std::net::IpAddr;

/// SYNs of one flood, seen at the port where most of them wait.
#[derive(Clone, Debug)]
pub(crate) struct Flood {
    pub(crate) port: u16,
    /// SYN-RECEIVED sockets of that port.
    pub(crate) half_open: u64,
    /// Half-open connections whose SYN-ACK was retransmitted.
    pub(crate) unanswered: u64,
    /// Addresses of the peers; for IPv6, their /64 networks.
    pub(crate) sources: BTreeSet<IpAddr>,
    /// Other ports that are flooded as well.
    pub(crate) others: Vec<u16>,
    /// SYNs answered by a SYN cookie in the window.
    pub(crate) cookies: u64,
    /// SYNs dropped in the window because the SYN queue was full.
    pub(crate) dropped: u64,
    /// Connections that were completed in the window, also by SYN cookie.
    pub(crate) completed: u64,
}
