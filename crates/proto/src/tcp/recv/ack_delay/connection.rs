//! Acknowledgments that a connection owes: at once, later, or with its next segment.

use super::{NANOS_PER_MS, ONE_WAY_MAX, QUICK_ACKS, TICK, TextArrival};
use crate::tcp::connection::{Connection, Context};
use crate::tcp::recv::receiver::AckOwed;
use crate::tcp::timers::Timer;
use crate::time::nanos;
use crate::{AckHabit, Config, Instant};
use core::time::Duration;

impl Connection {
    /// Adapts the delay to the arrival of text. `before` is when earlier text arrived.
    pub(in crate::tcp) fn measure_delay(&mut self, cx: &Context, before: Instant) {
        let (segments, gap) = (self.rcv.quick_window() / (2 * self.rcv.mss()), cx.now.since(before));
        self.rcv.delay.data_came(gap, segments, cx.config.delayed_ack, self.rtt.rto());
    }

    /// Decides whether text in order is acknowledged at once or later.
    #[inline(always)]
    pub(in crate::tcp) fn owe_ack(&mut self, cx: &Context, text: &TextArrival) {
        if cx.config.ack_habit == AckHabit::QuickStart {
            self.measure_delay(cx, text.before);
        }
        let rcv = &mut self.rcv;
        let quick = match cx.config.ack_habit {
            AckHabit::Merge => {
                let quick =
                    rcv.delay.quick > 0 && (text.full_sized || rcv.delay.asked && rcv.delay.pingpong == 0);
                rcv.delay.quick -= u8::from(quick && rcv.ack_owed != AckOwed::Now);
                quick
            }
            AckHabit::QuickStart => {
                match rcv.is_full_sized(text.len) {
                    true => rcv.delay.pushed = rcv.delay.pushed.max(text.pushed.into()),
                    false => rcv.delay.pushed = (rcv.delay.pushed + 1).min(2),
                }
                rcv.has_much_to_acknowledge() || rcv.delay.quick > 0 && !self.in_pingpong(&cx.config)
            }
        };
        if self.rcv.ack_owed != AckOwed::Now {
            self.rcv.ack_owed = if quick { AckOwed::Now } else { AckOwed::Delayed };
        }
    }

    pub(in crate::tcp) fn in_pingpong(&self, config: &Config) -> bool {
        u32::from(self.rcv.delay.pingpong) >= config.tcp_pingpong_thresh
    }

    /// Enters pingpong mode: the next segment of ours will carry the acknowledgment.
    pub(in crate::tcp) fn enter_pingpong(&mut self, config: &Config) {
        self.rcv.delay.pingpong = config.tcp_pingpong_thresh.min(u8::MAX.into()) as u8;
    }

    /// Notes that data of ours leaves. Soon after data of the peer, it counts as an answer. (Data
    /// of a SYN counts only with `AckHabit::Merge`: Linux measures from the first segment behind
    /// it.)
    #[inline(always)]
    pub(in crate::tcp) fn answered(&mut self, cx: &Context) {
        let rcv = &mut self.rcv;
        let measured = rcv.delay.ato > 0 || cx.config.ack_habit == AckHabit::Merge;
        if rcv.bytes_received > 0 && measured {
            let gap = cx.now.nanos_since(rcv.last_data_at);
            let soon = gap < u64::from(rcv.delay.ato) * NANOS_PER_MS || gap < nanos(cx.config.delayed_ack);
            rcv.delay.pingpong = rcv.delay.pingpong.saturating_add(soon.into());
        }
    }

    /// Starts or stops the delayed-ACK timer.
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

    /// Returns the delay in nanoseconds.
    #[inline]
    fn ack_delay(&self, config: &Config) -> u64 {
        let delay = match config.ack_habit {
            AckHabit::Merge => self.rcv.delay.merged(nanos(config.delayed_ack)),
            // A FIN before any text: no delay has been measured, and Linux's timer fires at its
            // next tick.
            AckHabit::QuickStart if self.rcv.delay.ato == 0 => nanos(TICK),
            AckHabit::QuickStart => nanos(self.adapted_delay(config)),
        };
        let most = if self.options.is_ordinary() { None } else { self.options.delack_max };
        let delay = most.map_or(delay, |most| delay.min(nanos(most)));
        // The delay stays below the peer's retransmission timeout, which is assumed to be our
        // minimum (Linux's `tcp_delack_max`).
        let before_rto = self.rtt.min_rto_nanos().saturating_sub(1_000_000);
        delay.min(before_rto)
    }

    /// Returns the delay of Linux's `tcp_send_delayed_ack`.
    fn adapted_delay(&self, config: &Config) -> Duration {
        let least = config.delayed_ack;
        let two_ways = self.in_pingpong(config) || self.rcv.delay.pushed > 0;
        let most = if two_ways { config.delayed_ack_max } else { ONE_WAY_MAX };
        let path = self.rtt.srtt().map_or(most, |srtt| srtt.max(least));
        self.rcv.delay.ato(least).min(most.min(path).max(least)).min(config.delayed_ack_max)
    }

    /// Waits as long as possible for the close that follows a FIN on the SYN-ACK (Linux's
    /// `tcp_rcv_synsent_state_process` is in pingpong mode).
    pub(in crate::tcp) fn await_close(&mut self, cx: &Context) {
        if cx.config.ack_habit == AckHabit::QuickStart && self.rcv.ack_owed == AckOwed::Delayed {
            self.timers.set(Timer::DelayedAck, cx.now + cx.config.delayed_ack_max);
        }
    }

    /// Handles the delayed-ACK timer.
    pub(in crate::tcp) fn delayed_ack_timeout(&mut self, cx: &mut Context) {
        if self.rcv.ack_owed == AckOwed::Delayed {
            if self.rcv.space.takes_compressed(cx.now) {
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

    /// Acknowledges after a read, like Linux's `tcp_cleanup_rbuf`: pushed data, or more than a
    /// segment. Returns whether it does.
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

    /// Returns whether a read makes a waiting acknowledgment due. `none_left`: everything was read.
    pub(in crate::tcp) fn acknowledges_read(&self, config: &Config, none_left: bool) -> bool {
        let pushed = self.rcv.delay.pushed;
        let all_read = none_left && (pushed > 1 || pushed > 0 && !self.in_pingpong(config));
        self.rcv.ack_owed != AckOwed::No
            && (all_read || self.rcv.nxt.since(self.rcv.last_ack_sent) > self.rcv.mss())
    }

    /// Applies `TCP_QUICKACK`: quick ACKs for a while, or none until answers stop carrying them.
    pub(in crate::tcp) fn set_quickack(&mut self, config: &Config, on: bool) {
        self.rcv.delay.asked = on;
        if !on {
            return self.enter_pingpong(config);
        }
        self.rcv.delay.pingpong = 0;
        if config.ack_habit == AckHabit::Merge {
            self.rcv.delay.quicken(QUICK_ACKS);
        }
        // Linux acts as if the application had read. There is no hurry while data waits to be read.
        let reader_is_behind = config.ack_habit == AckHabit::QuickStart
            && self.rcv.memory() > 0
            && self.rcv.nxt.since(self.rcv.last_ack_sent) <= self.rcv.mss();
        if self.rcv.ack_owed == AckOwed::Delayed && !reader_is_behind {
            self.rcv.ack_owed = AckOwed::Now;
        }
    }

    /// Acknowledges the SYN-ACK: at once, or, if quick ACKs were switched off before, with the
    /// first data within [`delayed_ack_max`](Config::delayed_ack_max), as in Linux.
    pub(in crate::tcp) fn owe_handshake_ack(&mut self, cx: &Context, writer_waits: bool) {
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
