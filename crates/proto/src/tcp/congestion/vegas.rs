//! Vegas (Brakmo, Peterson 1995; as Linux's `tcp_vegas`): keeps from α to β segments in the queue of the bottleneck.
//!
//! ```text
//!   diff = cwnd · (RTT − baseRTT) / baseRTT        once per round trip, by the least RTT of that round
//!   diff < α segments: one more      diff > β: one less      in slow start diff > γ = 1: slow start ends
//! ```
//!
//! Whose diff is between them leaves its window as it is, and with α = 2 and β = 4, as Linux has them, one flow's may stay twice another's. So
//! here both are three, unless settings say otherwise.
//!
//! A round with fewer than three samples tells nothing: then it grows as Reno, by one. Reno also answers losses.

use super::reno::Reno;
use super::{Acked, Controller, Idle, Lost, Start, Unused};
use crate::CongestionInfo;
use core::time::Duration;
use wire::SeqNum;

/// Segments in the queue that end slow start (Linux's gamma).
const GAMMA_SEGS: u64 = 1;
/// Samples that make a round: of two one may be a delayed acknowledgement.
const SAMPLES_MIN: u8 = 3;
const CWND_MIN_SEGS: u32 = 2;
/// No RTT known.
const INFINITE: u32 = u32::MAX;

#[derive(Clone, Debug)]
pub(crate) struct Vegas {
    reno: Reno,
    /// Segments in the queue: fewer, and more, than wanted.
    alpha: u8,
    beta: u8,
    /// Least RTT since nothing was in flight, and of this round, microseconds.
    base_rtt: u32,
    min_rtt: u32,
    /// The round ends with the acknowledgement of this.
    round_end: SeqNum,
    samples: u8,
    begun: bool,
    /// Nothing was measured before: the handshake's RTT is one of this path.
    first: bool,
    /// A loss is being repaired: round trips are not compared.
    disabled: bool,
}

const _: () = assert!(size_of::<Vegas>() <= 64);

impl Vegas {
    pub(crate) fn new(start: &Start) -> Vegas {
        Vegas {
            reno: Reno::new(start),
            alpha: start.vegas.0,
            beta: start.vegas.1,
            base_rtt: INFINITE,
            min_rtt: INFINITE,
            round_end: SeqNum(0),
            samples: 0,
            begun: false,
            first: true,
            disabled: false,
        }
    }

    pub(super) fn info(&self) -> CongestionInfo {
        let known = |micros: u32| (micros != INFINITE).then(|| Duration::from_micros(micros.into()));
        CongestionInfo::Vegas {
            enabled: !self.disabled,
            samples: self.samples,
            base_rtt: known(self.base_rtt),
            min_rtt: known(self.min_rtt),
        }
    }

    /// The round is over: one segment more or less, or none.
    fn judge_round(&mut self, acked: &Acked) {
        let smss = u64::from(acked.smss);
        let (cwnd, ssthresh) = (u64::from(self.reno.cwnd()), self.reno.ssthresh());
        let (base, rtt) = (u64::from(self.base_rtt), u64::from(self.min_rtt));
        let whole = |bytes: u64| if self.reno.is_whole() { bytes - bytes % smss } else { bytes };
        let queued = whole(cwnd * rtt.saturating_sub(base) / base);
        let (alpha, beta) = (u64::from(self.alpha) * smss, u64::from(self.beta) * smss);
        let slow_start = self.reno.cwnd() < ssthresh;
        let next = match () {
            () if slow_start && self.samples >= SAMPLES_MIN && queued > GAMMA_SEGS * smss => {
                cwnd.min(whole(cwnd * base / rtt) + smss)
            }
            () if slow_start => return self.reno.on_ack(acked),
            () if self.samples < SAMPLES_MIN && acked.limited => cwnd + smss,
            () if self.samples < SAMPLES_MIN => cwnd,
            () if queued > beta => cwnd.saturating_sub(smss),
            () if queued < alpha && acked.limited => cwnd + smss,
            () => cwnd,
        };
        let next = u32::try_from(next).unwrap_or(u32::MAX).max(CWND_MIN_SEGS * acked.smss);
        // Less than before, or out of slow start: it must not begin again.
        let ends = slow_start || u64::from(next) < cwnd;
        let below = ssthresh.min(next.saturating_sub(acked.smss));
        self.reno.set(next, (if ends { below } else { ssthresh }).max(next / 2 + next / 4));
    }

    fn begin_round(&mut self, nxt: SeqNum) {
        self.begun = true;
        self.disabled = false;
        self.round_end = nxt;
        self.min_rtt = INFINITE;
        self.samples = 0;
    }
}

impl Controller for Vegas {
    fn cwnd(&self) -> u32 {
        self.reno.cwnd()
    }

    fn ssthresh(&self) -> u32 {
        self.reno.ssthresh()
    }

    fn on_ack(&mut self, acked: &Acked) {
        if !self.begun {
            self.begin_round(acked.nxt);
        }
        if let Some(rtt) = acked.rtt {
            let rtt = micros(rtt);
            // The handshake saw the path before our own data stood in its queue.
            let handshake = acked.min_rtt.filter(|_| self.first).map_or(INFINITE, micros);
            self.base_rtt = self.base_rtt.min(rtt).min(handshake);
            self.min_rtt = self.min_rtt.min(rtt);
            self.samples = self.samples.saturating_add(1);
        }
        if !acked.ends_round(self.round_end) {
            if self.reno.cwnd() < self.reno.ssthresh() {
                self.reno.on_ack(acked);
            }
            return;
        }
        self.judge_round(acked);
        self.begin_round(acked.nxt);
    }

    /// What was measured before is of another window.
    fn on_loss(&mut self, lost: &Lost) {
        self.reno.on_loss(lost);
        (self.begun, self.disabled) = (false, true);
    }

    /// The path may be another, and longer: its least RTT is measured anew (Linux's `tcp_vegas_cwnd_event`).
    fn on_idle(&mut self, idle: &Idle) {
        self.reno.on_idle(idle);
        if core::mem::take(&mut self.begun) {
            (self.base_rtt, self.first) = (INFINITE, false);
        }
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
}

/// At least one: both ends may share a virtual moment.
fn micros(rtt: Duration) -> u32 {
    rtt.as_micros().clamp(1, u128::from(INFINITE - 1)) as u32
}

#[cfg(test)]
mod tests {
    use super::super::events::{acked, start};
    use super::*;
    use alloc::vec::Vec;

    const MSS: u32 = 1000;

    /// A path that holds `pipe` segments; what is more waits and makes the round trip longer.
    struct Path {
        vegas: Vegas,
        pipe: u32,
        micros: u32,
        una: u32,
    }

    impl Path {
        fn new(window: u32, ssthresh: u32, pipe: u32) -> Path {
            Path { vegas: Vegas::new(&start(window * MSS, ssthresh)), pipe, micros: 100_000, una: 0 }
        }

        /// One window acknowledged, a segment each; the window after it, in segments.
        fn round(&mut self) -> u32 {
            let flight = self.vegas.cwnd() / MSS;
            let queue = flight.saturating_sub(self.pipe);
            let rtt = Duration::from_micros(u64::from(self.micros * (self.pipe + queue) / self.pipe));
            let end = self.una + flight * MSS;
            while self.una < end {
                self.una += MSS;
                let (una, nxt) = (SeqNum(self.una), SeqNum(end.max(self.una + flight * MSS)));
                self.vegas.on_ack(&Acked { una, nxt, rtt: Some(rtt), srtt: rtt, ..acked(0, MSS, MSS) });
            }
            self.vegas.cwnd() / MSS
        }

        fn rounds(&mut self, n: usize) -> Vec<u32> {
            (0..n).map(|_| self.round()).collect()
        }
    }

    #[test]
    fn a_round_of_two_gigabytes_ago_is_over() {
        let mut path = Path::new(20, 0, 30);
        path.round();
        path.una += (1 << 31) + 5 * MSS;
        path.round();
        assert!(path.vegas.round_end.after_or_eq(SeqNum(path.una)));
    }

    #[test]
    fn the_window_settles_with_two_to_four_segments_in_the_queue() {
        let mut path = Path::new(20, 0, 30);
        let last = *path.rounds(60).last().unwrap();
        assert!((32..=34).contains(&last), "{last}");
        assert_eq!(path.rounds(20), [last; 20]);
        path.pipe = 20;
        let last = *path.rounds(60).last().unwrap();
        assert!((22..=24).contains(&last), "a slower path: {last}");
    }

    /// The route changed while nothing was in flight: what seems to be a queue is not.
    #[test]
    fn the_least_rtt_is_measured_anew_after_silence() {
        let mut path = Path::new(20, 0, 30);
        path.rounds(30);
        path.micros = 200_000;
        let (now, idle) = (crate::Instant::ZERO, Duration::from_secs(1));
        path.vegas.on_idle(&Idle {
            now,
            idle,
            rto: None,
            initial_window: MSS,
            app_limited: true,
            srtt: None,
        });
        let last = *path.rounds(30).last().unwrap();
        assert!((32..=37).contains(&last), "its first round had three in the queue: {last}");
    }

    /// Whatever it begins with, as long as it has seen the path without a queue: there is no room in which windows may differ.
    #[test]
    fn equal_thresholds_lead_to_one_window() {
        for begun in [10, 30] {
            let mut path = Path::new(begun, 0, 30);
            (path.vegas.alpha, path.vegas.beta) = (3, 3);
            path.rounds(60);
            let windows = path.rounds(8);
            // A change is seen two round trips later.
            assert!(
                windows.chunks(4).all(|four| four.iter().sum::<u32>() == 4 * 33),
                "from {begun}: {windows:?}"
            );
            assert!(windows.iter().all(|window| (32..=34).contains(window)), "from {begun}: {windows:?}");
        }
    }

    #[test]
    fn slow_start_ends_with_the_first_queue() {
        let mut path = Path::new(10, u32::MAX, 30);
        let windows = path.rounds(8);
        // The round of 40 was the first with a queue; 60 = 80 · 100 / 133.
        assert_eq!(windows, [20, 40, 80, 61, 60, 59, 58, 57]);
        assert!(path.vegas.ssthresh() < u32::MAX);
    }

    #[test]
    fn too_few_samples_are_renos() {
        let mut path = Path::new(2, 0, 30);
        assert_eq!(path.rounds(4), [2, 3, 4, 5]);
    }

    #[test]
    fn losses_are_renos() {
        let mut path = Path::new(20, 0, 30);
        path.vegas.on_loss(&Lost { in_flight: 20 * MSS, smss: MSS, timeout: false, left: 0, again: false });
        assert_eq!((path.vegas.cwnd(), path.vegas.ssthresh()), (10 * MSS, 10 * MSS));
    }
}
