//! How long silence is borne: RFC 1122's R2, in Linux's way of counting.
//!
//! The settings are numbers of retransmissions, but what they mean is a time: what that many take if the first comes after 200 ms
//! (of SYNs: the initial time-out) and each time-out doubles. So a path with a large or small time-out of its own is given up
//! after as long as any other, at its first time-out beyond.
//!
//! At R1, which comes before (`tcp_retries1`), the network layer should look for another route. Here there is one, but perhaps it carries
//! smaller packets: `mtu_search`.

use super::connection::{Connection, Context};
use super::timers::Timer;
use crate::{CloseReason, Config, Instant};
use core::time::Duration;

/// The time-out that the doubling starts from (Linux's `TCP_RTO_MIN`).
pub(super) const BASE: Duration = Duration::from_millis(200);
/// No wait is shorter: Linux's jiffy, where it counts a thousand a second.
const TICK: Duration = Duration::from_millis(1);
/// An orphan's retransmissions with `tcp_orphan_retries` 0.
const ORPHAN_RETRIES: u32 = 8;

/// What `retries` retransmissions take whose time-outs double from `base` up to `most`.
pub(super) fn patience(retries: u32, base: Duration, most: Duration) -> Duration {
    let base = base.max(Duration::from_millis(1)).min(most);
    let doublings = (most.as_millis() / base.as_millis()).max(1).ilog2();
    let doubled = base.saturating_mul((2 << retries.min(doublings)) - 1);
    doubled + most.saturating_mul(retries.saturating_sub(doublings))
}

/// Retransmissions of a connection that nobody holds. `alive`: its time-out has not reached its greatest.
fn orphan_retries(config: &Config, alive: bool, warned: bool) -> u32 {
    let retries = if warned && !alive { 0 } else { config.tcp_orphan_retries };
    if retries == 0 && alive { ORPHAN_RETRIES } else { retries }
}

impl Connection {
    /// Data went unanswered once more, `silence` after the first time-out. True: the connection has ended.
    pub(super) fn gives_up_on_data(&mut self, cx: &mut Context, silence: Duration) -> bool {
        if self.orphan && self.is_one_orphan_too_many(cx) {
            return true;
        }
        let retries = if self.orphan {
            orphan_retries(&cx.config, !self.rtt.is_exhausted(), self.soft_error.is_some())
        } else {
            cx.config.tcp_retries2
        };
        let most = self.options.user_timeout().unwrap_or_else(|| patience(retries, BASE, self.rtt.max_rto()));
        let expired = self.timeouts > 1 && silence >= most;
        self.end_if(cx, expired)
    }

    /// The window was closed over what is in flight, and that is retransmitted: a peer that answers may keep it closed as long as it likes, one that is
    /// not heard any more for twice the greatest time-out is gone. What the application bears counts in any case (Linux's
    /// `tcp_rtx_probe0_timed_out`). True: the connection has ended.
    pub(super) fn gives_up_on_closed_window(&mut self, cx: &mut Context) -> bool {
        let since_first =
            self.snd.queue.oldest_sent_at().map_or(Duration::ZERO, |sent_at| cx.now.since(sent_at));
        let silence = match self.recovery.silence(cx.now) {
            Duration::ZERO => since_first,
            silence => silence,
        };
        let borne = self.options.user_timeout();
        let most = (2 * self.rtt.max_rto()).min(borne.unwrap_or(Duration::MAX));
        let unheard = self.heard_at().is_none_or(|heard_at| cx.now.since(heard_at) > most);
        let expired = borne.is_some_and(|borne| silence >= borne) || unheard && silence > most;
        self.end_if(cx, expired)
    }

    /// The retransmission timer, just started, fires no later than the application wants to be told (Linux's
    /// `tcp_clamp_rto_to_user_timeout`).
    pub(super) fn hasten_rto(&mut self, now: Instant, silence: Duration) {
        if let Some(most) = self.options.user_timeout() {
            let at = now + most.saturating_sub(silence).max(TICK);
            self.timers.set(Timer::Retransmit, at.min(self.timers.deadline(Timer::Retransmit)));
        }
    }

    /// Time since the first probe of a window that is closed. Kept only for an application that wants to be told of it.
    fn probing(&mut self, now: Instant) -> Duration {
        if self.options.user_timeout().is_none() {
            return Duration::ZERO;
        }
        let special = self.special.get_or_insert_default();
        now.since(*special.probing_since.get_or_insert(now))
    }

    /// Brings the window-probe timer forward to the user time-out (`tcp_clamp_probe0_to_user_timeout`).
    pub(super) fn hasten_probe(&mut self, now: Instant) {
        let silence = self.probing(now);
        self.hasten_rto(now, silence);
    }

    /// Brings the timer of a further window probe forward to the user time-out; nothing counts before the first probe.
    pub(super) fn hasten_next_probe(&mut self, now: Instant) {
        if self.special.as_ref().is_some_and(|special| special.probing_since.is_some()) {
            self.hasten_probe(now);
        }
    }

    /// A window probe is due. A peer that answers them may keep the window closed as long as it likes (RFC 9293 §3.8.6.1), but not
    /// that of a connection which nobody holds: that one ends when the back-off has reached its greatest. This is the `probes`th in a row.
    /// True: it has ended.
    pub(super) fn gives_up_probing(&mut self, cx: &mut Context, probes: u8) -> bool {
        let probing = self.probing(cx.now);
        if self.options.user_timeout().is_some_and(|most| probing >= most) {
            return self.end_if(cx, true);
        }
        if !self.orphan {
            // Probes are counted up to 255, which `tcp_retries2` may be.
            let expired = probes == u8::MAX || u32::from(probes) > cx.config.tcp_retries2;
            return self.end_if(cx, expired);
        }
        let alive = !self.rtt.is_exhausted();
        let retries = orphan_retries(&cx.config, alive, self.soft_error.is_some());
        let expired = u32::from(probes) > retries || !alive && u32::from(self.rtt.backoff()) >= retries;
        self.end_if(cx, expired) || self.is_one_orphan_too_many(cx)
    }

    fn end_if(&mut self, cx: &mut Context, expired: bool) -> bool {
        if expired {
            cx.counters.abort_on_timeout += 1;
            self.terminate(&mut cx.counters, self.soft_error.unwrap_or(CloseReason::TimedOut));
        }
        expired
    }

    /// While there are (nearly) too many orphans, those that do badly go first: a silent one counts double, one that ICMP calls
    /// unreachable double again (Linux's `tcp_out_of_resources`).
    fn is_one_orphan_too_many(&mut self, cx: &mut Context) -> bool {
        let penalty = u32::from(self.rtt.is_exhausted()) + u32::from(self.soft_error.is_some());
        let too_many = cx.orphans.saturating_mul(1 << penalty) > cx.config.tcp_max_orphans
            || cx.memory.is_exhausted() && self.holds_much();
        if too_many {
            cx.counters.abort_on_memory += 1;
            self.abort(&mut cx.counters);
        }
        too_many
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Linux's documentation names these: 924.6 s for 15 retries, 13 to 30 minutes by the path; 127 s for 6 SYNs.
    #[test]
    fn the_times_of_linux() {
        let most = Duration::from_secs(120);
        let ms = |retries, base| patience(retries, Duration::from_millis(base), most).as_millis();
        assert_eq!((ms(15, 200), ms(8, 200), ms(0, 200)), (924_600, 102_200, 200));
        assert_eq!((ms(6, 1000), ms(5, 1000), ms(2, 1000)), (127_000, 63_000, 7_000));
        assert_eq!(ms(255, 200), 204_600 + 246 * 120_000);
        assert_eq!(patience(3, Duration::ZERO, most).as_millis(), 15);
        assert_eq!(patience(1, Duration::from_secs(500), most), Duration::from_secs(240));
    }
}
