//! The name of a connection, and the keyed hash that finds it.

use core::net::SocketAddr;
use siphasher::sip::SipHasher13;
use wire::Addr;

/// Local and peer address and port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct FourTuple {
    pub(crate) local: Addr,
    pub(crate) local_port: u16,
    pub(crate) peer: Addr,
    pub(crate) peer_port: u16,
}

impl FourTuple {
    pub(crate) fn local_addr(&self) -> SocketAddr {
        SocketAddr::new(self.local.to_ip(), self.local_port)
    }

    pub(crate) fn peer_addr(&self) -> SocketAddr {
        SocketAddr::new(self.peer.to_ip(), self.peer_port)
    }

    /// Bytes of IP header a packet of this connection has.
    pub(crate) fn ip_header_len(&self) -> usize {
        if self.peer.is_v4() { 20 } else { 40 }
    }
}

/// A random key per stack, so that no peer can choose tuples that collide.
#[derive(Clone, Copy)]
pub(crate) struct TupleHasher {
    pub(crate) key: (u64, u64),
}

impl TupleHasher {
    pub(crate) fn hash(&self, tuple: &FourTuple) -> u64 {
        let hasher = SipHasher13::new_with_keys(self.key.0, self.key.1);
        let ports = (u32::from(tuple.local_port) << 16 | u32::from(tuple.peer_port)).to_be_bytes();
        // In one piece, and IPv4 without its mapping: twice for every packet, so every word counts.
        if let (Some(local), Some(peer)) = (tuple.local.v4_bytes(), tuple.peer.v4_bytes()) {
            return hasher.hash([local, peer, ports].as_flattened());
        }
        let mut bytes = [0; 36];
        bytes[..16].copy_from_slice(&tuple.local.0);
        bytes[16..32].copy_from_slice(&tuple.peer.0);
        bytes[32..].copy_from_slice(&ports);
        hasher.hash(&bytes)
    }
}
