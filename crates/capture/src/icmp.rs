//! ICMP errors that answer a TCP segment.

use core::fmt;
use core::net::{IpAddr, SocketAddr};
use core::time::Duration;
use wire::SeqNum;

/// An error, and the segment that it quotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IcmpError {
    /// When it was captured, since 1970.
    pub at: Duration,
    /// The router or host that sent it.
    pub from: IpAddr,
    /// Why the segment did not arrive.
    pub reason: Unreachable,
    /// The segment's source address and port.
    pub src: SocketAddr,
    /// Its destination address and port.
    pub dst: SocketAddr,
    /// Its sequence number.
    pub seq: SeqNum,
}

/// Why a segment did not arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unreachable {
    /// No route to the network.
    Network,
    /// The host does not answer on its network.
    Host,
    /// The host has no TCP.
    Protocol,
    /// The host has nobody at this port, or a firewall says so.
    Port,
    /// A firewall forbids it.
    Prohibited,
    /// The packet went in a circle, or too far.
    TimeExceeded,
    /// Another reason.
    Other,
}

impl fmt::Display for Unreachable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Unreachable::Network => "network unreachable",
            Unreachable::Host => "host unreachable",
            Unreachable::Protocol => "protocol unreachable",
            Unreachable::Port => "port unreachable",
            Unreachable::Prohibited => "administratively prohibited",
            Unreachable::TimeExceeded => "time exceeded",
            Unreachable::Other => "unreachable",
        })
    }
}
