//! CUBIC (RFC 9438): the window is a cubic function of the time since the last reduction, with a plateau where loss was last met.
//!
//! ```text
//!   W_cubic(t) = C·(t − K)³ + W_max        K = ∛((W_max − cwnd_epoch) / C)        C = 0.4 segments/s³
//! ```
//!
//! Where Reno would be faster, `W_est` is followed instead (§4.3). Times are counted in 2⁻²⁰ s, windows in bytes. `hystart` governs
//! the first slow start, `cube_root` gives K.

use super::cube_root::cube_root;
use super::hystart::{Growth, HyStart};
use super::{Acked, Controller, Idle, Lost, Start, Unused};
use crate::Instant;
use crate::time::nanos;
use alloc::boxed::Box;
use core::time::Duration;

/// β_cubic = 0.7 (§4.6).
const BETA: (u64, u64) = (7, 10);
/// (1 + β) / 2: what is left of W_max when loss comes below it (§4.7, fast convergence).
const FAST_CONVERGENCE: (u64, u64) = (17, 20);
/// α_cubic = 3·(1 − β)/(1 + β) = 9/17 (§4.3).
const ALPHA: (u64, u64) = (9, 17);
/// Bits of a second's fraction.
const TIME_BITS: u32 = 20;

/// How the clock of W_cubic stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Clock {
    #[default]
    /// The next acknowledgement in congestion avoidance begins an epoch.
    Unset,
    /// `epoch` is the nanosecond it began at.
    Running,
    /// The window is not used: `epoch` is the nanoseconds that have run until then (§4.2: t leaves such periods out).
    Paused,
}

#[derive(Clone, Debug)]
#[repr(C)]
pub(crate) struct Cubic {
    cwnd: u32,
    ssthresh: u32,
    /// Made when congestion avoidance, or a loss, first comes: most connections see neither.
    avoidance: Option<Box<Avoidance>>,
    hystart: HyStart,
    use_hystart: bool,
}

/// State of congestion avoidance.
#[derive(Clone, Debug, Default)]
struct Avoidance {
    /// See [`Clock`].
    epoch: u64,
    w_max: u32,
    /// cwnd before the last reduction (§4.3: from there on α is 1).
    cwnd_prior: u32,
    /// Window of Reno in this epoch.
    w_est: u32,
    /// K, in 2⁻²⁰ s.
    k: u32,
    /// Of what was acknowledged, the part that has not yet moved cwnd by a byte; in bytes², less than cwnd.
    cwnd_rest: u32,
    /// As `cwnd_rest`, for `w_est`.
    est_rest: u32,
    clock: Clock,
}

const _: () = assert!(size_of::<Cubic>() <= 40);

impl Cubic {
    /// HyStart++ is for the first slow start only (RFC 9406 §4.3): not where ssthresh is known.
    #[inline(always)]
    pub(crate) fn new(start: &Start) -> Cubic {
        Cubic {
            cwnd: start.initial_window,
            ssthresh: start.ssthresh,
            avoidance: None,
            hystart: HyStart::new(),
            use_hystart: start.hystart && start.ssthresh == u32::MAX,
        }
    }

    /// Silence of so many nanoseconds is no time of the epoch.
    #[inline]
    pub(in crate::tcp) fn on_silence(&mut self, silence: u64) {
        if let Some(avoidance) = &mut self.avoidance
            && avoidance.clock == Clock::Running
        {
            avoidance.epoch = avoidance.epoch.saturating_add(silence);
        }
    }

    fn slow_start(&mut self, acked: &Acked) {
        let growth = match self.use_hystart {
            true => self.hystart.on_ack(acked),
            false => Growth::By(acked.bytes.min(acked.most)),
        };
        match growth {
            Growth::By(bytes) => self.cwnd = self.cwnd.saturating_add(bytes).min(self.ssthresh),
            Growth::Over => {
                self.ssthresh = self.cwnd;
                self.use_hystart = false;
            }
        }
    }
}

impl Avoidance {
    /// §4.2 to §4.5: the window after this acknowledgement.
    fn avoid_congestion(&mut self, window: u32, acked: &Acked) -> u32 {
        let t = self.time(window, acked);
        let est = self.reno_friendly(window, acked);
        if self.w_cubic(t, acked.smss) < u64::from(est) {
            return window.max(est);
        }
        let cwnd = u64::from(window);
        let target = self.w_cubic(t + ticks(acked.srtt), acked.smss).clamp(cwnd, cwnd + cwnd / 2);
        let owed = (target - cwnd) * u64::from(acked.bytes) + u64::from(self.cwnd_rest);
        self.cwnd_rest = (owed % cwnd) as u32;
        window.saturating_add((owed / cwnd) as u32)
    }

    /// t, in 2⁻²⁰ s; begins the epoch with the first acknowledgement of congestion avoidance.
    fn time(&mut self, cwnd: u32, acked: &Acked) -> u64 {
        let now = acked.now.as_nanos();
        match self.clock {
            Clock::Running => {}
            Clock::Paused => self.epoch = now.saturating_sub(self.epoch),
            Clock::Unset => {
                self.epoch = now;
                self.begin_epoch(cwnd, acked.smss);
            }
        }
        self.clock = Clock::Running;
        ticks(acked.now.since(Instant::from_nanos(self.epoch)))
    }

    fn begin_epoch(&mut self, cwnd: u32, smss: u32) {
        // Without a loss before (HyStart++), or after a time-out, K is 0 and W_max the window (§4.2, §4.8).
        self.w_max = self.w_max.max(cwnd);
        self.k = k_of(self.w_max - cwnd, smss);
        self.w_est = cwnd;
        (self.cwnd_rest, self.est_rest) = (0, 0);
    }

    /// W_est: α_cubic segments per window, one once the window before the reduction is reached (§4.3).
    fn reno_friendly(&mut self, cwnd: u32, acked: &Acked) -> u32 {
        let (alpha, per) = if self.w_est < self.cwnd_prior { ALPHA } else { (1, 1) };
        let cwnd = u64::from(cwnd);
        let owed = u64::from(acked.bytes) * u64::from(acked.smss) * alpha / per + u64::from(self.est_rest);
        self.w_est = self.w_est.saturating_add((owed / cwnd) as u32);
        self.est_rest = (owed % cwnd) as u32;
        self.w_est
    }

    /// W_cubic(t), bytes; never negative.
    fn w_cubic(&self, t: u64, smss: u32) -> u64 {
        let k = u64::from(self.k);
        let offset = u128::from(t.abs_diff(k).min(u64::from(u32::MAX)));
        // C = 2/5 of a segment per s³; a cube of 2⁻²⁰ s has 60 bits of fraction.
        let moved = ((offset * offset * offset * u128::from(2 * smss)) >> (3 * TIME_BITS)) as u64 / 5;
        let w_max = u64::from(self.w_max);
        if t < k { w_max.saturating_sub(moved) } else { w_max + moved }
    }
}

impl Controller for Cubic {
    fn cwnd(&self) -> u32 {
        self.cwnd
    }

    fn ssthresh(&self) -> u32 {
        self.ssthresh
    }

    fn on_ack_unlimited(&mut self, now: Instant) -> bool {
        if let Some(avoidance) = &mut self.avoidance
            && avoidance.clock == Clock::Running
        {
            avoidance.epoch = now.as_nanos().saturating_sub(avoidance.epoch);
            avoidance.clock = Clock::Paused;
        }
        true
    }

    fn on_ack(&mut self, acked: &Acked) {
        if !acked.limited {
            self.on_ack_unlimited(acked.now);
            return;
        }
        if self.cwnd < self.ssthresh {
            self.slow_start(acked);
        } else {
            self.cwnd = self.avoidance.get_or_insert_default().avoid_congestion(self.cwnd, acked);
        }
    }

    /// §4.6 to §4.8. What limited transmit has added to the flight does not count (RFC 5681 §3.2 step 1).
    fn on_loss(&mut self, lost: &Lost) {
        let cwnd = self.cwnd;
        let avoidance = self.avoidance.get_or_insert_default();
        avoidance.cwnd_prior = cwnd;
        avoidance.w_max = match () {
            () if lost.timeout => 0,
            () if cwnd < avoidance.w_max => scaled(cwnd, FAST_CONVERGENCE),
            () => cwnd,
        };
        avoidance.clock = Clock::Unset;
        if !lost.again {
            self.ssthresh = scaled(lost.in_flight.min(self.cwnd), BETA).max(2 * lost.smss);
        }
        self.cwnd = if lost.timeout { lost.loss_window() } else { self.ssthresh };
        self.use_hystart = false;
    }

    fn on_idle(&mut self, idle: &Idle) {
        self.on_silence(nanos(idle.idle));
        (self.cwnd, self.ssthresh) = idle.decay(self.cwnd, self.ssthresh);
    }

    fn on_unused(&mut self, unused: &Unused) {
        (self.cwnd, self.ssthresh) = unused.decay(self.cwnd, self.ssthresh);
    }

    /// The next epoch begins where the window was: K is 0.
    fn on_resize(&mut self, cwnd: u32) {
        self.cwnd = cwnd;
    }

    fn on_undo(&mut self, cwnd: u32, ssthresh: u32) {
        self.cwnd = self.cwnd.max(cwnd);
        self.ssthresh = self.ssthresh.max(ssthresh);
        if let Some(avoidance) = &mut self.avoidance {
            avoidance.clock = Clock::Unset;
        }
    }
}

fn scaled(bytes: u32, (by, per): (u64, u64)) -> u32 {
    (u64::from(bytes) * by / per) as u32
}

/// K for a distance of `bytes` to W_max: ∛(segments / C), in 2⁻²⁰ s.
fn k_of(bytes: u32, smss: u32) -> u32 {
    cube_root(((u128::from(bytes) * 5) << (3 * TIME_BITS)) / u128::from(2 * smss.max(1)))
}

/// In 2⁻²⁰ s: 2²⁰/10⁹ = 2¹¹/5⁹.
fn ticks(time: Duration) -> u64 {
    let nanos = time.as_nanos().min(u128::from(u64::MAX >> 11)) as u64;
    (nanos << 11) / 1_953_125
}

#[cfg(test)]
mod tests;
