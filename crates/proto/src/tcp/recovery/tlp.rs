//! Tail loss probe (RFC 8985 §7): the last segments of a flight have none behind them whose delivery would show their loss, so one
//! is retransmitted before the time-out would throw the window away.

use super::arrived::Block;
use crate::rtt::RttEstimator;
use wire::SeqNum;

/// Longest an acknowledgement of a lone segment is expected to be delayed (RFC 8985 §7.2's TLP.max_ack_delay; Linux's 200 ms), ns.
const MAX_ACK_DELAY: u64 = 200_000_000;
/// What the peer and the machines between may take beyond two round trips (Linux's `TCP_TIMEOUT_MIN` of two ticks, here of a millisecond), ns.
const SLACK: u64 = 2_000_000;

/// A probe that was sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Probe {
    /// `snd_nxt` after it (TLP.end_seq).
    pub(in crate::tcp) end: SeqNum,
    /// It repeated the last segment (TLP.is_retrans).
    pub(in crate::tcp) again: bool,
}

impl Probe {
    /// The peer says that it had the repeated segment already. (It may or may not count a FIN.)
    pub(super) fn is_reported_by(&self, duplicate: Block) -> bool {
        self.again && duplicate.1.after_or_eq(self.end - 1) && duplicate.1.before_or_eq(self.end)
    }

    /// RFC 8985 §7.4.2: `None` while nothing is known, else whether the last segment was lost. `bare`: an ACK that repeats the last.
    pub(crate) fn judge(&self, snd_una: SeqNum, duplicate: Option<Block>, bare: bool) -> Option<bool> {
        if snd_una.before(self.end) {
            return None;
        }
        let arrived_twice = duplicate.is_some_and(|duplicate| self.is_reported_by(duplicate));
        if !self.again || arrived_twice || (bare && snd_una == self.end) {
            return Some(false);
        }
        snd_una.after(self.end).then_some(true)
    }
}

/// PTO: two round trips and some slack, or the delay of a lone segment's acknowledgement; never later than the time-out `rto` (RFC 8985 §7.2).
/// Nanoseconds.
pub(crate) fn probe_timeout(rtt: &RttEstimator, rto: u64, lone: bool) -> u64 {
    let srtt = rtt.srtt_nanos();
    if srtt == 0 {
        return rto;
    }
    let delay = if lone { MAX_ACK_DELAY } else { SLACK };
    (2 * srtt + delay).min(rto)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Instant;

    #[test]
    fn a_probe_waits_two_round_trips_but_no_longer_than_the_timeout() {
        let ms = core::time::Duration::from_millis;
        let ns = |ms: u64| ms * 1_000_000;
        let mut rtt = RttEstimator::new(ms(1000), ms(200), crate::RttVariation::Rfc6298);
        let after = |rtt: &RttEstimator, lone| probe_timeout(rtt, rtt.rto_nanos(), lone);
        assert_eq!(after(&rtt, false), ns(1000));
        rtt.on_sample(Instant::ZERO, ms(40), (SeqNum(0), SeqNum(0)));
        assert_eq!((after(&rtt, false), after(&rtt, true)), (ns(82), ns(200)));
    }

    #[test]
    fn what_answers_mean() {
        let probe = Probe { end: SeqNum(1000), again: true };
        let twice = Some((SeqNum(900), SeqNum(1000)));
        assert_eq!(probe.judge(SeqNum(900), None, false), None);
        assert_eq!(probe.judge(SeqNum(1000), None, false), None);
        assert_eq!(probe.judge(SeqNum(1000), None, true), Some(false));
        assert_eq!(probe.judge(SeqNum(1000), twice, false), Some(false));
        assert_eq!(probe.judge(SeqNum(1100), twice, false), Some(false));
        assert_eq!(probe.judge(SeqNum(1100), None, false), Some(true));
        let new = Probe { again: false, ..probe };
        assert_eq!(new.judge(SeqNum(1100), None, false), Some(false));
    }
}
