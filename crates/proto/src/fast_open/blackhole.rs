//! Linux's answer to black holes: no Fast Open at all for a while, to anyone (`tcp_fastopen_blackhole_timeout_sec`).
//!
//! Verdicts about single paths do better and are what is on by default; this is the other half for who wants Linux's habit.
//! The n-th pause in a row lasts t · 2^min(n−1, 6). A Fast Open that works after a pause ends the row.

use crate::Instant;
use core::time::Duration;

/// The longest pause is 2⁶ times the first.
const MAX_DOUBLINGS: u32 = 6;

/// The stack-wide pause.
#[derive(Clone, Debug)]
pub(crate) struct Blackhole {
    timeout: Duration,
    times: u32,
    since: Instant,
}

impl Blackhole {
    /// `timeout` is the first pause; zero = off.
    pub(crate) fn new(timeout: Duration) -> Blackhole {
        Blackhole { timeout, times: 0, since: Instant::ZERO }
    }

    /// Changes the first pause, also of a pause under way.
    pub(crate) fn set_timeout(&mut self, timeout: Duration) {
        self.timeout = timeout;
    }

    /// A black hole was met: three time-outs in a row of a Fast Open connection, or a reset or FIN out of order that
    /// no data came before. Starts a pause; true if it counts (`TCPFastOpenBlackhole`), false when off.
    pub(crate) fn disable(&mut self, now: Instant) -> bool {
        if self.timeout.is_zero() {
            return false;
        }
        self.times = self.times.saturating_add(1);
        self.since = now;
        true
    }

    /// Is a pause under way?
    pub(crate) fn paused(&self, now: Instant) -> bool {
        let Some(doublings) = self.times.checked_sub(1) else { return false };
        let pause = self.timeout.saturating_mul(1 << doublings.min(MAX_DOUBLINGS));
        now < self.since + pause
    }

    /// A Fast Open connection with data worked: the next pause is the first again.
    pub(crate) fn success(&mut self) {
        self.times = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    fn at(secs: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(secs)
    }

    #[test]
    fn pauses_double_six_times() {
        let mut blackhole = Blackhole::new(Duration::from_secs(4));
        let mut now = at(100);
        let mut pauses = Vec::new();
        for _ in 0..8 {
            assert!(blackhole.disable(now));
            let pause = (0..).find(|secs| !blackhole.paused(now + Duration::from_secs(*secs))).unwrap();
            pauses.push(pause);
            now = now + Duration::from_secs(pause);
        }
        assert_eq!(pauses, [4, 8, 16, 32, 64, 128, 256, 256]);
        blackhole.success();
        assert!(!blackhole.paused(now));
        blackhole.disable(now);
        assert!(
            blackhole.paused(now + Duration::from_secs(3)) && !blackhole.paused(now + Duration::from_secs(4))
        );
    }

    #[test]
    fn zero_is_off() {
        let mut blackhole = Blackhole::new(Duration::ZERO);
        assert!(!blackhole.disable(at(1)) && !blackhole.paused(at(1)));
        blackhole.set_timeout(Duration::from_secs(1));
        assert!(!blackhole.paused(at(1)));
        assert!(blackhole.disable(at(1)) && blackhole.paused(at(1)));
        blackhole.set_timeout(Duration::ZERO);
        assert!(!blackhole.paused(at(1)));
    }
}
