//! What congestion control hears of a connection: data sent, data acknowledged, silence.

use super::congestion::{Acked, Congestion, Controller, Idle, Start, Unused};
use super::connection::{Connection, Context};
use super::window_use::Sent;
use crate::{Config, Instant};
use core::time::Duration;

impl Connection {
    /// A controller that has not heard of anything yet.
    pub(super) fn new_congestion(&self, cx: &Context<'_>) -> Congestion {
        let config = cx.config;
        let smss = u32::from(self.smss());
        let of_route = self.route.as_ref().and_then(|route| route.ssthresh);
        let known = of_route.or_else(|| self.remembered_ssthresh(cx));
        let ssthresh = match known.unwrap_or(config.initial_ssthresh) {
            0 => u32::MAX,
            segments => segments.saturating_mul(smss),
        };
        let initial_window = self.initial_window(config);
        let algorithm = self.options.congestion.or(self.route_metrics().and_then(|route| route.congctl));
        let algorithm = algorithm.unwrap_or(config.tcp_congestion_control);
        Congestion::new(algorithm, &Start { initial_window, ssthresh, hystart: config.hystart })
    }

    /// Bytes: RFC 6928's ten segments, or what `initcwnd` of route or stack says instead.
    pub(super) fn initial_window(&self, config: &Config) -> u32 {
        let smss = u32::from(self.smss());
        let of_route = self.route_metrics().and_then(|route| route.initcwnd);
        let bytes = match of_route.unwrap_or(config.initcwnd) {
            0 => rfc5681_initial_segments(smss) * smss,
            segments => segments.saturating_mul(smss),
        };
        bytes.min(self.cwnd_clamp())
    }

    /// Data is about to be sent. What a time-out sends again does not follow silence.
    pub(super) fn new_data_leaves(&mut self, cx: &Context<'_>) {
        if self.snd.flight_size() > 0 || self.snd.nxt.before(self.snd.max) {
            return;
        }
        self.snd.queue.delivery.begin_flight(cx.now);
        let idle = self.window_use.idle(cx.now);
        let rto = cx.config.tcp_slow_start_after_idle.then(|| self.rtt.rto());
        if rto.is_some_and(|rto| idle > rto) {
            self.window_use.restart(cx.now);
        }
        let initial_window = self.initial_window(cx.config);
        self.congestion.on_idle(&Idle { idle, rto, initial_window });
    }

    /// Data (`bytes` of it) or FIN has been sent.
    pub(super) fn data_left(&mut self, cx: &Context<'_>, bytes: u32) {
        self.pace(cx, bytes);
        let (cwnd, ssthresh) = (self.congestion.cwnd(), self.congestion.ssthresh());
        let in_flight = self.pipe();
        self.window_use.on_sent(&Sent {
            now: cx.now,
            una: self.snd.una,
            nxt: self.snd.nxt,
            in_flight,
            cwnd,
            ssthresh,
            smss: u32::from(self.smss()),
        });
        let room = in_flight.saturating_add(u32::from(self.smss())) <= cwnd;
        if room && self.unsent() == 0 && !self.recovery.resending_waits() {
            self.snd.queue.delivery.lull(in_flight);
        }
        let full_buffer = self.snd.blocked;
        if cx.config.tcp_slow_start_after_idle
            && !full_buffer
            && !self.recovery.is_recovering(self.snd.una)
            && !self.window_use.limits(cwnd, ssthresh)
            && let Some(used) = self.window_use.take_unused(cx.now, self.rtt.rto())
        {
            let initial_window = self.initial_window(cx.config);
            self.congestion.on_unused(&Unused { used, initial_window });
        }
    }

    /// Segments were acknowledged, lost or not.
    pub(super) fn segments_delivered(&mut self, now: Instant) {
        self.snd.queue.delivery.take_sample(now, self.rtt.min_rtt());
    }

    /// `bytes` were acknowledged while nothing is known to be lost; `rtt` is the sample they gave.
    pub(super) fn window_may_grow(&mut self, now: Instant, bytes: u32, rtt: Option<Duration>) {
        if self.ecn.forbids_growth() {
            return;
        }
        let limited = self.window_use.limits(self.congestion.cwnd(), self.congestion.ssthresh());
        self.congestion.on_ack(&Acked {
            now,
            bytes,
            limited,
            smss: u32::from(self.smss()),
            una: self.snd.una,
            nxt: self.snd.nxt,
            rtt,
            srtt: self.rtt.srtt().unwrap_or_default(),
        });
    }
}

/// RFC 5681 §3.1.
fn rfc5681_initial_segments(smss: u32) -> u32 {
    match smss {
        2191.. => 2,
        1096..=2190 => 3,
        _ => 4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_initial_window_of_rfc_5681_depends_on_the_segment() {
        let segments = [536, 1095, 1096, 1460, 2190, 2191, 8960].map(rfc5681_initial_segments);
        assert_eq!(segments, [4, 4, 3, 3, 3, 2, 2]);
    }
}
