//! A connection fits its buffers to what goes through them.

use super::{BULK, DESCRIPTOR, HEADROOM, NEAR, SEGMENTS_MIN, Tuner};
use crate::tcp::congestion::Controller;
use crate::tcp::connection::Connection;
use crate::tcp::open::fresh::SEND_BUFFER_MAX;
use crate::tcp::recv::receiver::Receiver;
use crate::{Config, Instant};
use alloc::boxed::Box;
use core::time::Duration;
use wire::SeqNum;

impl Receiver {
    /// Round trip, and most bytes the application took in one, as far as they are known.
    pub(crate) fn measured(&self) -> (Option<Duration>, Option<u32>) {
        let of_tuner = || self.tuner.as_ref().map_or((None, None), |tuner| tuner.measured());
        self.space.measured().unwrap_or_else(of_tuner)
    }

    /// Does it receive in bulk, into a buffer that may grow?
    pub(crate) fn is_tunable(&self) -> bool {
        self.bytes_received > BULK && !self.space.is_locked()
    }

    /// `accepted` bytes have become readable. `echo`: TSecr of a full-sized segment, and its age.
    #[inline(always)]
    pub(crate) fn note_round(&mut self, now: Instant, accepted: u32, echo: Option<(u32, Duration)>) {
        let nothing_new = |tuner: &Tuner| tuner.rtt.learns_nothing(self.nxt, echo.map(|(tsecr, _)| tsecr));
        if !self.tuner.as_deref().is_some_and(nothing_new) {
            self.sample_round(now, accepted, echo);
        }
    }

    fn sample_round(&mut self, now: Instant, accepted: u32, echo: Option<(u32, Duration)>) {
        let (nxt, copied) = (self.nxt, self.copied());
        let advertised = self.adv.since(self.last_ack_sent);
        let prompt = self.buffer.len() as u32 == accepted;
        let tuner = self.tuner.get_or_insert_with(|| Box::new(Tuner::new(now, copied)));
        tuner.rtt.sample_window(now, nxt, advertised);
        if let Some(echo) = echo {
            tuner.rtt.sample_echo(echo, true, prompt);
        }
    }

    /// The application has read. Once in a round trip the buffer is fitted to what it took.
    pub(crate) fn fit_buffer(&mut self, now: Instant, config: &Config) {
        let is_due = |tuner: &Tuner| tuner.rtt.has_passed(tuner.since, now);
        if !self.tuner.as_deref().is_some_and(is_due) {
            return;
        }
        let (copied, unread) = (self.copied(), self.buffer.len() as u32);
        let Some(tuner) = &mut self.tuner else { return };
        let taken = copied.since(tuner.copied).saturating_sub(unread);
        (tuner.copied, tuner.since) = (copied, now);
        if taken <= tuner.space {
            return;
        }
        let window = tuner.window_for(taken, config);
        tuner.space = taken;
        self.raise(window, config);
    }

    /// Behind a gap the window must hold what was sent after it, too.
    pub(crate) fn fit_gap(&mut self, end: SeqNum, config: &Config) {
        let Some(tuner) = &self.tuner else { return };
        let window = tuner.window_for(tuner.space, config) + u64::from(end.since(self.nxt));
        self.raise(window, config);
    }

    fn raise(&mut self, window: u64, config: &Config) {
        if config.tcp_moderate_rcvbuf {
            self.space.raise(window, config.tcp_rmem[2]);
        }
    }

    /// Nothing has come for a while, and nothing waits.
    pub(crate) fn forget_rounds(&mut self) {
        if self.buffer.is_empty() {
            self.tuner = None;
        }
    }

    /// Number of the next byte the application reads.
    pub(in crate::tcp) fn copied(&self) -> SeqNum {
        self.nxt - u32::from(self.fin_received) - self.buffer.len() as u32
    }
}

impl Connection {
    /// One congestion window is in flight, the rest waits to follow.
    pub(crate) fn expand_send_buffer(&mut self, config: &Config) {
        if self.options.send_buffer.is_some() {
            return;
        }
        let smss = u32::from(self.smss());
        let window = self.congestion.cwnd().max(SEGMENTS_MIN * smss);
        let window = match config.sndbuf_overhead {
            0 => window,
            // As Linux's `tcp_sndbuf_expand`: each segment in memory of its own, which comes in powers of two.
            _ => (window / u32::from(self.whole_segment())).max(SEGMENTS_MIN).saturating_mul(
                (u32::from(self.agreed.peer_mss) + HEADROOM).next_power_of_two() + DESCRIPTOR,
            ),
        };
        let wanted = window.saturating_mul(config.sndbuf_windows);
        let near = self.rtt.min_rtt().is_none_or(|rtt| rtt.as_micros() < config.tcp_rcvbuf_low_rtt.into());
        let most = if near { config.tcp_wmem[2].min(NEAR) } else { config.tcp_wmem[2] };
        self.snd.queue.limit = self.snd.queue.limit.max(wanted.min(most).min(SEND_BUFFER_MAX));
    }
}
