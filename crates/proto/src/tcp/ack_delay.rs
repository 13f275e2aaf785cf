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

use super::connection::{Connection, Context};
use super::receiver::AckOwed;
use super::timers::Timer;
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
    pub(crate) before: Instant,
    pub(crate) len: u32,
    /// As long as our MSS lets it be.
    pub(crate) full_sized: bool,
    /// With PSH.
    pub(crate) pushed: bool,
}

impl AckDelay {
    pub(super) fn new() -> AckDelay {
        AckDelay { ato: 0, quick: QUICK_ACKS, pingpong: 0, pushed: 0, asked: false, in_vain: false }
    }

    /// Begins, or begins again, to acknowledge up to `most` segments one by one.
    fn quicken(&mut self, most: u8) {
        self.quick = self.quick.max(most);
    }

    /// Acknowledges at once for a while after an unexpected segment or a sign of trouble (Linux's `tcp_enter_quickack_mode`).
    pub(super) fn alarm(&mut self) {
        if self.ato > 0 {
            self.quicken(QUICK_ACKS);
            self.pingpong = 0;
            self.ato = LEAST;
        }
    }

    /// Enters quick-ACK mode whether or not data has come: for up to `segments`, at most half of the window (Linux's
    /// `tcp_enter_quickack_mode`).
    pub(super) fn enter_quick(&mut self, segments: u32) {
        self.quicken(quick_acks(segments));
        self.pingpong = 0;
        self.ato = LEAST;
    }

    /// The next two go at once, once any text has come before.
    pub(super) fn unmarked_came(&mut self) {
        if self.ato > 0 {
            self.enter_quick(2);
        }
    }

    /// The next acknowledgements go at once.
    pub(super) fn is_quick(&self) -> bool {
        self.quick > 0
    }

    /// At least one more does. Should that be before any text in order, the delay has begun with it (Linux's `tcp_dec_quickack_mode`): there
    /// is no phase of quick ones at the start then.
    pub(super) fn one_more_quick(&mut self) {
        self.quick |= 1;
        self.ato = self.ato.max(LEAST);
    }

    /// The next to go acknowledges nothing that came: it is none of the quick ones.
    pub(super) fn spare_one(&mut self) {
        self.quick += u8::from(self.ato > 0 && self.quick > 0);
    }

    /// None does: there is hardly any room left.
    pub(super) fn no_more_quick(&mut self) {
        self.quick = 0;
    }

    /// Small segments, up to two, that no acknowledgement has gone for.
    pub(super) fn pushed(&self) -> u8 {
        self.pushed
    }

    pub(super) fn set_pushed(&mut self, pushed: u8) {
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
    pub(super) fn told(&self, config: &Config) -> Duration {
        match config.ack_habit {
            AckHabit::QuickStart if self.ato == 0 => Duration::ZERO,
            AckHabit::QuickStart => self.ato(config.delayed_ack),
            AckHabit::Merge => Duration::from_nanos(self.merged(nanos(config.delayed_ack))),
        }
    }

    /// How long to wait for an answer, at most `whole`, nanoseconds. A stream, whose quick acknowledgements are used up, has none.
    #[inline(always)]
    fn merged(&self, whole: u64) -> u64 {
        let is_answered = self.pingpong > 0 && !self.in_vain;
        if is_answered || self.quick == 0 { whole } else { whole / UNANSWERED }
    }

    fn set_ato(&mut self, ato: Duration) {
        self.ato = ato.as_millis().clamp(LEAST.into(), u16::MAX.into()) as u16;
    }

    /// A segment that acknowledges leaves while one was `owed`.
    pub(super) fn acknowledged(&mut self, owed: bool) {
        self.pushed = 0;
        if owed && self.ato > 0 && self.quick > 0 {
            self.quick -= 1;
            if self.quick == 0 {
                self.ato = LEAST;
            }
        }
    }

    /// The delay has passed and nothing took the acknowledgement along.
    pub(super) fn missed(&mut self, least: Duration, rto: Duration, thresh: u32) {
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

impl Connection {
    /// The delay adapts to when text comes.
    pub(super) fn measure_delay(&mut self, cx: &Context, came: &Came) {
        let (segments, gap) = (self.rcv.quick_window() / (2 * self.rcv.mss()), cx.now.since(came.before));
        self.rcv.delay.data_came(gap, segments, cx.config.delayed_ack, self.rtt.rto());
    }

    /// Text that was expected is acknowledged at once or later.
    #[inline(always)]
    pub(super) fn owe_ack(&mut self, cx: &Context, came: &Came) {
        if cx.config.ack_habit == AckHabit::QuickStart {
            self.measure_delay(cx, came);
        }
        let rcv = &mut self.rcv;
        let quick = match cx.config.ack_habit {
            AckHabit::Merge => {
                let quick =
                    rcv.delay.quick > 0 && (came.full_sized || rcv.delay.asked && rcv.delay.pingpong == 0);
                rcv.delay.quick -= u8::from(quick && rcv.ack_owed != AckOwed::Now);
                quick
            }
            AckHabit::QuickStart => {
                match rcv.is_full_sized(came.len) {
                    true => rcv.delay.pushed = rcv.delay.pushed.max(came.pushed.into()),
                    false => rcv.delay.pushed = (rcv.delay.pushed + 1).min(2),
                }
                rcv.has_much_to_acknowledge() || rcv.delay.quick > 0 && !self.in_pingpong(&cx.config)
            }
        };
        if self.rcv.ack_owed != AckOwed::Now {
            self.rcv.ack_owed = if quick { AckOwed::Now } else { AckOwed::Delayed };
        }
    }

    pub(super) fn in_pingpong(&self, config: &Config) -> bool {
        u32::from(self.rcv.delay.pingpong) >= config.tcp_pingpong_thresh
    }

    /// The exchange goes back and forth from now on: the next segment of ours will carry the acknowledgement.
    pub(super) fn enter_pingpong(&mut self, config: &Config) {
        self.rcv.delay.pingpong = config.tcp_pingpong_thresh.min(u8::MAX.into()) as u8;
    }

    /// Data of ours leaves: soon after some of the peer's, the exchange goes back and forth. (What came with a SYN counts for this only
    /// in the fewest-packets habit: Linux measures from the first segment behind it.)
    #[inline(always)]
    pub(super) fn answered(&mut self, cx: &Context) {
        let rcv = &mut self.rcv;
        let measured = rcv.delay.ato > 0 || cx.config.ack_habit == AckHabit::Merge;
        if rcv.bytes_received > 0 && measured {
            let gap = cx.now.nanos_since(rcv.last_data_at);
            let soon = gap < u64::from(rcv.delay.ato) * NANOS_PER_MS || gap < nanos(cx.config.delayed_ack);
            rcv.delay.pingpong = rcv.delay.pingpong.saturating_add(soon.into());
        }
    }

    /// Starts or stops the delayed-ACK timer by what is owed.
    #[inline(always)]
    pub(crate) fn arm_delayed_ack(&mut self, cx: &Context) {
        match self.rcv.ack_owed {
            AckOwed::Delayed => self.delay_ack(cx),
            AckOwed::No | AckOwed::Now => self.timers.stop(Timer::DelayedAck),
        }
    }

    #[inline(always)]
    fn delay_ack(&mut self, cx: &Context) {
        let delay = self.ack_delay(&cx.config);
        let running = self.timers.is_set(Timer::DelayedAck);
        let adapts = cx.config.ack_habit == AckHabit::QuickStart;
        let at = cx.now.plus_nanos(delay);
        let deadline = self.timers.deadline(Timer::DelayedAck);
        let soon = adapts && running && deadline <= cx.now.plus_nanos(delay / 4);
        if delay == 0 || soon {
            self.rcv.ack_owed = AckOwed::Now;
            self.timers.stop(Timer::DelayedAck);
        } else if !running || adapts && at < deadline {
            self.timers.set(Timer::DelayedAck, at);
        }
    }

    /// Nanoseconds.
    #[inline(always)]
    fn ack_delay(&self, config: &Config) -> u64 {
        let delay = match config.ack_habit {
            AckHabit::Merge => self.rcv.delay.merged(nanos(config.delayed_ack)),
            // A FIN before any text: the delay has not begun to be measured, and Linux's timer fires at its next tick.
            AckHabit::QuickStart if self.rcv.delay.ato == 0 => nanos(TICK),
            AckHabit::QuickStart => nanos(self.adapted_delay(config)),
        };
        let most = if self.options.is_ordinary() { None } else { self.options.delack_max };
        let delay = most.map_or(delay, |most| delay.min(nanos(most)));
        // Less than the peer's retransmission time-out may be by our own least (Linux's `tcp_delack_max`).
        let before_rto = self.rtt.min_rto_nanos().saturating_sub(1_000_000);
        delay.min(before_rto)
    }

    /// Linux's `tcp_send_delayed_ack`.
    fn adapted_delay(&self, config: &Config) -> Duration {
        let least = config.delayed_ack;
        let two_ways = self.in_pingpong(config) || self.rcv.delay.pushed > 0;
        let most = if two_ways { config.delayed_ack_max } else { ONE_WAY_MAX };
        let path = self.rtt.srtt().map_or(most, |srtt| srtt.max(least));
        self.rcv.delay.ato(least).min(most.min(path).max(least)).min(config.delayed_ack_max)
    }

    /// The SYN-ACK brought a FIN: what it is owed waits as long as may be for the close that follows (Linux's
    /// `tcp_rcv_synsent_state_process`, which finds itself in pingpong mode).
    pub(super) fn await_close(&mut self, cx: &Context) {
        if cx.config.ack_habit == AckHabit::QuickStart && self.rcv.ack_owed == AckOwed::Delayed {
            self.timers.set(Timer::DelayedAck, cx.now + cx.config.delayed_ack_max);
        }
    }

    /// The delayed-ACK timer has fired.
    pub(super) fn delayed_ack_timeout(&mut self, cx: &mut Context) {
        if self.rcv.ack_owed == AckOwed::Delayed {
            if let Some(packets) = self.rcv.space.packets_mut()
                && packets.compression.waiting > 0
                && packets.compression.at <= cx.now
            {
                packets.compression.waiting -= 1;
                self.rcv.ack_owed = AckOwed::Now;
                return;
            }
            let thresh = cx.config.tcp_pingpong_thresh;
            self.rcv.delay.missed(cx.config.delayed_ack, self.rtt.rto(), thresh);
            cx.counters.delayed_acks += 1;
            self.rcv.ack_owed = AckOwed::Now;
            self.rcv.forget_rounds();
        }
    }

    /// The application has read. Linux acknowledges then what was pushed, or fills more than a segment (`tcp_cleanup_rbuf`). True if so.
    pub(crate) fn acknowledge_what_was_read(&mut self, config: &Config) -> bool {
        if self.rcv.ack_owed != AckOwed::Delayed || config.ack_habit != AckHabit::QuickStart {
            return false;
        }
        let now = self.acknowledges_read(config, self.rcv.memory() == 0);
        if now {
            self.rcv.ack_owed = AckOwed::Now;
        }
        now
    }

    /// An acknowledgement that waits goes now that the application has read; `none_left`: everything.
    pub(super) fn acknowledges_read(&self, config: &Config, none_left: bool) -> bool {
        let pushed = self.rcv.delay.pushed;
        let all_read = none_left && (pushed > 1 || pushed > 0 && !self.in_pingpong(config));
        self.rcv.ack_owed != AckOwed::No
            && (all_read || self.rcv.nxt.since(self.rcv.last_ack_sent) > self.rcv.mss())
    }

    /// `TCP_QUICKACK` was set: quick ACKs now and for a while, or none until answers stop carrying them.
    pub(super) fn set_quickack(&mut self, config: &Config, on: bool) {
        self.rcv.delay.asked = on;
        if !on {
            return self.enter_pingpong(config);
        }
        self.rcv.delay.pingpong = 0;
        if config.ack_habit == AckHabit::Merge {
            self.rcv.delay.quicken(QUICK_ACKS);
        }
        // Linux does as if the application had read: there is no hurry while something waits to be read.
        let reader_is_behind = config.ack_habit == AckHabit::QuickStart
            && self.rcv.memory() > 0
            && self.rcv.nxt.since(self.rcv.last_ack_sent) <= self.rcv.mss();
        if self.rcv.ack_owed == AckOwed::Delayed && !reader_is_behind {
            self.rcv.ack_owed = AckOwed::Now;
        }
    }

    /// The ACK that completes our handshake goes at once; or, where quick ACKs were switched off before, with the first data within
    /// [`delayed_ack_max`](Config::delayed_ack_max), as in Linux.
    pub(super) fn owe_handshake_ack(&mut self, cx: &Context, writer_waits: bool) {
        if self.options.quickack != Some(false) {
            self.rcv.ack_owed = AckOwed::Now;
            if writer_waits && cx.config.ack_habit == AckHabit::QuickStart {
                // Linux saves the ACK for the data, which counts as an answer then.
                self.rcv.delay.set_ato(cx.config.delayed_ack);
                self.rcv.delay.pingpong = self.rcv.delay.pingpong.saturating_add(1);
            }
            return;
        }
        self.rcv.ack_owed = AckOwed::Delayed;
        self.timers.set(Timer::DelayedAck, cx.now + cx.config.delayed_ack_max);
    }
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
