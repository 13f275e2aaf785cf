//! Decides which segment is sent next.
//!
//! The order is: reset, SYN or SYN-ACK, lost segments, new data and FIN, window probe, and an
//! acknowledgment that no other segment carried. `segment` builds the packet, `options` its
//! options. `tcp/send/nagle` decides whether a small segment may leave. `ordinary` and `answer` are
//! fast paths for most data segments and for most SYN-ACKs of Fast Open. `refused` takes back
//! segments that could not leave.

mod answer;
mod lost;
mod options;
mod ordinary;
mod refused;
mod segment;
mod syn;

use super::mtu_search::Next;
use super::retry_limits::{BASE, retries_timeout};
use super::rules::SendRules;
use super::send_queue::Sending;
use super::write::SENDING_NANOS;
use crate::Instant;
use crate::tcp::congestion::{Controller, Lost};
use crate::tcp::connection::Sender;
use crate::tcp::connection::{Connection, Context, Fin};
use crate::tcp::ecn::EcnMode;
use crate::tcp::observe::tcp_info::{self, CaState};
use crate::tcp::open::handshake::Handshake;
use crate::tcp::recovery::{Phase, Purpose};
use crate::tcp::recv::receiver::AckOwed;
use crate::tcp::timers::Timer;
pub(crate) use refused::Refused;
use segment::Outgoing;
use wire::{Flags, SeqNum, TxPacket};

impl Connection {
    /// Returns whether [`poll_transmit`](Self::poll_transmit) should be called. May return false
    /// positives, never false negatives: everything that causes a transmission must be checked
    /// here.
    #[inline]
    pub(crate) fn may_transmit(&self) -> bool {
        if self.rcv.ack_owed == AckOwed::Now || self.reset_due {
            return true;
        }
        match self.handshake.as_deref() {
            Some(Handshake::Active(active)) => return active.due,
            Some(Handshake::Passive(passive)) if passive.due => return true,
            _ => {}
        }
        let all_sent = if self.snd.fin_queued() { self.snd.fin_sent() } else { self.snd.unsent() == 0 };
        !all_sent || self.snd.probe_due || !self.recovery.is_idle()
    }

    /// Writes the next packet, whose payload must be empty. Returns false if there is none until
    /// something changes.
    pub(crate) fn poll_transmit(&mut self, cx: &mut Context, packet: &mut TxPacket) -> bool {
        if self.agreed.ecn.is_accurate() {
            self.refresh_marks(cx);
        }
        if self.reset_due {
            self.reset_due = false;
            return self.send_bare(cx, self.seq_of_empty(), Flags::RST | Flags::ACK, packet);
        }
        match self.handshake.as_deref() {
            Some(Handshake::Active(active)) => {
                return active.due && self.send_syn(cx, packet);
            }
            Some(Handshake::Passive(passive)) => {
                if passive.due {
                    return self.send_usual_syn_ack(cx, packet) || self.send_syn_ack(cx, packet);
                }
                if passive.transmissions == 0 {
                    return false;
                }
                if !passive.fast_open {
                    return self.fin_of_crossed(cx, packet) || self.owed_ack(cx, packet);
                }
                if passive.limited && self.snd.unsent() < self.segment_max().into() {
                    return self.owed_ack(cx, packet);
                }
            }
            None => {}
        }
        if self.is_open() {
            if self.special.is_some() {
                self.doubt_path_mtu(cx);
                self.hear_of_route_amid(cx);
                if self.probe_for_room(cx, packet) {
                    return true;
                }
            }
            let in_order = self.recovery.is_idle();
            let sent = if in_order { self.send_new(cx, packet) } else { self.send_amid_losses(cx, packet) };
            if sent {
                return true;
            }
            if core::mem::take(&mut self.snd.probe_due) {
                let nothing_in_flight = self.snd.flight_size() == 0;
                let most = self.send_window().min(self.segment_max().into());
                let fits = if nothing_in_flight { self.snd.unsent().min(most) } else { 0 };
                if fits > 0 {
                    // RFC 9293 §3.8.6.2.1: after the override timeout, even a window smaller than a
                    // segment is used.
                    self.snd.queue.push_before(self.snd.nxt + fits);
                    let small_end = self.snd.small_end;
                    let sent = self.send_range(cx, self.snd.nxt, fits, false, packet);
                    // Nagle's test ignores this segment, and no loss probe follows (Linux's
                    // `tcp_write_wakeup`).
                    self.snd.small_end = small_end;
                    self.arm_rto(cx.now);
                    return sent;
                }
                return self.send_window_probe(cx, packet);
            }
            if self.snd.unsent() > 0 {
                self.time_what_waits(cx);
            }
        }
        self.owed_ack(cx, packet)
    }

    /// Arms the override timer for waiting data if no ACK is expected (RFC 9293 §3.8.6.2.1). The
    /// size of a segment can change between an ACK, which also checks this timer, and the
    /// transmission.
    #[inline(never)]
    fn time_what_waits(&mut self, cx: &Context) {
        let timed = self.timers.is_set(Timer::Retransmit) || self.timers.is_set(Timer::Pace);
        if !timed && self.snd.flight_size() == 0 && self.handshake.is_none() {
            self.arm_rto(cx.now);
        }
    }

    /// Retransmits lost data before new data.
    #[inline(never)]
    fn send_amid_losses(&mut self, cx: &mut Context, packet: &mut TxPacket) -> bool {
        if self.send_loss_probe(cx, packet) {
            return true;
        }
        let sent = match self.next_lost(cx) {
            Some(lost) => self.retransmit_lost(cx, lost, packet),
            None => self.send_new(cx, packet),
        };
        if !sent {
            self.note_window_filled_amid(cx);
        }
        sent
    }

    /// Notes that new data waits for the window, so the window counts as used. The single segment
    /// that remains of it after a timeout does not count (Linux's `tcp_retransmit_timer` does not
    /// call `tcp_cwnd_validate`).
    fn note_window_filled_amid(&mut self, cx: &Context) {
        let Some(board) = self.recovery.board_mut() else { return };
        let timed_out = core::mem::take(&mut board.timed_out);
        if !timed_out && self.snd.unsent() > 0 && self.pipe() >= self.congestion_window() {
            self.rest_of_window_waits(cx);
        }
    }

    /// Sends the FIN of a simultaneous open after the application has closed. RFC 9293 §3.10.4
    /// allows it at once if no data precedes it.
    fn fin_of_crossed(&mut self, cx: &mut Context, packet: &mut TxPacket) -> bool {
        let due = self.snd.fin_queued() && !self.snd.fin_sent() && self.snd.unsent() == 0;
        // After a timeout the SYN fills the congestion window.
        due && self.timeouts == 0
            && !self.snd.fin_is_kept_back()
            && self.send_range(cx, self.snd.nxt, 0, true, packet)
    }

    fn owed_ack(&mut self, cx: &mut Context, packet: &mut TxPacket) -> bool {
        self.rcv.ack_owed == AckOwed::Now && self.send_bare(cx, self.seq_of_empty(), Flags::ACK, packet)
    }

    fn send_bare(&mut self, cx: &mut Context, seq: SeqNum, flags: Flags, packet: &mut TxPacket) -> bool {
        self.build(cx, Outgoing::bare(seq, flags), packet);
        true
    }

    /// Returns the number of a segment without text: SND.MAX, so that a peer that has received
    /// everything does not consider the segment old. It is at most the right edge of the peer's
    /// window, plus what the scale rounded off. (Linux's `tcp_acceptable_seq` takes the scale of
    /// the other direction. RFC 7323 §2.4 means the scale of the rounded window.)
    fn seq_of_empty(&self) -> SeqNum {
        match self.handshake.as_deref() {
            Some(Handshake::Passive(passive)) if passive.crossed.is_some() => {}
            Some(_) => return self.snd.nxt,
            None => {}
        }
        let rounding = self.agreed.snd_wscale.map_or(0, |scale| (1 << scale) - 1);
        let edge = self.snd.una + self.snd.wnd;
        if self.snd.max.before_or_eq(edge + rounding) { self.snd.max } else { edge }
    }

    /// Sends new data, as far as the windows, the device and Nagle allow.
    fn send_new(&mut self, cx: &mut Context, packet: &mut TxPacket) -> bool {
        let unsent = self.snd.unsent();
        let fin_waits = self.snd.fin_queued() && !self.snd.fin_sent();
        if unsent == 0 {
            let may_go = fin_waits && !self.snd.fin_is_kept_back() && !self.fin_exceeds_cwnd(cx);
            return may_go && self.send_range(cx, self.snd.nxt, 0, true, packet);
        }
        self.new_data_leaves(cx);
        if cx.config.write_rules.are_by_segment() && unsent > self.segment_max().into() {
            self.join_next(cx);
        }
        let Some(allowed) = self.allowed_now(unsent) else { return false };
        if !self.pacing_allows(cx) {
            return false;
        }
        if self.special.is_some() {
            if self.awaits_room(cx.now) {
                return false;
            }
            match self.next_mtu_probe(cx, unsent) {
                Next::Probe(payload) => {
                    self.mtu_probe_leaves(payload);
                    return self.send_range(cx, self.snd.nxt, payload.into(), false, packet);
                }
                Next::Wait => return false,
                Next::Nothing => {}
            }
        }
        // CWR belongs on one segment.
        let carries_cwr = self.agreed.ecn == EcnMode::Classic
            && self.ecn.cwr_due()
            && !cx.config.burst_rules.tell_reduction();
        let allowed = if carries_cwr { allowed.min(self.segment_max().into()) } else { allowed };
        let Some(burst) = self.burst(cx, allowed, unsent) else { return false };
        // A retransmission is a segment of its own.
        let again = self.snd.max.earliest(self.snd.queue.end());
        let burst = if self.snd.nxt.before(again) { burst.min(again.since(self.snd.nxt)) } else { burst };
        let fin = fin_waits && burst == unsent && !self.snd.fin_is_kept_back();
        self.send_range(cx, self.snd.nxt, burst, fin, packet)
    }

    /// Returns whether cwnd has no room for the FIN, if it counts segments (`window_unit`). Counts
    /// those in flight, which are few.
    fn fin_exceeds_cwnd(&self, cx: &Context) -> bool {
        let pipe = self.pipe();
        if !cx.config.window_unit.is_segments() || pipe == 0 {
            return false;
        }
        let most = (self.congestion_window() / u32::from(self.smss())).max(1);
        let sent =
            self.snd.queue.starting(self.snd.una).take_while(|segment| !segment.lost && !segment.sacked);
        let retransmitted =
            self.snd.queue.starting(self.snd.una).filter(|segment| segment.retransmitted).count();
        (sent.count() + retransmitted) as u32 >= most
    }

    /// Returns whether the peer's window keeps something back.
    pub(crate) fn is_window_limited(&self) -> bool {
        let unsent = self.snd.unsent();
        let fin_waits = || self.snd.fin_queued() && !self.snd.fin_sent() && self.snd.fin_is_kept_back();
        if unsent > 0 { self.allowed_now(unsent).is_none() } else { fin_waits() }
    }

    /// Returns how many bytes may be sent now: whole segments, or a smaller last one if it need not
    /// wait.
    #[inline]
    pub(crate) fn allowed_now(&self, unsent: u32) -> Option<u32> {
        let most = u32::from(self.segment_max());
        // Nothing joins a record that has ended. So it need not wait for more, unless it is the
        // last.
        let record = self.snd.queue.record_len(self.snd.nxt).filter(|record| *record < unsent);
        let unsent = record.unwrap_or(unsent);
        let usable = unsent.min(self.usable_window());
        let small = if usable < most { usable } else { usable % most };
        if usable == unsent && (record.is_some() || self.small_may_go(small)) {
            return Some(usable);
        }
        let whole = usable / most * most;
        if whole > 0 {
            return Some(if self.fills_window(usable, small) { usable } else { whole });
        }
        // Silly window avoidance of the sender (RFC 9293 §3.8.6.2.1): half the largest window is
        // worth a segment, too. Retransmissions ignore this rule.
        let worth = usable >= self.snd.wnd_max / 2 || self.snd.nxt.before(self.snd.max);
        (usable > 0 && usable < unsent && self.snd.flight_size() == 0 && worth).then_some(usable)
    }

    /// Returns whether the peer's window, not cwnd, limits what is sent, and `small` bytes may
    /// follow whole segments (Linux's `tcp_mss_split_point`).
    fn fills_window(&self, usable: u32, small: u32) -> bool {
        self.snd.rules.contains(SendRules::FILLS_WINDOWS)
            && usable == self.snd.wnd.saturating_sub(self.snd.flight_size())
            && self.small_may_go(small)
    }

    /// Sends `len` bytes from `seq` on, and optionally the FIN.
    fn send_range(
        &mut self,
        cx: &mut Context,
        seq: SeqNum,
        len: u32,
        fin: bool,
        packet: &mut TxPacket,
    ) -> bool {
        let probes = self.special.is_some() && self.is_mtu_probe(seq, len);
        // Each signed or urgent segment has its own signature or urgent pointer, which a burst
        // would copy. MTU probes are never cut.
        let alone = self.md5_key().is_some() || self.special.is_some() && self.urgent_pointer(seq).is_some();
        let most = if alone && !probes { self.segment_max().into() } else { u32::MAX };
        let (len, fin) = (len.min(most), fin && len <= most);
        // This segment carries the acknowledgment, so its timer is not needed.
        self.timers.stop(Timer::DelayedAck);
        let (ecn_flags, ecn) = self.ecn_of_data(seq, len);
        let again = seq.before(self.snd.nxt);
        let unit = self.segment_unit();
        let now = if again { time_of_repetition(cx) } else { cx.now };
        let segment = u32::from(self.segment_max());
        let whole = if probes { len } else { segment };
        let sending = Sending { now, in_flight: self.pipe(), unit, packet: whole, again };
        let (taken, push) = self.snd.queue.transmit(sending, seq, len, &mut packet.shared);
        let is_probe = self.special.is_some() && self.is_mtu_probe(seq, taken);
        let push = push || cx.config.burst_rules.are_pushed() && taken > segment && !is_probe;
        let fin = fin && taken == len;
        let end = seq + taken + u32::from(fin);
        let repeats = seq.before(self.snd.max);
        if fin {
            let fin_repeats = (seq + taken).before(self.snd.max);
            self.snd.fin.set(Fin::REPEATED, fin_repeats);
            if !repeats {
                self.snd.fin.set(Fin::ALONE, taken == 0);
            }
        }
        if repeats {
            self.counts(cx.now).bytes_retrans += u64::from(taken);
            self.forget_mtu_probe();
        }
        let is_small = taken > 0 && (taken < segment || !taken.is_multiple_of(segment));
        if !repeats && is_small && !is_probe {
            self.snd.small_end = end;
        }
        // With nothing in flight, the timer belonged to corked data or to a closed window (Linux's
        // `tcp_event_new_data_sent`).
        let alone = self.snd.una == self.snd.max;
        self.snd.advance_nxt(self.snd.nxt.latest(end));
        if let Some(board) = self.recovery.board_mut() {
            board.on_sent(&mut self.snd.queue, (seq, taken), again, cx.now);
            if fin {
                board.fin_goes(now);
            } else if again && self.snd.fin_sent() {
                board.goes_after_fin(self.window_use.last_sent_at());
            }
        }
        let in_flight = self.snd.in_flight();
        self.data_left(cx, taken, in_flight, again);
        if self.handshake.is_none() {
            match again {
                false => self.arm_for_new_data(cx, in_flight, alone),
                true => self.arm_for_repetition(cx, seq, alone),
            }
        }
        if taken > 0 {
            self.rcv.answered(cx);
        }
        let mut flags = Flags::ACK | ecn_flags;
        let pushed_fin = taken == 0 && self.special.is_some() && self.is_probing_for_room(cx.now);
        flags.set(Flags::PSH, push && taken > 0 || pushed_fin);
        flags.set(Flags::FIN, fin);
        let payload_len = taken as usize;
        self.build(cx, Outgoing { seq, flags, payload_len, ecn, urgent: 0, again: repeats }, packet);
        if self.special.is_some() {
            self.report_sent(cx.now, seq, taken, packet);
        }
        true
    }

    /// Arms the timer for new data. `alone`: nothing was in flight before.
    fn arm_for_new_data(&mut self, cx: &Context, in_flight: u32, alone: bool) {
        let stopped = alone || !self.timers.is_set(Timer::Retransmit);
        let instead = self.purpose == Purpose::Probe || cx.config.probe_rules.new_data_sets_probe();
        let probes = (stopped || instead) && self.arm_probe(cx, in_flight, true);
        if !probes && stopped {
            self.arm_rto(cx.now);
        }
    }

    fn arm_for_repetition(&mut self, cx: &Context, seq: SeqNum, alone: bool) {
        let restarts = self.recovery.restarts_timer(&cx.config);
        let head = seq == self.snd.una && restarts && !self.waits_for_reordered();
        if head || alone || !self.timers.is_set(Timer::Retransmit) {
            self.arm_rto(cx.now);
            if head && (self.timeouts > 0 || self.snd.wnd == 0) {
                self.hasten_rto(cx.now, self.recovery.silence(cx.now));
            }
        }
    }

    /// Handles the deadline of this connection.
    pub(crate) fn handle_timeout(&mut self, cx: &mut Context) {
        let now = cx.now;
        if self.timers.expired(Timer::DelayedAck, now) {
            self.delayed_ack_timeout(cx);
        }
        if self.timers.expired(Timer::SynAckHold, now)
            && let Some(Handshake::Passive(passive)) = self.handshake.as_deref_mut()
        {
            passive.due = true;
        }
        // The pacer allows the next segment: `poll_transmit` follows.
        self.timers.expired(Timer::Pace, now);
        if self.timers.expired(Timer::Life, now) {
            if self.orphan {
                // The lingering close has timed out.
                return self.abort(&mut cx.counters);
            }
            self.keepalive_timeout(cx);
        }
        if self.timers.expired(Timer::Retransmit, now) {
            self.retransmission_timeout(cx);
        }
    }

    fn retransmission_timeout(&mut self, cx: &mut Context) {
        let purpose = core::mem::take(&mut self.purpose);
        match self.handshake.as_deref() {
            Some(Handshake::Active(_)) => self.syn_timeout(cx),
            Some(Handshake::Passive(_)) => self.syn_ack_timeout(cx),
            None if self.snd.flight_size() == 0 => self.probe_timeout(cx),
            None if purpose == Purpose::Reordering => self.reordering_timeout(cx),
            None if purpose == Purpose::Probe => self.loss_probe_timeout(cx),
            None if self.snd.wnd == 0 => self.closed_window_timeout(cx),
            None => self.data_timeout(cx),
        }
    }

    /// Handles a retransmission timeout (RFC 6298 §5.4 to §5.6). "Retransmit the earliest segment
    /// that has not been acknowledged by the TCP receiver."
    fn data_timeout(&mut self, cx: &mut Context) {
        self.timeouts = self.timeouts.saturating_add(1);
        cx.counters.timeouts += 1;
        if self.timeouts > 1 && self.snd.queue.is_empty() {
            // The retransmission of the last timeout is lost. The scoreboard counts data, but not a
            // FIN.
            cx.counters.lost_retransmit += 1;
        }
        let first = self.timeouts == 1;
        self.snd.weigh();
        self.count_failed_recovery(cx);
        self.counts(cx.now).timed_out(cx.now, first);
        self.suspect_stall(cx);
        let silence = self.recovery.silence(cx.now);
        if self.timeouts > 1 && silence >= retries_timeout(cx.config.tcp_retries1, BASE, self.rtt.max_rto()) {
            self.suspect_large_packets(cx);
        }
        if self.gives_up_on_data(cx, silence) {
            return;
        }
        self.time_out_flight(cx, first);
    }

    /// Handles a timeout after the peer closed its window over data in flight.
    fn closed_window_timeout(&mut self, cx: &mut Context) {
        match self.resends_into_closed_window(&cx.config) {
            false => self.probe_timeout(cx),
            // The application has closed the connection.
            true if self.orphan => self.data_timeout(cx),
            true if self.gives_up_on_closed_window(cx) => {}
            true => {
                // The data is marked lost, but no timeout is counted: the retransmission is a
                // window probe.
                self.snd.weigh();
                self.time_out_flight(cx, self.timeouts == 0);
            }
        }
    }

    /// Returns whether `peer_window_rules` retransmits into a closed window, and there is such a
    /// case.
    pub(crate) fn resends_into_closed_window(&self, config: &crate::Config) -> bool {
        config.peer_window_rules.resends_into_closed()
            && self.snd.wnd == 0
            && self.snd.flight_size() > 0
            && self.handshake.is_none()
    }

    /// Marks everything in flight lost. `first`: it is the first timeout in a row.
    fn time_out_flight(&mut self, cx: &mut Context, first: bool) {
        let before = (self.congestion.cwnd(), self.congestion.ssthresh());
        let was = self.recovery.board().map_or(Phase::Open, |board| board.phase);
        let rate = self.window_rate(&cx.config);
        // Data that duplicate ACKs reported as received is no longer in flight.
        let in_flight = self.snd.in_flight().saturating_sub(self.recovery.reported());
        let in_flight = self.reduction_base(cx, in_flight);
        let again = cx.config.reduction_rules.start_at_cwnd() && self.is_reduced_already();
        if cx.config.reduction_rules.start_at_cwnd() && self.recovery.shrinking_window().is_some() && !again {
            // The timeout loses the window that was being reduced.
            self.congestion.on_resize(self.reported_cwnd());
        }
        let lost = self.mark_timed_out(cx);
        if first {
            let left = self.pipe();
            self.congestion.on_loss(&Lost {
                in_flight,
                smss: u32::from(self.smss()),
                timeout: true,
                left,
                again,
            });
            self.ecn.on_reduction(self.snd.max);
        }
        if self.is_thin(&cx.config) {
            self.rtt.on_progress();
        } else {
            self.rtt.on_timeout();
        }
        self.segments_lost(lost);
        // The first window probe only starts the count.
        self.recovery.fell_silent(cx.now, first && (self.timeouts > 0 || was != Phase::Loss));
        if let Some(board) = self.recovery.board_mut() {
            board.watch_timeout((was, first), before, self.snd.una, cx.config.tcp_frto > 0);
        }
        self.note_window_rate(rate);
        self.arm_rto(cx.now);
        self.hasten_rto(cx.now, self.recovery.silence(cx.now));
    }

    /// Returns whether the window was already reduced for the data in flight, for another reason
    /// than a timeout.
    fn is_reduced_already(&self) -> bool {
        let una = self.snd.una;
        self.recovery.board().is_some_and(|board| board.shrinks() && !board.ends_by(una))
    }

    /// Counts the first timeout that interrupts a recovery or a phase of reordering.
    fn count_failed_recovery(&self, cx: &mut Context) {
        if self.timeouts > 1 {
            return;
        }
        let counters = &mut cx.counters;
        let failed = match (tcp_info::reported_ca_state(self), self.agreed.sack) {
            (CaState::Open | CaState::Reducing, _) => return,
            (CaState::Disorder, true) => &mut counters.sack_failures,
            (CaState::Disorder, false) => &mut counters.reno_failures,
            (CaState::Recovery, true) => &mut counters.sack_recovery_fail,
            (CaState::Recovery, false) => &mut counters.reno_recovery_fail,
            (CaState::Loss, _) => &mut counters.loss_failures,
        };
        *failed += 1;
    }

    /// Returns whether so little is in flight that ACKs cannot reveal a loss. The first timeouts of
    /// such a stream do not double (Linux's `tcp_stream_is_thin`). Retransmissions into a closed
    /// window are window probes, so they do not count.
    fn is_thin(&self, config: &crate::Config) -> bool {
        let asked = self.options.thin_linear_timeouts || config.tcp_thin_linear_timeouts;
        let probes = self.snd.wnd == 0;
        if !asked || probes || self.state != crate::State::Established || self.timeouts > THIN_LINEAR_RETRIES
        {
            return false;
        }
        let smss = u32::from(self.smss());
        let sent =
            self.snd.queue.starting(self.snd.una).take_while(|segment| segment.seq.before(self.snd.max));
        sent.map(|segment| segment.len.div_ceil(smss)).take(THIN_SEGMENTS as usize).sum::<u32>()
            < THIN_SEGMENTS
    }

    /// Notes a black hole after the handshake: Fast Open worked, and then no ACK came.
    fn suspect_stall(&mut self, cx: &mut Context) {
        if !self.fast_opened || self.timeouts != STALL_TIMEOUTS {
            return;
        }
        cx.third_timeout_of_fast_open();
        if self.outcome == crate::Outcome::Accepted {
            self.hold_against_path(cx, crate::Verdict::Stalled);
        }
    }

    /// Probes a closed window with growing intervals, as long as the peer answers. RFC 9293
    /// §3.8.6.1: "Probing of zero (offered) windows MUST be supported".
    fn probe_timeout(&mut self, cx: &mut Context) {
        if self.snd.wnd > 0 {
            if self.waits_for_room() {
                return self.room_timeout(cx);
            }
            self.snd.probe_due = true;
            if self.snd.max != self.snd.una {
                // The data was sent before and has to be retransmitted, so it counts as unanswered
                // (RFC 9293 §3.8.3).
                return self.data_timeout(cx);
            }
            // Only silly window avoidance kept it back. Nothing was lost.
            return self.arm_rto(cx.now);
        }
        self.timeouts = self.timeouts.saturating_add(1);
        if self.gives_up_probing(cx, self.timeouts) {
            return;
        }
        self.rtt.on_timeout();
        // Data that was in flight when the peer closed its window waits, too.
        if self.snd.flight_size() > 0 {
            self.lose_everything(cx);
        }
        self.snd.probe_due = true;
        self.arm_rto(cx.now);
        self.hasten_probe(cx.now);
    }

    /// Returns the earliest deadline, or [`NEVER`](crate::tcp::timers::NEVER).
    pub(crate) fn next_deadline(&self) -> Instant {
        self.timers.next()
    }
}

impl Sender {
    /// Returns whether the peer's window has no room for the number of the FIN (RFC 9293 §3.8.6).
    pub(in crate::tcp) fn fin_is_kept_back(&self) -> bool {
        let fin = self.queue.end();
        !fin.before(self.una + self.wnd) && !fin.before(self.max)
    }

    /// Returns the bytes that wait: never sent, or to be retransmitted.
    pub(crate) fn unsent(&self) -> u32 {
        if self.fin_sent() { 0 } else { self.queue.end().since(self.nxt) }
    }

    /// Returns the bytes that were written and never sent.
    pub(crate) fn never_sent(&self) -> u32 {
        let end = self.queue.end();
        if end.after(self.max) { end.since(self.max) } else { 0 }
    }
}

/// Returns the time of a retransmission. It may be slightly earlier than that of new data.
#[cold]
fn time_of_repetition(cx: &Context) -> Instant {
    let earlier = if cx.config.loss_rules.rtt_of_last() { SENDING_NANOS } else { 0 };
    Instant::from_nanos(cx.now.as_nanos().saturating_sub(earlier))
}

/// Segments in flight below which a stream is thin, and timeouts of a thin stream that do not
/// double.
const THIN_SEGMENTS: u32 = 4;
const THIN_LINEAR_RETRIES: u8 = 6;
/// Timeouts in a row after which a path that accepted Fast Open counts as a black hole.
const STALL_TIMEOUTS: u8 = 3;
