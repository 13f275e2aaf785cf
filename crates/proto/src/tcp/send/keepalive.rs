//! Keepalive (RFC 9293 §3.8.4): a silent peer is asked whether it is still there. Off unless the application asks.
//!
//! The timer is not moved by what arrives: when it fires it looks at when that was, as Linux's `tcp_keepalive_timer`.

use crate::tcp::connection::{Connection, Context};
use crate::tcp::timers::Timer;
use crate::{CloseReason, Config, Instant};
use core::time::Duration;

impl Connection {
    /// The option has been switched on; silence counts from now.
    pub(in crate::tcp) fn start_keepalive(&mut self, cx: &Context) {
        // Nothing heard yet is no silence since the beginning of time.
        let special = self.special.get_or_insert_default();
        if special.heard_at == Instant::ZERO {
            special.heard_at = cx.now;
        }
        self.timers.set(Timer::Life, cx.now + self.keepalive_time(&cx.config));
    }

    /// It has been switched off.
    pub(in crate::tcp) fn stop_keepalive(&mut self) {
        self.timers.stop(Timer::Life);
    }

    /// The silence to wait for has changed.
    pub(in crate::tcp) fn restart_keepalive(&mut self, cx: &Context) {
        if let Some(special) = &self.special
            && self.timers.is_set(Timer::Life)
        {
            let at = special.heard_at + self.keepalive_time(&cx.config);
            self.timers.set(Timer::Life, at.max(cx.now));
        }
    }

    fn keepalive_time(&self, config: &Config) -> Duration {
        self.options.keepalive_time.unwrap_or(config.tcp_keepalive_time)
    }

    /// The peer may have been silent for long enough.
    pub(in crate::tcp) fn keepalive_timeout(&mut self, cx: &mut Context) {
        let time = self.keepalive_time(&cx.config);
        let intvl = self.options.keepalive_intvl.unwrap_or(cx.config.tcp_keepalive_intvl);
        let probes = self.options.keepalive_probes.map_or(cx.config.tcp_keepalive_probes, u32::from);
        // While data is outstanding, retransmissions tell.
        let busy = self.handshake.is_some() || self.snd.flight_size() > 0 || self.snd.unsent() > 0;
        let Some(special) = &mut self.special else { return };
        let silence = cx.now.since(special.heard_at);
        if busy {
            return self.timers.set(Timer::Life, cx.now + time);
        }
        if silence < time {
            return self.timers.set(Timer::Life, special.heard_at + time);
        }
        let dead = match self.options.user_timeout() {
            Some(most) => special.unanswered > 0 && silence >= most,
            None => special.unanswered >= probes,
        };
        if dead {
            cx.counters.abort_on_timeout += 1;
            self.reset_due = true;
            return self.terminate(&mut cx.counters, self.soft_error.unwrap_or(CloseReason::TimedOut));
        }
        special.unanswered += 1;
        cx.counters.keep_alive += 1;
        self.snd.probe_due = true;
        self.timers.set(Timer::Life, cx.now + intvl);
    }
}
