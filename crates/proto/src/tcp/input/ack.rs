//! Fifth check: the ACK field (RFC 9293 §3.10.7.4, RFC 5961 §5, RFC 5681).

use super::{Reply, Segment, Stop};
use crate::tcp::congestion::{Controller, FullPath, RoundTrip};
use crate::tcp::connection::Sender;
use crate::tcp::connection::{Connection, Context, ParentEvent};
use crate::tcp::ecn::EcnMode;
use crate::tcp::open::handshake::{Handshake, PassiveOpen};
use crate::tcp::recovery::{Arrived, Purpose};
use crate::tcp::recv::receiver::AckOwed;
use crate::tcp::recv::receiver::Receiver;
use crate::tcp::send::nagle::Nagle;
use crate::tcp::state::Transition;
use crate::tcp::timers::Timer;
use crate::time::nanos;
use crate::{CloseReason, Config, Events, Instant, State};
use core::time::Duration;
use wire::{Flags, SeqNum, Timestamps};

/// Data that an acknowledgment reported as delivered, and its round trip sample.
pub(super) struct Newly {
    pub(super) delivered: u32,
    /// Nanoseconds.
    rtt: Option<u64>,
    /// The congestion window may grow by these bytes.
    grows: bool,
}

/// Longest valid age of an echo in milliseconds.
const ECHO_MOST: u32 = u32::MAX / 2 / 1000;

impl Connection {
    pub(super) fn check_ack(&mut self, cx: &mut Context, segment: &Segment) -> Result<(), Stop> {
        if !segment.has(Flags::ACK) {
            return Err(Reply::Nothing);
        }
        let ack = segment.header.ack;
        let settled = self.handshake.is_none();
        if !settled {
            // RFC 9293 §3.10.7.4, SYN-RECEIVED: "If the segment acknowledgment is not acceptable,
            // form a reset segment".
            if !(self.snd.iss.before(ack) && ack.before_or_eq(self.snd.max)) {
                return Err(Reply::Reset);
            }
            self.syn_acknowledged(cx, segment);
        }
        if ack.after(self.snd.max) {
            // RFC 9293 §3.10.7.4: "If the ACK acks something not yet sent (SEG.ACK > SND.NXT), then
            // send an ACK, drop the segment, and return."
            self.challenge(cx);
            return Err(Reply::Nothing);
        }
        if ack.before(self.snd.una) {
            // RFC 5961 §5.2: "The ACK value is considered acceptable only if it is in the range of
            // ((SND.UNA - MAX.SND.WND) <= SEG.ACK <= SND.NXT)." Like Linux, refuses numbers that
            // were never acknowledged.
            let passed = u32::try_from(self.numbers_acked()).unwrap_or(u32::MAX);
            if ack.before(self.snd.una - self.snd.wnd_max.min(passed)) {
                self.challenge(cx);
                return Err(Reply::Nothing);
            }
            self.read_old_ack(cx, segment);
            return Ok(());
        }
        let prior_una = self.snd.una;
        let (window_updated, window_changed) = self.update_send_window(&cx.config, segment);
        if window_changed && self.snd.flight_size() == 0 && self.snd.unsent() > 0 {
            self.snd.window_kept_back();
        }
        let predicted = settled && !window_changed && self.is_as_expected(segment);
        count_predicted(cx, predicted, ack.after(prior_una), segment.payload.len(), segment.len());
        self.moments.heard(cx.now);
        if self.special.is_some() {
            self.special_hears(cx, ack);
        }
        if self.agreed.sack && self.recovery.is_idle() && segment.header.options.sack.is_empty() {
            // Without losses and reports, only progress can be new.
            if ack.after(prior_una) {
                self.acknowledge_in_order(cx, ack, segment.header.options.timestamps);
            } else {
                self.probes_answered(&cx.config);
            }
        } else {
            // If a window may shrink, the peer advertises the same one repeatedly.
            let updated =
                if cx.config.peer_window_rules.may_shrink() { window_changed } else { window_updated };
            match self.agreed.sack {
                true => self.read_ack(cx, segment, updated),
                false => self.read_reporting_ack(cx, segment, updated),
            }
        }
        self.segments_delivered(cx);
        if ack.after(prior_una) && self.purpose == Purpose::Timeout {
            self.arm_probe(cx, self.snd.in_flight(), false);
        }
        if self.snd.nagle.contains(Nagle::MORE)
            && (ack.after(prior_una) || !self.text_goes_the_short_way(cx, segment))
        {
            self.snd.nagle.remove(Nagle::MORE);
        }
        self.after_ack(cx)
    }

    /// Tells the rare features of a connection what the peer has acknowledged, even without
    /// progress.
    #[inline(never)]
    pub(super) fn special_hears(&mut self, cx: &Context, ack: SeqNum) {
        if let Some(special) = &mut self.special {
            special.heard(cx.now, self.snd.wnd > 0 || ack.after(self.snd.una));
            special.urgent_acknowledged(ack);
            self.report_acknowledged(cx, ack);
        }
    }

    /// Returns whether Linux's header prediction (RFC 1144) would accept the segment if the window
    /// were unchanged: the next segment, nothing missing before it, no option but timestamps. Our
    /// own fast path (`predicted`) requires more.
    #[inline]
    fn is_as_expected(&self, segment: &Segment) -> bool {
        let header = &segment.header;
        self.state == State::Established
            && header.flags - Flags::PSH == Flags::ACK
            && header.seq == self.rcv.nxt
            && self.rcv.in_order()
            && header.options.sack.is_empty()
    }

    /// Handles an ACK that reports or meets disorder. The peer supports SACK.
    #[inline(never)]
    fn read_ack(&mut self, cx: &mut Context, segment: &Segment, window_updated: bool) {
        let (ack, prior_una) = (segment.header.ack, self.snd.una);
        let was_recovering = self.recovery.is_recovering();
        let mut arrived = self.read_sack(cx, segment, window_updated);
        let mut acked = None;
        if let Some((_, sent_at)) = arrived.as_ref().and_then(|arrived| arrived.sacked_sent_at)
            && ack == prior_una
        {
            self.hear_round_trip(cx, cx.now.nanos_since(sent_at));
        }
        if ack.after(prior_una) {
            acked = Some(self.acknowledge_amid_trouble(cx, segment, arrived.as_mut()));
        } else {
            self.probes_answered(&cx.config);
        }
        if let Some(arrived) = arrived {
            // The window also grows by the acknowledgment that ends a recovery or shows that it was
            // spurious.
            self.recover(cx, &arrived);
            acked = acked.or_else(|| Some(self.reported(cx, &arrived)));
        }
        if let Some(acked) = acked {
            self.grow(cx, acked);
        }
        if was_recovering && !self.recovery.is_recovering() {
            self.congestion.on_recovered();
        }
        self.note_end_of_loss(cx.now);
        self.note_window_rate(self.window_rate_now(&cx.config));
    }

    /// Handles an ACK with progress and without losses. The window grows by it.
    #[inline(never)]
    pub(super) fn acknowledge_in_order(
        &mut self,
        cx: &mut Context,
        ack: SeqNum,
        timestamps: Option<Timestamps>,
    ) {
        let acked = self.acknowledge(cx, ack, timestamps, None);
        self.grow(cx, acked);
    }

    /// Handles an ACK without progress. A peer that answers window probes may delay us indefinitely
    /// (RFC 9293 §3.8.6.1).
    #[inline(never)]
    pub(super) fn probes_answered(&mut self, config: &Config) {
        if self.timeouts > 0
            && (self.snd.wnd == 0 || self.pipe() == 0)
            && !self.resends_into_closed_window(config)
        {
            self.timeouts = 0;
        }
    }

    /// Completes the handshake of a passive open.
    fn syn_acknowledged(&mut self, cx: &mut Context, segment: &Segment) {
        let Some(handshake) = self.handshake.take() else { return };
        let Handshake::Passive(passive) = &*handshake else { return };
        self.marks_of_completing_ack(&cx.config, segment, passive.crossed.is_some());
        self.timers.stop(Timer::SynAckHold);
        self.timers.stop(Timer::Retransmit);
        let syns = passive.crossed.map_or(0, |crossed| crossed.syns.saturating_sub(1));
        self.syns_were_lost(cx, syns.saturating_add(passive.transmissions).saturating_sub(1));
        let once = syns == 0 && passive.transmissions == 1;
        let sample = once.then(|| cx.now.since(passive.sent_at));
        let echoed = || {
            let timestamps = segment.header.options.timestamps;
            self.echoed_rtt(cx, timestamps).filter(|_| passive.crossed.is_some())
        };
        match sample.or_else(echoed) {
            Some(rtt) => self.rtt.on_sample(cx.now, rtt, self.snd.span()),
            None => self.rtt.on_syn_retransmitted(),
        }
        if passive.crossed.is_some() && self.timeouts > 0 {
            // The timeouts of the handshake are over. The transfer begins with its own window.
            self.congestion = self.new_congestion(cx);
            self.syns_were_lost(cx, syns.saturating_add(passive.transmissions).saturating_sub(1));
            // Linux considers these timeouts spurious: nothing tells which of the SYNs is
            // acknowledged (`tcp_packet_delayed`).
            cx.counters.loss_undo += u64::from(self.agreed.sack);
        }
        // An acknowledged SYN of ours counts as delivered.
        cx.counters.delivered += u64::from(passive.crossed.is_some()) + u64::from(self.sent_empty_syn_data());
        self.timeouts = 0;
        self.open_passively(cx, segment.seq(), segment.header.ack, self.offered_by(segment));
        if cx.config.crossed_syns.scales() && passive.crossed.is_some() && segment.has(Flags::SYN) {
            self.snd.wnd <<= self.agreed.snd_wscale.unwrap_or(0);
        }
        if passive.fin_waits {
            self.queue_fin();
        }
        if cx.config.resend_after_synack && self.answer_was_missed(passive, segment.header.ack) {
            self.snd.rewind();
        }
        cx.handshakes.keep(handshake);
        if self.snd.flight_size() > 0 {
            self.arm_rto(cx.now);
        }
        self.advertise_what_was_read_before();
    }

    /// Opens a connection whose peer has acknowledged our SYN-ACK, with a segment that offers a
    /// window.
    #[inline(always)]
    pub(super) fn open_passively(&mut self, cx: &mut Context, seq: SeqNum, ack: SeqNum, offered: u32) {
        self.recall_path(cx);
        self.establish(cx.now, self.snd.iss + 1, 0);
        self.early_confirmed = true;
        self.take_window(seq, ack, offered);
        self.transition(Transition::SynAcked);
        self.parent_event = self.parent.map(|_| ParentEvent::Established);
        self.events |= Events::CONNECTED | Events::WRITABLE;
    }

    /// Ends the handshake: the peer has acknowledged our SYN, and `bytes` of text behind it.
    pub(crate) fn establish(&mut self, now: Instant, una: SeqNum, bytes: u32) {
        self.snd.una = una;
        self.snd.advance_nxt(self.snd.nxt.latest(una));
        self.bytes_acked += u64::from(bytes);
        self.moments.establish(now);
    }

    /// Acknowledges the text of a SYN that filled the window and was read during the handshake. No
    /// window update could be sent then (RFC 9293 §3.8.6.2.2).
    fn advertise_what_was_read_before(&mut self) {
        if self.rcv.advertised_zero()
            && self.rcv.buffer.is_empty()
            && self.rcv.window_opened(self.advmss.into())
        {
            self.rcv.ack_owed = AckOwed::Now;
        }
    }

    /// Returns whether only the SYN is acknowledged, although data followed or came with the
    /// SYN-ACK. A client that received only the plain SYN-ACK has dropped the data, so it is
    /// retransmitted at once.
    fn answer_was_missed(&self, passive: &PassiveOpen, ack: SeqNum) -> bool {
        let only_syn = ack == self.snd.iss + 1 && passive.crossed.is_none();
        only_syn && (passive.transmissions > 1 || passive.data_sent > 0 || passive.fin_sent)
    }

    /// Reports a round trip in nanoseconds. The congestion controller learns it before the losses
    /// that the same ACK reveals, as in Linux.
    #[inline]
    pub(super) fn hear_round_trip(&mut self, cx: &mut Context, rtt: u64) {
        if self.congestion.hears_round_trips() {
            self.report_round_trip(cx, Duration::from_nanos(rtt));
        }
    }

    #[inline(never)]
    fn report_round_trip(&mut self, cx: &mut Context, rtt: Duration) {
        let (una, nxt, smss) = (self.snd.una, self.snd.nxt, u32::from(self.smss()));
        let paced = self.pacing_rate(&cx.config).is_some();
        let full = self.congestion.on_round_trip(&RoundTrip { now: cx.now, rtt, una, nxt, smss, paced });
        if full != FullPath::default() {
            self.path_is_full(cx, full);
        }
    }

    /// Lets the window grow by the acknowledged data, unless losses are being repaired or it
    /// shrinks.
    #[inline]
    pub(super) fn grow(&mut self, cx: &mut Context, acked: Newly) {
        if acked.grows && !self.recovery.board().is_some_and(|board| board.shrinks()) {
            self.window_may_grow(cx, acked.delivered, acked.rtt);
        }
    }

    /// Returns what SACK alone reports. On a path with much reordering the window grows by it
    /// (Linux's `tcp_may_raise_cwnd`), because some segment is always late there.
    fn reported(&self, cx: &Context, arrived: &Arrived) -> Newly {
        let reorders = self.recovery.reordering().is_some_and(|segments| segments > cx.config.tcp_reordering);
        Newly {
            delivered: arrived.delivered,
            rtt: arrived.sacked_sent_at.map(|(_, sent_at)| cx.now.nanos_since(sent_at)),
            grows: reorders && arrived.reported,
        }
    }

    /// Returns the round trip by the peer's echo, at least a millisecond. It is useful if the
    /// acknowledged data was sent more than once (RFC 7323 §4).
    #[cold]
    fn echoed_rtt(&self, cx: &Context, timestamps: Option<Timestamps>) -> Option<Duration> {
        self.rtt_by_echo(cx, timestamps?)
    }

    /// Clears the verdict that a path stalls (`paths`): data after the SYN was acknowledged.
    #[cold]
    fn path_is_not_stalled(&self, cx: &mut Context) {
        if self.bytes_acked == u64::from(self.syn_data_acked) {
            cx.paths.clear_stalled_verdict(&cx.verdict_key(&self.tuple));
        }
    }

    pub(super) fn rtt_by_echo(&self, cx: &Context, timestamps: Timestamps) -> Option<Duration> {
        if !self.agreed.timestamps {
            return None;
        }
        let echo = timestamps.tsecr.wrapping_sub(self.ts_offset);
        let passed = (cx.now.as_millis() as u32).wrapping_sub(echo);
        let sensible = timestamps.tsecr != 0 && passed < ECHO_MOST;
        sensible.then(|| Duration::from_millis(passed.max(1).into()))
    }

    #[inline(never)]
    pub(super) fn acknowledge_amid_trouble(
        &mut self,
        cx: &mut Context,
        segment: &Segment,
        arrived: Option<&mut Arrived>,
    ) -> Newly {
        self.acknowledge(cx, segment.header.ack, segment.header.options.timestamps, arrived)
    }

    /// Removes acknowledged data from the queue, and does everything that follows. `arrived` is
    /// what SACK or duplicates report, if anything. Returns the data delivered.
    fn acknowledge(
        &mut self,
        cx: &mut Context,
        ack: SeqNum,
        timestamps: Option<Timestamps>,
        mut arrived: Option<&mut Arrived>,
    ) -> Newly {
        let fin_acked = self.snd.fin_seq().is_some_and(|fin| ack.after(fin));
        let data_ack = ack.earliest(self.snd.queue.end());
        let data_before = self.snd.queue.len();
        let smss = u32::from(self.smss());
        let mut board = self.recovery.board_mut();
        let mut rest = None;
        let sent_at = self.snd.queue.acknowledge(data_ack, smss, &mut cx.blocks, |segment| {
            if segment.begun {
                rest = Some(segment.seq).filter(|_| segment.transmissions == 1 && !segment.sacked);
            }
            if let (Some(board), Some(arrived)) = (&mut board, &mut arrived) {
                board.acknowledged(segment, arrived);
            }
        });
        if let Some(rest) = rest {
            self.rest_arrived(cx, rest, arrived.as_deref_mut());
        }
        let reported = arrived.as_ref().map(|arrived| arrived.delivered);
        let sacked_at = arrived.and_then(|arrived| arrived.sacked_sent_at);
        // The data reported last was sent last.
        let sent_at = match (sent_at, sacked_at) {
            (Some((first, _)), Some((_, last))) => Some((first, last)),
            (cumulative, sacked) => cumulative.or(sacked),
        };
        let acked = (data_before - self.snd.queue.len()) as u32;
        let weight = if self.snd.counts_segments() { self.snd.queue.acked_weight() } else { acked };
        // Data that SACK or a duplicate ACK reported was counted then.
        self.advance_una(cx, ack, acked);
        let delivered = match reported {
            Some(delivered) if self.agreed.sack => delivered,
            Some(_) => self.reported_is_acknowledged(cx, weight),
            None => weight,
        };
        if self.timeouts > 0 {
            self.timeouts_over(cx.now);
        }
        let mut rtt = sent_at.map(|(_, last)| cx.now.nanos_since(last));
        match sent_at {
            Some((first, last)) => {
                let first_sample = !self.rtt.is_sampled();
                self.note_min_rtt(cx, cx.now.nanos_since(last), |c| c.may_be_delayed(acked));
                let measured = if cx.config.rtt_of_first { first } else { last };
                self.rtt.on_delayed_nanos(cx.now.nanos_since(measured), self.snd.span());
                if first_sample {
                    self.remember_rtt(cx);
                }
            }
            // Without a sample the backoff stays (RFC 6298 §5.7). Part of a segment that counts as
            // a whole yields no sample.
            None => {
                if weight > 0
                    && let Some(echoed) = self.echoed_rtt(cx, timestamps)
                {
                    self.note_min_rtt(cx, nanos(echoed), |_| false);
                    self.rtt.on_delayed_sample(echoed, self.snd.span());
                    rtt = Some(nanos(echoed));
                }
            }
        }
        if let Some(rtt) = rtt {
            self.hear_round_trip(cx, rtt);
        }
        // Part of a segment that counts as a whole does not restart the timer.
        if self.snd.flight_size() == 0 {
            self.timers.stop(Timer::Retransmit);
            self.snd.weigh();
        } else if self.recovery.restarts_timer(&cx.config) && (weight > 0 || acked == 0)
            || !self.timers.is_set(Timer::Retransmit)
        {
            match reported {
                Some(_) => self.resume_rto(cx.now),
                None => self.arm_rto(cx.now),
            }
        }
        if fin_acked {
            self.fin_is_acknowledged(cx);
        }
        if self.writer_waits {
            self.room_to_write(cx);
        }
        if self.snd.queue.is_empty() {
            self.events |= Events::SENT_ALL;
        }
        if self.special.is_some() {
            self.judge_mtu_probe(cx, ack);
        }
        // A FIN without text is not data.
        Newly { delivered, rtt, grows: acked > 0 || delivered > 0 }
    }

    /// Advances SND.UNA over `bytes` of text, and perhaps the FIN.
    #[inline]
    pub(super) fn advance_una(&mut self, cx: &mut Context, ack: SeqNum, bytes: u32) {
        if self.fast_opened && cx.paths.has_verdicts() {
            self.path_is_not_stalled(cx);
        }
        self.snd.una = ack;
        self.snd.nxt = self.snd.nxt.latest(ack);
        self.bytes_acked += u64::from(bytes);
        self.soft_error = None;
    }

    /// Handles the acknowledgment of our FIN.
    pub(super) fn fin_is_acknowledged(&mut self, cx: &mut Context) {
        let lone = u64::from(self.snd.lone_fin_acked());
        cx.counters.delivered += lone;
        if self.ecn.is_echoed() && self.agreed.ecn == EcnMode::Classic {
            cx.counters.delivered_ce += lone;
            self.counts(cx.now).delivered_ce += lone as u32;
        }
        self.transition(Transition::FinAcked);
    }

    /// Updates SND.WND from a segment that is newer than the last update: by its numbers, or (as in
    /// Linux) because it acknowledges more. Returns whether it did, and whether the window changed.
    fn update_send_window(&mut self, config: &Config, segment: &Segment) -> (bool, bool) {
        let (seq, ack, offered) = (segment.seq(), segment.header.ack, self.offered_by(segment));
        if segment.has(Flags::SYN) || !self.snd.updates_window(config, seq, ack, offered) {
            return (false, false);
        }
        let before = self.snd.wnd;
        self.set_send_window(segment);
        (true, before != self.snd.wnd)
    }

    /// Returns the window that a segment offers, in bytes. RFC 7323 §2.2: "The window field in a
    /// segment where the SYN bit is set (i.e., a <SYN> or <SYN,ACK>) MUST NOT be scaled."
    pub(in crate::tcp) fn offered_by(&self, segment: &Segment) -> u32 {
        let window = segment.header.window;
        if segment.has(Flags::SYN) { window.into() } else { self.offered_in(window) }
    }

    /// Returns the window of a segment without SYN, in bytes.
    pub(super) fn offered_in(&self, field: u16) -> u32 {
        u32::from(field) << self.agreed.snd_wscale.unwrap_or(0)
    }

    pub(super) fn set_send_window(&mut self, segment: &Segment) {
        self.take_window(segment.seq(), segment.header.ack, self.offered_by(segment));
    }

    /// Sets the send window from a segment with these numbers.
    pub(super) fn take_window(&mut self, seq: SeqNum, ack: SeqNum, offered: u32) {
        self.snd.wnd = offered;
        if offered > self.snd.wnd_max {
            self.snd.wnd_max = offered;
            self.window_grew();
            if self.special.is_some() {
                self.bound_search_by_window();
            }
        }
        self.snd.wl1 = seq;
        self.snd.wl2 = ack;
    }

    /// Updates the persist timer after an acknowledgment.
    pub(super) fn persist_after_ack(&mut self, cx: &Context) {
        self.arm_persist(cx);
        if self.snd.flight_size() == 0 && self.snd.unsent() > 0 {
            self.put_off_window_probe(cx);
        }
    }

    /// Handles states that an acknowledgment may have ended, then the persist timer.
    fn after_ack(&mut self, cx: &mut Context) -> Result<(), Stop> {
        match self.state {
            // The last ACK of LAST-ACK or CLOSING completes the state. RFC 9293 demands no answer.
            State::Closed | State::TimeWait => {
                self.finish();
                return Err(Reply::Nothing);
            }
            // The application has closed the connection, and does not wait for the peer's FIN.
            State::FinWait2 if self.orphan && self.fin_wait2_time(&cx.config).is_none() => {
                cx.counters.abort_on_linger += 1;
                self.terminate(&mut cx.counters, CloseReason::Aborted);
                return Err(Reply::Reset);
            }
            _ => {}
        }
        self.persist_after_ack(cx);
        Ok(())
    }

    /// Arms the timer that probes a closed window, if data waits and nothing is in flight (RFC 9293
    /// §3.8.6.1).
    #[inline]
    pub(crate) fn arm_persist(&mut self, cx: &Context) {
        if !self.recovery.is_idle() || self.snd.flight_size() == 0 && !self.goes_without_persist_timer() {
            self.arm_persist_now(cx);
        }
    }

    /// Returns whether a connection with nothing in flight needs no persist timer: nothing waits,
    /// or it may be sent at once.
    #[inline]
    fn goes_without_persist_timer(&self) -> bool {
        let goes = match self.snd.unsent() {
            0 => !self.snd.fin_queued() || self.snd.fin_sent() || !self.snd.fin_is_kept_back(),
            _ if self.snd.nagle.intersects(Nagle::CORK.union(Nagle::MORE)) => false,
            unsent => unsent <= self.send_window(),
        };
        goes && !self.snd.probe_due && !self.timers.is_set(Timer::Retransmit)
    }

    #[inline(never)]
    fn arm_persist_now(&mut self, cx: &Context) {
        if !self.synchronized() || !self.is_open() || self.waits_for_room() {
            return;
        }
        let flight_size = self.snd.flight_size();
        let lost_waits = self.recovery.board().is_some_and(|board| board.any_lost());
        let stuck = (lost_waits || self.is_window_limited()) && self.pipe() == 0;
        if stuck && !self.timers.is_set(Timer::Retransmit) {
            self.arm_rto(cx.now);
        } else if !stuck && flight_size == 0 {
            if self.timers.is_set(Timer::Retransmit) {
                // The window has opened. The backoff was that of the probes.
                self.rtt.on_progress();
                self.timeouts = 0;
            }
            self.timers.stop(Timer::Retransmit);
            self.snd.probe_due = false;
        }
    }

    /// Restarts the wait for the next probe: the peer has just advertised a window, which is still
    /// too small (Linux's `tcp_ack_probe`).
    fn put_off_window_probe(&mut self, cx: &Context) {
        if self.timers.is_set(Timer::Retransmit) && self.is_window_limited() {
            self.arm_rto(cx.now);
            self.hasten_next_probe(cx.now);
        }
    }
}

impl Sender {
    /// Returns whether a segment with these numbers updates the send window: "(SND.WL1 < SEG.SEQ or
    /// (SND.WL1 = SEG.SEQ and SND.WL2 =< SEG.ACK))" (RFC 9293 §3.10.7.4, fifth).
    pub(super) fn updates_window(&self, config: &Config, seq: SeqNum, ack: SeqNum, offered: u32) -> bool {
        let repeats = self.wl1 == seq && self.wl2.before_or_eq(ack);
        let counts = || config.peer_window_rules.may_shrink() || offered > self.wnd || offered == 0;
        self.wl1.before(seq) || ack.after(self.una) || repeats && counts()
    }
}

impl Receiver {
    /// Makes an acknowledgment due at once.
    pub(super) fn ack_now(&mut self) {
        self.ack_owed = AckOwed::Now;
    }
}

/// Counts a segment. `text` is its payload length, `len` includes SYN and FIN. `progress`: it
/// acknowledges something.
pub(super) fn count_predicted(cx: &mut Context, predicted: bool, progress: bool, text: usize, len: u32) {
    cx.counters.hp_hits += u64::from(predicted && text > 0);
    cx.counters.hp_acks += u64::from(predicted && progress);
    cx.counters.pure_acks += u64::from(!(predicted && progress) && len == 0);
}
