//! CUBIC in whole segments and milliseconds, as Linux counts: the curve is asked at most every 31 ms how many acknowledged segments the next
//! one of the window costs, and the window may not fall behind Reno's. Slow start ends by the older HyStart (`full_path`), and hands over to
//! congestion avoidance what it has no use for.

use super::full_path::Search;
use super::{Acked, Avoidance, Cubic, FullPath, Lost, RoundTrip, Start, Unit, whole};

/// Segments acknowledged for one of Reno's growth, in eighths of the window: 8·(1 + β) / 3·(1 − β), with β = 717/1024.
const RENO_EIGHTHS: u32 = 8 * (1024 + 717) / 3 / (1024 - 717);
/// Before any loss at most so many segments are acknowledged for one more.
const FIRST_MOST: u32 = 20;
/// The curve is asked again after so long, or when the window has changed (HZ / 32).
const ASK_AGAIN_MS: u32 = 31;
/// In congestion avoidance delays are listened to only so long after the epoch began.
const DELAY_AFTER_NANOS: u64 = 1_000_000_000;

const NANOS_PER_MS: u64 = 1_000_000;

#[derive(Clone, Debug, Default)]
pub(crate) struct Segments;

#[derive(Clone, Debug, Default)]
pub(crate) struct SlowStart {
    /// Bytes acknowledged that make no whole segment yet.
    part: u32,
    /// Least round trip, microseconds; 0 = none.
    least_delay: u32,
    search: Search,
    use_hystart: bool,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Growth {
    /// Segments acknowledged towards the next of the window, which takes `per`.
    toward: u32,
    per: u32,
    /// Window and millisecond when the curve was last asked.
    asked: (u32, u32),
    /// Reno's window, and segments acknowledged towards its next.
    reno: u32,
    reno_toward: u32,
}

impl Unit for Segments {
    const BETA: (u64, u64) = (717, 1024);
    const FAST_CONVERGENCE: (u64, u64) = (1024 + 717, 2 * 1024);
    /// Ten times 41, over 2¹⁰ (`bic_scale`).
    const C: (u64, u64) = (410, 1024);
    const TIME_BITS: u32 = 10;
    const GRAIN: u64 = NANOS_PER_MS;
    const PAUSES: bool = false;
    type SlowStart = SlowStart;
    type Growth = Growth;

    fn size(smss: u32) -> u32 {
        smss.max(1)
    }

    fn ticks(nanos: u64) -> u64 {
        ((nanos / NANOS_PER_MS) << Segments::TIME_BITS) / 1000
    }

    fn slow_start(start: &Start) -> SlowStart {
        SlowStart { use_hystart: start.hystart, ..SlowStart::default() }
    }

    fn acknowledged(slow_start: &mut SlowStart, acked: &Acked) -> u32 {
        let (bytes, smss) = (slow_start.part.saturating_add(acked.bytes), acked.smss.max(1));
        slow_start.part = bytes % smss;
        bytes / smss
    }

    fn grow_slow_start(cubic: &mut Cubic<Segments>, acked: &Acked, segments: u32) -> u32 {
        let smss = acked.smss.max(1);
        let room = (cubic.ssthresh - cubic.cwnd).div_ceil(smss);
        let segments = segments.min((acked.most / smss).max(1));
        let taken = segments.min(room);
        cubic.cwnd = cubic.cwnd.saturating_add(taken * smss).min(cubic.ssthresh);
        segments - taken
    }

    fn avoid(
        avoidance: &mut Avoidance<Segments>,
        slow_start: &SlowStart,
        cwnd: u32,
        acked: &Acked,
        segments: u32,
    ) -> u32 {
        let smss = acked.smss.max(1);
        avoidance.ask(acked, cwnd / smss, segments, slow_start.least_delay);
        let more = avoidance.growth.count(segments);
        cwnd.saturating_add(more.saturating_mul(smss))
    }

    /// After a time-out nothing that was learnt of the path holds any more.
    fn on_loss(cubic: &mut Cubic<Segments>, lost: &Lost, _before: u32) {
        cubic.slow_start.part = 0;
        if let Some(avoidance) = &mut cubic.avoidance {
            avoidance.growth.toward = 0;
        }
        if lost.timeout {
            cubic.avoidance = None;
            let use_hystart = cubic.slow_start.use_hystart;
            cubic.slow_start = SlowStart { use_hystart, ..SlowStart::default() };
        }
    }

    fn on_round_trip(cubic: &mut Cubic<Segments>, sample: &RoundTrip) -> FullPath {
        if cubic.avoidance.as_ref().is_some_and(|avoidance| avoidance.is_young(sample)) {
            return FullPath::default();
        }
        let slow_start = &mut cubic.slow_start;
        let delay = (sample.rtt.as_micros() as u32).max(1);
        if slow_start.least_delay == 0 || delay < slow_start.least_delay {
            slow_start.least_delay = delay;
        }
        if !slow_start.use_hystart || cubic.cwnd >= cubic.ssthresh {
            return FullPath::default();
        }
        let window = cubic.cwnd / sample.smss.max(1);
        let found = slow_start.search.look(sample, delay, slow_start.least_delay, window);
        if found.train || found.delay {
            cubic.ssthresh = cubic.cwnd;
        }
        found
    }
}

impl Avoidance<Segments> {
    fn is_young(&self, sample: &RoundTrip) -> bool {
        let now = whole::<Segments>(sample.now.as_nanos());
        !self.begins() && now.saturating_sub(self.epoch) < DELAY_AFTER_NANOS
    }

    /// How many segments the next one costs.
    fn ask(&mut self, acked: &Acked, window: u32, segments: u32, least_delay: u32) {
        let now = acked.now.as_millis() as u32;
        self.growth.reno_toward += segments;
        let (asked_window, asked_at) = self.growth.asked;
        if asked_window == window && now.wrapping_sub(asked_at) <= ASK_AGAIN_MS {
            return;
        }
        if self.begins() || now != asked_at {
            self.growth.asked = (window, now);
            if self.begins() {
                self.growth.reno_toward = segments;
                self.growth.reno = window;
            }
            let elapsed = self.elapsed(acked.now, window, acked.smss);
            let least_delay = u64::from(least_delay.div_ceil(1000)) * NANOS_PER_MS;
            let target = self.w_cubic(Segments::ticks(elapsed + least_delay), acked.smss);
            self.growth.per = match target.checked_sub(window.into()) {
                Some(0) | None => window.saturating_mul(100),
                Some(more) => (u64::from(window) / more) as u32,
            };
            if self.w_max == 0 {
                self.growth.per = self.growth.per.min(FIRST_MOST);
            }
        }
        self.growth.keep_up_with_reno(window);
        self.growth.per = self.growth.per.max(2);
    }
}

impl Growth {
    fn keep_up_with_reno(&mut self, window: u32) {
        let each = (window.saturating_mul(RENO_EIGHTHS) / 8).max(1);
        let grown = self.reno_toward.saturating_sub(1) / each;
        self.reno_toward -= grown * each;
        self.reno = self.reno.saturating_add(grown);
        if let Some(behind) = self.reno.checked_sub(window).filter(|behind| *behind > 0) {
            self.per = self.per.min(window / behind);
        }
    }

    /// Segments that the window wins by so many (`tcp_cong_avoid_ai`).
    fn count(&mut self, segments: u32) -> u32 {
        let first = u32::from(self.toward >= self.per);
        if first > 0 {
            self.toward = 0;
        }
        self.toward += segments;
        let more = self.toward / self.per.max(1);
        self.toward -= more * self.per;
        first + more
    }
}

#[cfg(test)]
mod tests;
