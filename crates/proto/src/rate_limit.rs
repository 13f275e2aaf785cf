//! At most so many answers to strangers and to nonsense: [`RateLimit`] for the stack, [`LastAnswer`] for one peer,
//! [`ChallengeLimit`] for challenge ACKs, whose number an attacker could otherwise count.

use crate::Instant;
use crate::rng::Rng;
use core::time::Duration;

/// A fixed window of one second.
#[derive(Debug)]
pub(crate) struct RateLimit {
    window_start: Instant,
    used: u32,
}

impl RateLimit {
    pub(crate) fn new() -> RateLimit {
        RateLimit { window_start: Instant::ZERO, used: 0 }
    }

    /// Takes one of `per_second`; false when this second's are used up.
    pub(crate) fn take(&mut self, now: Instant, per_second: u32) -> bool {
        if now.since(self.window_start) >= Duration::from_secs(1) {
            self.window_start = now;
            self.used = 0;
        }
        self.used = self.used.saturating_add(1);
        self.used <= per_second
    }
}

/// When a peer's nonsense was last answered: milliseconds of the stack's clock, 0 = never.
///
/// Two ends that hold each other's segments for nonsense would answer each other's answers without end (Linux's
/// `tcp_oow_rate_limited`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LastAnswer(pub(crate) u32);

impl LastAnswer {
    /// May it be answered now? Not sooner than `interval` after the last time.
    pub(crate) fn may_answer(&mut self, now: Instant, interval: Duration) -> bool {
        let ms = now.as_millis() as u32;
        let elapsed = ms.wrapping_sub(self.0) as i32;
        if self.0 != 0 && elapsed >= 0 && (elapsed as u128) < interval.as_millis() {
            return false;
        }
        self.0 = ms.max(1);
        true
    }
}

/// `tcp_challenge_ack_limit` without a limit.
pub(crate) const UNLIMITED: u32 = i32::MAX as u32;

/// Challenge ACKs of a stack per second (RFC 5961 §7). Each second has another allowance, on average the setting: whoever counted
/// the challenges of his own connection could else tell how many others had been sent, and so guess their numbers (as Linux since
/// that was found).
pub(crate) struct ChallengeLimit {
    second: u64,
    left: u32,
    rng: Rng,
}

impl ChallengeLimit {
    pub(crate) fn new(rng: Rng) -> ChallengeLimit {
        ChallengeLimit { second: u64::MAX, left: 0, rng }
    }

    /// Takes one of about `per_second`; false when this second's are used up.
    pub(crate) fn take(&mut self, now: Instant, per_second: u32) -> bool {
        if per_second >= UNLIMITED {
            return true;
        }
        let second = now.as_nanos() / 1_000_000_000;
        if second != self.second {
            self.second = second;
            let half = per_second.div_ceil(2);
            self.left = half + (self.rng.next_u64() % u64::from(per_second.max(1))) as u32;
        }
        let taken = self.left > 0;
        self.left -= u32::from(taken);
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_is_answered_once_per_interval() {
        let mut last = LastAnswer::default();
        let interval = Duration::from_millis(500);
        let answered =
            |last: &mut LastAnswer, ms: u64| last.may_answer(Instant::from_nanos(ms * 1_000_000), interval);
        assert_eq!(
            [0, 100, 499, 500, 501, 1000].map(|ms| answered(&mut last, ms)),
            [true, false, false, false, true, false]
        );
        assert!(answered(&mut last, 1001), "a clock at zero counts as one millisecond");
        assert!(last.may_answer(Instant::from_nanos(1_001_000_000), Duration::ZERO), "no limit");
    }

    #[test]
    fn the_allowance_of_challenges_varies_around_its_setting() {
        let mut limit = ChallengeLimit::new(Rng::new([3; 32]));
        let taken = |limit: &mut ChallengeLimit, s: u64| {
            (0..1000).filter(|_| limit.take(Instant::from_nanos(s * 1_000_000_000), 100)).count()
        };
        let seconds: Vec<usize> = (1..200).map(|s| taken(&mut limit, s)).collect();
        assert!(seconds.iter().all(|taken| (50..150).contains(taken)), "{seconds:?}");
        let mean = seconds.iter().sum::<usize>() / seconds.len();
        assert!((90..110).contains(&mean) && seconds[0] != seconds[1], "{mean}");
        assert_eq!((0..100).filter(|_| limit.take(Instant::from_nanos(0), UNLIMITED)).count(), 100);
        assert!(!limit.take(Instant::from_nanos(0), 0), "none");
    }

    #[test]
    fn a_second_has_its_allowance_and_no_more() {
        let mut limit = RateLimit::new();
        let at = |ms: u64| Instant::from_nanos(ms * 1_000_000);
        let taken = |limit: &mut RateLimit, ms| (0..5).filter(|_| limit.take(at(ms), 3)).count();
        assert_eq!(taken(&mut limit, 0), 3);
        assert_eq!(taken(&mut limit, 999), 0);
        assert_eq!(taken(&mut limit, 1000), 3);
    }
}
