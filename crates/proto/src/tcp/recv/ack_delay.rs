//! How long an acknowledgement waits for company (RFC 9293 §3.8.6.3).
//!
//! > "an ACK SHOULD be generated for at least every second full-sized segment, and MUST be generated within 500 ms of the arrival of the first
//! > unacknowledged packet." (RFC 5681 §4.2)
//!
//! [`AckHabit::Merge`] waits for the answer, unless the segment is full-sized and the connection young: the whole delay where answers have
//! followed and it was never in vain, and in a stream; else an eighth of it. For a peer that writes a request in two small pieces keeps the second
//! back until the first is acknowledged (RFC 896), and there is no answer to half a request.
//! [`AckHabit::QuickStart`] does as Linux: a phase of quick ACKs at the start, after a long pause and when something came twice; then a
//! delay that follows the time between segments (`ato`), and none at all for a reader who has taken everything pushed, until
//! answers go back soon after what came (`pingpong`).

mod connection;

use crate::time::nanos;
use crate::{AckHabit, Config, Instant};
use core::time::Duration;

/// Segments acknowledged one by one (Linux's `TCP_MAX_QUICKACKS`).
const QUICK_ACKS: u8 = 16;
/// The part of the delay for which an answer is waited for where none may follow.
const UNANSWERED: u64 = 8;
/// Linux's jiffy, where it counts a thousand a second.
const TICK: Duration = Duration::from_millis(1);
/// Longest delay while the exchange goes one way.
const ONE_WAY_MAX: Duration = Duration::from_millis(500);
const NANOS_PER_MS: u64 = 1_000_000;
/// The delay is begun, and no longer than the least.
const LEAST: u16 = 1;

/// Of one connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AckDelay {
    /// Estimate of the delay that will do, ms; below the least it counts as that. 0: no data has come, or it is not estimated.
    ato: u16,
    /// Acknowledgements that still go at once.
    quick: u8,
    /// Answers that followed soon; Linux's `pingpong` mode from `tcp_pingpong_thresh` on.
    pingpong: u8,
    /// Small segments that no acknowledgement has gone for: none, one, or more; a large one with PSH counts as one.
    pushed: u8,
    /// The application asked for quick ACKs.
    asked: bool,
    /// The delay once passed, and nothing took the acknowledgement along.
    in_vain: bool,
}

/// Text in order has come.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Came {
    /// When text came before.
    pub(in crate::tcp) before: Instant,
    pub(in crate::tcp) len: u32,
    /// As long as our MSS lets it be.
    pub(in crate::tcp) full_sized: bool,
    /// With PSH.
    pub(in crate::tcp) pushed: bool,
}

impl AckDelay {
    pub(in crate::tcp) fn new() -> AckDelay {
        AckDelay { ato: 0, quick: QUICK_ACKS, pingpong: 0, pushed: 0, asked: false, in_vain: false }
    }

    /// Begins, or begins again, to acknowledge up to `most` segments one by one.
    fn quicken(&mut self, most: u8) {
        self.quick = self.quick.max(most);
    }

    /// Acknowledges at once for a while after an unexpected segment or a sign of trouble (Linux's `tcp_enter_quickack_mode`).
    pub(in crate::tcp) fn alarm(&mut self) {
        if self.ato > 0 {
            self.quicken(QUICK_ACKS);
            self.pingpong = 0;
            self.ato = LEAST;
        }
    }

    /// Enters quick-ACK mode whether or not data has come: for up to `segments`, at most half of the window (Linux's
    /// `tcp_enter_quickack_mode`).
    pub(in crate::tcp) fn enter_quick(&mut self, segments: u32) {
        self.quicken(quick_acks(segments));
        self.pingpong = 0;
        self.ato = LEAST;
    }

    /// The next two go at once, once any text has come before.
    pub(in crate::tcp) fn two_at_once(&mut self) {
        if self.ato > 0 {
            self.enter_quick(2);
        }
    }

    /// The next acknowledgements go at once.
    pub(in crate::tcp) fn is_quick(&self) -> bool {
        self.quick > 0
    }

    /// At least one more does. Should that be before any text in order, the delay has begun with it (Linux's `tcp_dec_quickack_mode`): there
    /// is no phase of quick ones at the start then.
    pub(in crate::tcp) fn one_more_quick(&mut self) {
        self.quick |= 1;
        self.ato = self.ato.max(LEAST);
    }

    /// The next to go acknowledges nothing that came: it is none of the quick ones.
    pub(in crate::tcp) fn spare_one(&mut self) {
        self.quick += u8::from(self.ato > 0 && self.quick > 0);
    }

    /// None does: there is hardly any room left.
    pub(in crate::tcp) fn no_more_quick(&mut self) {
        self.quick = 0;
    }

    /// Small segments, up to two, that no acknowledgement has gone for.
    pub(in crate::tcp) fn pushed(&self) -> u8 {
        self.pushed
    }

    pub(in crate::tcp) fn set_pushed(&mut self, pushed: u8) {
        self.pushed = pushed;
    }

    /// Data came, `gap` after other data (Linux's `tcp_event_data_recv`). `segments`: half of the window, in segments.
    fn data_came(&mut self, gap: Duration, segments: u32, least: Duration, rto: Duration) {
        let quick = quick_acks(segments);
        if self.ato == 0 {
            self.quick = quick;
            self.ato = LEAST;
            return;
        }
        let ato = self.ato(least);
        if gap <= least / 2 {
            self.set_ato(ato / 2 + least / 2);
        } else if gap < ato {
            self.set_ato((ato / 2 + gap).min(rto));
        } else if gap > rto {
            self.quicken(quick);
        }
    }

    fn ato(&self, least: Duration) -> Duration {
        Duration::from_millis(self.ato.into()).max(least)
    }

    /// The delay there would be, as `tcp_info` tells it. Where it is estimated there is none before the first text.
    pub(in crate::tcp) fn expected(&self, config: &Config) -> Duration {
        match config.ack_habit {
            AckHabit::QuickStart if self.ato == 0 => Duration::ZERO,
            AckHabit::QuickStart => self.ato(config.delayed_ack),
            AckHabit::Merge => Duration::from_nanos(self.merged(nanos(config.delayed_ack))),
        }
    }

    /// How long to wait for an answer, at most `whole`, nanoseconds. A stream, whose quick acknowledgements are used up, has none.
    fn merged(&self, whole: u64) -> u64 {
        let is_answered = self.pingpong > 0 && !self.in_vain;
        if is_answered || self.quick == 0 { whole } else { whole / UNANSWERED }
    }

    fn set_ato(&mut self, ato: Duration) {
        self.ato = ato.as_millis().clamp(LEAST.into(), u16::MAX.into()) as u16;
    }

    /// A segment that acknowledges leaves while one was `owed`.
    pub(in crate::tcp) fn acknowledged(&mut self, owed: bool) {
        self.pushed = 0;
        if owed && self.ato > 0 && self.quick > 0 {
            self.quick -= 1;
            if self.quick == 0 {
                self.ato = LEAST;
            }
        }
    }

    /// The delay has passed and nothing took the acknowledgement along.
    pub(in crate::tcp) fn missed(&mut self, least: Duration, rto: Duration, thresh: u32) {
        self.in_vain = true;
        if u32::from(self.pingpong) >= thresh {
            self.pingpong = 0;
            self.ato = LEAST;
        } else if self.ato > 0 {
            self.set_ato((self.ato(least) * 2).min(rto));
        }
    }
}

/// As many as half of the window holds `segments`, but two where that is none.
fn quick_acks(segments: u32) -> u8 {
    if segments == 0 { 2 } else { segments.min(QUICK_ACKS.into()) as u8 }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEAST_MS: u64 = 40;

    fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    fn after(gaps: &[u64]) -> AckDelay {
        let mut delay = AckDelay::new();
        for gap in gaps {
            delay.data_came(ms(*gap), 100, ms(LEAST_MS), ms(300));
        }
        delay
    }

    /// Linux's three cases, and the fourth that changes nothing.
    #[test]
    fn the_delay_follows_the_gaps() {
        let ato = |gaps: &[u64]| after(gaps).ato(ms(LEAST_MS)).as_millis();
        assert_eq!(ato(&[0]), 40);
        assert_eq!(ato(&[0, 30]), 50, "40/2 + 30");
        assert_eq!(ato(&[0, 30, 45]), 70, "50/2 + 45");
        assert_eq!(ato(&[0, 30, 45, 10]), 55, "70/2 + 40/2");
        assert_eq!(ato(&[0, 30, 45, 200]), 70);
    }

    #[test]
    fn a_long_pause_begins_a_phase_of_quick_acks() {
        let mut delay = after(&[0]);
        assert_eq!(delay.quick, 16);
        (0..16).for_each(|_| delay.acknowledged(true));
        assert_eq!(delay.quick, 0);
        delay.data_came(ms(299), 100, ms(LEAST_MS), ms(300));
        assert_eq!(delay.quick, 0);
        delay.data_came(ms(301), 3, ms(LEAST_MS), ms(300));
        assert_eq!(delay.quick, 3, "half of the window");
    }

    #[test]
    fn a_missed_delay_doubles_or_ends_pingpong() {
        let mut delay = after(&[0, 30]);
        delay.missed(ms(LEAST_MS), ms(300), 1);
        assert_eq!(delay.ato(ms(LEAST_MS)), ms(100));
        delay.missed(ms(LEAST_MS), ms(150), 1);
        assert_eq!(delay.ato(ms(LEAST_MS)), ms(150), "no more than the time-out");
        delay.pingpong = 1;
        delay.missed(ms(LEAST_MS), ms(300), 1);
        assert_eq!((delay.ato(ms(LEAST_MS)), delay.pingpong), (ms(40), 0));
    }
}
