//! HyStart++ (RFC 9406): slow start that ends when the round-trip time grows, before there is loss.
//!
//! A round whose least RTT is clearly above that of the round before may mean a queue. Then the window grows four times slower for
//! up to five rounds (Conservative Slow Start): if the RTT falls again it was an accident and slow start goes on, else it ends.

use super::Acked;
use core::time::Duration;
use wire::SeqNum;

/// RFC 9406 §4.3, all of them.
const MIN_RTT_THRESH: u32 = 4_000;
const MAX_RTT_THRESH: u32 = 16_000;
const MIN_RTT_DIVISOR: u32 = 8;
const N_RTT_SAMPLE: u8 = 8;
const CSS_GROWTH_DIVISOR: u32 = 4;
const CSS_ROUNDS: u8 = 5;
/// No RTT known.
const INFINITE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    SlowStart,
    /// Conservative Slow Start.
    Css,
}

/// The state of RFC 9406 §4.2; RTTs in microseconds.
#[derive(Clone, Debug)]
pub(super) struct HyStart {
    /// `windowEnd`: the round ends with its acknowledgement.
    window_end: SeqNum,
    /// A round has begun.
    begun: bool,
    last_round_min_rtt: u32,
    current_round_min_rtt: u32,
    css_baseline_min_rtt: u32,
    rtt_samples: u8,
    css_rounds: u8,
    phase: Phase,
}

/// What an acknowledgement is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Growth {
    /// The window grows by this many bytes.
    By(u32),
    /// Slow start is over: ssthresh becomes cwnd.
    Over,
}

impl HyStart {
    pub(super) fn new() -> HyStart {
        HyStart {
            window_end: SeqNum(0),
            begun: false,
            last_round_min_rtt: INFINITE,
            current_round_min_rtt: INFINITE,
            css_baseline_min_rtt: INFINITE,
            rtt_samples: 0,
            css_rounds: 0,
            phase: Phase::SlowStart,
        }
    }

    pub(super) fn on_ack(&mut self, acked: &Acked) -> Growth {
        if !self.begun {
            self.begun = true;
            self.window_end = acked.nxt;
        }
        if let Some(rtt) = acked.rtt {
            self.current_round_min_rtt = self.current_round_min_rtt.min(micros(rtt));
            self.rtt_samples = self.rtt_samples.saturating_add(1);
        }
        if self.rtt_samples >= N_RTT_SAMPLE {
            self.judge_round();
        }
        if acked.ends_round(self.window_end) && self.begin_round(acked.nxt) {
            return Growth::Over;
        }
        let bytes = acked.bytes.min(acked.most);
        match self.phase {
            Phase::SlowStart => Growth::By(bytes),
            Phase::Css => Growth::By(bytes / CSS_GROWTH_DIVISOR),
        }
    }

    /// True if that was the last round of Conservative Slow Start.
    fn begin_round(&mut self, nxt: SeqNum) -> bool {
        self.window_end = nxt;
        self.last_round_min_rtt = self.current_round_min_rtt;
        self.current_round_min_rtt = INFINITE;
        self.rtt_samples = 0;
        if self.phase == Phase::SlowStart {
            return false;
        }
        self.css_rounds += 1;
        self.css_rounds >= CSS_ROUNDS
    }

    fn judge_round(&mut self) {
        match self.phase {
            Phase::SlowStart if self.rtt_has_grown() => {
                self.css_baseline_min_rtt = self.current_round_min_rtt;
                self.css_rounds = 0;
                self.phase = Phase::Css;
            }
            Phase::Css if self.current_round_min_rtt < self.css_baseline_min_rtt => {
                self.css_baseline_min_rtt = INFINITE;
                self.phase = Phase::SlowStart;
            }
            _ => {}
        }
    }

    fn rtt_has_grown(&self) -> bool {
        let (last, current) = (self.last_round_min_rtt, self.current_round_min_rtt);
        let threshold = (last / MIN_RTT_DIVISOR).clamp(MIN_RTT_THRESH, MAX_RTT_THRESH);
        last != INFINITE && current != INFINITE && current >= last.saturating_add(threshold)
    }
}

fn micros(rtt: Duration) -> u32 {
    rtt.as_micros().min(u128::from(INFINITE - 1)) as u32
}

#[cfg(test)]
mod tests {
    use super::super::events::acked;
    use super::*;
    use alloc::vec::Vec;

    const MSS: u32 = 1000;

    /// Rounds of ten segments, each acknowledged by itself; returns what they were worth.
    struct Rounds {
        hystart: HyStart,
        una: u32,
    }

    impl Rounds {
        fn new() -> Rounds {
            Rounds { hystart: HyStart::new(), una: 0 }
        }

        fn round(&mut self, rtt_micros: u64) -> Vec<Growth> {
            let end = self.una + 10 * MSS;
            let mut grown = Vec::new();
            while self.una < end {
                self.una += MSS;
                grown.push(self.hystart.on_ack(&Acked {
                    una: SeqNum(self.una),
                    // By the end of a round the next ten are in flight.
                    nxt: SeqNum(self.una + 10 * MSS),
                    rtt: Some(Duration::from_micros(rtt_micros)),
                    ..acked(0, MSS, MSS)
                }));
            }
            grown
        }
    }

    const FULL: Growth = Growth::By(MSS);
    const CSS: Growth = Growth::By(MSS / 4);

    /// RttThresh = clamp(4 ms, lastRoundMinRTT / 8, 16 ms), in rounds with eight samples.
    #[test]
    fn growth_slows_when_the_rtt_has_grown_by_the_threshold() {
        for (before, threshold) in [(10_000, 4_000), (80_000, 10_000), (400_000, 16_000)] {
            let mut it = Rounds::new();
            assert_eq!(it.round(before), [FULL; 10]);
            assert_eq!(it.round(before + threshold - 1), [FULL; 10], "just below");
            let mut it = Rounds::new();
            it.round(before);
            let grown = it.round(before + threshold);
            let slow = grown.iter().position(|growth| *growth == CSS);
            assert_eq!(
                slow,
                Some(8),
                "with the eighth sample behind the round's first acknowledgement: {grown:?}"
            );
        }
    }

    #[test]
    fn five_slow_rounds_end_slow_start() {
        let mut it = Rounds::new();
        it.round(50_000);
        it.round(60_000);
        for _ in 0..4 {
            assert!(!it.round(60_000).contains(&Growth::Over));
        }
        assert_eq!(it.round(60_000).first(), Some(&Growth::Over));
    }

    #[test]
    fn an_rtt_that_falls_again_resumes_slow_start() {
        let mut it = Rounds::new();
        it.round(50_000);
        it.round(60_000);
        assert_eq!(it.round(60_000), [CSS; 10]);
        let grown = it.round(51_000);
        assert_eq!(grown[9], FULL, "{grown:?}");
        assert_eq!(it.hystart.phase, Phase::SlowStart);
    }

    /// Its end is none of the numbers in flight then, but seems to lie ahead.
    #[test]
    fn a_round_of_two_gigabytes_ago_is_over() {
        let mut it = Rounds::new();
        it.round(50_000);
        it.una += (1 << 31) + 5 * MSS;
        it.round(50_000);
        assert_eq!(
            it.hystart.window_end,
            SeqNum(it.una + MSS),
            "what was sent when the first of these was acknowledged"
        );
    }

    #[test]
    fn an_acknowledgement_adds_no_more_than_it_may() {
        let mut hystart = HyStart::new();
        assert_eq!(hystart.on_ack(&acked(0, 20 * MSS, MSS)), Growth::By(8 * MSS));
        let paced = Acked { most: u32::MAX, ..acked(0, 20 * MSS, MSS) };
        assert_eq!(hystart.on_ack(&paced), Growth::By(20 * MSS), "L = infinite (RFC 9406 §4.3)");
    }
}
