//! Choosing the local end of an active open (RFC 6056 §3.3.4: double hash).
//!
//! The port begins at a keyed hash of the destination and goes on from there by a counter, so that nobody can guess it, and it
//! comes back only after the whole range: a peer's TIME-WAIT is not met by the next connection.

use super::Stack;
use crate::ConnectError;
use crate::tuple::FourTuple;
use wire::Addr;

/// Counters that destinations share by hash; each moves on with every connection to one of its destinations.
const COUNTERS: usize = 256;

/// Where the search for a port begins.
pub(super) struct PortCounters {
    counters: Box<[u32; COUNTERS]>,
}

impl PortCounters {
    pub(super) fn new() -> PortCounters {
        PortCounters { counters: Box::new([0; COUNTERS]) }
    }

    /// The next offset for a destination with this hash.
    fn advance(&mut self, hash: u64) -> u32 {
        let counter = &mut self.counters[hash as usize % COUNTERS];
        *counter = counter.wrapping_add(1);
        ((hash >> 32) as u32).wrapping_add(*counter)
    }
}

impl Stack {
    /// The first local address of the peer's family.
    pub(super) fn source_address(&self, peer: Addr) -> Option<Addr> {
        self.shared.addresses.iter().copied().find(|addr| addr.is_v4() == peer.is_v4())
    }

    /// A free port towards this peer.
    pub(super) fn choose_port(
        &mut self,
        local: Addr,
        peer: Addr,
        peer_port: u16,
    ) -> Result<u16, ConnectError> {
        let (low, high) = (self.shared.config.port_low, self.shared.config.port_high);
        let count = high.saturating_sub(low) + 1;
        let tuple = |local_port| FourTuple { local, local_port, peer, peer_port };
        let hash = self.hasher.hash(&tuple(0));
        for _ in 0..count {
            let port = (low + self.ports.advance(hash) % count) as u16;
            if self.tuple_is_free(&tuple(port)) {
                return Ok(port);
            }
        }
        Err(ConnectError::NoPorts)
    }

    pub(super) fn tuple_is_free(&self, tuple: &FourTuple) -> bool {
        self.find_connection(tuple).is_none()
            && self.find_request(tuple).is_none()
            && self.time_wait.lookup(tuple).is_none()
            && self.find_listener(tuple).is_none()
    }
}
