//! When the next segment may leave: a window is spread over its round trip instead of leaving in a burst.
//!
//! The rate is Linux's `sk_pacing_rate`: the window per SRTT, times `tcp_pacing_ss_ratio` while it may still double, else times
//! `tcp_pacing_ca_ratio`. How much may be in flight is not decided here.

use super::congestion::Controller;
use super::connection::{Connection, Context};
use super::timers::Timer;
use crate::{Config, Instant};
use core::time::Duration;

/// Bytes that leave at once: what passes in 2⁻¹⁰ s, as Linux's `sk_pacing_shift`, but two segments at least.
const BURST_SHIFT: u32 = 10;
const BURST_MIN_SEGS: u32 = 2;

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
        let Some(srtt) = self.rtt.srtt() else { return (most != u64::MAX).then_some(most) };
        let (cwnd, ssthresh) = (self.congestion.cwnd(), self.congestion.ssthresh());
        let percent =
            if cwnd < ssthresh / 2 { config.tcp_pacing_ss_ratio } else { config.tcp_pacing_ca_ratio };
        let window = u64::from(cwnd.max(self.snd.flight_size())) * u64::from(percent) / 100;
        let micros = (srtt.as_micros() as u64).max(1);
        Some((window * 1_000_000 / micros).min(most).max(1))
    }

    /// Largest burst, bytes; `None` while the gate is closed (its timer is set then).
    pub(super) fn pacing_allows(&mut self, cx: &Context<'_>) -> Option<u32> {
        let Some(rate) = self.pacing_rate(cx.config) else { return Some(u32::MAX) };
        if let Some(at) = self.pacer.closed_until(cx.now) {
            self.timers.set(Timer::Pace, at);
            return None;
        }
        let segment = u32::from(self.segment_max());
        let passing = u32::try_from(rate >> BURST_SHIFT).unwrap_or(u32::MAX);
        Some((passing / segment).max(BURST_MIN_SEGS) * segment)
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
