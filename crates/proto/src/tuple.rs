//! The name of a connection.

use crate::keyed_hash::HashKey;
use core::net::SocketAddr;
use wire::{Addr, PlainSegment};

/// Local and peer address and port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct FourTuple {
    pub(crate) local: Addr,
    pub(crate) local_port: u16,
    pub(crate) peer: Addr,
    pub(crate) peer_port: u16,
}

impl FourTuple {
    /// Of who sent this to us.
    pub(crate) fn of_arrival(segment: &PlainSegment) -> FourTuple {
        let ((peer, local), (peer_port, local_port)) = (segment.addresses, segment.ports);
        FourTuple { local, local_port, peer, peer_port }
    }

    pub(crate) fn local_addr(&self) -> SocketAddr {
        SocketAddr::new(self.local.to_ip(), self.local_port)
    }

    pub(crate) fn peer_addr(&self) -> SocketAddr {
        SocketAddr::new(self.peer.to_ip(), self.peer_port)
    }

    /// Local and peer address of a connection of IPv4, as [`Ipv4Addr::to_bits`](core::net::Ipv4Addr::to_bits) has them.
    pub(crate) fn v4_addresses(&self) -> Option<(u32, u32)> {
        let [.., l0, l1, l2, l3] = self.local.0;
        let [.., p0, p1, p2, p3] = self.peer.0;
        let addresses = (u32::from_be_bytes([l0, l1, l2, l3]), u32::from_be_bytes([p0, p1, p2, p3]));
        self.peer.is_v4().then_some(addresses)
    }

    /// Bytes of IP header a packet of this connection has.
    pub(crate) fn ip_header_len(&self) -> usize {
        if self.peer.is_v4() { 20 } else { 40 }
    }
}

impl FourTuple {
    /// For the tables that find a connection by its name.
    #[inline]
    pub(crate) fn hash(&self, key: &HashKey) -> u64 {
        key.hash(&self.local.0, &self.peer.0, u64::from(self.local_port) << 16 | u64::from(self.peer_port))
    }
}

/// A four-tuple, and its hash in the table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Name {
    pub(crate) tuple: FourTuple,
    pub(crate) hash: u64,
}
