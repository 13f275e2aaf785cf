//! SYN-SENT (RFC 9293 §3.10.7.3), with the additions of RFC 7413 §4.2.2.

use super::{Reply, Segment};
use crate::fast_open::ClientPlan;
use crate::tcp::connection::{Connection, Context};
use crate::tcp::ecn;
use crate::tcp::open::fast_open_client::SynAck;
use crate::tcp::open::handshake::{ActiveOpen, Crossed, CutShort, Excuse, Handshake, PassiveOpen};
use crate::tcp::open::negotiation::Negotiated;
use crate::tcp::recv::receiver::AckOwed;
use crate::tcp::state::Transition;
use crate::tcp::timers::Timer;
use crate::time::nanos;
use crate::{CloseReason, Events, Instant, Outcome, Skipped};
use core::time::Duration;
use wire::{Flags, SeqNum, Timestamps};

/// Time by which a reset precedes the SYN behind it (Linux's `TCP_TIMEOUT_MIN`).
const SYN_AFTER_RESET: Duration = Duration::from_millis(2);

impl Connection {
    #[inline(never)]
    pub(super) fn arrives_in_syn_sent(&mut self, cx: &mut Context, segment: &mut Segment) -> Reply {
        let ack = segment.header.ack;
        let acked = segment.has(Flags::ACK);
        // RFC 9293 §3.10.7.3: "If SEG.ACK =< ISS or SEG.ACK > SND.NXT, send a reset (unless the RST
        // bit is set, if so drop the segment and return)".
        if acked && !(self.snd.iss.before(ack) && ack.before_or_eq(self.snd.max)) {
            self.old_connection_answered();
            self.repeat_syn_soon(cx);
            return if segment.has(Flags::RST) { Reply::Nothing } else { Reply::Reset };
        }
        if acked && self.echoes_a_time_we_never_sent(cx, segment) {
            cx.counters.paws_active_rejected += 1;
            self.old_connection_answered();
            return if segment.has(Flags::RST) { Reply::Nothing } else { Reply::Reset };
        }
        if segment.has(Flags::RST) {
            if acked {
                self.refused(cx, ack);
            }
            return Reply::Nothing;
        }
        if !segment.has(Flags::SYN) {
            return Reply::Nothing;
        }
        let Some(handshake) = self.handshake.take() else { return Reply::Nothing };
        let Handshake::Active(active) = &*handshake else { return Reply::Nothing };
        let (window, wscale) = (self.rcv.adv.since(self.rcv.nxt) as u16, self.rcv.wscale);
        self.note_syn(cx, segment, &active.plan);
        if acked {
            let reply = self.syn_ack_arrived(cx, segment, active);
            cx.handshakes.keep(handshake);
            return reply;
        }
        self.agreed.ecn = ecn::crossed(&cx.config, active.transmissions > 1, segment);
        self.marks_agreed_by_syn(cx, 0);
        self.simultaneous_open(cx, active, window, wscale);
        Reply::Nothing
    }

    /// Notes that an answer was not for our SYN. The peer is in TIME-WAIT or half open after an
    /// older connection between these ports (a challenge ACK, RFC 5961 §4.2), or the packet is
    /// late. The answer says nothing about the data that our SYN carries.
    fn old_connection_answered(&mut self) {
        if let Some(Handshake::Active(active)) = self.handshake.as_deref_mut() {
            active.excuse = Some(Excuse::OldConnection);
        }
    }

    /// Schedules the next SYN, because our reset is about to end the peer's older connection. The
    /// SYN need not wait for the time-out, unless one has passed already (like Linux; RFC 9293
    /// §3.5.1). With `repeat_challenged_syn` it carries the data of the last SYN.
    fn repeat_syn_soon(&mut self, cx: &Context) {
        let Some(Handshake::Active(active)) = self.handshake.as_deref_mut() else { return };
        if active.held() {
            return;
        }
        if cx.config.repeat_challenged_syn {
            active.repeat();
        }
        if self.timeouts == 0 {
            let at = cx.now + SYN_AFTER_RESET;
            self.timers.set(Timer::Retransmit, at.min(self.timers.deadline(Timer::Retransmit)));
        }
    }

    /// Returns whether TSecr lies outside the time from our first SYN to now (Linux's
    /// `PAWSACTIVEREJECTED`).
    fn echoes_a_time_we_never_sent(&self, cx: &Context, segment: &Segment) -> bool {
        let (Some(timestamps), Some(Handshake::Active(active))) =
            (segment.header.options.timestamps, self.handshake.as_deref())
        else {
            return false;
        };
        let first = self.tsval(active.first_sent_at);
        let now = self.tsval(cx.now);
        cx.config.timestamps()
            && timestamps.tsecr != 0
            && timestamps.tsecr.wrapping_sub(first) > now.wrapping_sub(first)
    }

    /// Handles a reset in answer to our SYN. If that was a Fast Open SYN, a middlebox may have sent
    /// the reset, so the plain SYN is tried once. A reset that acknowledges data, after the plain
    /// SYN was sent, still answers the first SYN.
    fn refused(&mut self, cx: &mut Context, ack: SeqNum) {
        let of_data = ack.after(self.snd.iss + 1);
        if let Some(Handshake::Active(active)) = self.handshake.as_deref_mut()
            && cx.config.fast_open_verdicts
            && active.answer_allowed
            && (!active.plain || of_data)
        {
            active.cut_short = Some(CutShort::Reset);
            active.due |= !active.plain;
            active.plain = true;
            self.snd.rewind();
            return;
        }
        self.terminate(&mut cx.counters, CloseReason::Refused);
    }

    fn note_syn(&mut self, cx: &Context, segment: &Segment, plan: &ClientPlan) {
        let options = &segment.header.options;
        let mut agreed = Negotiated::from_syn(&cx.config, self.tuple.peer.is_v4(), options);
        let asked = !matches!(plan, ClientPlan::Plain(Skipped::NotAsked | Skipped::Disabled));
        if cx.config.mss_rules.assumed_stays() && asked && options.mss.is_none_or(|mss| mss == 0) {
            agreed.peer_mss = self.assumed_mss(cx);
        }
        self.agree(cx, agreed.with_ecn(&cx.config, segment));
        self.start_receiver(cx, segment.seq());
        self.set_send_window(segment);
        if let Some(timestamps) = options.timestamps {
            self.remember_timestamp(cx.now, timestamps.tsval);
        }
    }

    fn syn_ack_arrived(&mut self, cx: &mut Context, segment: &mut Segment, active: &ActiveOpen) -> Reply {
        let ack = segment.header.ack;
        self.marks_agreed_by_syn_ack(cx, segment);
        let data_acked = ack.since(self.snd.iss + 1).min(active.data_sent);
        let brings_answer = !segment.payload.is_empty() || segment.has(Flags::FIN);
        self.take_rtt_of_syn(cx, active, segment.header.options.timestamps, brings_answer);
        let syn_ack = SynAck {
            data_acked,
            fin_acked: active.fin_sent && ack == self.snd.queue.end() + 1,
            option: segment.header.options.fast_open,
            mss: segment.header.options.mss,
            brings_answer,
        };
        self.outcome = self.judge(cx, active, &syn_ack);
        self.syn_data_acked = data_acked as u16;

        self.timers.stop(Timer::Retransmit);
        // RFC 5682: the acknowledged data was never retransmitted, so the timeout was spurious.
        let spurious =
            self.timeouts > 0 && data_acked > 0 && data_acked == active.data_sent && self.agreed.sack;
        cx.counters.spurious_rtos += u64::from(spurious);
        cx.counters.loss_undo += u64::from(spurious);
        self.timeouts = 0;
        if self.special.is_some() {
            self.report_acknowledged(cx, ack);
        }
        let data_ack = ack.earliest(self.snd.queue.end());
        self.snd.queue.acknowledge(data_ack, self.smss().into(), &mut cx.blocks, |_| ());
        let delivered = cx.counters.delivered;
        self.segments_delivered(cx);
        // The SYN's data counts as one segment, whatever the peer's MSS, once all of it is
        // acknowledged.
        let whole = data_acked > 0 && data_acked == active.data_sent;
        cx.counters.delivered = delivered + u64::from(whole);
        // A SYN counts as a delivered segment.
        cx.counters.delivered += 1 + u64::from(self.sent_empty_syn_data());
        self.establish(cx.now, ack, data_acked);
        // Retransmits data and FIN of the SYN that the peer did not accept.
        self.snd.nxt = ack;
        self.snd.weigh();
        if let Some(special) = &mut self.special {
            special.heard(cx.now, true);
        }
        self.transition(Transition::SynAckReceived);
        self.events |= Events::CONNECTED | Events::WRITABLE;
        self.resend_syn_data(cx);
        self.close_as_queued(ack);
        self.owe_handshake_ack(cx, active.writer_waits);
        let refused = data_acked < active.data_sent && cx.config.refusal_brings_no_answer;
        let reply = if active.answer_allowed && brings_answer && !refused {
            self.take_answer(cx, segment)
        } else {
            Reply::Nothing
        };
        self.arm_delayed_ack(cx);
        if active.answer_allowed && segment.has(Flags::FIN) && !refused {
            self.await_close(cx);
        }
        self.arm_persist(cx);
        reply
    }

    /// Measures the round trip of the SYN. A SYN-ACK with data may have waited for the server's
    /// application, so it is not a minimum. After a retransmission only a timestamp tells which SYN
    /// was answered (RFC 7323 §4.1).
    fn take_rtt_of_syn(
        &mut self,
        cx: &mut Context,
        active: &ActiveOpen,
        timestamps: Option<Timestamps>,
        brings_answer: bool,
    ) {
        let sent_at = self.answered_syn(active, timestamps);
        // A plain SYN that follows a Fast Open SYN early says nothing about losses.
        let early = active.answer_allowed && cx.config.fast_fallback;
        let lost = active.transmissions.saturating_sub(1 + active.repeats + u8::from(early));
        if sent_at != Some(active.first_sent_at) {
            self.syns_were_lost(cx, lost);
        }
        let echoed = || timestamps.and_then(|timestamps| self.rtt_by_echo(cx, timestamps)).map(nanos);
        let Some(rtt) = sent_at.map(|sent_at| cx.now.nanos_since(sent_at)).or_else(echoed) else {
            self.rtt.on_syn_retransmitted();
            return self.recall_path(cx);
        };
        if brings_answer && active.answer_allowed {
            self.rtt.on_delayed_nanos(rtt, self.snd.span());
        } else {
            self.rtt.on_sample_nanos(cx.now, rtt, self.snd.span());
        }
        self.recall_path(cx);
    }

    /// Returns when the answered SYN was sent, if that is known.
    fn answered_syn(&self, active: &ActiveOpen, timestamps: Option<Timestamps>) -> Option<Instant> {
        let (first, last) = (active.first_sent_at, active.last_sent_at);
        if active.transmissions == 1 {
            return Some(last);
        }
        let echo = timestamps.filter(|_| self.agreed.timestamps)?.tsecr;
        match () {
            () if self.tsval(first) == self.tsval(last) => None,
            () if echo == self.tsval(last) => Some(last),
            () => (echo == self.tsval(first)).then_some(first),
        }
    }

    /// Retransmits SYN data that the peer did not accept, with the first ACK (RFC 7413 §4.2.2: no
    /// latency is lost). It is marked lost until it is acknowledged. The windows stay, because the
    /// path did not lose it (Linux's `tcp_non_congestion_loss_retransmit`).
    fn resend_syn_data(&mut self, cx: &mut Context) {
        let sent = self.snd.max.earliest(self.snd.queue.end());
        if sent.after(self.snd.una) {
            self.snd.skip_to_max();
            self.snd.queue.clear_app_limited();
            self.lose_everything(cx);
        }
    }

    /// Closes our direction if the application did so before the SYN was answered.
    fn close_as_queued(&mut self, ack: SeqNum) {
        if self.snd.fin_queued() {
            self.transition(Transition::Close);
            if self.snd.fin_seq().is_some_and(|fin| ack.after(fin)) {
                self.transition(Transition::FinAcked);
            }
        }
    }

    /// Takes the answer on a SYN-ACK. After a FIN the application is about to close, and one
    /// FIN-ACK can acknowledge everything.
    fn take_answer(&mut self, cx: &mut Context, segment: &mut Segment) -> Reply {
        let fin = segment.has(Flags::FIN);
        if fin {
            self.rcv.ack_owed = AckOwed::No;
        }
        let reply = self.process_text_and_fin(cx, segment).err().unwrap_or(Reply::Nothing);
        if !fin && self.is_open() {
            self.owe_handshake_ack(cx, false);
        }
        reply
    }

    /// Handles a SYN that crossed ours: both ends are in SYN-RECEIVED, and only the SYN is
    /// acknowledged (RFC 7413 §4.2.2). The SYN-ACK repeats the window of the SYN (RFC 9293 §3.8.6:
    /// windows do not shrink). The timer of our SYN continues (RFC 6298 §5.1).
    fn simultaneous_open(&mut self, cx: &mut Context, active: &ActiveOpen, window: u16, wscale: u8) {
        self.rcv.adv = self.rcv.nxt + u32::from(window);
        if cx.config.crossed_syns.scales() && cx.config.tcp_window_scaling {
            self.rcv.wscale = wscale;
        }
        if active.data_sent > 0 || active.answer_allowed {
            self.outcome = Outcome::Skipped(Skipped::Simultaneous);
        }
        self.transition(Transition::SynReceived);
        if self.snd.fin_queued() {
            self.transition(Transition::Close);
        }
        if cx.config.crossed_syns.retransmits_syn_data() {
            self.snd.rewind();
        }
        self.counts(cx.now).crossed = true;
        if self.timeouts > 0 {
            self.syn_is_lost(cx);
        }
        let linear = u32::from(self.timeouts).min(cx.config.tcp_syn_linear_timeouts) as u8;
        self.handshake = Some(cx.handshakes.place(Handshake::Passive(PassiveOpen {
            fast_open: false,
            crossed: Some(Crossed { syns: active.transmissions, linear, wscale }),
            cookie: None,
            data_allowed: false,
            limited: false,
            due: true,
            transmissions: 0,
            sent_at: cx.now,
            data_sent: 0,
            fin_sent: false,
            wrote: false,
            fin_waits: false,
            request_goes_on: false,
        })));
    }
}
