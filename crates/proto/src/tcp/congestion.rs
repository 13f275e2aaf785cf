//! How much may be in flight (RFC 5681): one small trait, one struct per event, an enum to choose.
//!
//! Says nothing about what is lost (`recovery`) or when to send. State of an algorithm lives in the algorithm.

mod reno;

use reno::Reno;

/// New data was acknowledged.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Acked {
    /// Bytes newly acknowledged.
    pub(crate) bytes: u32,
    /// Bytes in flight before this ACK.
    pub(crate) prior_in_flight: u32,
    /// Sender's MSS, bytes.
    pub(crate) smss: u32,
}

/// A loss was detected.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lost {
    /// Bytes in flight when it was.
    pub(crate) in_flight: u32,
    /// Sender's MSS, bytes.
    pub(crate) smss: u32,
    /// By the retransmission timer, not by duplicate ACKs.
    pub(crate) timeout: bool,
}

/// What every algorithm does. All quantities are bytes.
pub(crate) trait Controller {
    fn cwnd(&self) -> u32;
    fn ssthresh(&self) -> u32;
    fn on_ack(&mut self, acked: &Acked);
    fn on_loss(&mut self, lost: &Lost);
    /// The last loss was none: `cwnd` and `ssthresh` were these before it (RFC 4015).
    fn on_undo(&mut self, cwnd: u32, ssthresh: u32);
}

/// The algorithm of a connection.
#[derive(Clone, Debug)]
pub(crate) enum Congestion {
    Reno(Reno),
}

impl Congestion {
    /// Begins with `initial_window` bytes (RFC 6928).
    pub(crate) fn reno(initial_window: u32) -> Congestion {
        Congestion::Reno(Reno::new(initial_window))
    }
}

impl Controller for Congestion {
    fn cwnd(&self) -> u32 {
        match self {
            Congestion::Reno(reno) => reno.cwnd(),
        }
    }
    fn ssthresh(&self) -> u32 {
        match self {
            Congestion::Reno(reno) => reno.ssthresh(),
        }
    }
    fn on_ack(&mut self, acked: &Acked) {
        match self {
            Congestion::Reno(reno) => reno.on_ack(acked),
        }
    }
    fn on_loss(&mut self, lost: &Lost) {
        match self {
            Congestion::Reno(reno) => reno.on_loss(lost),
        }
    }
    fn on_undo(&mut self, cwnd: u32, ssthresh: u32) {
        match self {
            Congestion::Reno(reno) => reno.on_undo(cwnd, ssthresh),
        }
    }
}
