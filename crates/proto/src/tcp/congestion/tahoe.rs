//! Tahoe (Jacobson 1988): any loss is answered as a time-out is. For teaching: on long fat paths its throughput swings.
//!
//! Three duplicate ACKs repeat the missing segment at once, as in Reno; then everything after it is retransmitted, one segment at first, in slow
//! start to half of what was in flight.

use super::reno::Reno;
use super::{Acked, Controller, Idle, Lost, Start, Unused};
use crate::Instant;

#[derive(Clone, Debug)]
pub(crate) struct Tahoe {
    reno: Reno,
}

impl Tahoe {
    pub(crate) fn new(start: &Start) -> Tahoe {
        Tahoe { reno: Reno::new(start) }
    }
}

impl Controller for Tahoe {
    fn cwnd(&self) -> u32 {
        self.reno.cwnd()
    }

    fn ssthresh(&self) -> u32 {
        self.reno.ssthresh()
    }

    fn on_ack(&mut self, acked: &Acked) {
        self.reno.on_ack(acked);
    }

    fn on_ack_unlimited(&mut self, now: Instant) -> bool {
        self.reno.on_ack_unlimited(now)
    }

    fn on_loss(&mut self, lost: &Lost) {
        self.reno.on_loss(&Lost { timeout: true, ..*lost });
    }

    fn on_idle(&mut self, idle: &Idle) {
        self.reno.on_idle(idle);
    }

    fn on_unused(&mut self, unused: &Unused) {
        self.reno.on_unused(unused);
    }

    fn on_resize(&mut self, cwnd: u32) {
        self.reno.on_resize(cwnd);
    }

    fn on_undo(&mut self, cwnd: u32, ssthresh: u32) {
        self.reno.on_undo(cwnd, ssthresh);
    }

    fn starts_over(&self) -> bool {
        true
    }
}
