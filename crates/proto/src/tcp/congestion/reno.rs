//! Reno: slow start and congestion avoidance (RFC 5681 §3.1), counting bytes (RFC 3465).
//!
//! Where every segment counts as a whole one (`window_unit`), windows and thresholds are whole segments, too, and what slow start has no use
//! for counts towards the next increase (Linux's `tcp_reno_cong_avoid`).
//!
//! Tahoe (Jacobson 1988) answers any loss as a time-out is. Three duplicate ACKs repeat the missing segment at once, as in Reno; then
//! everything after it is retransmitted, one segment at first, in slow start to half of what was in flight. It is for teaching: on long fat
//! paths its throughput swings.

use super::{Acked, Controller, Idle, Lost, Start, Unused};
use crate::Instant;

#[derive(Clone, Debug)]
#[repr(C, align(8))]
pub(crate) struct Reno {
    cwnd: u32,
    ssthresh: u32,
    /// Bytes acknowledged towards the next increase in congestion avoidance.
    bytes_acked: u32,
    whole: bool,
    tahoe: bool,
}

impl Reno {
    pub(crate) fn new(start: &Start) -> Reno {
        Reno {
            cwnd: start.initial_window,
            ssthresh: start.ssthresh,
            bytes_acked: 0,
            whole: start.by_segments,
            tahoe: false,
        }
    }

    pub(crate) fn tahoe(start: &Start) -> Reno {
        Reno { tahoe: true, ..Reno::new(start) }
    }

    /// Windows are whole segments.
    pub(super) fn is_whole(&self) -> bool {
        self.whole
    }

    /// For an algorithm that has decided otherwise.
    pub(super) fn set(&mut self, cwnd: u32, ssthresh: u32) {
        (self.cwnd, self.ssthresh) = (cwnd, ssthresh);
    }
}

impl Controller for Reno {
    fn cwnd(&self) -> u32 {
        self.cwnd
    }

    fn ssthresh(&self) -> u32 {
        self.ssthresh
    }

    fn on_ack_unlimited(&mut self, _now: Instant) -> bool {
        true
    }

    fn on_ack(&mut self, acked: &Acked) {
        if !acked.limited {
            return;
        }
        let mut bytes = acked.bytes;
        if self.cwnd < self.ssthresh {
            let next = self.cwnd.saturating_add(bytes.min(acked.most)).min(self.ssthresh);
            bytes = if self.whole { bytes - (next - self.cwnd) } else { 0 };
            self.cwnd = next;
        }
        if bytes == 0 {
            return;
        }
        // A round trip acknowledges the whole segments that the window has room for.
        let smss = acked.smss.max(1);
        let round = (self.cwnd - self.cwnd % smss).max(smss);
        if self.bytes_acked >= round {
            // What came while the window was larger counts for one (Linux's `tcp_cong_avoid_ai`).
            self.bytes_acked = 0;
            self.cwnd = self.cwnd.saturating_add(smss);
        }
        self.bytes_acked = self.bytes_acked.saturating_add(bytes);
        let rounds = self.bytes_acked / round;
        self.bytes_acked -= rounds * round;
        self.cwnd = self.cwnd.saturating_add(rounds.saturating_mul(smss));
    }

    /// RFC 5681 §3.1, equation 4: "ssthresh = max (FlightSize / 2, 2*SMSS)". After a time-out "cwnd MUST be set to no more than the loss window,
    /// LW, which equals 1 full-sized segment".
    fn on_loss(&mut self, lost: &Lost) {
        if !lost.again {
            let half = lost.in_flight / 2;
            let half = if self.whole { half - half % lost.smss } else { half };
            self.ssthresh = half.max(2 * lost.smss);
        }
        self.cwnd = if lost.timeout || self.tahoe { lost.loss_window() } else { self.ssthresh };
        self.bytes_acked = 0;
    }

    fn on_idle(&mut self, idle: &Idle) {
        (self.cwnd, self.ssthresh) = idle.decay(self.cwnd, self.ssthresh);
    }

    fn on_unused(&mut self, unused: &Unused) {
        (self.cwnd, self.ssthresh) = unused.decay(self.cwnd, self.ssthresh);
    }

    fn on_resize(&mut self, cwnd: u32) {
        self.cwnd = cwnd;
    }

    fn on_undo(&mut self, cwnd: u32, ssthresh: u32) {
        self.cwnd = self.cwnd.max(cwnd);
        self.ssthresh = self.ssthresh.max(ssthresh);
    }

    fn starts_over(&self) -> bool {
        self.tahoe
    }
}

#[cfg(test)]
mod tests {
    use super::super::events::{acked, start};
    use super::*;
    use alloc::vec::Vec;

    const MSS: u32 = 1000;

    fn reno(initial_window: u32) -> Reno {
        Reno::new(&start(initial_window, u32::MAX))
    }

    #[test]
    fn slow_start_doubles_and_congestion_avoidance_adds_one_segment_per_window() {
        let mut reno = reno(4 * MSS);
        (0..4).for_each(|_| reno.on_ack(&acked(0, MSS, MSS)));
        assert_eq!(reno.cwnd(), 8 * MSS);
        reno.on_loss(&Lost { in_flight: 8 * MSS, smss: MSS, timeout: false, left: 0, again: false });
        assert_eq!((reno.cwnd(), reno.ssthresh()), (4 * MSS, 4 * MSS));
        (0..3).for_each(|_| reno.on_ack(&acked(0, MSS, MSS)));
        assert_eq!(reno.cwnd(), 4 * MSS);
        reno.on_ack(&acked(0, MSS, MSS));
        assert_eq!(reno.cwnd(), 5 * MSS);
    }

    /// 5.5 segments let five go, and five are acknowledged per round trip.
    #[test]
    fn a_fraction_of_a_segment_does_not_slow_the_growth() {
        let mut reno = Reno::new(&start(11 * MSS / 2, 2 * MSS));
        (0..4).for_each(|_| reno.on_ack(&acked(0, MSS, MSS)));
        assert_eq!(reno.cwnd(), 11 * MSS / 2);
        reno.on_ack(&acked(0, MSS, MSS));
        assert_eq!(reno.cwnd(), 13 * MSS / 2);
    }

    /// The textbook adds SMSS·SMSS/cwnd per ACK: at ten segments of 1460 bytes 146, which is 1460 in a round trip. Counted by bytes, all of
    /// them come with the last of the ten (RFC 5681 §3.1 prefers that).
    #[test]
    fn a_tenth_of_a_segment_per_acknowledgement() {
        const MSS: u32 = 1460;
        let mut reno = Reno::new(&start(10 * MSS, 10 * MSS));
        for ack in 1..=10 {
            reno.on_ack(&acked(0, MSS, MSS));
            assert_eq!(reno.bytes_acked / 10 + (reno.cwnd() - 10 * MSS), 146 * ack);
        }
        assert_eq!(reno.cwnd(), 11 * MSS);
    }

    /// Eleven segments are halved to five; of the two that are acknowledged at four, one is left over, and at five four more are asked for.
    #[test]
    fn whole_segments_spill_over_from_slow_start() {
        let mut reno = Reno::new(&Start { by_segments: true, ..start(11 * MSS, u32::MAX) });
        reno.on_loss(&Lost { in_flight: 11 * MSS, smss: MSS, timeout: true, left: 0, again: false });
        assert_eq!((reno.cwnd(), reno.ssthresh()), (MSS, 5 * MSS));
        let mut windows = Vec::new();
        for segments in [1, 2, 2, 3, 1, 6, 5] {
            reno.on_ack(&acked(0, segments * MSS, MSS));
            windows.push(reno.cwnd() / MSS);
        }
        assert_eq!(windows, [2, 4, 5, 5, 6, 7, 7]);
        reno.set(3 * MSS, 2 * MSS);
        reno.on_ack(&acked(0, MSS, MSS));
        assert_eq!(reno.cwnd(), 4 * MSS, "five were acknowledged while the window was larger");
        assert_eq!(reno.bytes_acked, MSS);
    }

    #[test]
    fn slow_start_ends_at_the_threshold_exactly() {
        let mut reno = Reno::new(&start(MSS, 2500));
        (0..2).for_each(|_| reno.on_ack(&acked(0, MSS, MSS)));
        assert_eq!(reno.cwnd(), 2500);
    }

    #[test]
    fn a_timeout_restarts_from_one_segment() {
        let mut reno = reno(10 * MSS);
        reno.on_loss(&Lost { in_flight: 3 * MSS, smss: MSS, timeout: true, left: 0, again: false });
        assert_eq!((reno.cwnd(), reno.ssthresh()), (MSS, 2 * MSS));
    }

    #[test]
    fn a_loss_that_was_none_is_forgotten() {
        let mut reno = reno(10 * MSS);
        reno.on_loss(&Lost { in_flight: 10 * MSS, smss: MSS, timeout: true, left: 0, again: false });
        reno.on_undo(10 * MSS, u32::MAX);
        assert_eq!((reno.cwnd(), reno.ssthresh()), (10 * MSS, u32::MAX));
    }

    #[test]
    fn a_window_that_is_not_used_does_not_grow() {
        let mut reno = reno(10 * MSS);
        reno.on_ack(&Acked { limited: false, ..acked(0, MSS, MSS) });
        assert_eq!(reno.cwnd(), 10 * MSS);
    }
}
