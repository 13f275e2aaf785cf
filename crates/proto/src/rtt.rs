//! Round-trip time and retransmission time-out (RFC 6298), in integer nanoseconds.
//!
//! ```text
//!  first sample R     SRTT = R                       RTTVAR = R/2
//!  later samples R    RTTVAR = 3/4 RTTVAR + 1/4 |SRTT − R|, then SRTT = 7/8 SRTT + 1/8 R
//!  RTO                max(SRTT + max(G, 4 RTTVAR), least RTO) · 2^back-off, at most 120 s
//! ```
//!
//! Karn's rule (no samples of retransmitted segments) is the caller's, who knows what was retransmitted.

use core::time::Duration;

/// Clock granularity G, nanoseconds: timestamps tick once a millisecond.
const GRANULARITY: u64 = 1_000_000;
/// The greatest RTO, nanoseconds: 120 s as in Linux (RFC 6298 §2.5 asks for at least 60 s).
const MAX_RTO: u64 = 120_000_000_000;
/// RTO without a sample after a SYN was retransmitted, nanoseconds (RFC 6298 §5.7).
const FALLBACK_RTO: u64 = 3_000_000_000;
/// More doublings than this change nothing: 1 ms · 2¹⁷ exceeds the greatest RTO.
const MAX_BACKOFF: u8 = 17;

/// Estimates SRTT and RTTVAR, keeps the minimum, and yields the RTO.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RttEstimator {
    /// 0 = no sample yet.
    srtt: u64,
    rttvar: u64,
    /// `u64::MAX` = no sample yet.
    min_rtt: u64,
    min_rto_micros: u32,
    max_rto_micros: u32,
    initial_rto_micros: u32,
    /// The initial RTO holds until the next sample, although there was one.
    seeded: bool,
    backoff: u8,
}

const _: () = assert!(size_of::<RttEstimator>() <= 40);

impl RttEstimator {
    /// `initial_rto` holds until the first sample (RFC 6298 §2.1: 1 s); below `min_rto` the RTO never falls (Linux:
    /// 200 ms). Both are kept in microseconds and at most 120 s.
    pub(crate) fn new(initial_rto: Duration, min_rto: Duration) -> RttEstimator {
        RttEstimator {
            srtt: 0,
            rttvar: 0,
            min_rtt: u64::MAX,
            min_rto_micros: micros(min_rto),
            max_rto_micros: (MAX_RTO / 1_000) as u32,
            initial_rto_micros: micros(initial_rto),
            seeded: false,
            backoff: 0,
        }
    }

    /// Other bounds of the RTO; the lower one holds where they cross.
    pub(crate) fn set_bounds(&mut self, least: Duration, greatest: Duration) {
        self.min_rto_micros = micros(least);
        self.max_rto_micros = micros(greatest.max(least));
    }

    /// The back-off has brought the RTO to its greatest.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.rto() >= self.max_rto()
    }

    /// Doublings since the last progress.
    pub(crate) fn backoff(&self) -> u8 {
        self.backoff
    }

    /// The least RTO.
    pub(crate) fn min_rto(&self) -> Duration {
        Duration::from_micros(self.min_rto_micros.into())
    }

    /// The greatest RTO.
    pub(crate) fn max_rto(&self) -> Duration {
        Duration::from_micros(self.max_rto_micros.into())
    }

    /// Earlier connections took longer than this one's handshake, or it gave no sample: until there is one of data, the RTO is made from
    /// that (Linux's `tcp_init_metrics`: R + max(2 R, least RTO)).
    pub(crate) fn seed(&mut self, remembered: Duration) {
        let remembered = nanos(remembered);
        if remembered > self.srtt {
            let least = u64::from(self.min_rto_micros) * 1_000;
            let rto = remembered.saturating_add((2 * remembered).max(least)).min(MAX_RTO);
            self.initial_rto_micros = (rto / 1_000) as u32;
            self.seeded = true;
        }
    }

    /// A time-out has passed since the last progress.
    pub(crate) fn is_backed_off(&self) -> bool {
        self.backoff > 0
    }

    /// A sample (RFC 6298 §2.2, §2.3); ends the back-off.
    pub(crate) fn on_sample(&mut self, rtt: Duration) {
        self.min_rtt = self.min_rtt.min(nanos(rtt));
        self.on_delayed_sample(rtt);
    }

    /// A sample that may contain a wait for the peer's application, such as that of a SYN-ACK with data: not for the minimum.
    pub(crate) fn on_delayed_sample(&mut self, rtt: Duration) {
        let rtt = nanos(rtt);
        if self.srtt == 0 {
            self.srtt = rtt;
            self.rttvar = rtt / 2;
        } else {
            self.rttvar = self.rttvar - self.rttvar / 4 + self.srtt.abs_diff(rtt) / 4;
            self.srtt = self.srtt - self.srtt / 8 + rtt / 8;
        }
        self.seeded = false;
        self.backoff = 0;
    }

    /// For [`touch`](crate::tcp::connection::Connection::touch): of no other meaning.
    pub(crate) fn sum(&self) -> u64 {
        self.srtt ^ self.min_rtt
    }

    /// The retransmission timer fired: the RTO doubles (RFC 6298 §5.5).
    pub(crate) fn on_timeout(&mut self) {
        self.backoff = (self.backoff + 1).min(MAX_BACKOFF);
    }

    /// New data was acknowledged: the back-off ends even without a sample, as in Linux.
    pub(crate) fn on_progress(&mut self) {
        self.backoff = 0;
    }

    /// The handshake is complete, its SYN was retransmitted because of a time-out, and there is no sample: RTO 3 s
    /// (RFC 6298 §5.7).
    pub(crate) fn on_syn_retransmitted(&mut self) {
        if self.srtt == 0 {
            self.initial_rto_micros = (FALLBACK_RTO / 1_000) as u32;
        }
        self.backoff = 0;
    }

    /// The retransmission time-out, with back-off.
    pub(crate) fn rto(&self) -> Duration {
        let base = match self.srtt {
            _ if self.seeded => u64::from(self.initial_rto_micros) * 1_000,
            0 => u64::from(self.initial_rto_micros) * 1_000,
            srtt => srtt + (4 * self.rttvar).max(GRANULARITY),
        };
        let least = u64::from(self.min_rto_micros) * 1_000;
        let greatest = u64::from(self.max_rto_micros) * 1_000;
        Duration::from_nanos((base.max(least).min(greatest) << self.backoff).min(greatest))
    }

    /// Smoothed round-trip time; `None` before the first sample.
    pub(crate) fn srtt(&self) -> Option<Duration> {
        (self.srtt != 0).then(|| Duration::from_nanos(self.srtt))
    }

    /// Round-trip time variation; zero before the first sample.
    pub(crate) fn rttvar(&self) -> Duration {
        Duration::from_nanos(self.rttvar)
    }

    /// Lowest sample; `None` before the first.
    pub(crate) fn min_rtt(&self) -> Option<Duration> {
        (self.min_rtt != u64::MAX).then(|| Duration::from_nanos(self.min_rtt))
    }
}

fn micros(duration: Duration) -> u32 {
    duration.as_micros().min(u128::from(MAX_RTO / 1_000)) as u32
}

/// A sample of zero (both ends at the same instant of a virtual clock) is still a sample.
fn nanos(rtt: Duration) -> u64 {
    rtt.as_nanos().clamp(1, u128::from(MAX_RTO)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LEAST: Duration = Duration::from_millis(200);

    fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    fn us(n: u64) -> Duration {
        Duration::from_micros(n)
    }

    fn sampled(samples: &[Duration]) -> RttEstimator {
        let mut rtt = RttEstimator::new(ms(1_000), LEAST);
        for sample in samples {
            rtt.on_sample(*sample);
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

    #[test]
    fn the_rto_has_a_least_and_a_greatest_value() {
        assert_eq!(sampled(&[ms(1)]).rto(), LEAST);
        let mut finer = RttEstimator::new(ms(1_000), Duration::ZERO);
        for _ in 0..100 {
            finer.on_sample(ms(10));
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
        rtt.on_sample(ms(100));
        assert_eq!((rtt.backoff, rtt.rttvar()), (0, us(37_500)));
        for _ in 0..1000 {
            rtt.on_timeout();
        }
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
        rtt.on_delayed_sample(ms(41));
        assert_eq!((rtt.srtt(), rtt.min_rtt()), (Some(ms(41)), None));
        rtt.on_sample(ms(40));
        assert_eq!(rtt.min_rtt(), Some(ms(40)));
        rtt.on_sample(Duration::ZERO);
        assert_eq!(rtt.min_rtt(), Some(Duration::from_nanos(1)));
    }

    proptest! {
        /// SRTT stays between the extremes of the samples, and the RTO between its bounds and above SRTT.
        #[test]
        fn the_estimate_lies_among_the_samples(samples in proptest::collection::vec(1u64..10_000_000_000, 1..200)) {
            let mut rtt = RttEstimator::new(ms(1_000), LEAST);
            for nanos in &samples {
                rtt.on_sample(Duration::from_nanos(*nanos));
            }
            let (low, high) = (*samples.iter().min().unwrap(), *samples.iter().max().unwrap());
            let srtt = rtt.srtt().unwrap().as_nanos() as u64;
            prop_assert!(srtt + 8 >= low && srtt <= high + 8, "{low} {srtt} {high}");
            prop_assert_eq!(rtt.min_rtt(), Some(Duration::from_nanos(low)));
            prop_assert!(rtt.rto() >= LEAST && rtt.rto() <= Duration::from_secs(120));
            prop_assert!(rtt.rto() >= rtt.srtt().unwrap().min(Duration::from_secs(120)));
        }
    }
}
