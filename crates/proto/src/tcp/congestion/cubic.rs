//! CUBIC (RFC 9438): the window is a cubic function of the time since the last reduction, with a plateau where loss was last met.
//!
//! ```text
//!   W_cubic(t) = C·(t − K)³ + W_max        K = ∛((W_max − cwnd_epoch) / C)        C = 0.4 segments/s³
//! ```
//!
//! The curve, its epochs and the reductions are written once, for windows counted in a [`Unit`]: [`Bytes`] as the RFC has it, with
//! HyStart++ (`hystart`), or whole [`Segments`] as Linux counts, with the older HyStart (`full_path`). A unit adds its constants, how slow
//! start ends, and how acknowledgements bring the window towards the curve. `cube_root` gives K.

mod bytes;
mod full_path;
mod segments;

use super::cube_root::cube_root;
use super::{Acked, Controller, FullPath, Idle, Lost, RoundTrip, Start, Unused};
use crate::Instant;
use crate::time::nanos;
use alloc::boxed::Box;
pub(crate) use bytes::Bytes;
use core::fmt::Debug;
pub(crate) use segments::Segments;

/// What windows are counted in, and what follows from it.
pub(crate) trait Unit: Clone + Debug + Default {
    /// β_cubic: what a loss leaves of the window (§4.6).
    const BETA: (u64, u64);
    /// (1 + β) / 2: what is left of W_max when loss comes below it. §4.7, fast convergence: "if the current cwnd is less than W_max, this
    /// indicates that the saturation point experienced by this flow is getting reduced".
    const FAST_CONVERGENCE: (u64, u64);
    /// C, in segments per second³ (§5).
    const C: (u64, u64);
    /// Bits of a second's fraction in which the curve has its time.
    const TIME_BITS: u32;
    /// Nanoseconds of the clock that epochs are measured by.
    const GRAIN: u64;
    /// Time in which the window does not keep the sender back is no time of the epoch.
    const PAUSES: bool;
    /// State of slow start, and what else is needed before congestion avoidance.
    type SlowStart: Clone + Debug;
    /// State of an epoch beside the curve's.
    type Growth: Clone + Debug + Default;

    /// Bytes of one unit.
    fn size(smss: u32) -> u32;
    /// Nanoseconds as the curve has them.
    fn ticks(nanos: u64) -> u64;
    fn slow_start(start: &Start) -> Self::SlowStart;
    /// Units that are newly acknowledged.
    fn acknowledged(slow_start: &mut Self::SlowStart, acked: &Acked) -> u32;
    /// `units` are acknowledged in slow start. Returns those it has no use for.
    fn grow_slow_start(cubic: &mut Cubic<Self>, acked: &Acked, units: u32) -> u32;
    /// `units` are acknowledged in congestion avoidance. Returns the window that follows from `cwnd`.
    fn avoid(
        avoidance: &mut Avoidance<Self>,
        slow_start: &Self::SlowStart,
        cwnd: u32,
        acked: &Acked,
        units: u32,
    ) -> u32;
    /// A loss was answered; the window had been `before`.
    fn on_loss(cubic: &mut Cubic<Self>, lost: &Lost, before: u32);
    fn on_undo(_avoidance: &mut Avoidance<Self>) {}
    fn on_round_trip(_cubic: &mut Cubic<Self>, _sample: &RoundTrip) -> FullPath {
        FullPath::default()
    }
}

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
pub(crate) struct Cubic<U: Unit> {
    /// Bytes, as `ssthresh`: multiples of the unit until the MSS changes or the window decays.
    cwnd: u32,
    ssthresh: u32,
    /// Made when congestion avoidance, or a loss, first comes: most connections see neither.
    avoidance: Option<Box<Avoidance<U>>>,
    slow_start: U::SlowStart,
}

/// State of congestion avoidance; windows in units.
#[derive(Clone, Debug, Default)]
pub(crate) struct Avoidance<U: Unit> {
    /// See [`Clock`].
    epoch: u64,
    /// The window before the last reduction, or what fast convergence has left of it; 0 = there was none.
    w_max: u32,
    /// The plateau of this epoch.
    origin: u32,
    /// K, in the curve's time.
    k: u32,
    clock: Clock,
    growth: U::Growth,
}

const _: () = assert!(size_of::<Cubic<Bytes>>() <= 40);

impl<U: Unit> Cubic<U> {
    pub(crate) fn new(start: &Start) -> Cubic<U> {
        Cubic {
            cwnd: start.initial_window,
            ssthresh: start.ssthresh,
            avoidance: None,
            slow_start: U::slow_start(start),
        }
    }

    /// Silence of so many nanoseconds until now is no time of the epoch.
    #[inline]
    pub(in crate::tcp) fn on_silence(&mut self, now: Instant, silence: u64) {
        if let Some(avoidance) = &mut self.avoidance
            && avoidance.clock == Clock::Running
        {
            let epoch = avoidance.epoch.saturating_add(whole::<U>(silence));
            avoidance.epoch = epoch.min(whole::<U>(now.as_nanos()));
        }
    }
}

impl<U: Unit> Avoidance<U> {
    /// The next acknowledgement begins an epoch.
    fn begins(&self) -> bool {
        self.clock == Clock::Unset
    }

    /// Nanoseconds of the epoch; an acknowledgement that finds none begins it, with such a window.
    fn elapsed(&mut self, now: Instant, window: u32, smss: u32) -> u64 {
        let now = whole::<U>(now.as_nanos());
        match self.clock {
            Clock::Running => {}
            Clock::Paused => self.epoch = now.saturating_sub(self.epoch),
            Clock::Unset => {
                self.epoch = now;
                // Without a loss before (HyStart++), or after a time-out, K is 0 and W_max the window (§4.2, §4.8).
                self.origin = self.w_max.max(window);
                self.k = k_of::<U>(self.origin - window, smss);
            }
        }
        self.clock = Clock::Running;
        now.saturating_sub(self.epoch)
    }

    /// W_cubic(t), units; never negative.
    fn w_cubic(&self, t: u64, smss: u32) -> u64 {
        let k = u64::from(self.k);
        let offset = u128::from(t.abs_diff(k).min(u64::from(u32::MAX)));
        let (c, per) = c_in_units::<U>(smss);
        let moved = (offset * offset * offset * c) >> (3 * U::TIME_BITS);
        let moved = u64::try_from(moved).unwrap_or(u64::MAX) / per;
        let origin = u64::from(self.origin);
        if t < k { origin.saturating_sub(moved) } else { origin.saturating_add(moved) }
    }
}

impl<U: Unit> Controller for Cubic<U> {
    fn cwnd(&self) -> u32 {
        self.cwnd
    }

    fn ssthresh(&self) -> u32 {
        self.ssthresh
    }

    fn on_ack_unlimited(&mut self, now: Instant) -> bool {
        if U::PAUSES
            && let Some(avoidance) = &mut self.avoidance
            && avoidance.clock == Clock::Running
        {
            avoidance.epoch = now.as_nanos().saturating_sub(avoidance.epoch);
            avoidance.clock = Clock::Paused;
        }
        U::PAUSES
    }

    fn on_ack(&mut self, acked: &Acked) {
        let mut units = U::acknowledged(&mut self.slow_start, acked);
        if !acked.limited {
            self.on_ack_unlimited(acked.now);
            return;
        }
        if self.cwnd < self.ssthresh {
            units = U::grow_slow_start(self, acked, units);
        }
        if units > 0 {
            let avoidance = self.avoidance.get_or_insert_default();
            self.cwnd = U::avoid(avoidance, &self.slow_start, self.cwnd, acked, units);
        }
    }

    fn on_round_trip(&mut self, sample: &RoundTrip) -> FullPath {
        U::on_round_trip(self, sample)
    }

    /// §4.6 to §4.8. What limited transmit has added to the flight does not count (RFC 5681 §3.2 step 1).
    fn on_loss(&mut self, lost: &Lost) {
        let (before, size, smss) = (self.cwnd, U::size(lost.smss), lost.smss.max(1));
        let window = before / size;
        let avoidance = self.avoidance.get_or_insert_default();
        avoidance.w_max = match () {
            () if lost.timeout => 0,
            () if window < avoidance.w_max => scaled(window, U::FAST_CONVERGENCE),
            () => window,
        };
        avoidance.clock = Clock::Unset;
        if !lost.again {
            let left = scaled(lost.in_flight.min(before) / size, U::BETA) * size;
            self.ssthresh = left.max(2 * smss);
        }
        self.cwnd = if lost.timeout { lost.loss_window() } else { self.ssthresh };
        U::on_loss(self, lost, before);
    }

    fn on_idle(&mut self, idle: &Idle) {
        self.on_silence(idle.now, nanos(idle.idle));
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
        if let Some(avoidance) = &mut self.avoidance {
            U::on_undo(avoidance);
        }
    }
}

fn scaled(window: u32, (by, per): (u64, u64)) -> u32 {
    (u64::from(window) * by / per) as u32
}

/// Whole grains of the unit's clock.
fn whole<U: Unit>(nanos: u64) -> u64 {
    nanos - nanos % U::GRAIN
}

/// C as a fraction, in units.
fn c_in_units<U: Unit>(smss: u32) -> (u128, u64) {
    let units = u128::from(smss.max(1) / U::size(smss));
    (u128::from(U::C.0) * units, U::C.1)
}

/// K for such a distance to the plateau: ∛(distance / C).
fn k_of<U: Unit>(distance: u32, smss: u32) -> u32 {
    let (c, per) = c_in_units::<U>(smss);
    cube_root(((u128::from(distance) * u128::from(per)) << (3 * U::TIME_BITS)) / c)
}

#[cfg(test)]
mod tests;
