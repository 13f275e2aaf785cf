//! SYN and SYN-ACK, their data, and their timeouts.

use super::segment::Outgoing;
use crate::fast_open::{ClientPlan, SynDataLimits, SynDataPolicy, syn_data_max, syn_data_mss};
use crate::tcp::connection::{Connection, Context};
use crate::tcp::ecn::ecn_of_syn;
use crate::tcp::open::handshake::{ActiveOpen, Handshake, PassiveOpen};
use crate::tcp::open::negotiation;
use crate::tcp::recv::receiver::AckOwed;
use crate::tcp::recv::window_space::{Space, first_field};
use crate::tcp::send::retry_limits::retries_timeout;
use crate::tcp::timers::Timer;
use crate::{CloseReason, Config, Outcome, Skipped, State};
use core::time::Duration;
use wire::{FastOpenOption, Flags, TCP_OPTIONS_MAX, TcpOptions, TxPacket};

impl Connection {
    /// Sends a SYN. The first follows the plan, later ones are plain (RFC 7413 §4.2.2).
    pub(super) fn send_syn(&mut self, cx: &mut Context, packet: &mut TxPacket) -> bool {
        let Some(mut handshake) = self.handshake.take() else { return false };
        let Handshake::Active(active) = &mut *handshake else { return false };
        let option = if active.plain { None } else { option_of(&active.plan) };
        if cx.config.mss_rules.mss_follows_path() && active.transmissions > 0 {
            self.advertise_path_mss(cx);
        }
        let options = self.options_of_syn(cx, option);
        let mut out = if active.plain {
            Outgoing::bare(self.snd.iss, Flags::SYN)
        } else {
            self.first_syn(cx, active, &options, packet)
        };
        let repeats = active.repeats > 0 && !active.plain;
        out.flags |= ecn_of_syn(&cx.config, active.transmissions > 0 && !repeats);
        (active.due, active.repeat_due) = (false, false);
        active.transmissions = active.transmissions.saturating_add(1);
        active.last_sent_at = cx.now;
        if active.transmissions == 1 {
            active.first_sent_at = cx.now;
            if active.plan == ClientPlan::Plain(Skipped::NothingToSend) {
                self.note_empty_syn_data(cx);
            }
        } else {
            out.again = true;
            cx.counters.syn_retrans += 1;
            self.counts(cx.now).syn_repeated = true;
        }
        let wait = if active.sent_as_planned_only() && active.answer_allowed && cx.config.fast_fallback {
            crate::fast_open::fallback_after(active.path_srtt).min(self.syn_rto(&cx.config))
        } else {
            self.syn_rto(&cx.config)
        };
        self.timers.set(Timer::Retransmit, cx.now + wait);
        if active.transmissions > 1 {
            self.hasten_rto(cx.now, cx.now.since(active.first_sent_at));
        }
        self.snd.advance_nxt(self.snd.nxt.latest(self.snd.iss + 1));
        self.handshake = Some(handshake);
        let window = if out.again { self.rcv.adv.since(self.rcv.nxt) as u16 } else { self.syn_window(cx) };
        self.finish_packet(cx, &out, window, options, packet);
        true
    }

    /// Makes a SYN plain that has not left yet. A signature leaves no room for a cookie, so signed
    /// connections have no Fast Open.
    pub(in crate::tcp) fn forgo_fast_open(&mut self) {
        if let Some(Handshake::Active(active)) = self.handshake.as_deref_mut()
            && active.transmissions == 0
            && !active.plain
        {
            (active.plain, active.answer_allowed) = (true, false);
            active.plan = ClientPlan::Plain(Skipped::NotAsked);
            self.outcome = Outcome::Skipped(Skipped::NotAsked);
        }
    }

    /// Builds the first SYN: option, data and FIN as planned.
    fn first_syn(
        &mut self,
        cx: &mut Context,
        active: &mut ActiveOpen,
        options: &TcpOptions,
        packet: &mut TxPacket,
    ) -> Outgoing {
        let ClientPlan::Data { fin, .. } = active.plan else {
            return Outgoing::bare(self.snd.iss, Flags::SYN);
        };
        let limits = self.syn_data_limits(cx, options.emit_len());
        let mut room = syn_data_max(&limits) as u32;
        if active.repeats > 0 {
            room = room.min(active.data_sent);
        }
        self.assume_mss(cx, syn_data_mss(&limits) as u16);
        let len = room.min(self.snd.queue.len() as u32);
        let start = self.snd.iss + 1;
        let (taken, _) = self.snd.queue.leave_with_syn(cx.now, start, len, packet);
        self.snd.queue.join_before(start + taken);
        // A server that accepts the data only from a later segment shall deliver it at once (as in
        // Linux's `tcp_send_syn_data`).
        self.snd.queue.push_before(start + taken);
        let fin = fin && self.snd.fin_queued() && taken as usize == self.snd.queue.len();
        active.data_sent = taken;
        active.fin_sent = fin;
        if taken == 0 {
            self.note_empty_syn_data(cx);
        }
        self.syn_data_len = taken as u16;
        self.snd.advance_nxt(start + taken + u32::from(fin));
        let mut flags = Flags::SYN;
        flags.set(Flags::FIN, fin);
        Outgoing { payload_len: taken as usize, ..Outgoing::bare(self.snd.iss, flags) }
    }

    /// Counts SYN data of zero bytes as a segment (Linux's `tcp_send_syn_data`).
    fn note_empty_syn_data(&mut self, cx: &mut Context) {
        if cx.config.window_unit.is_segments() {
            cx.counters.orig_data_sent += 1;
            self.counts(cx.now).empty_syn_data = true;
        }
    }

    /// Returns how many bytes the first SYN would carry with this plan.
    pub(crate) fn first_syn_room(&self, cx: &Context, plan: &ClientPlan) -> usize {
        match plan {
            ClientPlan::Data { .. } => self.syn_data_room(cx, &self.options_of_syn(cx, option_of(plan))),
            _ => 0,
        }
    }

    fn syn_data_room(&self, cx: &Context, options: &TcpOptions) -> usize {
        syn_data_max(&self.syn_data_limits(cx, options.emit_len()))
    }

    /// Returns the assumed MSS of a peer that has not announced it yet.
    pub(in crate::tcp) fn assumed_mss(&self, cx: &Context) -> u16 {
        syn_data_mss(&self.syn_data_limits(cx, 0)) as u16
    }

    fn syn_data_limits(&self, cx: &Context, option_bytes: usize) -> SynDataLimits {
        let cached = cx.paths.lookup(self.tuple.local, self.tuple.peer);
        SynDataLimits {
            advmss: negotiation::advertised_mss(
                &cx.config,
                &cx.capabilities,
                &self.tuple,
                self.route_metrics(),
            ),
            cached_mss: cached.and_then(|path| path.mss),
            path_mtu: usize::from(self.path_mtu),
            ip_header_len: self.tuple.ip_header_len(),
            option_bytes,
            user_mss: self.options.max_segment,
            policy: SynDataPolicy {
                room: cx.config.syn_data_room,
                limit_uncached: cx.config.syn_data_default_mss,
                clamp_cached: cx.config.syn_data_default_mss,
            },
        }
    }

    /// Returns the timeout of a SYN. The first few are equal, then each doubles the last (Linux's
    /// `tcp_syn_linear_timeouts`).
    fn syn_rto(&self, config: &Config) -> Duration {
        self.handshake_rto(config).unwrap_or(config.rto_initial)
    }

    /// Returns the timeout of a SYN of ours that is not acknowledged.
    pub(crate) fn handshake_rto(&self, config: &Config) -> Option<Duration> {
        let doublings = self.handshake_doublings(config)?;
        Some(config.rto_initial.saturating_mul(1 << doublings).min(self.rtt.max_rto()))
    }

    pub(crate) fn handshake_doublings(&self, config: &Config) -> Option<u32> {
        let linear = match self.handshake.as_deref() {
            None if self.state != State::SynSent => return None,
            Some(Handshake::Passive(passive)) => passive.crossed?.linear.into(),
            _ => config.tcp_syn_linear_timeouts,
        };
        Some(u32::from(self.timeouts).saturating_sub(linear).min(16))
    }

    /// Retransmits the Fast Open SYN with the same data. It met an older connection that our reset
    /// has ended by now.
    fn repeat_syn(&mut self) {
        let Some(Handshake::Active(active)) = self.handshake.as_deref_mut() else { return };
        active.repeats += 1;
        active.due = true;
        let start = self.snd.iss + 1;
        self.snd.queue.take_back((start, start + active.data_sent));
        self.snd.rewind();
    }

    /// Handles a SYN without an answer. For a Fast Open SYN, the first timeout is the fallback to a
    /// plain SYN and not a loss.
    pub(super) fn syn_timeout(&mut self, cx: &mut Context) {
        let Some(Handshake::Active(active)) = self.handshake.as_deref_mut() else { return };
        if core::mem::take(&mut active.repeat_due) {
            return self.repeat_syn();
        }
        let early_fallback =
            active.sent_as_planned_only() && active.answer_allowed && cx.config.fast_fallback;
        active.plain = true;
        let retries = self.options.syn_retries.map_or(cx.config.tcp_syn_retries, u32::from);
        let limit = retries + cx.config.tcp_syn_linear_timeouts;
        // The linear timeouts add retries but no time. So with few retries the time ends the
        // attempt.
        let longest = retries_timeout(retries, cx.config.rto_initial, self.rtt.max_rto());
        let longest = self.options.user_timeout().unwrap_or(longest);
        let late = self.timeouts > 0 && cx.now.since(active.first_sent_at) >= longest;
        if late || u32::from(self.timeouts) >= limit {
            // An attempt that ends before the third timeout is as suspicious as the third timeout.
            if active.answer_allowed && !early_fallback && self.timeouts <= 2 {
                cx.third_timeout_of_fast_open();
            }
            cx.counters.timeouts += 1;
            cx.counters.abort_on_timeout += 1;
            return self.terminate(&mut cx.counters, CloseReason::TimedOut);
        }
        active.due = true;
        let fast_open = active.answer_allowed;
        self.snd.rewind();
        if !early_fallback {
            if self.timeouts == 0 {
                self.syn_is_lost(cx);
            }
            self.timeouts += 1;
            cx.counters.timeouts += 1;
            // The lost SYN is the one that the last timeout retransmitted.
            cx.counters.lost_retransmit += u64::from(self.timeouts > 1);
            let first = self.timeouts == 1;
            self.counts(cx.now).timed_out(cx.now, first);
            if fast_open && self.timeouts == 3 {
                cx.third_timeout_of_fast_open();
            }
        }
    }

    /// Sends a SYN-ACK. The first may carry the answer (RFC 7413 §4.2.2, R31), later ones do not:
    /// "If the SYN-ACK timer fires, the server SHOULD retransmit a SYN-ACK segment with neither
    /// data nor Fast Open options for compatibility reasons."
    pub(super) fn send_syn_ack(&mut self, cx: &mut Context, packet: &mut TxPacket) -> bool {
        let Some(mut handshake) = self.handshake.take() else { return false };
        let Handshake::Passive(passive) = &mut *handshake else { return false };
        let first = passive.transmissions == 0;
        if cx.config.mss_rules.mss_follows_path() && passive.crossed.is_some() {
            self.advertise_path_mss(cx);
        }
        let options = match passive.crossed {
            Some(crossed) if cx.config.crossed_syns.offers_all() => {
                self.options_of_crossed_syn(cx, crossed.wscale, first)
            }
            _ => self.options_of_syn_ack(cx, if first { passive.cookie } else { None }),
        };
        let mut out = if first && passive.data_allowed {
            self.answer_on_syn_ack(cx, passive, &options, packet)
        } else {
            Outgoing::bare(self.snd.iss, Flags::SYN | Flags::ACK)
        };
        out.flags |= self.agreed.ecn_of_syn_ack();
        if !first {
            out.again = true;
            cx.counters.syn_retrans += 1;
        }
        if passive.crossed.is_some() && options.accurate_ecn.is_some() {
            self.syn_ack_reported_marks(cx);
        }
        let (fast_open, crossed) = (passive.fast_open, passive.crossed);
        passive.due = false;
        passive.transmissions = passive.transmissions.saturating_add(1);
        passive.sent_at = cx.now;
        self.snd.advance_nxt(self.snd.nxt.latest(self.snd.iss + 1));
        self.timers.stop(Timer::SynAckHold);
        if !self.timers.is_set(Timer::Retransmit) {
            let linear = crossed.map_or(0, |crossed| crossed.linear);
            let backoff = u32::from(self.timeouts.saturating_sub(linear)).min(16);
            let wait = cx.config.rto_initial.saturating_mul(1 << backoff).min(self.rtt.max_rto());
            self.timers.set(Timer::Retransmit, cx.now + wait);
        }
        self.handshake = Some(handshake);
        let window = match crossed {
            Some(_) => {
                self.synack_acknowledges();
                // Repeats the window of the SYN. An ACK sent since may have rounded it up to a
                // multiple of the scale.
                self.rcv.adv.since(self.rcv.nxt).min(u16::MAX.into()) as u16
            }
            None => self.syn_window(cx),
        };
        self.finish_packet(cx, &out, window, options, packet);
        if fast_open {
            self.count_syn_ack_of_request(cx, &out);
        }
        // The number of our SYN was sent before, in another segment (RFC 4022's `tcpOutSegs`).
        cx.counters.out_segs -= u64::from(crossed.is_some() && first);
        true
    }

    /// Counts a SYN-ACK like that of a request (Linux's `tcp_rtx_synack`). A repeated SYN-ACK
    /// counts as a segment sent. One without data does not count for the connection.
    fn count_syn_ack_of_request(&mut self, cx: &mut Context, out: &Outgoing) {
        cx.counters.out_segs += u64::from(out.again);
        cx.counters.syn_ack_retrans += u64::from(out.again);
        self.tally.segs_out = self.tally.segs_out.wrapping_sub(u32::from(out.payload_len == 0));
    }

    fn answer_on_syn_ack(
        &mut self,
        cx: &mut Context,
        passive: &mut PassiveOpen,
        options: &TcpOptions,
        packet: &mut TxPacket,
    ) -> Outgoing {
        let room = self.syn_ack_room(options.emit_len());
        let len = room.min(self.snd.queue.len() as u32);
        let start = self.snd.iss + 1;
        let (taken, push) = self.snd.queue.leave_with_syn(cx.now, start, len, packet);
        let fin = self.snd.fin_queued() && taken as usize == self.snd.queue.len();
        passive.data_sent = taken;
        passive.fin_sent = fin;
        self.synack_data_len = taken as u16;
        cx.counters.synack_data += u64::from(taken > 0 || fin);
        self.snd.advance_nxt(start + taken + u32::from(fin));
        let mut flags = Flags::SYN | Flags::ACK;
        flags.set(Flags::PSH, push && taken > 0);
        flags.set(Flags::FIN, fin);
        Outgoing { payload_len: taken as usize, ..Outgoing::bare(self.snd.iss, flags) }
    }

    /// Returns the payload bytes of a SYN-ACK: the peer's MSS and the path's MTU, less the options
    /// sent and the signature, within the window that the SYN offered.
    pub(crate) fn syn_ack_room(&self, option_bytes: usize) -> u32 {
        let mtu_room = self.path_mtu.saturating_sub(self.tuple.ip_header_len() as u16 + 20);
        let mss = self.agreed.peer_mss.min(mtu_room).min(self.options.max_segment.unwrap_or(u16::MAX));
        let options = option_bytes as u32 + u32::from(self.signature_len());
        u32::from(mss).saturating_sub(options).min(self.send_window())
    }

    /// Returns whether the answer fills the SYN-ACK. A longer hold gains nothing then.
    pub(crate) fn answer_fills_syn_ack(&self, cx: &Context) -> bool {
        let Some(Handshake::Passive(passive)) = self.handshake.as_deref() else { return false };
        let len = self.snd.queue.len() as u32;
        len >= self.syn_ack_room(TCP_OPTIONS_MAX)
            && len >= self.syn_ack_room(self.options_of_syn_ack(cx, passive.cookie).emit_len())
    }

    /// Handles a SYN-ACK without an ACK. A Fast Open child has one retransmission more than an
    /// ordinary request, as in Linux's `tcp_fastopen_synack_timer`.
    pub(super) fn syn_ack_timeout(&mut self, cx: &mut Context) {
        let Some(Handshake::Passive(passive)) = self.handshake.as_deref_mut() else { return };
        passive.due = true;
        let fast_open = passive.fast_open;
        let stacks = match passive.crossed {
            // It is our SYN that is not acknowledged.
            Some(_) => cx.config.tcp_syn_retries,
            None => cx.config.tcp_synack_retries + u32::from(passive.fast_open),
        };
        let retries = self.options.syn_retries.map_or(stacks, u32::from);
        // The count ends at 255, the largest `tcp_synack_retries`.
        let expired = u32::from(self.timeouts) >= retries.min(u8::MAX.into());
        self.timeouts = self.timeouts.saturating_add(1);
        cx.counters.timeouts += 1;
        let first = self.timeouts == 1;
        self.counts(cx.now).timed_out(cx.now, first);
        if !fast_open {
            cx.counters.lost_retransmit += u64::from(!first);
            if first {
                self.syn_is_lost(cx);
            }
        }
        if expired {
            cx.counters.abort_on_timeout += u64::from(!fast_open);
            self.terminate(&mut cx.counters, CloseReason::TimedOut);
        }
    }

    #[inline(always)]
    pub(super) fn syn_window(&mut self, cx: &Context) -> u16 {
        let mss = self.window_segment();
        // With `receive_accounting` by packets, the data of a Fast Open SYN does not reduce the
        // window (Linux computes it from the request).
        let empty = || Space::new(&cx.config, &self.options).full();
        let space = self.rcv.first_window(mss).unwrap_or_else(empty);
        let window = space.min(self.initial_rcv_wnd(mss));
        // As in Linux: 65536 bytes become 44 × 1460 = 64240, or 45 × 1448 = 65160 with timestamps.
        let whole = first_field(&cx.config, window, mss);
        self.rcv.adv = self.rcv.adv.latest(self.rcv.nxt + whole);
        self.synack_acknowledges();
        whole as u16
    }

    fn synack_acknowledges(&mut self) {
        self.rcv.last_ack_sent = self.rcv.nxt;
        self.rcv.ack_owed = AckOwed::No;
        self.timers.stop(Timer::DelayedAck);
    }
}

/// Returns the Fast Open option of a first SYN.
fn option_of(plan: &ClientPlan) -> Option<FastOpenOption> {
    match *plan {
        ClientPlan::Plain(_) | ClientPlan::Data { cookie: None, .. } => None,
        ClientPlan::Request(kind) => Some(FastOpenOption { kind, cookie: None }),
        ClientPlan::Data { cookie: Some((cookie, kind)), .. } => {
            Some(FastOpenOption { kind, cookie: Some(cookie) })
        }
    }
}
