//! Reports to congestion control: data sent, data acknowledged, silence.

use super::window_use::{Round, Sent};
use crate::tcp::congestion::{Acked, Congestion, Controller, FullPath, Idle, Lost, Sample, Start, Unused};
use crate::tcp::connection::Sender;
use crate::tcp::connection::{Connection, Context};
use crate::tcp::ecn::EcnMode;
use crate::tcp::rare::special::Special;
use crate::tcp::recovery::LostTransmission;
use crate::tcp::send::delivery::RateSample;
use crate::{Config, CongestionControl, Instant};
use alloc::vec::Vec;
use core::time::Duration;

impl Connection {
    /// Begins congestion control with the present segment size. If all connections begin alike, no
    /// other algorithm is considered, which saves 3 % of the instructions of an exchange with Fast
    /// Open.
    #[inline(always)]
    pub(in crate::tcp) fn begin_congestion(&mut self, cx: &Context) {
        if cx.fresh.windows_begin_alike && self.asks_for_nothing() && cx.takes_fast_paths() {
            let initial_window = cx.config.initcwnd.saturating_mul(self.smss().into());
            self.congestion.begin_cubic(initial_window, cx.config.hystart);
        } else {
            self.congestion = self.new_congestion(cx);
        }
    }

    /// Returns a controller without history.
    #[inline(never)]
    pub(in crate::tcp) fn new_congestion(&self, cx: &Context) -> Congestion {
        self.congestion_from(cx, self.initial_window(&cx.config))
    }

    /// Changes the algorithm and keeps the window (`tcp_reinit_congestion_control`).
    pub(in crate::tcp) fn change_congestion(&mut self, cx: &Context) {
        let next = self.congestion_with(cx, self.congestion.cwnd(), self.congestion.ssthresh());
        if next.algorithm() != self.congestion.algorithm() {
            self.congestion = next;
        }
    }

    fn congestion_from(&self, cx: &Context, initial_window: u32) -> Congestion {
        let smss = u32::from(self.smss());
        let known = match &self.route {
            Some(route) if route.ssthresh.is_some() => route.ssthresh,
            _ => self.remembered_ssthresh(cx),
        };
        let ssthresh = match known.unwrap_or(cx.config.initial_ssthresh) {
            0 => u32::MAX,
            segments => segments.saturating_mul(smss),
        };
        self.congestion_with(cx, initial_window, ssthresh)
    }

    fn congestion_with(&self, cx: &Context, initial_window: u32, ssthresh: u32) -> Congestion {
        let config = &cx.config;
        let algorithm = if self.asks_for_nothing() {
            config.tcp_congestion_control
        } else {
            let of_route = self.route_metrics().and_then(|route| route.congctl);
            self.options.congestion.or(of_route).unwrap_or(config.tcp_congestion_control)
        };
        Congestion::new(
            algorithm,
            &Start {
                initial_window,
                ssthresh,
                hystart: config.hystart,
                by_segments: config.window_unit.is_segments(),
                vegas: (config.vegas_alpha as u8, config.vegas_beta as u8),
                sack: self.agreed.sack,
                // Drawn by the stack, and unlike any other connection's.
                seed: self.snd.iss.0,
            },
        )
    }

    /// Returns the initial window in bytes: RFC 6928's ten segments, or `initcwnd` of route or
    /// stack.
    pub(in crate::tcp) fn initial_window(&self, config: &Config) -> u32 {
        // A small window at first makes segments small, but the same number of larger ones may
        // follow.
        let smss = if config.window_unit.is_segments() { self.whole_segment() } else { self.smss() };
        let smss = u32::from(smss);
        let of_route = self.route_metrics().and_then(|route| route.initcwnd);
        let bytes = match of_route.unwrap_or(config.initcwnd) {
            0 => rfc5681_initial_segments(smss) * smss,
            segments => segments.saturating_mul(smss),
        };
        if self.route.is_some() { bytes.min(self.cwnd_clamp()) } else { bytes }
    }

    /// Notes that `lost` SYNs or SYN-ACKs in a row were lost: the path may not carry an initial
    /// window at once.
    pub(crate) fn syns_were_lost(&mut self, cx: &Context, lost: u8) {
        let enough = cx.config.syn_losses_initcwnd;
        if enough > 0 && u32::from(lost) >= enough {
            self.congestion = self.congestion_from(cx, u32::from(self.smss()));
        }
    }

    /// Begins the window again while the SYN is unanswered.
    pub(in crate::tcp) fn syn_is_lost(&mut self, cx: &Context) {
        let in_flight = self.reduction_base(cx, self.snd.flight_size());
        let smss = u32::from(self.smss());
        self.congestion.on_loss(&Lost { in_flight, smss, timeout: true, left: 0, again: false });
    }

    /// Notes that data is about to be sent. Retransmissions after a timeout do not follow silence,
    /// nor does data that was written with data in flight: the network was silent then (as in
    /// Linux, whose `tcp_slow_start_after_idle_check` looks when data is queued).
    pub(in crate::tcp) fn new_data_leaves(&mut self, cx: &Context) {
        if self.snd.flight_size() > 0 || self.snd.nxt.before(self.snd.max) {
            return;
        }
        self.snd.queue.begin_flight(cx.now);
        if !self.snd.queue.round_mut().is_some_and(Round::count_silence) {
            return;
        }
        let app_limited = self.snd.queue.is_app_limited();
        let written_after = !self.snd.queue.round().has_begun();
        let idle = self.window_use.idle(cx.now);
        let decays = written_after && cx.config.tcp_slow_start_after_idle;
        let rto = decays.then(|| self.rtt.rto());
        if rto.is_some_and(|rto| idle > rto) {
            self.window_use.restart(cx.now);
        }
        let initial_window = self.initial_window(&cx.config);
        let srtt = self.rtt.srtt();
        self.congestion.on_idle(&Idle { now: cx.now, idle, rto, initial_window, app_limited, srtt });
    }

    /// Notes that `bytes` of data, or a FIN, were sent, with `flight_size` in flight. `again`:
    /// retransmissions do not show how the window is used (as in Linux).
    pub(in crate::tcp) fn data_left(&mut self, cx: &Context, bytes: u32, flight_size: u32, again: bool) {
        self.pace(cx, bytes);
        let in_flight = self.recovery.pipe(flight_size);
        self.check_app_limited_after_ack(cx, in_flight);
        if again {
            return self.window_use.sent_again(cx.now);
        }
        let (cwnd, ssthresh) = (self.congestion_window(), self.congestion.ssthresh());
        let (una, nxt, smss) = (self.snd.una, self.snd.nxt, u32::from(self.smss()));
        let sent = Sent { now: cx.now, una, nxt, in_flight, outstanding: flight_size, cwnd, ssthresh, smss };
        if !self.window_use.on_sent(self.snd.queue.round_mut(), &sent) {
            self.window_is_left_unused(cx);
        }
    }

    /// Notes that the window is not filled. If it was not for long, it decays.
    pub(in crate::tcp) fn window_is_left_unused(&mut self, cx: &Context) {
        if self.window_use.may_be_unused(cx.now, &self.rtt) {
            self.decay_unused(cx);
        }
    }

    #[inline(never)]
    fn decay_unused(&mut self, cx: &Context) {
        let full_buffer = self.writer_waits;
        if cx.config.tcp_slow_start_after_idle
            && !full_buffer
            && !self.recovery.is_recovering()
            && let Some(used) = self.window_use.take_unused(cx.now, self.rtt.rto_nanos())
        {
            let initial_window = self.initial_window(&cx.config);
            self.congestion.on_unused(&Unused { used, initial_window });
        }
    }

    /// Notes that the rest of the window is too small for a burst. The window counts as full
    /// (`is_cwnd_limited` in Linux's `tcp_tso_should_defer`) and may grow. Otherwise it never would
    /// if a segment always waits.
    #[cold]
    pub(in crate::tcp) fn rest_of_window_waits(&mut self, cx: &Context) {
        let outstanding = self.snd.in_flight();
        if let Some(round) = self.snd.queue.round_mut() {
            *round = Round::full(outstanding, self.snd.nxt);
            self.window_use.restart(cx.now);
        }
    }

    /// Marks the connection app-limited if nothing waits to be sent and the congestion window has room for a segment. With
    /// `write_rules` only writes do so.
    #[inline]
    fn check_app_limited_after_ack(&mut self, cx: &Context, in_flight: u32) {
        if !cx.config.write_rules.tell_app_limited() && self.snd.unsent() == 0 {
            self.check_app_limited(in_flight, self.smss().into());
        }
    }

    /// Marks the connection app-limited, if nothing waits to be sent and the congestion window has
    /// `room`. Rates measured from now on are the application's.
    #[inline]
    pub(in crate::tcp) fn check_app_limited(&mut self, in_flight: u32, room: u32) {
        if self.recovery.resending_waits() {
            return;
        }
        if in_flight.saturating_add(room) <= self.congestion_window() {
            self.snd.queue.set_app_limited(in_flight);
        }
    }

    /// Reports the data that an acknowledgment delivered, after its losses are known.
    #[inline(always)]
    pub(in crate::tcp) fn segments_delivered(&mut self, cx: &mut Context) {
        if self.snd.queue.has_news() {
            self.report_delivery(cx);
        }
        self.snd.queue.release(&mut cx.blocks);
    }

    #[inline(never)]
    fn report_delivery(&mut self, cx: &mut Context) {
        let now = cx.now;
        if self.ecn.is_echoed() {
            self.echo_forbids_growth(cx);
        }
        let Some(rate) = self.snd.queue.take_sample(now, self.rtt.min_rtt_micros()) else { return };
        self.count_delivered(cx, &rate);
        let in_flight = self.pipe();
        let window_full = self.snd.queue.round().was_full();
        self.report_rate(now, &rate, in_flight, window_full);
        if self.congestion.holds_back() {
            self.snd.queue.set_app_limited(in_flight);
        }
        self.check_app_limited_after_ack(cx, in_flight);
    }

    pub(in crate::tcp) fn report_rate(
        &mut self,
        now: Instant,
        rate: &RateSample,
        in_flight: u32,
        window_full: bool,
    ) {
        if self.congestion.hears_rates() {
            let smss = u32::from(self.smss());
            self.congestion.on_sample(&Sample { now, rate: *rate, in_flight, smss, window_full });
        }
    }

    pub(in crate::tcp) fn count_delivered(&mut self, cx: &mut Context, rate: &RateSample) {
        let now = cx.now;
        let smss = u32::from(self.smss());
        // Divisions are slow, and requests and answers are at most a segment.
        let full = if rate.newly_acked <= smss { 1 } else { rate.newly_acked.div_ceil(smss) };
        let segments = u64::from(full.max(rate.runs.into()));
        cx.counters.delivered += segments;
        if self.ecn.is_echoed() && self.agreed.ecn == EcnMode::Classic {
            cx.counters.delivered_ce += segments;
            let counts = self.counts(now);
            counts.delivered_ce = counts.delivered_ce.wrapping_add(segments as u32);
        }
    }

    /// Notes a round trip in nanoseconds as a minimum, unless the peer may have delayed it.
    pub(in crate::tcp) fn note_min_rtt(
        &mut self,
        cx: &Context,
        rtt: u64,
        waited: impl FnOnce(&Connection) -> bool,
    ) {
        if self.rtt.note_min(cx.now, rtt, cx.fresh.min_rtt_age) && !waited(self) {
            self.min_rtt_grows_old(cx, rtt);
        }
    }

    #[cold]
    fn min_rtt_grows_old(&mut self, cx: &Context, rtt: u64) {
        let choices = &mut Special::of(&mut self.special, cx.now).least_rtt;
        self.rtt.grow_old(choices, (cx.now, rtt), cx.fresh.min_rtt_age);
    }

    /// Returns whether the acknowledgment of a single small segment may have been delayed: nothing
    /// sent before was acknowledged with it (Linux's `FLAG_ACK_MAYBE_DELAYED`).
    #[cold]
    pub(in crate::tcp) fn may_be_delayed(&self, acked: u32) -> bool {
        acked < self.smss().into()
            && self.recovery.board().is_none()
            && !self.ecn.is_echoed()
            && self.snd.queue.news_is_lone()
    }

    /// Reports lost transmissions.
    pub(in crate::tcp) fn segments_lost(&mut self, lost: Vec<LostTransmission>) {
        for (range, snapshot) in lost {
            let segment = self.snd.queue.on_lost(range, &snapshot);
            self.congestion.on_segment_lost(&segment);
        }
    }

    /// Lets the window grow for `bytes` that were acknowledged without losses. `rtt` is their
    /// sample in nanoseconds.
    #[inline]
    pub(in crate::tcp) fn window_may_grow(&mut self, cx: &mut Context, bytes: u32, rtt: Option<u64>) {
        if self.ecn.is_echoed() && self.echo_forbids_growth(cx) {
            return;
        }
        let round = *self.snd.queue.round();
        self.window_may_grow_after(cx, &round, bytes, rtt);
    }

    /// Lets the window grow for `bytes` acknowledged, by how far the window was used in `round`.
    #[inline(always)]
    pub(in crate::tcp) fn window_may_grow_after(
        &mut self,
        cx: &mut Context,
        round: &Round,
        bytes: u32,
        rtt: Option<u64>,
    ) {
        if cx.config.acks_use_window {
            self.window_use.acknowledged(cx.now);
        }
        let limited = round.limits(self.congestion.cwnd(), self.congestion.ssthresh());
        if limited || !self.congestion.on_ack_unlimited(cx.now) {
            self.window_grows(cx, limited, bytes, rtt.map(Duration::from_nanos));
        }
    }

    #[inline(never)]
    fn window_grows(&mut self, cx: &mut Context, limited: bool, bytes: u32, rtt: Option<Duration>) {
        let smss = u32::from(self.smss());
        let most = match cx.config.abc_limit {
            0 => u32::MAX,
            segments => segments.saturating_mul(smss),
        };
        let before = self.congestion.ssthresh();
        self.congestion.on_ack(&Acked {
            now: cx.now,
            bytes,
            most,
            limited,
            smss,
            una: self.snd.una,
            nxt: self.snd.nxt,
            rtt,
            srtt: self.rtt.srtt().unwrap_or_default(),
            min_rtt: self.rtt.min_rtt(),
        });
        if before == u32::MAX && self.congestion.ssthresh() < before {
            // No loss did that. Of Vegas it is the habit, of the others HyStart++.
            let delay = self.congestion.algorithm() != CongestionControl::Vegas;
            self.path_is_full(cx, FullPath { delay, train: false });
        }
    }

    /// Ends slow start for another reason than a loss.
    #[cold]
    pub(in crate::tcp) fn path_is_full(&self, cx: &mut Context, FullPath { train, delay }: FullPath) {
        let segments = u64::from(self.congestion.cwnd() / u32::from(self.smss()));
        let counters = &mut cx.counters;
        if train {
            counters.hystart_train_detect += 1;
            counters.hystart_train_cwnd += segments;
        }
        if delay {
            counters.hystart_delay_detect += 1;
            counters.hystart_delay_cwnd += segments;
        }
    }
}

impl Sender {
    /// Notes that the peer's window has changed while nothing is in flight. Data that waited for it
    /// follows silence as if it were written now (as in Linux's `tcp_ack_update_window`).
    #[cold]
    pub(in crate::tcp) fn window_kept_back(&mut self) {
        let nxt = self.nxt;
        if let Some(round) = self.queue.round_mut() {
            *round = Round::at(nxt);
        }
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
