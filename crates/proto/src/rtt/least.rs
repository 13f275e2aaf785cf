//! The least round trip of a time: what was measured long ago says nothing of the path of today (RFC 8985 §6.2, step 1).
//!
//! As Linux's windowed minimum (`tcp_update_rtt_min`, `minmax_running_min`): beside the least there are a second and a third choice, each
//! measured later than the one before, from the second quarter of the time and its second half on. They take its place when it is too old.
//! Until a quarter has passed there is none, so that most connections keep the least and its moment, and nothing more.

use super::{INFINITE, RttEstimator, units_of};
use crate::Instant;

/// A tick is 2²⁰ ns, 1.05 ms: moments are ticks modulo 2³².
const TICK: u32 = 20;

/// The choices behind the least round trip.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LeastRtt {
    /// The one they stand behind: another has none yet.
    of: Sample,
    second: Sample,
    third: Sample,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sample {
    /// In the estimator's units.
    rtt: u32,
    at: u32,
}

impl Sample {
    fn age(self, now: u32) -> u32 {
        now.wrapping_sub(self.at)
    }
}

/// `tcp_min_rtt_wlen` in ticks.
pub(crate) fn least_rtt_age(seconds: u32) -> u32 {
    u32::try_from((u64::from(seconds) * 1_000_000_000) >> TICK).unwrap_or(u32::MAX)
}

fn ticks(now: Instant) -> u32 {
    (now.as_nanos() >> TICK) as u32
}

impl RttEstimator {
    /// A round trip, in nanoseconds, that counts for the minimum, which holds for `age` ticks. True: it is no new one, but a quarter of that has passed, and
    /// [`grow_old`](Self::grow_old) is to hear of it.
    #[inline]
    #[must_use]
    pub(crate) fn note_min(&mut self, now: Instant, rtt: u64, age: u32) -> bool {
        let (rtt, at) = (units_of(rtt), ticks(now));
        if rtt > self.min_rtt {
            return at.wrapping_sub(self.min_rtt_at) > age / 4;
        }
        (self.min_rtt, self.min_rtt_at) = (rtt, at);
        false
    }

    /// A round trip above the minimum, which holds for `age` ticks.
    pub(crate) fn grow_old(&mut self, choices: &mut LeastRtt, (now, rtt): (Instant, u64), age: u32) {
        let first = Sample { rtt: self.min_rtt, at: self.min_rtt_at };
        if choices.of != first {
            *choices = LeastRtt { of: first, second: first, third: first };
        }
        let first = choices.hear(Sample { rtt: units_of(rtt), at: ticks(now) }, age);
        (self.min_rtt, self.min_rtt_at) = (first.rtt, first.at);
    }

    /// What was measured is forgotten.
    pub(super) fn forget_min(&mut self) {
        self.min_rtt = INFINITE;
    }
}

impl LeastRtt {
    /// Yields the least of `age` ticks, now that `new` was measured.
    fn hear(&mut self, new: Sample, age: u32) -> Sample {
        if self.third.age(new.at) > age {
            *self = LeastRtt { of: new, second: new, third: new };
        }
        if new.rtt <= self.second.rtt {
            (self.second, self.third) = (new, new);
        } else if new.rtt <= self.third.rtt {
            self.third = new;
        }
        let passed = self.of.age(new.at);
        if passed > age {
            self.advance(new);
            if self.of.age(new.at) > age {
                self.advance(new);
            }
        } else if self.second.at == self.of.at && passed > age / 4 {
            (self.second, self.third) = (new, new);
        } else if self.third.at == self.second.at && passed > age / 2 {
            self.third = new;
        }
        self.of
    }

    /// The first is too old: each goes up by one.
    fn advance(&mut self, new: Sample) {
        *self = LeastRtt { of: self.second, second: self.third, third: new };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RttVariation;
    use alloc::vec::Vec;
    use core::time::Duration;
    use proptest::prelude::*;

    const WLEN: u32 = 100;

    struct Path {
        rtt: RttEstimator,
        choices: LeastRtt,
    }

    impl Path {
        fn new() -> Path {
            let second = Duration::from_secs(1);
            Path {
                rtt: RttEstimator::new(second, second, RttVariation::Rfc6298),
                choices: LeastRtt::default(),
            }
        }

        /// Yields the least, in milliseconds.
        fn measures(&mut self, second: u64, millis: u64) -> u128 {
            let (now, rtt) = (Instant::ZERO + Duration::from_secs(second), millis * 1_000_000);
            let age = least_rtt_age(WLEN);
            if self.rtt.note_min(now, rtt, age) {
                self.rtt.grow_old(&mut self.choices, (now, rtt), age);
            }
            self.rtt.min_rtt().unwrap().as_millis()
        }
    }

    /// Each line was checked against lib/win_minmax.c of Linux 6.18, compiled by itself.
    #[test]
    fn a_longer_path_is_found_out_when_the_time_has_passed() {
        let mut path = Path::new();
        assert_eq!(path.measures(0, 10), 10);
        assert_eq!(path.measures(20, 40), 10, "no choice in the first quarter");
        assert_eq!(path.measures(30, 41), 10, "the second choice");
        assert_eq!(path.measures(60, 42), 10, "the third");
        assert_eq!(path.measures(70, 40), 10, "less than both, and later");
        assert_eq!(path.measures(99, 60), 10);
        assert_eq!(path.measures(101, 60), 40, "100 s have passed");
        assert_eq!(path.measures(169, 60), 40);
        assert_eq!(path.measures(171, 61), 60, "40 ms are 101 s old; those of 99 s come next");
        assert_eq!(path.measures(180, 60), 60);
        assert_eq!(path.measures(500, 90), 90, "all are too old");
        assert_eq!(path.measures(501, 5), 5);
        assert_eq!(path.measures(602, 90), 90, "without another choice it goes when it is too old");
    }

    /// So does Linux: the third choice is not taken anew while there are three, and what is behind it goes with it.
    #[test]
    fn with_the_third_choice_everything_is_too_old() {
        let mut path = Path::new();
        for (second, millis) in [(0, 1), (81, 2), (88, 3), (101, 4)] {
            path.measures(second, millis);
        }
        assert_eq!(path.measures(177, 5), 2);
        assert_eq!(path.measures(202, 6), 6, "5 ms were measured 25 s ago");
    }

    proptest! {
        /// The least is one that was measured within the time, and not above what was measured last.
        #[test]
        fn it_is_about_the_least_of_the_time(steps in proptest::collection::vec((0u64..30, 1u64..50), 1..200)) {
            let (mut path, mut second, mut all) = (Path::new(), 0, Vec::new());
            for (passed, millis) in steps {
                second += passed;
                all.push((second, millis));
                let least = path.measures(second, millis) as u64;
                let mut within = all.iter().filter(|(at, _)| second - at <= u64::from(WLEN));
                prop_assert!(within.any(|(_, millis)| *millis == least), "{second} {all:?} {least}");
                prop_assert!(least <= millis, "{second} {all:?} {least}");
            }
        }
    }
}
