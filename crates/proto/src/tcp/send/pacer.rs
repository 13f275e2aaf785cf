//! When the next segment may leave: a window is spread over its round trip instead of leaving in a burst.
//!
//! How much may be in flight is not decided here, nor how large one burst is (`burst`).

mod connection;

use crate::Instant;
use core::time::Duration;

/// The gate in front of data, new or lost.
#[derive(Debug, Default)]
pub(crate) struct Pacer {
    opens_at: Instant,
    /// Too much of the connection waits in queues of the host below: see [`Stack::hold_back`](crate::Stack::hold_back).
    is_held: bool,
}

impl Pacer {
    /// May others look past it?
    pub(in crate::tcp) fn is_held(&self) -> bool {
        self.is_held
    }

    /// The gate is closed until then.
    fn closed_until(&self, now: Instant) -> Option<Instant> {
        (self.opens_at > now).then_some(self.opens_at)
    }

    /// `bytes` have passed; the first after what had left unpaced at `last`. Who comes late makes up for as much as half of what he waits
    /// next (Linux's `tcp_update_skb_after_send`), or `slack`: outside a kernel timers fire late, and by that rule alone the rate would fall with the load of the machine. Who comes
    /// later than twice that had nothing to send.
    fn on_sent(&mut self, (last, now): (Instant, Instant), bytes: u32, rate: u64, slack: Duration) {
        if self.opens_at == Instant::ZERO {
            self.opens_at = last;
        }
        let wait = Duration::from_nanos(u64::from(bytes) * 1_000_000_000 / rate.max(1));
        let late = now.since(self.opens_at);
        let late = late.min(if late <= 2 * slack { slack.max(wait / 2) } else { wait / 2 });
        let reached = now.as_nanos() - (late.as_nanos() as u64).min(now.as_nanos());
        self.opens_at = self.opens_at.max(Instant::from_nanos(reached)) + wait;
    }
}

/// Segments of data of which only the last closes the gate.
const UNPACED_SEGMENTS: u32 = 10;

#[cfg(test)]
mod tests {
    use super::*;

    fn at(micros: u64) -> Instant {
        Instant::from_nanos(micros * 1000)
    }

    #[test]
    fn bytes_close_the_gate_for_their_time() {
        let mut pacer = Pacer { opens_at: at(1000), ..Pacer::default() };
        assert_eq!(pacer.closed_until(at(1000)), None);
        // A megabyte per second: a microsecond per byte.
        pacer.on_sent((at(0), at(1000)), 500, 1_000_000, Duration::ZERO);
        assert_eq!(pacer.closed_until(at(1499)), Some(at(1500)));
        pacer.on_sent((at(0), at(1500)), 500, 1_000_000, Duration::ZERO);
        assert_eq!(pacer.closed_until(at(1500)), Some(at(2000)));
    }

    #[test]
    fn half_of_the_wait_can_be_made_up_for() {
        let mut pacer = Pacer { opens_at: at(1000), ..Pacer::default() };
        pacer.on_sent((at(0), at(1100)), 500, 1_000_000, Duration::ZERO);
        assert_eq!(pacer.opens_at, at(1500), "100 µs late, all made up");
        pacer.on_sent((at(0), at(9000)), 500, 1_000_000, Duration::ZERO);
        assert_eq!(pacer.opens_at, at(9250));
    }

    /// Three milliseconds late with a slack of two: three bursts of half a millisecond follow the first at once, and the next waits.
    #[test]
    fn more_can_be_made_up_for_with_slack() {
        let (mut pacer, slack) = (Pacer::default(), Duration::from_millis(2));
        pacer.opens_at = at(1000);
        let now = at(4000);
        for opens_at in [2500, 3000, 3500, 4000, 4500] {
            assert_eq!(pacer.closed_until(now), None);
            pacer.on_sent((at(0), now), 500, 1_000_000, slack);
            assert_eq!(pacer.opens_at, at(opens_at));
        }
        assert_eq!(pacer.closed_until(now), Some(at(4500)));
        pacer.on_sent((at(0), at(8501)), 500, 1_000_000, slack);
        assert_eq!(pacer.opens_at, at(8751), "that was no lateness");
    }
}
