//! Delay of acknowledgments (RFC 9293 §3.8.6.3).
//!
//! > "an ACK SHOULD be generated for at least every second full-sized segment, and MUST be
//! > generated within 500 ms of the arrival of the first unacknowledged packet." (RFC 5681 §4.2)
//!
//! [`AckHabit::Merge`] waits for the answer, unless the segment is full-sized and the connection
//! young. It waits the whole delay in a stream, and where answers have followed and the delay has
//! never expired; else an eighth of it. The reason: a peer that writes a request in two small
//! pieces keeps the second back until the first is acknowledged (RFC 896), and half a request has
//! no answer. [`AckHabit::QuickStart`] follows Linux: a phase of quick ACKs at the start, after a
//! long pause and after a duplicate. Then the delay follows the time between segments (`ato`).
//! There is none for a reader that has read everything pushed, until answers follow soon after
//! requests (`pingpong`).

mod connection;
mod receiver;

use crate::time::nanos;
use crate::{AckHabit, Config, Instant};
use core::time::Duration;
use wire::SeqNum;

/// Segments acknowledged one by one (Linux's `TCP_MAX_QUICKACKS`).
const QUICK_ACKS: u8 = 16;
/// Fraction of the delay that applies where no answer may follow.
const UNANSWERED: u64 = 8;
/// Linux's jiffy, with HZ = 1000.
const TICK: Duration = Duration::from_millis(1);
/// Longest delay of one-way traffic.
const ONE_WAY_MAX: Duration = Duration::from_millis(500);
const NANOS_PER_MS: u64 = 1_000_000;
/// Smallest estimate: the delay has begun.
const LEAST: u16 = 1;

/// Delay of one connection's acknowledgments.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AckDelay {
    /// Estimate of the delay in ms, at least `delayed_ack`. 0: no data has come, or there is no
    /// estimate.
    ato: u16,
    /// Acknowledgments that are still sent at once.
    quick: u8,
    /// Answers that followed soon. From `tcp_pingpong_thresh` on this is Linux's `pingpong` mode.
    pingpong: u8,
    /// Small segments without an acknowledgment: none, one, or more. A large one with PSH counts as
    /// one.
    pushed: u8,
    /// The application asked for quick ACKs.
    asked: bool,
    /// The delay has expired once: no segment carried the acknowledgment.
    in_vain: bool,
}

/// Urgency of an owed acknowledgment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AckOwed {
    /// No acknowledgment is owed.
    No,
    /// It goes with the next segment, or at the delayed-ACK deadline.
    Delayed,
    /// It goes now.
    Now,
}

/// Arrival of text. Decides when the text is acknowledged.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TextArrival {
    /// Arrival time of the text before.
    pub(in crate::tcp) before: Instant,
    /// The acknowledgment that was owed before.
    pub(in crate::tcp) owed: AckOwed,
    /// Payload length of the segment.
    pub(in crate::tcp) len: u32,
    /// The segment is as long as our MSS allows.
    pub(in crate::tcp) full_sized: bool,
    pub(in crate::tcp) pushed: bool,
    /// The text came with a SYN.
    pub(in crate::tcp) syn: bool,
    /// Number of the FIN behind the text.
    pub(in crate::tcp) fin: Option<SeqNum>,
}

impl AckDelay {
    pub(in crate::tcp) fn new() -> AckDelay {
        AckDelay { ato: 0, quick: QUICK_ACKS, pingpong: 0, pushed: 0, asked: false, in_vain: false }
    }

    /// Begins a phase of quick ACKs, or extends it to `most` segments.
    fn quicken(&mut self, most: u8) {
        self.quick = self.quick.max(most);
    }

    /// Acknowledges at once for a while, after an unexpected segment (Linux's
    /// `tcp_enter_quickack_mode`).
    pub(in crate::tcp) fn alarm(&mut self) {
        if self.ato > 0 {
            self.quicken(QUICK_ACKS);
            self.pingpong = 0;
            self.ato = LEAST;
        }
    }

    /// Begins a phase of quick ACKs for up to `segments`, at most half of the window, even before
    /// data has come (Linux's `tcp_enter_quickack_mode`).
    pub(in crate::tcp) fn enter_quick(&mut self, segments: u32) {
        self.quicken(quick_acks(segments));
        self.pingpong = 0;
        self.ato = LEAST;
    }

    /// Sends the next two acknowledgments at once, if text has come before.
    pub(in crate::tcp) fn two_at_once(&mut self) {
        if self.ato > 0 {
            self.enter_quick(2);
        }
    }

    /// Returns whether the next acknowledgments are sent at once.
    pub(in crate::tcp) fn is_quick(&self) -> bool {
        self.quick > 0
    }

    /// Sends at least one more acknowledgment at once. Before any text in order, this ends the
    /// quick ACKs of the start (Linux's `tcp_dec_quickack_mode`).
    pub(in crate::tcp) fn one_more_quick(&mut self) {
        self.quick |= 1;
        self.ato = self.ato.max(LEAST);
    }

    /// Does not count the next acknowledgment as quick, because it acknowledges nothing new.
    pub(in crate::tcp) fn spare_one(&mut self) {
        self.quick += u8::from(self.ato > 0 && self.quick > 0);
    }

    /// Ends quick ACKs: there is hardly any room left.
    pub(in crate::tcp) fn no_more_quick(&mut self) {
        self.quick = 0;
    }

    /// Returns the number of small segments without an acknowledgment, up to two.
    pub(in crate::tcp) fn pushed(&self) -> u8 {
        self.pushed
    }

    pub(in crate::tcp) fn set_pushed(&mut self, pushed: u8) {
        self.pushed = pushed;
    }

    /// Adapts to data that came `gap` after other data (Linux's `tcp_event_data_recv`). `segments`
    /// is half of the window.
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

    /// Returns the expected delay, as `tcp_info` reports it. An estimated one is 0 before the first
    /// text.
    pub(in crate::tcp) fn expected(&self, config: &Config) -> Duration {
        match config.ack_habit {
            AckHabit::QuickStart if self.ato == 0 => Duration::ZERO,
            AckHabit::QuickStart => self.ato(config.delayed_ack),
            AckHabit::Merge => Duration::from_nanos(self.merged(nanos(config.delayed_ack))),
        }
    }

    /// Returns how many nanoseconds to wait for an answer, at most `whole`. A stream, whose quick
    /// ACKs are used up, has no answers.
    fn merged(&self, whole: u64) -> u64 {
        let is_answered = self.pingpong > 0 && !self.in_vain;
        if is_answered || self.quick == 0 { whole } else { whole / UNANSWERED }
    }

    fn set_ato(&mut self, ato: Duration) {
        self.ato = ato.as_millis().clamp(LEAST.into(), u16::MAX.into()) as u16;
    }

    /// Notes that a segment acknowledges everything. `owed`: an acknowledgment was owed.
    pub(in crate::tcp) fn acknowledged(&mut self, owed: bool) {
        self.pushed = 0;
        if owed && self.ato > 0 && self.quick > 0 {
            self.quick -= 1;
            if self.quick == 0 {
                self.ato = LEAST;
            }
        }
    }

    /// Notes that the delay has expired.
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

/// Returns the number of quick ACKs: half of the window in segments, or two if that is zero.
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

    /// The three cases of Linux, and the fourth that changes nothing.
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
