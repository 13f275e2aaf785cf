//! How large a burst is that the device cuts into segments, and when it waits to grow: Linux's `tcp_tso_autosize` and
//! `tcp_tso_should_defer`.
//!
//! A burst is what passes in 2⁻¹⁰ s at the rate of the window, so that a slow path is not filled by one packet; near peers, whom
//! large bursts do not hurt, get more. A burst that the windows would make small waits for an ACK that is about to come, unless none would be large.

use super::nagle::Nagle;
use crate::Config;
use crate::tcp::congestion::Controller;
use crate::tcp::connection::{Connection, Context};
use core::time::Duration;

/// Part of a second that fits into one burst, as Linux's `sk_pacing_shift`.
const SHIFT: u32 = 10;
/// So soon an ACK must be expected for a burst to wait, and so recently the last one must have gone.
const SOON: Duration = Duration::from_millis(1);
/// Segments that are worth a burst where `tcp_tso_win_divisor` is 0.
const WORTH_SEGS: u32 = 3;

impl Connection {
    /// The congestion window per round trip, times `tcp_pacing_ss_ratio` while it may still double, else times `tcp_pacing_ca_ratio`:
    /// Linux's `sk_pacing_rate`, bytes per second. `None` before the first sample.
    ///
    /// It is that of the last acknowledgement: amid losses, what a time-out or a transmission does to the window shows with the next.
    pub(in crate::tcp) fn window_rate(&self, config: &Config) -> Option<u64> {
        let noted = self.recovery.board().and_then(|board| board.window_rate);
        noted.or_else(|| self.window_rate_now(config))
    }

    /// An acknowledgement was worked through, or something else is about to change the window, that is none.
    pub(in crate::tcp) fn note_window_rate(&mut self, rate: Option<u64>) {
        if let Some(board) = self.recovery.board_mut() {
            board.window_rate = rate;
        }
    }

    pub(in crate::tcp) fn window_rate_now(&self, config: &Config) -> Option<u64> {
        let srtt = self.rtt.srtt()?;
        let (cwnd, ssthresh) = (self.reported_cwnd(), self.congestion.ssthresh());
        let segment = u32::from(self.smss());
        let percent = if cwnd / segment < ssthresh / segment / 2 {
            config.tcp_pacing_ss_ratio
        } else {
            config.tcp_pacing_ca_ratio
        };
        let window = u64::from(cwnd.max(self.snd.in_flight())) * u64::from(percent);
        let micros = (srtt.as_micros() as u64).max(1);
        Some(window * (1_000_000 / 100) / micros)
    }

    /// Bytes of the burst that may leave now, of `allowed` by the windows; `None`: it waits.
    #[inline]
    pub(in crate::tcp) fn burst(&mut self, cx: &Context, allowed: u32, unsent: u32) -> Option<u32> {
        let segment = u32::from(self.segment_max());
        if unsent <= segment {
            return Some(allowed);
        }
        let goal = match cx.config.write_rules.are_by_segment() {
            false => self.size_goal(&cx.capabilities),
            true => self.device_goal(&cx.capabilities, u32::MAX),
        };
        let burst = allowed.min(goal);
        let queued = unsent.min(goal);
        if queued <= segment {
            return Some(burst);
        }
        if self.urgent_end().is_some() {
            // Each segment has a pointer of its own.
            return Some(burst.min(segment));
        }
        let most = self.autosized(cx, segment).min(goal).min(self.share_of_window(cx, segment));
        let most = if cx.config.write_rules.are_by_segment() { self.joined(most, segment) } else { most };
        let least = most <= cx.config.tcp_min_tso_segs * segment && !cx.config.burst_rules.least_wait();
        if least || !self.is_worth_waiting(cx, queued, most) {
            return Some(burst.min(most));
        }
        if self.cwnd_keeps_back(queued) {
            self.rest_of_window_waits(cx);
        }
        None
    }

    /// What was written as the next segment takes of the one behind it, as far as cwnd has room for the burst that they make, and whether or
    /// not the peer's window has (Linux's `tcp_grow_skb`).
    #[inline(never)]
    pub(in crate::tcp) fn join_next(&mut self, cx: &Context) {
        let segment = u32::from(self.segment_max());
        let room = self.congestion_window().saturating_sub(self.pipe()) / segment * segment;
        if room == 0 || self.snd.nxt != self.snd.max {
            return;
        }
        let most = self.autosized(cx, segment).min(self.share_of_window(cx, segment));
        self.snd.queue.join_next(self.snd.nxt, most.min(room));
    }

    /// A burst is of one segment as it was written, with what joined it. Its end may be a small one, unless the peer's window cuts it and
    /// Nagle keeps that back (Linux's `tcp_mss_split_point`).
    fn joined(&self, most: u32, segment: u32) -> u32 {
        let written = self.snd.queue.left_of_segment(self.snd.nxt);
        let room = self.snd.wnd.saturating_sub(self.snd.flight_size());
        if written >= most || written >= self.snd.unsent() {
            return most;
        }
        let needed = written.min(room);
        let small = needed % segment;
        if most <= room || needed < segment || self.small_may_go(small) { written } else { needed - small }
    }

    /// Linux's `tcp_cwnd_test`.
    pub(in crate::tcp) fn share_of_window(&self, cx: &Context, segment: u32) -> u32 {
        if !cx.config.burst_rules.of_half_window() {
            return u32::MAX;
        }
        (self.congestion_window() / segment / 2).max(1) * segment
    }

    pub(in crate::tcp) fn autosized(&self, cx: &Context, segment: u32) -> u32 {
        let device = cx.capabilities.gso_max_size as u64;
        let rate = self.pacing_rate(&cx.config).or_else(|| self.window_rate(&cx.config));
        let distance = self.rtt.min_rtt().map_or(u64::MAX, |rtt| rtt.as_micros() as u64);
        let halvings = distance.checked_shr(cx.config.tcp_tso_rtt_log).unwrap_or(0);
        let near = if halvings < u32::BITS.into() { device >> halvings } else { 0 };
        let bytes = rate.map_or(device, |rate| ((rate >> SHIFT) + near).min(device));
        let segments = (bytes as u32 / segment).max(cx.config.tcp_min_tso_segs);
        segments.saturating_mul(segment)
    }

    /// Of `queued` bytes the congestion window, not the peer's, lets a part go at most.
    fn cwnd_keeps_back(&self, queued: u32) -> bool {
        let room = self.usable_window();
        room <= queued && room < self.snd.wnd.saturating_sub(self.snd.flight_size())
    }

    /// An ACK that lets more go is near: the burst would be small (less than a third of the window) without it.
    fn is_worth_waiting(&self, cx: &Context, queued: u32, most: u32) -> bool {
        let room = self.usable_window();
        let recent = self.window_use.idle(cx.now) <= SOON && !self.snd.nagle.contains(Nagle::AT_ONCE);
        // Nothing in the middle of the queue grows any more.
        let last = queued == self.snd.unsent();
        if room >= most || !recent || (!last && room >= queued) || self.recovery.is_recovering() {
            return false;
        }
        let worth = match self.send_window().checked_div(cx.config.tcp_tso_win_divisor) {
            Some(part) => room >= part,
            None => room > WORTH_SEGS * u32::from(self.segment_max()),
        };
        let (Some(oldest), Some(srtt)) = (self.snd.queue.oldest_sent_at(), self.rtt.srtt()) else {
            return false;
        };
        let ack_is_near = oldest + srtt <= cx.now + SOON.min(srtt / 2);
        let grows =
            room <= queued || !(self.snd.fin_queued() || self.snd.queue.record_len(self.snd.nxt).is_some());
        !worth && self.snd.flight_size() > 0 && ack_is_near && grows
    }
}
