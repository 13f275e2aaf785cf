//! Timer of delayed acknowledgments.

use super::TICK;
use crate::tcp::connection::{Connection, Context};
use crate::tcp::recv::receiver::AckOwed;
use crate::tcp::timers::Timer;
use crate::time::nanos;
use crate::{AckHabit, Config};

impl Connection {
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
            AckHabit::QuickStart => nanos(self.rcv.adapted_delay(config, self.rtt.srtt())),
        };
        let most = if self.options.is_ordinary() { None } else { self.options.delack_max };
        let delay = most.map_or(delay, |most| delay.min(nanos(most)));
        // The delay stays below the peer's retransmission timeout, which is assumed to be our
        // minimum (Linux's `tcp_delack_max`).
        let before_rto = self.rtt.min_rto_nanos().saturating_sub(1_000_000);
        delay.min(before_rto)
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
