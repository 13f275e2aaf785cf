//! Is the congestion window used? Only a window that is filled may grow, and one that is not decays (RFC 2861, RFC 7661 §4.3).
//!
//! Measured as by Linux's `tcp_cwnd_validate`: per round the most that was in flight, or that the window was full; and since when
//! it has not been full. What follows from it is the congestion controller's business.

use crate::Instant;
use crate::rtt::RttEstimator;
use core::time::Duration;
use wire::SeqNum;

/// A segment has just been sent.
#[derive(Clone, Copy, Debug)]
pub(in crate::tcp) struct Sent {
    pub(super) now: Instant,
    pub(super) una: SeqNum,
    pub(super) nxt: SeqNum,
    /// Bytes thought to be in the network with it, and all that are not acknowledged.
    pub(super) in_flight: u32,
    pub(super) outstanding: u32,
    /// Congestion window, bytes.
    pub(super) cwnd: u32,
    /// Slow-start threshold, bytes.
    pub(super) ssthresh: u32,
    pub(super) smss: u32,
}

/// The round that is in flight; without one nothing is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Round {
    /// The window was full.
    filled: bool,
    /// The silence before it has been accounted for, though nothing of it may have been sent.
    silence_counted: bool,
    /// Most bytes outstanding, or when the window was last full.
    most: u32,
    /// It ends with the acknowledgement of this.
    until: SeqNum,
}

impl Round {
    pub(in crate::tcp) const NONE: Round =
        Round { filled: false, silence_counted: false, most: 0, until: SeqNum(0) };

    /// The next one begins with the first byte sent.
    pub(in crate::tcp) fn at(seq: SeqNum) -> Round {
        Round { until: seq, ..Round::NONE }
    }

    /// The window is full with so much in flight, up to `nxt`.
    pub(in crate::tcp) fn full(in_flight: u32, nxt: SeqNum) -> Round {
        Round { filled: true, most: in_flight, until: nxt, ..Round::NONE }
    }

    fn on_sent(&mut self, sent: &Sent) {
        let filled = sent.in_flight.saturating_add(sent.smss) > sent.cwnd;
        let new_round = sent.una.after_or_eq(self.until);
        if new_round || filled || (!self.filled && sent.outstanding > self.most) {
            *self = Round { filled, most: sent.outstanding, until: sent.nxt, ..Round::NONE };
        }
    }

    /// The silence before it counts once, however often what begins it has to wait.
    pub(in crate::tcp) fn count_silence(&mut self) -> bool {
        !core::mem::replace(&mut self.silence_counted, true)
    }

    /// Something of it was sent.
    pub(in crate::tcp) fn has_begun(&self) -> bool {
        self.most > 0
    }

    /// Was the window full in this round?
    pub(in crate::tcp) fn was_full(&self) -> bool {
        self.filled
    }

    /// Is it the window that keeps the sender back? In slow start a window half used may grow, too: it may double in this round.
    pub(in crate::tcp) fn limits(&self, cwnd: u32, ssthresh: u32) -> bool {
        self.filled || (cwnd < ssthresh && cwnd < self.most.saturating_mul(2))
    }
}

/// How far the window is used, over more than a round.
#[derive(Debug)]
pub(crate) struct WindowUse {
    /// Most bytes in flight since `unfilled_since`.
    used: u32,
    unfilled_since: Instant,
    last_sent_at: Instant,
}

impl WindowUse {
    pub(in crate::tcp) fn new(now: Instant) -> WindowUse {
        WindowUse { used: 0, unfilled_since: now, last_sent_at: now }
    }

    /// The window has decayed: it is measured anew.
    pub(in crate::tcp) fn restart(&mut self, now: Instant) {
        self.used = 0;
        self.unfilled_since = now;
    }

    /// What was sent is acknowledged: only what follows may leave the window unused.
    pub(in crate::tcp) fn acknowledged(&mut self, now: Instant) {
        self.unfilled_since = now;
    }

    pub(in crate::tcp) fn last_sent_at(&self) -> Instant {
        self.last_sent_at
    }

    /// Time since data was last sent.
    pub(in crate::tcp) fn idle(&self, now: Instant) -> Duration {
        now.since(self.last_sent_at)
    }

    /// What is retransmitted does not show how the window is used.
    pub(in crate::tcp) fn sent_again(&mut self, now: Instant) {
        self.last_sent_at = now;
    }

    /// `round` is that in flight, unless only a FIN is. True if the window keeps the sender back.
    #[inline(always)]
    pub(in crate::tcp) fn on_sent(&mut self, round: Option<&mut Round>, sent: &Sent) -> bool {
        self.last_sent_at = sent.now;
        let limited = match round {
            Some(round) => {
                round.on_sent(sent);
                round.limits(sent.cwnd, sent.ssthresh)
            }
            None => false,
        };
        if limited {
            self.restart(sent.now);
        } else {
            self.used = self.used.max(sent.outstanding);
        }
        limited
    }

    /// Might [`take_unused`](Self::take_unused) have something? No time-out is shorter than the least, or the round trip.
    #[inline]
    pub(in crate::tcp) fn may_be_unused(&self, now: Instant, rtt: &RttEstimator) -> bool {
        now.nanos_since(self.unfilled_since) >= rtt.min_rto_nanos()
    }

    /// Most bytes in flight since the window was last full, once that is `rto` ns ago; the measurement starts anew.
    pub(in crate::tcp) fn take_unused(&mut self, now: Instant, rto: u64) -> Option<u32> {
        if now < self.unfilled_since.plus_nanos(rto) {
            return None;
        }
        self.unfilled_since = now;
        Some(core::mem::take(&mut self.used))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u32 = 1000;

    fn sent(ms: u64, una: u32, nxt: u32, cwnd: u32) -> Sent {
        Sent {
            now: Instant::from_nanos(ms * 1_000_000),
            una: SeqNum(una),
            nxt: SeqNum(nxt),
            in_flight: nxt - una,
            outstanding: nxt - una,
            cwnd,
            ssthresh: u32::MAX,
            smss: MSS,
        }
    }

    /// The round remembers that it was full, whatever is in flight when its acknowledgements come.
    #[test]
    fn a_round_is_full_until_its_end_is_acknowledged() {
        let (mut window, mut round) = (WindowUse::new(Instant::ZERO), Round::at(SeqNum(0)));
        for nxt in 1..=4 {
            window.on_sent(Some(&mut round), &sent(0, 0, nxt * MSS, 4 * MSS));
        }
        assert!(round.limits(4 * MSS, 0));
        window.on_sent(Some(&mut round), &sent(1, 3900, 4100, 4 * MSS));
        assert!(round.limits(4 * MSS, 0), "still the same round");
        window.on_sent(Some(&mut round), &sent(2, 4100, 4200, 4 * MSS));
        assert!(!round.limits(4 * MSS, 0));
    }

    #[test]
    fn in_slow_start_more_than_half_of_the_window_is_enough() {
        let (mut window, mut round) = (WindowUse::new(Instant::ZERO), Round::at(SeqNum(0)));
        window.on_sent(Some(&mut round), &sent(0, 0, 5 * MSS, 10 * MSS));
        assert!(!round.limits(10 * MSS, u32::MAX));
        window.on_sent(Some(&mut round), &sent(0, 0, 5 * MSS + 1, 10 * MSS));
        assert!(round.limits(10 * MSS, u32::MAX));
        assert!(!round.limits(10 * MSS, 10 * MSS));
    }

    #[test]
    fn what_was_used_is_told_once_per_time_out() {
        let (mut window, mut round) = (WindowUse::new(Instant::ZERO), Round::at(SeqNum(0)));
        window.on_sent(Some(&mut round), &sent(0, 0, 2 * MSS, 10 * MSS));
        window.on_sent(Some(&mut round), &sent(50, 2 * MSS, 5 * MSS, 10 * MSS));
        let rto = 200_000_000;
        assert_eq!(window.take_unused(Instant::from_nanos(199_999_999), rto), None);
        assert_eq!(window.take_unused(Instant::from_nanos(200_000_000), rto), Some(3 * MSS));
        assert_eq!(window.take_unused(Instant::from_nanos(399_999_999), rto), None);
    }
}
