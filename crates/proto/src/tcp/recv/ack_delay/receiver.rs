//! Acknowledgments that the receiver owes: at once, later, or with the next segment.

use super::{NANOS_PER_MS, ONE_WAY_MAX, QUICK_ACKS, TextArrival};
use crate::rtt::RttEstimator;
use crate::tcp::connection::Context;
use crate::tcp::recv::receiver::{AckOwed, Receiver};
use crate::time::nanos;
use crate::{AckHabit, Config, Instant};
use core::time::Duration;

impl Receiver {
    /// Decides whether text in order is acknowledged at once or later.
    #[inline(always)]
    pub(in crate::tcp) fn owe_ack(&mut self, cx: &Context, text: &TextArrival, rtt: &RttEstimator) {
        let quick = match cx.config.ack_habit {
            AckHabit::Merge => {
                let delay = &mut self.delay;
                let quick = delay.quick > 0 && (text.full_sized || delay.asked && delay.pingpong == 0);
                delay.quick -= u8::from(quick && self.ack_owed != AckOwed::Now);
                quick
            }
            AckHabit::QuickStart => {
                self.measure_delay(cx, text.before, rtt);
                match self.is_full_sized(text.len) {
                    true => self.delay.pushed = self.delay.pushed.max(text.pushed.into()),
                    false => self.delay.pushed = (self.delay.pushed + 1).min(2),
                }
                self.has_much_to_acknowledge() || self.delay.quick > 0 && !self.in_pingpong(&cx.config)
            }
        };
        if self.ack_owed != AckOwed::Now {
            self.ack_owed = if quick { AckOwed::Now } else { AckOwed::Delayed };
        }
    }

    /// Adapts the delay to the arrival of text. `before` is when earlier text arrived.
    pub(in crate::tcp) fn measure_delay(&mut self, cx: &Context, before: Instant, rtt: &RttEstimator) {
        let (segments, gap) = (self.quick_window() / (2 * self.mss()), cx.now.since(before));
        self.delay.data_came(gap, segments, cx.config.delayed_ack, rtt.rto());
    }

    /// Returns the delay of Linux's `tcp_send_delayed_ack`.
    pub(super) fn adapted_delay(&self, config: &Config, srtt: Option<Duration>) -> Duration {
        let least = config.delayed_ack;
        let two_ways = self.in_pingpong(config) || self.delay.pushed > 0;
        let most = if two_ways { config.delayed_ack_max } else { ONE_WAY_MAX };
        let path = srtt.map_or(most, |srtt| srtt.max(least));
        self.delay.ato(least).min(most.min(path).max(least)).min(config.delayed_ack_max)
    }

    /// Returns the expected delay, as `tcp_info` reports it.
    pub(in crate::tcp) fn expected_ack_delay(&self, config: &Config) -> Duration {
        self.delay.expected(config)
    }

    /// Acknowledges at once for a while, after an unexpected segment.
    pub(in crate::tcp) fn acknowledge_quickly(&mut self) {
        self.delay.alarm();
    }

    /// Sends the next two acknowledgments at once, if text has come before.
    pub(in crate::tcp) fn acknowledge_two_at_once(&mut self) {
        self.delay.two_at_once();
    }

    /// Returns whether the exchange goes back and forth, so that our next segment will carry the
    /// acknowledgment.
    pub(in crate::tcp) fn in_pingpong(&self, config: &Config) -> bool {
        u32::from(self.delay.pingpong) >= config.tcp_pingpong_thresh
    }

    /// Enters pingpong mode: the next segment of ours will carry the acknowledgment.
    pub(in crate::tcp) fn enter_pingpong(&mut self, config: &Config) {
        self.delay.pingpong = config.tcp_pingpong_thresh.min(u8::MAX.into()) as u8;
    }

    /// Notes that data of ours leaves. Soon after data of the peer, it counts as an answer. (Data
    /// of a SYN counts only with `AckHabit::Merge`: Linux measures from the first segment behind
    /// it.)
    #[inline(always)]
    pub(in crate::tcp) fn answered(&mut self, cx: &Context) {
        let measured = self.delay.ato > 0 || cx.config.ack_habit == AckHabit::Merge;
        if self.bytes_received > 0 && measured {
            let gap = cx.now.nanos_since(self.last_data_at);
            let soon = gap < u64::from(self.delay.ato) * NANOS_PER_MS || gap < nanos(cx.config.delayed_ack);
            self.delay.pingpong = self.delay.pingpong.saturating_add(soon.into());
        }
    }

    /// Acknowledges after a read, like Linux's `tcp_cleanup_rbuf`: pushed data, or more than a
    /// segment. Returns whether it does.
    pub(crate) fn acknowledge_what_was_read(&mut self, config: &Config) -> bool {
        if self.ack_owed != AckOwed::Delayed || config.ack_habit != AckHabit::QuickStart {
            return false;
        }
        let now = self.acknowledges_read(config, self.memory() == 0);
        if now {
            self.ack_owed = AckOwed::Now;
        }
        now
    }

    /// Returns whether a read makes a waiting acknowledgment due. `none_left`: everything was read.
    pub(in crate::tcp) fn acknowledges_read(&self, config: &Config, none_left: bool) -> bool {
        let pushed = self.delay.pushed;
        let all_read = none_left && (pushed > 1 || pushed > 0 && !self.in_pingpong(config));
        self.ack_owed != AckOwed::No && (all_read || self.nxt.since(self.last_ack_sent) > self.mss())
    }

    /// Applies `TCP_QUICKACK`: quick ACKs for a while, or none until answers stop carrying them.
    pub(in crate::tcp) fn set_quickack(&mut self, config: &Config, on: bool) {
        self.delay.asked = on;
        if !on {
            return self.enter_pingpong(config);
        }
        self.delay.pingpong = 0;
        if config.ack_habit == AckHabit::Merge {
            self.delay.quicken(QUICK_ACKS);
        }
        // Linux acts as if the application had read. There is no hurry while data waits to be read.
        let reader_is_behind = config.ack_habit == AckHabit::QuickStart
            && self.memory() > 0
            && self.nxt.since(self.last_ack_sent) <= self.mss();
        if self.ack_owed == AckOwed::Delayed && !reader_is_behind {
            self.ack_owed = AckOwed::Now;
        }
    }
}
