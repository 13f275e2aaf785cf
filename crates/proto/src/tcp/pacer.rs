//! When the next segment may leave: a window is spread over its round trip instead of leaving in a burst.
//!
//! How much may be in flight is not decided here, nor how large one burst is (`burst`).

use super::connection::{Connection, Context};
use super::timers::Timer;
use crate::{Config, Instant};
use core::time::Duration;

/// The gate in front of new data.
#[derive(Debug)]
pub(crate) struct Pacer {
    opens_at: Instant,
}

impl Pacer {
    pub(super) fn new() -> Pacer {
        Pacer { opens_at: Instant::ZERO }
    }

    /// The gate is closed until then.
    fn closed_until(&self, now: Instant) -> Option<Instant> {
        (self.opens_at > now).then_some(self.opens_at)
    }

    /// `bytes` have passed. Who comes late gets back up to half of what he waits next (Linux's `tcp_update_skb_after_send`).
    fn on_sent(&mut self, now: Instant, bytes: u32, rate: u64) {
        let nanos = u64::from(bytes) * 1_000_000_000 / rate.max(1);
        let late = now.since(self.opens_at).as_nanos().min(u128::from(nanos / 2)) as u64;
        self.opens_at = self.opens_at.max(now) + Duration::from_nanos(nanos - late);
    }
}

impl Connection {
    /// Bytes per second at which data leaves; `None`: as fast as the window allows.
    pub(crate) fn pacing_rate(&self, config: &Config) -> Option<u64> {
        if !config.pacing && self.options.max_pacing_rate.is_none() {
            return None;
        }
        let most = self.options.max_pacing_rate.map_or(u64::MAX, u64::from);
        let Some(rate) = self.window_rate(config) else { return (most != u64::MAX).then_some(most) };
        Some(rate.min(most).max(1))
    }

    /// Is the gate open? If not, its timer is set.
    pub(super) fn pacing_allows(&mut self, cx: &Context<'_>) -> bool {
        if self.pacing_rate(cx.config).is_none() {
            return true;
        }
        let closed_until = self.pacer.closed_until(cx.now);
        if let Some(at) = closed_until {
            self.timers.set(Timer::Pace, at);
        }
        closed_until.is_none()
    }

    /// The initial window is not paced (as in Linux: its first ten segments).
    pub(super) fn pace(&mut self, cx: &Context<'_>, bytes: u32) {
        let initial = self.snd.max.since(self.snd.iss) <= self.initial_window(cx.config);
        if let Some(rate) = self.pacing_rate(cx.config).filter(|_| !initial) {
            self.pacer.on_sent(cx.now, bytes, rate);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(micros: u64) -> Instant {
        Instant::from_nanos(micros * 1000)
    }

    #[test]
    fn bytes_close_the_gate_for_their_time() {
        let mut pacer = Pacer::new();
        pacer.opens_at = at(1000);
        assert_eq!(pacer.closed_until(at(1000)), None);
        // A megabyte per second: a microsecond per byte.
        pacer.on_sent(at(1000), 500, 1_000_000);
        assert_eq!(pacer.closed_until(at(1499)), Some(at(1500)));
        pacer.on_sent(at(1500), 500, 1_000_000);
        assert_eq!(pacer.closed_until(at(1500)), Some(at(2000)));
    }

    #[test]
    fn half_of_the_wait_can_be_made_up_for() {
        let mut pacer = Pacer::new();
        pacer.opens_at = at(1000);
        pacer.on_sent(at(1100), 500, 1_000_000);
        assert_eq!(pacer.opens_at, at(1500), "100 µs late, all made up");
        pacer.on_sent(at(9000), 500, 1_000_000);
        assert_eq!(pacer.opens_at, at(9250));
    }
}
