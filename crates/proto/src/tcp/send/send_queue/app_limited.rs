//! Whether the sender is app-limited: the application, not the network, limits its rate (draft-cheng-iccrg-delivery-rate-estimation).

use super::SendQueue;

impl SendQueue {
    /// Whether rate samples of what is sent now are marked app-limited.
    pub(in crate::tcp) fn is_app_limited(&self) -> bool {
        self.flight.is_app_limited()
    }

    /// Ends the mark when the SYN is answered: what is then retransmitted with nothing else in flight is not app-limited.
    pub(in crate::tcp) fn clear_app_limited(&mut self) {
        if let Some(held) = &mut self.held {
            held.flight.clear_app_limited();
        }
    }

    /// Marks what is sent until the `in_flight` bytes are delivered: nothing waits to be sent though the window has room.
    #[inline]
    pub(in crate::tcp) fn set_app_limited(&mut self, in_flight: u32) {
        if let Some(held) = &mut self.held {
            self.delivery.set_app_limited(&mut held.flight, in_flight);
        }
    }
}
