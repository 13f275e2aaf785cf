//! Retry limits: when a connection whose peer does not answer is given up (R2 of RFC 9293 §3.8.3), counted as Linux counts.
//!
//! > "When the number of transmissions of the same segment reaches a threshold R2 greater than R1, close the connection."
//!
//! The settings are numbers of retransmissions, but each stands for a time: as long as that many retransmissions take if the first comes
//! after 200 ms (of a SYN: after the initial time-out) and each time-out doubles ([`retries_timeout`]). So a connection whose path has
//! a longer or shorter time-out is given up after the same time as any other, at its first time-out beyond.
//!
//! At R1 (`tcp_retries1`), which comes before R2, the network layer should look for another route. A stack has one way out, but
//! perhaps it carries smaller packets only: see `mtu_search`.

use crate::tcp::connection::{Connection, Context};
use crate::tcp::timers::Timer;
use crate::{CloseReason, Config, Instant};
use core::time::Duration;

/// The first time-out from which the doubling is counted (Linux's `TCP_RTO_MIN`).
pub(in crate::tcp) const BASE: Duration = Duration::from_millis(200);
/// The shortest wait until a user timeout: Linux's jiffy, with 1000 a second.
const TICK: Duration = Duration::from_millis(1);
/// Retransmissions of an orphaned connection with `tcp_orphan_retries` 0.
const ORPHAN_RETRIES: u32 = 8;

/// How long `retries` retransmissions take whose time-outs double from `base` up to `most` (Linux's `tcp_model_timeout`).
pub(in crate::tcp) fn retries_timeout(retries: u32, base: Duration, most: Duration) -> Duration {
    let base = base.max(Duration::from_millis(1)).min(most);
    let doublings = (most.as_millis() / base.as_millis()).max(1).ilog2();
    let doubled = base.saturating_mul((2 << retries.min(doublings)) - 1);
    doubled + most.saturating_mul(retries.saturating_sub(doublings))
}

/// How many retransmissions an orphaned connection has. `alive`: its time-out has not reached its greatest; `warned`: ICMP has reported
/// an error.
fn orphan_retries(config: &Config, alive: bool, warned: bool) -> u32 {
    let retries = if warned && !alive { 0 } else { config.tcp_orphan_retries };
    if retries == 0 && alive { ORPHAN_RETRIES } else { retries }
}

impl Connection {
    /// Ends the connection if R2 has passed for its data: the retransmission timer has fired again, `silence` after it first did. True: it
    /// has ended.
    pub(in crate::tcp) fn gives_up_on_data(&mut self, cx: &mut Context, silence: Duration) -> bool {
        if self.orphan && self.is_one_orphan_too_many(cx) {
            return true;
        }
        let retries = if self.orphan {
            orphan_retries(&cx.config, !self.rtt.is_exhausted(), self.soft_error.is_some())
        } else {
            cx.config.tcp_retries2
        };
        let most =
            self.options.user_timeout().unwrap_or_else(|| retries_timeout(retries, BASE, self.rtt.max_rto()));
        let expired = self.timeouts > 1 && silence >= most;
        self.end_if(cx, expired)
    }

    /// Ends the connection if the peer has closed its window over data in flight, and does not answer the retransmissions: one that answers
    /// may keep the window closed for as long as it likes, one that has not been heard for twice the greatest time-out is gone. The user
    /// timeout counts in any case (Linux's `tcp_rtx_probe0_timed_out`). True: it has ended.
    pub(in crate::tcp) fn gives_up_on_closed_window(&mut self, cx: &mut Context) -> bool {
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

    /// Brings the retransmission timer, just started, forward to the user timeout (Linux's `tcp_clamp_rto_to_user_timeout`).
    pub(in crate::tcp) fn hasten_rto(&mut self, now: Instant, silence: Duration) {
        if let Some(most) = self.options.user_timeout() {
            let at = now + most.saturating_sub(silence).max(TICK);
            self.timers.set(Timer::Retransmit, at.min(self.timers.deadline(Timer::Retransmit)));
        }
    }

    /// Time since the first probe of a closed window. Kept only with a user timeout.
    fn probing(&mut self, now: Instant) -> Duration {
        if self.options.user_timeout().is_none() {
            return Duration::ZERO;
        }
        let special = self.special.get_or_insert_default();
        now.since(*special.probing_since.get_or_insert(now))
    }

    /// Brings the window-probe timer forward to the user time-out (`tcp_clamp_probe0_to_user_timeout`).
    pub(in crate::tcp) fn hasten_probe(&mut self, now: Instant) {
        let silence = self.probing(now);
        self.hasten_rto(now, silence);
    }

    /// Brings the timer of a further window probe forward to the user time-out; nothing counts before the first probe.
    pub(in crate::tcp) fn hasten_next_probe(&mut self, now: Instant) {
        if self.special.as_ref().is_some_and(|special| special.probing_since.is_some()) {
            self.hasten_probe(now);
        }
    }

    /// Ends the connection if the `probes`th window probe in a row, which is due, is one too many. A peer that answers probes may keep the
    /// window closed for as long as it likes: "the sending TCP peer MUST allow the connection to stay open" (RFC 9293 §3.8.6.1, MUST-37). An
    /// orphaned connection ends when the back-off has reached its greatest. True: it has ended.
    pub(in crate::tcp) fn gives_up_probing(&mut self, cx: &mut Context, probes: u8) -> bool {
        let probing = self.probing(cx.now);
        if self.options.user_timeout().is_some_and(|most| probing >= most) {
            return self.end_if(cx, true);
        }
        // Probes are counted up to 255, which the settings may be.
        let is_beyond = |retries: u32| probes == u8::MAX || u32::from(probes) > retries;
        if !self.orphan {
            return self.end_if(cx, is_beyond(cx.config.tcp_retries2));
        }
        let alive = !self.rtt.is_exhausted();
        let retries = orphan_retries(&cx.config, alive, self.soft_error.is_some());
        let expired = is_beyond(retries) || !alive && u32::from(self.rtt.backoff()) >= retries;
        self.end_if(cx, expired) || self.is_one_orphan_too_many(cx)
    }

    fn end_if(&mut self, cx: &mut Context, expired: bool) -> bool {
        if expired {
            cx.counters.abort_on_timeout += 1;
            self.terminate(&mut cx.counters, self.soft_error.unwrap_or(CloseReason::TimedOut));
        }
        expired
    }

    /// Ends an orphaned connection while there are (nearly) too many of them, those that do badly first: one whose peer is silent counts
    /// double, one that ICMP calls unreachable double again (Linux's `tcp_out_of_resources`).
    fn is_one_orphan_too_many(&mut self, cx: &mut Context) -> bool {
        let penalty = u32::from(self.rtt.is_exhausted()) + u32::from(self.soft_error.is_some());
        let too_many = cx.orphans.saturating_mul(1 << penalty) > cx.config.tcp_max_orphans
            || cx.memory.is_exhausted() && self.snd.holds_much();
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
        let ms = |retries, base| retries_timeout(retries, Duration::from_millis(base), most).as_millis();
        assert_eq!((ms(15, 200), ms(8, 200), ms(0, 200)), (924_600, 102_200, 200));
        assert_eq!((ms(6, 1000), ms(5, 1000), ms(2, 1000)), (127_000, 63_000, 7_000));
        assert_eq!(ms(255, 200), 204_600 + 246 * 120_000);
        assert_eq!(retries_timeout(3, Duration::ZERO, most).as_millis(), 15);
        assert_eq!(retries_timeout(1, Duration::from_secs(500), most), Duration::from_secs(240));
    }
}
