//! Round-trip time and retransmission timeout, in integers of 2⁻⁵ µs.
//!
//! ```text
//!  RFC 6298 §2    first sample R     SRTT = R, RTTVAR = R/2
//!                 later samples R    RTTVAR = 3/4 RTTVAR + 1/4 |SRTT − R|
//!                                    SRTT = 7/8 SRTT + 1/8 R
//!                 RTO                max(SRTT + max(G, 4 RTTVAR), min RTO) · 2^back-off, at most 120 s
//! ```
//!
//! Linux's `tcp_rtt_estimator` (`firstbyte.rtt_variation`) has the same SRTT. The minimum RTO
//! applies to the variation instead of the sum, and the variation is the maximum of a window's
//! round trip, so it falls in steps:
//!
//! ```text
//!  MDEV   4 × the mean deviation: as 4 RTTVAR, but a sample so far below SRTT that MDEV would grow
//!         counts an eighth
//!  VAR    the maximum MDEV since the window was last acknowledged, at least the minimum RTO; it rises
//!         at once, and falls by a quarter of the difference per window
//!  RTO    (SRTT + VAR) · 2^back-off
//! ```
//!
//! The minimum round trip covers the last five minutes (`tcp_min_rtt_wlen`; RFC 8985 §6.2, step 1):
//! [`LeastRtt`] has the next candidates.
//!
//! The caller applies Karn's algorithm, "RTT samples MUST NOT be made using segments that were
//! retransmitted" (RFC 6298 §3), because only the caller knows these segments.

mod least;

use crate::{Instant, RttVariation, time};
use core::time::Duration;
pub(crate) use least::{LeastRtt, least_rtt_age};
use wire::SeqNum;

/// Clock granularity G: timestamps tick once a millisecond.
const GRANULARITY: u64 = UNITS_PER_MICRO * 1_000;
/// The greatest RTO, microseconds: 120 s as in Linux (RFC 6298 §2.5 asks for at least 60 s). As units it fits into 32 bits.
const MAX_RTO: u32 = 120_000_000;
/// RTO without a sample after a SYN was retransmitted, microseconds (RFC 6298 §5.7).
const FALLBACK_RTO: u32 = 3_000_000;
/// More doublings than this change nothing: 1 µs (`tcp_rto_min_us`) · 2²⁷ exceeds the greatest RTO.
const MAX_BACKOFF: u8 = 27;
/// No sample yet.
const INFINITE: u32 = u32::MAX;
/// A unit is 31.25 ns: Linux keeps SRTT in 2⁻³ µs.
const UNITS_PER_MICRO: u64 = 32;

/// Estimates SRTT and its variation, keeps the minimum, and yields the RTO. Times are in units where nothing else is said.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RttEstimator {
    /// 0 = no sample yet.
    pub(crate) srtt: u32,
    /// RTTVAR; `windowed` MDEV in microseconds.
    deviation: u32,
    /// The least round trip, and in ticks when it was measured.
    min_rtt: u32,
    min_rtt_at: u32,
    /// VAR of `windowed`, the greatest MDEV of this window, both in microseconds, and the window's end.
    variation: u32,
    most: u32,
    window_end: SeqNum,
    min_rto_micros: u32,
    initial_rto_micros: u32,
    max_rto_pairs: u16,
    /// [`WINDOWED`], [`SEEDED`].
    habits: u8,
    backoff: u8,
}

/// The variation is that of a window.
const WINDOWED: u8 = 1;
/// The initial RTO holds until the next sample, although there was one.
const SEEDED: u8 = 2;

const _: () = assert!(size_of::<RttEstimator>() <= 40);

impl RttEstimator {
    /// `initial_rto` holds until the first sample (RFC 6298 §2.1: 1 s); below `min_rto` the RTO never falls (Linux:
    /// 200 ms). Both are kept in microseconds and at most 120 s.
    pub(crate) fn new(initial_rto: Duration, min_rto: Duration, variation: RttVariation) -> RttEstimator {
        RttEstimator {
            srtt: 0,
            deviation: 0,
            min_rtt: INFINITE,
            min_rtt_at: 0,
            variation: 0,
            most: 0,
            window_end: SeqNum(0),
            min_rto_micros: micros(min_rto),
            max_rto_pairs: pairs(MAX_RTO),
            initial_rto_micros: micros(initial_rto),
            habits: if variation == RttVariation::Windowed { WINDOWED } else { 0 },
            backoff: 0,
        }
    }

    /// Other bounds of the RTO; the lower one holds where they cross. The greatest is kept in steps of two milliseconds.
    pub(crate) fn set_bounds(&mut self, least: Duration, greatest: Duration) {
        self.min_rto_micros = micros(least);
        self.max_rto_pairs = pairs(micros(greatest.max(least)));
    }

    /// The back-off has brought the RTO to its greatest.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.rto() >= self.max_rto()
    }

    /// Doublings since the last progress.
    pub(crate) fn backoff(&self) -> u8 {
        self.backoff
    }

    /// The least RTO, nanoseconds.
    pub(crate) fn min_rto_nanos(&self) -> u64 {
        u64::from(self.min_rto_micros) * 1_000
    }

    /// The greatest RTO.
    pub(crate) fn max_rto(&self) -> Duration {
        Duration::from_micros(self.max_rto_micros())
    }

    fn max_rto_micros(&self) -> u64 {
        u64::from(self.max_rto_pairs) * 2_000
    }

    /// Earlier connections took longer than this one's handshake, or it gave no sample: until there is one of data, the RTO is made from
    /// that (Linux's `tcp_init_metrics`: R + max(2 R, least RTO)).
    pub(crate) fn seed(&mut self, remembered: u64) {
        let units = units_of(remembered);
        if units > self.srtt {
            let remembered = u64::from(units) / UNITS_PER_MICRO;
            let rto = remembered + (2 * remembered).max(self.min_rto_micros.into());
            self.initial_rto_micros = rto.min(MAX_RTO.into()) as u32;
            self.habits |= SEEDED;
        }
    }

    #[inline]
    fn is_windowed(&self) -> bool {
        self.habits & WINDOWED != 0
    }

    /// A time-out has passed since the last progress.
    pub(crate) fn is_backed_off(&self) -> bool {
        self.backoff > 0
    }

    /// A handshake's sample (RFC 6298 §2.2, §2.3); ends the back-off. `span`: SND.UNA and SND.NXT now.
    pub(crate) fn on_sample(&mut self, now: Instant, rtt: Duration, span: (SeqNum, SeqNum)) {
        self.on_sample_nanos(now, time::nanos(rtt), span);
    }

    /// A handshake's sample in nanoseconds (RFC 6298 §2.2, §2.3); ends the back-off.
    pub(crate) fn on_sample_nanos(&mut self, now: Instant, rtt: u64, span: (SeqNum, SeqNum)) {
        let _none_was_before = self.note_min(now, rtt, u32::MAX);
        self.on_delayed_nanos(rtt, span);
    }

    /// A sample that may contain a wait for the peer's application, such as that of a SYN-ACK with data: not for the minimum.
    pub(crate) fn on_delayed_sample(&mut self, rtt: Duration, span: (SeqNum, SeqNum)) {
        self.on_delayed_nanos(time::nanos(rtt), span);
    }

    /// A sample in nanoseconds that may contain a wait for the peer's application: not for the minimum.
    pub(crate) fn on_delayed_nanos(&mut self, rtt: u64, span: (SeqNum, SeqNum)) {
        if self.is_windowed() {
            self.estimate_by_window(((rtt / 1_000).min(MAX_RTO.into()) as u32).max(1), span);
        } else {
            self.estimate(units_of(rtt));
        }
        self.habits &= !SEEDED;
        self.backoff = 0;
    }

    /// From now on every packet takes so much instead of so much more (`tcp_enable_tx_delay`): what was measured is believed to do so, too.
    pub(crate) fn shift(&mut self, before: Duration, after: Duration) {
        self.forget_min();
        if self.srtt > 0 {
            self.srtt = self.srtt.saturating_add(units(after)).saturating_sub(units(before)).max(1);
        }
    }

    /// RFC 6298 §2.3: "RTTVAR <- (1 - beta) * RTTVAR + beta * |SRTT - R'| SRTT <- (1 - alpha) * SRTT + alpha * R'", beta = 1/4, alpha = 1/8.
    fn estimate(&mut self, rtt: u32) {
        if self.srtt == 0 {
            self.srtt = rtt;
            self.deviation = rtt / 2;
        } else {
            self.deviation = self.deviation - self.deviation / 4 + self.srtt.abs_diff(rtt) / 4;
            self.srtt = self.srtt - self.srtt / 8 + rtt / 8;
        }
    }

    /// As `tcp_rtt_estimator`, to the microsecond.
    #[inline(never)]
    fn estimate_by_window(&mut self, rtt: u32, (una, nxt): (SeqNum, SeqNum)) {
        let least = self.min_rto_micros;
        if self.srtt == 0 {
            self.srtt = rtt * UNITS_PER_MICRO as u32;
            self.deviation = rtt * 2;
            self.variation = self.deviation.max(least);
            self.most = self.variation;
            self.window_end = nxt;
            return;
        }
        let above = i64::from(rtt) - i64::from(self.srtt_micros());
        let smoothed = i64::from(self.srtt) + above * UNITS_PER_MICRO as i64 / 8;
        self.srtt = smoothed.max(1) as u32;
        let further = above.abs() - i64::from(self.deviation >> 2);
        let counts = if above < 0 && further > 0 { further >> 3 } else { further };
        self.deviation = (i64::from(self.deviation) + counts).max(0) as u32;
        if self.deviation > self.most {
            self.most = self.deviation;
            self.variation = self.variation.max(self.most);
        }
        if una.after(self.window_end) {
            self.variation -= self.variation.saturating_sub(self.most) >> 2;
            self.window_end = nxt;
            self.most = least;
        }
    }

    fn srtt_micros(&self) -> u32 {
        self.srtt / UNITS_PER_MICRO as u32
    }

    /// The retransmission timer has fired. RFC 6298 §5.5: "The host MUST set RTO <- RTO * 2".
    pub(crate) fn on_timeout(&mut self) {
        self.backoff = (self.backoff + 1).min(MAX_BACKOFF);
    }

    /// What it retransmitted has not left.
    pub(crate) fn take_back_timeout(&mut self) {
        self.backoff = self.backoff.saturating_sub(1);
    }

    /// The back-off ends without a sample: it was that of window probes, or the stream is a thin one.
    pub(crate) fn on_progress(&mut self) {
        self.backoff = 0;
    }

    /// The handshake is complete, its SYN was retransmitted because of a time-out, and there is no sample. RFC 6298 §5.7: "the RTO MUST be
    /// re-initialized to 3 seconds when data transmission begins".
    pub(crate) fn on_syn_retransmitted(&mut self) {
        if self.srtt == 0 {
            self.initial_rto_micros = FALLBACK_RTO;
        }
        self.backoff = 0;
    }

    /// The retransmission time-out, with back-off.
    pub(crate) fn rto(&self) -> Duration {
        Duration::from_nanos(self.rto_nanos())
    }

    /// The retransmission time-out in nanoseconds, with back-off.
    #[inline]
    pub(crate) fn rto_nanos(&self) -> u64 {
        let greatest = self.max_rto_micros() * UNITS_PER_MICRO;
        nanos((self.base_units() << self.backoff).min(greatest))
    }

    /// Without the back-off.
    pub(crate) fn base_rto(&self) -> Duration {
        time(self.base_units())
    }

    fn base_units(&self) -> u64 {
        let base = match self.srtt {
            _ if self.habits & SEEDED != 0 => u64::from(self.initial_rto_micros) * UNITS_PER_MICRO,
            0 => u64::from(self.initial_rto_micros) * UNITS_PER_MICRO,
            _ if self.is_windowed() => u64::from(self.srtt_micros() + self.variation) * UNITS_PER_MICRO,
            srtt => u64::from(srtt) + (4 * u64::from(self.deviation)).max(GRANULARITY),
        };
        let least = u64::from(self.min_rto_micros) * UNITS_PER_MICRO;
        let greatest = self.max_rto_micros() * UNITS_PER_MICRO;
        base.max(least).min(greatest)
    }

    /// Smoothed round-trip time; `None` before the first sample.
    pub(crate) fn srtt(&self) -> Option<Duration> {
        (self.srtt != 0).then(|| time(self.srtt.into()))
    }

    /// Smoothed round-trip time in nanoseconds, 0 before the first sample.
    pub(crate) fn srtt_nanos(&self) -> u64 {
        nanos(self.srtt.into())
    }

    /// Round-trip time variation (of Linux's way the mean deviation, as its `tcpi_rttvar`); zero before the first sample.
    pub(crate) fn rttvar(&self) -> Duration {
        if self.is_windowed() {
            Duration::from_micros((self.deviation >> 2).into())
        } else {
            time(self.deviation.into())
        }
    }

    /// Round-trip time variation in nanoseconds.
    pub(crate) fn rttvar_nanos(&self) -> u64 {
        if self.is_windowed() { u64::from(self.deviation >> 2) * 1_000 } else { nanos(self.deviation.into()) }
    }

    /// There was a sample.
    #[inline]
    pub(crate) fn is_sampled(&self) -> bool {
        self.srtt != 0
    }

    /// Lowest sample in whole microseconds; 0 before the first.
    #[inline]
    pub(crate) fn min_rtt_micros(&self) -> u32 {
        if self.min_rtt == INFINITE { 0 } else { self.min_rtt / UNITS_PER_MICRO as u32 }
    }

    /// Lowest sample; `None` before the first.
    pub(crate) fn min_rtt(&self) -> Option<Duration> {
        (self.min_rtt != INFINITE).then(|| time(self.min_rtt.into()))
    }
}

fn micros(duration: Duration) -> u32 {
    let micros = duration.as_secs().saturating_mul(1_000_000).saturating_add(duration.subsec_micros().into());
    micros.min(MAX_RTO.into()) as u32
}

/// A sample of zero (both ends at the same instant of a virtual clock) is still a sample.
fn units_of(nanos: u64) -> u32 {
    let nanos = nanos.min(u64::from(MAX_RTO) * 1_000);
    (nanos * UNITS_PER_MICRO / 1_000).max(1) as u32
}

fn units(rtt: Duration) -> u32 {
    units_of(time::nanos(rtt))
}

/// Microseconds as pairs of milliseconds, none lost.
fn pairs(micros: u32) -> u16 {
    micros.div_ceil(2_000) as u16
}

fn time(units: u64) -> Duration {
    Duration::from_nanos(nanos(units))
}

fn nanos(units: u64) -> u64 {
    units * 1_000 / UNITS_PER_MICRO
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    const LEAST: Duration = Duration::from_millis(200);

    fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    fn us(n: u64) -> Duration {
        Duration::from_micros(n)
    }

    const SPAN: (SeqNum, SeqNum) = (SeqNum(0), SeqNum(0));

    fn none_yet(least: Duration) -> RttEstimator {
        RttEstimator::new(ms(1_000), least, RttVariation::Rfc6298)
    }

    fn sampled(samples: &[Duration]) -> RttEstimator {
        let mut rtt = none_yet(LEAST);
        for sample in samples {
            rtt.on_sample(Instant::ZERO, *sample, SPAN);
        }
        rtt
    }

    #[test]
    fn the_formulas_of_the_rfc() {
        let none = sampled(&[]);
        assert_eq!(
            (none.srtt(), none.rttvar(), none.min_rtt(), none.rto()),
            (None, Duration::ZERO, None, ms(1_000))
        );
        let one = sampled(&[ms(100)]);
        assert_eq!((one.srtt(), one.rttvar(), one.rto()), (Some(ms(100)), ms(50), ms(300)));
        let two = sampled(&[ms(100), ms(180)]);
        assert_eq!((two.srtt(), two.rttvar(), two.rto()), (Some(ms(110)), us(57_500), ms(340)));
        let three = sampled(&[ms(100), ms(180), ms(30)]);
        assert_eq!((three.srtt(), three.rttvar()), (Some(ms(100)), us(63_125)));
        assert_eq!((three.rto(), three.min_rtt()), (us(352_500), Some(ms(30))));
    }

    /// Linux's sequence, each sample in a window of its own: SRTT, MDEV and variation in µs, RTO in ms. The figures were checked against
    /// those of 6.18's `tcp_rtt_estimator`, compiled by itself.
    #[test]
    fn the_variation_of_a_window() {
        let mut rtt = RttEstimator::new(ms(1_000), LEAST, RttVariation::Windowed);
        let mut at = 0;
        // Each sample acknowledges one more than the last window's end.
        let mut sample = |rtt: &mut RttEstimator, millis| {
            at += 2;
            rtt.on_sample(Instant::ZERO, ms(millis), (SeqNum(at), SeqNum(at + 1)));
            (rtt.srtt().unwrap().as_micros(), rtt.deviation, rtt.variation, rtt.rto().as_millis())
        };
        // m << 1; not less than 200 ms: RTO = 3 R only from there on.
        assert_eq!(sample(&mut rtt, 100), (100_000, 200_000, 200_000, 300));
        // m = 0 − (200 000 >> 2) each time.
        assert_eq!(sample(&mut rtt, 100), (100_000, 150_000, 200_000, 300));
        assert_eq!(sample(&mut rtt, 100), (100_000, 112_500, 200_000, 300));
        for _ in 0..60 {
            sample(&mut rtt, 100);
        }
        assert_eq!(sample(&mut rtt, 100), (100_000, 3, 200_000, 300), "never below 200 ms beside SRTT");
        // m = 80 000, then SRTT + 10 000; MDEV + 80 000.
        assert_eq!(sample(&mut rtt, 180), (110_000, 80_003, 200_000, 310));
        // Far above: it is felt at once.
        assert_eq!(sample(&mut rtt, 510), (160_000, 460_003, 460_003, 620));
        // m = 100 − 160 = −60; 60 000 − 115 000 < 0: MDEV falls. The window's greatest is that, more than 200 ms.
        assert_eq!(sample(&mut rtt, 100), (152_500, 405_003, 446_253, 598));
        // −52 500 → 52 500 − 101 250.
        assert_eq!(sample(&mut rtt, 100), (145_937, 356_253, 423_753, 569));
        for _ in 0..150 {
            sample(&mut rtt, 100);
        }
        assert_eq!(
            sample(&mut rtt, 100),
            (100_000, 3, 200_003, 300),
            "a quarter of the difference per window"
        );
        // A sample below by 80: m = 80 000 >> 3.
        assert_eq!(sample(&mut rtt, 20), (90_000, 10_003, 200_003, 290));
        assert_eq!(rtt.rttvar(), us(2_500));
    }

    /// Samples of one window leave its variation where it is, or raise it.
    #[test]
    fn within_a_window_the_variation_does_not_fall() {
        let mut rtt = RttEstimator::new(ms(1_000), ms(20), RttVariation::Windowed);
        rtt.on_sample(Instant::ZERO, ms(50), (SeqNum(1), SeqNum(100)));
        for una in 2..=100 {
            rtt.on_sample(Instant::ZERO, ms(50), (SeqNum(una), SeqNum(una + 100)));
            assert_eq!(rtt.rto(), ms(150), "{una}");
        }
        rtt.on_sample(Instant::ZERO, ms(50), (SeqNum(101), SeqNum(201)));
        assert_eq!(rtt.rto(), ms(150), "the greatest of that window was its first");
        rtt.on_sample(Instant::ZERO, ms(50), (SeqNum(202), SeqNum(300)));
        assert_eq!(rtt.rto(), ms(130), "100 − (100 − 20) / 4");
        rtt.on_sample(Instant::ZERO, ms(50), (SeqNum(301), SeqNum(400)));
        assert_eq!(rtt.rto(), ms(115));
    }

    #[test]
    fn the_rto_has_a_least_and_a_greatest_value() {
        assert_eq!(sampled(&[ms(1)]).rto(), LEAST);
        let mut finer = none_yet(Duration::ZERO);
        for _ in 0..100 {
            finer.on_sample(Instant::ZERO, ms(10), SPAN);
        }
        assert_eq!(finer.rto(), ms(11));
        assert_eq!(sampled(&[Duration::from_secs(100)]).rto(), Duration::from_secs(120));
        assert_eq!(sampled(&[Duration::MAX]).rto(), Duration::from_secs(120));
        let mut bounded = sampled(&[ms(100)]);
        bounded.set_bounds(ms(400), ms(1_000));
        assert_eq!(bounded.rto(), ms(400));
        bounded.on_timeout();
        bounded.on_timeout();
        assert_eq!((bounded.rto(), bounded.max_rto()), (ms(1_000), ms(1_000)));
    }

    #[test]
    fn time_outs_double_until_something_arrives() {
        let mut rtt = sampled(&[ms(100)]);
        let mut seconds = Vec::new();
        for _ in 0..12 {
            rtt.on_timeout();
            seconds.push(rtt.rto().as_millis());
        }
        assert_eq!(seconds[..3], [600, 1_200, 2_400]);
        assert_eq!(seconds[8..], [120_000; 4]);
        rtt.on_progress();
        assert_eq!((rtt.rto(), rtt.backoff), (ms(300), 0));
        rtt.on_timeout();
        rtt.on_sample(Instant::ZERO, ms(100), SPAN);
        assert_eq!((rtt.backoff, rtt.rttvar()), (0, us(37_500)));
        for _ in 0..1000 {
            rtt.on_timeout();
        }
        assert_eq!(rtt.rto(), Duration::from_secs(120));
    }

    #[test]
    fn the_shortest_time_out_doubles_to_the_longest() {
        let micro = Duration::from_micros(1);
        let mut rtt = RttEstimator::new(micro, micro, RttVariation::Rfc6298);
        for _ in 0..26 {
            rtt.on_timeout();
        }
        assert_eq!(rtt.rto(), micro * (1 << 26), "67 s");
        rtt.on_timeout();
        assert_eq!(rtt.rto(), Duration::from_secs(120));
    }

    #[test]
    fn a_retransmitted_syn_without_sample_leads_to_three_seconds() {
        let mut rtt = sampled(&[]);
        rtt.on_timeout();
        assert_eq!(rtt.rto(), ms(2_000));
        rtt.on_syn_retransmitted();
        assert_eq!(rtt.rto(), ms(3_000));
        let mut known = sampled(&[ms(100)]);
        known.on_syn_retransmitted();
        assert_eq!(known.rto(), ms(300));
    }

    #[test]
    fn a_syn_ack_that_waited_for_the_application_is_no_minimum() {
        let mut rtt = sampled(&[]);
        rtt.on_delayed_sample(ms(41), SPAN);
        assert_eq!((rtt.srtt(), rtt.min_rtt()), (Some(ms(41)), None));
        rtt.on_sample(Instant::ZERO, ms(40), SPAN);
        assert_eq!(rtt.min_rtt(), Some(ms(40)));
        rtt.on_sample(Instant::ZERO, Duration::ZERO, SPAN);
        assert_eq!(rtt.min_rtt(), Some(Duration::from_nanos(31)));
    }

    proptest! {
        /// SRTT stays between the extremes of the samples, and the RTO between its bounds and above SRTT.
        #[test]
        fn the_estimate_lies_among_the_samples(samples in proptest::collection::vec(1u64..10_000_000_000, 1..200)) {
            let mut rtt = none_yet(LEAST);
            for nanos in &samples {
                rtt.on_sample(Instant::ZERO, Duration::from_nanos(*nanos), SPAN);
            }
            let (low, high) = (*samples.iter().min().unwrap(), *samples.iter().max().unwrap());
            let srtt = rtt.srtt().unwrap().as_nanos() as u64;
            prop_assert!(srtt + 500 >= low && srtt <= high + 32, "{low} {srtt} {high}");
            let least = rtt.min_rtt().unwrap().as_nanos() as u64;
            prop_assert!(least <= low.max(31) && least + 32 > low, "{low} {least}");
            prop_assert!(rtt.rto() >= LEAST && rtt.rto() <= Duration::from_secs(120));
            prop_assert!(rtt.rto() >= rtt.srtt().unwrap().min(Duration::from_secs(120)));
        }
    }
}
