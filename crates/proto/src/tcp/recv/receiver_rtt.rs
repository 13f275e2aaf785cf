//! The receiver's own idea of the round trip (Linux's `tcp_rcv_rtt_measure`, `tcp_rcv_rtt_measure_ts`): by timestamps the age of the echo
//! that a full-sized segment brings, without them the time in which a window's worth arrives.

use crate::Instant;
use core::time::Duration;
use wire::SeqNum;

/// What is known of it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ReceiverRtt {
    /// Eight times the round trip, µs; 0: unknown.
    rtt_8: u32,
    /// The window that opened at `began` is used up with this; `None`: none is measured.
    until: SeqNum,
    began: Option<Instant>,
    /// Echo of the last sample.
    last_tsecr: u32,
}

impl ReceiverRtt {
    /// `None`: unknown.
    pub(crate) fn get(&self) -> Option<Duration> {
        (self.rtt_8 > 0).then(|| Duration::from_micros(self.micros().into()))
    }

    /// 0: unknown.
    pub(super) fn micros(&self) -> u32 {
        self.rtt_8 >> 3
    }

    /// Has a round trip passed since then? False while it is unknown.
    pub(super) fn has_passed(&self, since: Instant, now: Instant) -> bool {
        self.rtt_8 > 0 && now.nanos_since(since) >= u64::from(self.micros()) * 1_000
    }

    /// Neither the window nor this echo would be a sample.
    #[inline]
    pub(super) fn learns_nothing(&self, rcv_nxt: SeqNum, tsecr: Option<u32>) -> bool {
        rcv_nxt.before(self.until) && tsecr.is_none_or(|tsecr| tsecr == self.last_tsecr)
    }

    /// By the window: only the least counts, for the peer may pause. `advertised`: where the window last advertised ends, from `rcv_nxt` on.
    pub(crate) fn sample_window(&mut self, now: Instant, rcv_nxt: SeqNum, advertised: u32) {
        if let Some(began) = self.began {
            if rcv_nxt.before(self.until) {
                return;
            }
            let sample = bounded(now.since(began)).max(1) << 3;
            if self.rtt_8 == 0 || sample < self.rtt_8 {
                self.rtt_8 = sample;
            }
        }
        (self.until, self.began) = (rcv_nxt + advertised, Some(now));
    }

    /// By a timestamp, if it is echoed for the first time, and `full`: by a full-sized segment. `age`: of the echo. `prompt`: nothing waited
    /// to be read.
    pub(crate) fn sample_echo(&mut self, (tsecr, age): (u32, Duration), full: bool, prompt: bool) {
        if tsecr == core::mem::replace(&mut self.last_tsecr, tsecr) || !full {
            return;
        }
        let sample = bounded(age);
        if sample == 0 {
            return;
        }
        if self.rtt_8 == 0 || sample << 3 < self.rtt_8 {
            self.rtt_8 = sample << 3;
        } else if prompt {
            self.rtt_8 = self.rtt_8 - (self.rtt_8 >> 3) + sample;
        }
    }
}

/// Microseconds of a round trip, as many as eight times that can be counted.
fn bounded(rtt: Duration) -> u32 {
    rtt.as_micros().min(u128::from(u32::MAX >> 3)) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    #[test]
    fn without_timestamps_a_round_is_a_window_and_the_shortest_counts() {
        let mut rtt = ReceiverRtt::default();
        for (now, rcv_nxt, advertised, measured) in [
            (0, 0, 65_536, None),
            (70, 65_535, 1, None),
            (100, 65_536, 65_536, Some(100)),
            (250, 131_072, 68_928, Some(100)),
            (330, 200_001, 60_000, Some(80)),
        ] {
            rtt.sample_window(at(now), SeqNum(rcv_nxt), advertised);
            assert_eq!(rtt.get(), measured.map(Duration::from_millis), "at {now}");
        }
    }

    #[test]
    fn an_echo_is_a_sample_once_and_smoothed_unless_it_is_less() {
        let mut rtt = ReceiverRtt::default();
        let ms = Duration::from_millis;
        for (tsecr, age, full, prompt, measured) in [
            (1, 80, true, true, 80),
            (1, 10, true, true, 80),
            (2, 160, true, true, 90),
            (3, 200, true, false, 90),
            (4, 40, true, false, 40),
            (5, 0, true, true, 40),
            (6, 10, false, true, 40),
        ] {
            rtt.sample_echo((tsecr, ms(age)), full, prompt);
            assert_eq!(rtt.get(), Some(ms(measured)), "echo {tsecr} of {age} ms");
        }
    }

    /// An hour, whose eightfold has no room in a count of microseconds.
    #[test]
    fn a_round_trip_may_take_very_long() {
        let mut rtt = ReceiverRtt::default();
        for tsecr in 1..4 {
            rtt.sample_echo((tsecr, Duration::from_secs(3600)), true, true);
        }
        assert_eq!(rtt.get(), Some(Duration::from_micros(u64::from(u32::MAX >> 3))));
        rtt.sample_window(at(0), SeqNum(0), 1);
        rtt.sample_window(at(537_000), SeqNum(1), 1);
        assert!(rtt.get() > Some(Duration::from_secs(500)), "not what is left of it");
    }
}
