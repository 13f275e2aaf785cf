//! CUBIC in bytes, as RFC 9438 has it: the window moves towards where the curve will be a round trip later, and where Reno would be faster
//! `W_est` is followed instead (§4.3). Slow start ends by HyStart++ (RFC 9406).

use super::super::hystart::{Growth as Worth, HyStart};
use super::{Acked, Avoidance, Clock, Cubic, Lost, Start, Unit};
use crate::time::nanos;

/// α_cubic = 3·(1 − β)/(1 + β) = 9/17 (§4.3).
const ALPHA: (u64, u64) = (9, 17);

#[derive(Clone, Debug, Default)]
pub(crate) struct Bytes;

#[derive(Clone, Debug)]
pub(crate) struct SlowStart {
    hystart: HyStart,
    /// In the first slow start, which ends with the first reduction (and goes on if that is undone).
    use_hystart: bool,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Growth {
    /// cwnd before the last reduction (§4.3: from there on α is 1).
    pub(super) cwnd_prior: u32,
    /// Window of Reno in this epoch.
    w_est: u32,
    /// Of what was acknowledged, the part that has not yet moved cwnd by a byte; in bytes², less than cwnd.
    cwnd_rest: u32,
    /// As `cwnd_rest`, for `w_est`.
    est_rest: u32,
}

impl Unit for Bytes {
    const BETA: (u64, u64) = (7, 10);
    const FAST_CONVERGENCE: (u64, u64) = (17, 20);
    const C: (u64, u64) = (2, 5);
    const TIME_BITS: u32 = 20;
    const GRAIN: u64 = 1;
    const PAUSES: bool = true;
    type SlowStart = SlowStart;
    type Growth = Growth;

    fn size(_smss: u32) -> u32 {
        1
    }

    /// 2²⁰/10⁹ = 2¹¹/5⁹.
    fn ticks(nanos: u64) -> u64 {
        (nanos.min(u64::MAX >> 11) << 11) / 1_953_125
    }

    /// HyStart++ is for the first slow start only (RFC 9406 §4.3): not where ssthresh is known.
    fn slow_start(start: &Start) -> SlowStart {
        SlowStart { hystart: HyStart::new(), use_hystart: start.hystart }
    }

    fn acknowledged(_slow_start: &mut SlowStart, acked: &Acked) -> u32 {
        acked.bytes
    }

    fn grow_slow_start(cubic: &mut Cubic<Bytes>, acked: &Acked, bytes: u32) -> u32 {
        let slow_start = &mut cubic.slow_start;
        let worth = match slow_start.use_hystart && cubic.ssthresh == u32::MAX {
            true => slow_start.hystart.on_ack(acked),
            false => Worth::By(bytes.min(acked.most)),
        };
        match worth {
            Worth::By(bytes) => cubic.cwnd = cubic.cwnd.saturating_add(bytes).min(cubic.ssthresh),
            Worth::Over => cubic.ssthresh = cubic.cwnd,
        }
        0
    }

    /// §4.2 to §4.5. §4.3: "CUBIC checks whether W_cubic(t) is less than W_est. If so, CUBIC is in the Reno-friendly region and cwnd SHOULD be
    /// set to W_est at each reception of a new ACK." §4.2, of the other region's target: "The lower and upper bounds below ensure that CUBIC's
    /// congestion window increase rate is non-decreasing and is less than the increase rate of slow start".
    fn avoid(
        avoidance: &mut Avoidance<Bytes>,
        _slow_start: &SlowStart,
        cwnd: u32,
        acked: &Acked,
        bytes: u32,
    ) -> u32 {
        let begins = avoidance.begins();
        let elapsed = avoidance.elapsed(acked.now, cwnd, acked.smss);
        if begins {
            avoidance.w_max = avoidance.origin;
            let cwnd_prior = avoidance.growth.cwnd_prior;
            avoidance.growth = Growth { cwnd_prior, w_est: cwnd, ..Growth::default() };
        }
        let est = avoidance.growth.reno_friendly(cwnd, acked);
        let t = Bytes::ticks(elapsed);
        if avoidance.w_cubic(t, acked.smss) < u64::from(est) {
            return cwnd.max(est);
        }
        let window = u64::from(cwnd);
        let target = avoidance.w_cubic(t + Bytes::ticks(nanos(acked.srtt)), acked.smss);
        let more = target.clamp(window, window + window / 2) - window;
        let owed = more * u64::from(bytes) + u64::from(avoidance.growth.cwnd_rest);
        avoidance.growth.cwnd_rest = (owed % window) as u32;
        cwnd.saturating_add((owed / window) as u32)
    }

    fn on_loss(cubic: &mut Cubic<Bytes>, _lost: &Lost, before: u32) {
        cubic.avoidance.get_or_insert_default().growth.cwnd_prior = before;
    }

    /// Windows come back (RFC 9438 §4.9.1), and an epoch begins.
    fn on_undo(avoidance: &mut Avoidance<Bytes>) {
        avoidance.clock = Clock::Unset;
    }
}

impl Growth {
    /// §4.3: "W_est is set equal to cwnd_epoch at the start of the congestion avoidance stage", and grows by α_cubic segments per window, by
    /// one once the window before the reduction is reached.
    fn reno_friendly(&mut self, cwnd: u32, acked: &Acked) -> u32 {
        let (alpha, per) = if self.w_est < self.cwnd_prior { ALPHA } else { (1, 1) };
        let cwnd = u64::from(cwnd);
        let owed = u64::from(acked.bytes) * u64::from(acked.smss) * alpha / per + u64::from(self.est_rest);
        self.w_est = self.w_est.saturating_add((owed / cwnd) as u32);
        self.est_rest = (owed % cwnd) as u32;
        self.w_est
    }
}
