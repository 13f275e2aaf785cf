//! Choosing the local end of an active open (RFC 6056 §3.3.1: simple random).

use super::Stack;
use crate::ConnectError;
use crate::tuple::FourTuple;
use wire::Addr;

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
        let start = (self.rng.next_u64() % u64::from(count)) as u32;
        (0..count)
            .map(|step| (low + (start + step) % count) as u16)
            .find(|port| self.tuple_is_free(&FourTuple { local, local_port: *port, peer, peer_port }))
            .ok_or(ConnectError::NoPorts)
    }

    pub(super) fn tuple_is_free(&self, tuple: &FourTuple) -> bool {
        self.find_connection(tuple).is_none()
            && self.find_request(tuple).is_none()
            && self.time_wait.lookup(tuple).is_none()
            && self.find_listener(tuple).is_none()
    }
}
