//! ICMP errors that answer a TCP segment.

use core::fmt;
use core::net::{IpAddr, SocketAddr};
use core::time::Duration;
use wire::SeqNum;

/// An ICMP error, and the segment that it quotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IcmpError {
    /// Time of capture, since 1970.
    pub at: Duration,
    /// Router or host that sent it.
    pub from: IpAddr,
    /// Reason why the segment did not arrive.
    pub reason: Unreachable,
    /// Source address and port of the segment.
    pub src: SocketAddr,
    /// Destination address and port of the segment.
    pub dst: SocketAddr,
    /// Sequence number of the segment.
    pub seq: SeqNum,
}

/// The reason why a segment did not arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unreachable {
    /// No route to the network.
    Network,
    /// The host does not answer on its network.
    Host,
    /// The host does not support TCP.
    Protocol,
    /// No program listens on the port, or a firewall claims so.
    Port,
    /// A firewall rejects the segment.
    Prohibited,
    /// The packet ran into a routing loop, or the path is too long.
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
