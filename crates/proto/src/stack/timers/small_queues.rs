//! TCP small queues: a connection does not fill the queues of its own host.
//!
//! A stack does not know what happens to polled packets. A driver with queues behind it (a
//! discipline, a card's ring) knows how much of each connection waits there, and reports it. Data
//! held back in the connection is neither late nor lost, and can still be cut and merged (Linux's
//! `tcp_small_queue_check` and `tcp_tasklet_func`).

use crate::stack::Stack;
use crate::tuple::FourTuple;
use crate::{ConnId, Instant};
use wire::TxPacket;

impl Stack {
    /// Returns the connection of `packet`, returned by [`poll_transmit`](Stack::poll_transmit);
    /// `None` if it belongs to no open connection.
    pub fn sender_of(&mut self, packet: &TxPacket) -> Option<ConnId> {
        let ((local, local_port), (peer, peer_port)) = wire::ends_of(packet.header())?;
        let index = self.find_connection(&FourTuple { local, local_port, peer, peer_port })?;
        let (generation, _) = self.connections.entry_mut(index)?;
        Some(ConnId { index, generation })
    }

    /// Holds back the data of a connection, new or lost, or releases it. Acknowledgments and resets
    /// still leave, and so does one segment if nothing is in flight, so that no connection depends
    /// on a forgetful driver.
    pub fn hold_back(&mut self, now: Instant, id: ConnId, held: bool) {
        let Some(connection) = self.connections.find_mut(id.index, id.generation) else { return };
        connection.hold_back(now, held);
        self.settle(now, id.index);
    }
}
