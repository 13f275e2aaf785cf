//! Is it the application that keeps the sender back?

use super::SendQueue;

impl SendQueue {
    /// Samples of what is sent now are marked.
    pub(in crate::tcp) fn is_lull(&self) -> bool {
        self.flight.is_lull()
    }

    /// The answer to the SYN has come: what is retransmitted with nothing but that in flight is not kept back by the application.
    pub(in crate::tcp) fn end_lull(&mut self) {
        if let Some(held) = &mut self.held {
            held.flight.end_lull();
        }
    }

    /// Nothing more waits to be sent though the window has room; so much is in flight, bytes.
    #[inline]
    pub(in crate::tcp) fn lull(&mut self, in_flight: u32) {
        if let Some(held) = &mut self.held {
            self.delivery.lull(&mut held.flight, in_flight);
        }
    }
}
