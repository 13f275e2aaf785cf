//! A SYN flood, as found in a window.
use std::collections::BTreeSet;
use std::net::IpAddr;

/// The SYNs of one flood, counted at the port where most of them wait.
#[derive(Clone, Debug)]
pub(crate) struct Flood {
    pub(crate) port: u16,
    /// SYN-RECEIVED sockets of that port.
    pub(crate) half_open: u64,
    /// Half-open connections whose SYN-ACK was retransmitted.
    pub(crate) unanswered: u64,
    /// Addresses of the peers; for IPv6, their /64 networks.
    pub(crate) sources: BTreeSet<IpAddr>,
    /// Other flooded ports.
    pub(crate) others: Vec<u16>,
    /// SYNs answered by a SYN cookie in the window.
    pub(crate) cookies: u64,
    /// SYNs dropped in the window because the SYN queue was full.
    pub(crate) dropped: u64,
    /// Connections completed in the window, including those with a SYN cookie.
    pub(crate) completed: u64,
}
