//! CUBIC as Linux counts it: in whole segments and milliseconds, one segment more for every so many acknowledged.
//!
//! `cubic` is RFC 9438 in bytes. Here the curve is asked at most every 31 ms how many acknowledged segments the next one costs, the
//! window may not fall behind Reno's, and slow start ends by the older HyStart (Ha and Rhee, 2011): at once, when the acknowledgements
//! of a round come in an ACK train as long as half of the least delay, or when the round's delay has grown by an eighth.

use super::cube_root::cube_root;
use super::{Acked, Controller, FullPath, Idle, Lost, RoundTrip, Start, Unused};
use wire::SeqNum;

/// β = 717/1024 ≈ 0.7.
const BETA: u32 = 717;
const BETA_SCALE: u32 = 1024;
/// C = 410/1024 ≈ 0.4 segments/s³: ten times 41, over 2¹⁰ (`bic_scale`).
const C_SCALED: u64 = 410;
/// Of the curve's time: 2⁻¹⁰ s.
const TIME_BITS: u32 = 10;
/// Segments acknowledged for one of Reno's growth, in eighths of the window: 8·(1 + β) / 3·(1 − β).
const RENO_EIGHTHS: u32 = 8 * (BETA_SCALE + BETA) / 3 / (BETA_SCALE - BETA);
/// Before any loss at most so many segments are acknowledged for one more.
const FIRST_MOST: u32 = 20;
/// The curve is asked again after so long, or when the window has changed (HZ / 32).
const ASK_AGAIN_MS: u32 = 31;
/// In congestion avoidance delays are listened to only so long after the epoch began.
const DELAY_AFTER_MS: u32 = 1000;
/// HyStart: from this window on; acknowledgements no further apart are one ACK train; a round's delay needs so many samples, and growth between
/// these bounds (`hystart_low_window`, `hystart_ack_delta_us`, `HYSTART_MIN_SAMPLES`, `HYSTART_DELAY_MIN`, `_MAX`).
const LOW_WINDOW: u32 = 16;
const TRAIN_GAP_MICROS: u32 = 2000;
const MIN_SAMPLES: u8 = 8;
const DELAY_GROWTH_MICROS: (u32, u32) = (4_000, 16_000);
/// What bursts of the device may add to an ACK train (`hystart_ack_delay`, at rates below 2 Gbit/s).
const BURST_MICROS: u32 = 1000;

/// Windows are kept in bytes, multiples of the MSS as long as that does not change; all else is in segments.
#[derive(Clone, Debug)]
pub(crate) struct CubicSegments {
    cwnd: u32,
    ssthresh: u32,
    /// Bytes acknowledged that make no whole segment yet.
    part: u32,
    /// Segments acknowledged towards the next of the window, which takes `per`.
    toward: u32,
    per: u32,
    last_max: u32,
    origin: u32,
    /// K, in 2⁻¹⁰ s.
    k: u32,
    /// Milliseconds; `None`: the next acknowledgement in congestion avoidance begins an epoch.
    epoch: Option<u32>,
    /// Window and moment when the curve was last asked.
    asked: (u32, u32),
    /// Reno's window, and segments acknowledged towards its next.
    reno: u32,
    reno_toward: u32,
    /// Least round trip, microseconds; 0 = none.
    least_delay: u32,
    train: Train,
    use_hystart: bool,
}

/// HyStart's round. Moments and delays are microseconds.
#[derive(Clone, Debug, Default)]
struct Train {
    begun_at: u32,
    last_at: u32,
    /// The round ends when more than this is acknowledged.
    end: Option<SeqNum>,
    delay: u32,
    samples: u8,
    found: bool,
}

impl CubicSegments {
    pub(crate) fn new(start: &Start) -> CubicSegments {
        CubicSegments {
            cwnd: start.initial_window,
            ssthresh: start.ssthresh,
            part: 0,
            toward: 0,
            per: 0,
            last_max: 0,
            origin: 0,
            k: 0,
            epoch: None,
            asked: (0, 0),
            reno: 0,
            reno_toward: 0,
            least_delay: 0,
            train: Train::default(),
            use_hystart: start.hystart,
        }
    }

    /// Whole segments among `bytes` and what was left before.
    fn segments(&mut self, bytes: u32, smss: u32) -> u32 {
        let bytes = self.part.saturating_add(bytes);
        self.part = bytes % smss;
        bytes / smss
    }

    fn listen(&mut self, sample: &RoundTrip) -> FullPath {
        let mut found = FullPath::default();
        let now_ms = sample.now.as_millis() as u32;
        if self.epoch.is_some_and(|epoch| now_ms.wrapping_sub(epoch) < DELAY_AFTER_MS) {
            return found;
        }
        let delay = (sample.rtt.as_micros() as u32).max(1);
        if self.least_delay == 0 || delay < self.least_delay {
            self.least_delay = delay;
        }
        if self.use_hystart && !self.train.found && self.cwnd < self.ssthresh {
            let now = (sample.now.as_nanos() / 1000) as u32;
            if self.train.end.is_none_or(|end| sample.una.after(end)) {
                self.train = Train {
                    begun_at: now,
                    last_at: now,
                    end: Some(sample.nxt),
                    delay: u32::MAX,
                    ..Train::default()
                };
            }
            if self.cwnd / sample.smss.max(1) >= LOW_WINDOW {
                found = self.look_for_full_path(now, delay);
            }
            if found.train || found.delay {
                self.train.found = true;
                self.ssthresh = self.cwnd;
            }
        }
        found
    }

    fn look_for_full_path(&mut self, now: u32, delay: u32) -> FullPath {
        let train = &mut self.train;
        let mut found = FullPath::default();
        if now.wrapping_sub(train.last_at) <= TRAIN_GAP_MICROS {
            train.last_at = now;
            found.train =
                now.wrapping_sub(train.begun_at) > self.least_delay.saturating_add(BURST_MICROS) / 2;
        }
        train.delay = train.delay.min(delay);
        if train.samples < MIN_SAMPLES {
            train.samples += 1;
            return found;
        }
        let (least, most) = DELAY_GROWTH_MICROS;
        let growth = (self.least_delay / 8).clamp(least, most);
        found.delay = train.delay > self.least_delay.saturating_add(growth);
        found
    }

    /// How many segments the next one costs.
    fn ask(&mut self, now: u32, window: u32, acked: u32) {
        self.reno_toward += acked;
        let (asked_window, asked_at) = self.asked;
        if asked_window == window && now.wrapping_sub(asked_at) <= ASK_AGAIN_MS {
            return;
        }
        if self.epoch.is_none() || now != asked_at {
            self.asked = (window, now);
            let epoch = *self.epoch.get_or_insert_with(|| {
                self.reno_toward = acked;
                self.reno = window;
                self.origin = self.last_max.max(window);
                self.k = k_of(self.origin - window);
                now
            });
            let ahead = u64::from(now.wrapping_sub(epoch)) + u64::from(self.least_delay / 1000);
            let target = self.curve((ahead << TIME_BITS) / 1000);
            self.per = match target.checked_sub(window) {
                Some(0) | None => window.saturating_mul(100),
                Some(more) => window / more,
            };
            if self.last_max == 0 {
                self.per = self.per.min(FIRST_MOST);
            }
        }
        self.keep_up_with_reno(window);
        self.per = self.per.max(2);
    }

    fn curve(&self, t: u64) -> u32 {
        let offset = u128::from(t.abs_diff(u64::from(self.k)));
        let moved = (u128::from(C_SCALED) * offset * offset * offset) >> (10 + 3 * TIME_BITS);
        let moved = u32::try_from(moved).unwrap_or(u32::MAX);
        let before = t < u64::from(self.k);
        if before { self.origin.saturating_sub(moved) } else { self.origin.saturating_add(moved) }
    }

    fn keep_up_with_reno(&mut self, window: u32) {
        let each = (window.saturating_mul(RENO_EIGHTHS) / 8).max(1);
        let grown = self.reno_toward.saturating_sub(1) / each;
        self.reno_toward -= grown * each;
        self.reno = self.reno.saturating_add(grown);
        if let Some(behind) = self.reno.checked_sub(window).filter(|behind| *behind > 0) {
            self.per = self.per.min(window / behind);
        }
    }

    /// As `tcp_cong_avoid_ai`.
    fn avoid(&mut self, acked: u32, smss: u32) {
        if self.toward >= self.per {
            self.toward = 0;
            self.cwnd = self.cwnd.saturating_add(smss);
        }
        self.toward += acked;
        let more = self.toward / self.per.max(1);
        self.toward -= more * self.per;
        self.cwnd = self.cwnd.saturating_add(more.saturating_mul(smss));
    }

    fn reduced(&mut self, smss: u32) -> u32 {
        let window = self.cwnd / smss;
        self.epoch = None;
        self.last_max = match window < self.last_max {
            true => window * (BETA_SCALE + BETA) / (2 * BETA_SCALE),
            false => window,
        };
        (u64::from(window) * u64::from(BETA) / u64::from(BETA_SCALE)).max(2) as u32 * smss
    }
}

impl Controller for CubicSegments {
    fn cwnd(&self) -> u32 {
        self.cwnd
    }

    fn ssthresh(&self) -> u32 {
        self.ssthresh
    }

    fn on_ack(&mut self, acked: &Acked) {
        let smss = acked.smss.max(1);
        let mut segments = self.segments(acked.bytes, smss);
        if !acked.limited || segments == 0 {
            return;
        }
        if self.cwnd < self.ssthresh {
            let room = (self.ssthresh - self.cwnd).div_ceil(smss);
            segments = segments.min((acked.most / smss).max(1));
            let taken = segments.min(room);
            self.cwnd = self.cwnd.saturating_add(taken * smss).min(self.ssthresh);
            segments -= taken;
        }
        if segments > 0 {
            self.ask(acked.now.as_millis() as u32, self.cwnd / smss, segments);
            self.avoid(segments, smss);
        }
    }

    fn on_round_trip(&mut self, sample: &RoundTrip) -> FullPath {
        self.listen(sample)
    }

    fn on_loss(&mut self, lost: &Lost) {
        let smss = lost.smss.max(1);
        if !lost.again {
            self.ssthresh = self.reduced(smss);
        }
        self.cwnd = if lost.timeout { lost.loss_window() } else { self.ssthresh };
        (self.toward, self.part) = (0, 0);
        if lost.timeout {
            // Nothing that was learnt of the path holds any more.
            let (cwnd, ssthresh) = (self.cwnd, self.ssthresh);
            let forget =
                Start { initial_window: cwnd, ssthresh, hystart: self.use_hystart, ..Start::default() };
            *self = CubicSegments::new(&forget);
        }
    }

    /// Silence is no time of the epoch.
    fn on_idle(&mut self, idle: &Idle) {
        let now = idle.now.as_millis() as u32;
        let silent = u32::try_from(idle.idle.as_millis()).unwrap_or(u32::MAX);
        self.epoch = self.epoch.map(|epoch| now.wrapping_sub(now.wrapping_sub(epoch).saturating_sub(silent)));
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
}

/// K for a distance of so many segments to the plateau: ∛(segments / C), in 2⁻¹⁰ s.
fn k_of(segments: u32) -> u32 {
    cube_root((u128::from(segments) << (10 + 3 * TIME_BITS)) / u128::from(C_SCALED))
}

#[cfg(test)]
mod tests {
    use super::super::events::{acked, start};
    use super::*;
    use crate::Instant;
    use core::time::Duration;

    const MSS: u32 = 1000;

    /// An acknowledgement at `ms` up to `una`, sample and all.
    fn ack(it: &mut CubicSegments, (ms, rtt): (u64, u64), una: u32, nxt: u32, bytes: u32) {
        let (una, nxt) = (SeqNum(una), SeqNum(nxt));
        let acked = Acked { una, nxt, ..acked(ms, bytes, MSS) };
        it.on_round_trip(&RoundTrip { now: acked.now, rtt: Duration::from_millis(rtt), una, nxt, smss: MSS });
        it.on_ack(&acked);
    }

    fn cubic(initial_window: u32) -> CubicSegments {
        CubicSegments::new(&start(initial_window, u32::MAX))
    }

    fn loss(timeout: bool) -> Lost {
        Lost { in_flight: 0, smss: MSS, timeout, left: 0, again: false }
    }

    /// A loss leaves 717/1024 of the window in whole segments, whatever is in flight.
    #[test]
    fn a_loss_leaves_seven_tenths_of_the_window() {
        for (before, after) in [(10, 7), (13, 9), (20, 14), (3, 2), (2, 2)] {
            let mut it = cubic(before * MSS);
            it.on_loss(&loss(false));
            assert_eq!((it.cwnd(), it.ssthresh()), (after * MSS, after * MSS), "{before}");
        }
    }

    /// The last acknowledgement of slow start brings the window to ssthresh, and what is left of it counts in congestion avoidance:
    /// before any loss a segment more for each 20.
    #[test]
    fn slow_start_hands_over_what_it_does_not_use() {
        let mut it = CubicSegments::new(&start(10 * MSS, 12 * MSS));
        it.on_ack(&acked(100, 2 * MSS, MSS));
        assert_eq!(it.cwnd(), 12 * MSS);
        it.on_ack(&acked(100, 19 * MSS, MSS));
        assert_eq!((it.cwnd(), it.per), (12 * MSS, 20));
        it.on_ack(&acked(101, MSS, MSS));
        assert_eq!(it.cwnd(), 13 * MSS);
    }

    /// Half a segment now and half a segment then are one.
    #[test]
    fn parts_of_segments_add_up() {
        let mut it = cubic(10 * MSS);
        it.on_ack(&acked(1, MSS / 2, MSS));
        assert_eq!(it.cwnd(), 10 * MSS);
        it.on_ack(&acked(2, MSS / 2, MSS));
        assert_eq!(it.cwnd(), 11 * MSS);
    }

    /// 20 segments that arrived in 200 ms are acknowledged two by two, 240 ms after they were sent: the ninth sample ends slow start.
    #[test]
    fn a_delay_that_grows_by_an_eighth_ends_slow_start() {
        let mut it = cubic(20 * MSS);
        it.least_delay = 200_000;
        let mut una = 0;
        for n in 0..10 {
            una += 2 * MSS;
            ack(&mut it, (640 + n, 240), una, una + 30 * MSS, 2 * MSS);
            let ends_at = (n >= 8).then_some(36 * MSS);
            assert_eq!(it.ssthresh(), ends_at.unwrap_or(u32::MAX), "sample {}", n + 1);
        }
        assert_eq!(it.cwnd(), 36 * MSS);
    }

    /// Acknowledgements a millisecond apart for more than half of the least delay, and a millisecond for bursts.
    #[test]
    fn a_train_of_half_the_delay_ends_slow_start() {
        let mut it = cubic(16 * MSS);
        it.least_delay = 20_000;
        let mut ended = None;
        for n in 0..16u32 {
            ack(&mut it, (n.into(), 20), (n + 1) * MSS, 40 * MSS, MSS);
            if it.ssthresh() < u32::MAX {
                ended.get_or_insert(n);
            }
        }
        assert_eq!((ended, it.ssthresh()), (Some(11), 27 * MSS));
    }

    /// A time-out forgets the plateau and the delay; a second within the recovery leaves ssthresh.
    #[test]
    fn a_timeout_forgets_the_path() {
        let mut it = cubic(10 * MSS);
        it.least_delay = 5;
        it.on_loss(&loss(true));
        assert_eq!((it.cwnd(), it.ssthresh(), it.last_max, it.least_delay), (MSS, 7 * MSS, 0, 0));
        it.on_loss(&Lost { again: true, ..loss(true) });
        assert_eq!(it.ssthresh(), 7 * MSS);
    }

    /// The plateau of ten segments is left for seven; K is 1.96 s. The curve's distance from the plateau is rounded down to segments, so that
    /// each is won early.
    #[test]
    fn the_window_comes_back_to_the_plateau() {
        let mut it = cubic(10 * MSS);
        it.on_loss(&loss(false));
        let mut ms = 0;
        while it.cwnd() < 10 * MSS {
            ms += 100;
            it.on_ack(&Acked { now: Instant::from_nanos(ms * 1_000_000), ..acked(0, it.cwnd(), MSS) });
        }
        assert_eq!(ms, 400);
    }
}
