//! TCP small queues: a connection does not fill the queues of its own host.
//!
//! What was polled is gone, as far as a stack knows. A driver behind which queues of the host follow (a discipline, a card's ring) sees how
//! much of each connection waits there, and tells; what then waits in the connection is neither late nor lost, and may still be cut and
//! joined (Linux's `tcp_small_queue_check` and `tcp_tasklet_func`).

use crate::stack::Stack;
use crate::tuple::FourTuple;
use crate::{ConnId, Instant};
use wire::TxPacket;

impl Stack {
    /// Whose `packet` is, which [`poll_transmit`](Stack::poll_transmit) gave; `None`: no open connection's.
    pub fn sender_of(&mut self, packet: &TxPacket) -> Option<ConnId> {
        let ((local, local_port), (peer, peer_port)) = wire::ends_of(packet.header())?;
        let index = self.find_connection(&FourTuple { local, local_port, peer, peer_port })?;
        let (generation, _) = self.connections.entry_mut(index)?;
        Some(ConnId { index, generation })
    }

    /// Holds the data of a connection back, new or lost, or lets it go on. Acknowledgements and resets leave all the same, and so does one
    /// segment where nothing is in flight, so that no connection waits for a driver that has forgotten it.
    pub fn hold_back(&mut self, now: Instant, id: ConnId, held: bool) {
        let Some(connection) = self.connections.find_mut(id.index, id.generation) else { return };
        connection.hold_back(now, held);
        self.settle(now, id.index);
    }
}
