//! Seventh and eighth check: the segment text, and FIN (RFC 9293 §3.10.7.4).

use super::{Reply, Segment, Stop};
use crate::tcp::connection::{Connection, Context};
use crate::tcp::recv::ack_delay::TextArrival;
use crate::tcp::recv::receiver::AckOwed;
use crate::tcp::state::Transition;
use crate::tcp::timers::Timer;
use crate::{AckHabit, CloseReason, Config, Events, State};
use core::time::Duration;
use wire::{Flags, SeqNum, Timestamps};

impl Connection {
    pub(super) fn process_text_and_fin(
        &mut self,
        cx: &mut Context,
        segment: &mut Segment,
    ) -> Result<(), Stop> {
        let fin = segment.has(Flags::FIN).then(|| segment.end() - 1);
        if self.orphan && segment.len() > 0 && !self.rcv.fin_received && self.is_open() {
            self.refuse_text(cx, segment)?;
        }
        if !segment.payload.is_empty() {
            if self.rcv.fin_received || !self.is_open() {
                let text_end = segment.seq() + segment.payload.len() as u32;
                if cx.config.reset_text_beyond_fin
                    && self.is_open()
                    && segment.seq().before(self.rcv.nxt)
                    && text_end.after(self.rcv.nxt)
                {
                    cx.counters.abort_on_data += 1;
                    self.reset_by_peer(cx);
                    return Err(Reply::Reset);
                }
                // RFC 9293: "Ignore the segment text." after a FIN. Text before the FIN is
                // acknowledged again.
                if segment.seq().before(self.rcv.nxt) {
                    cx.counters.delayed_ack_lost += u64::from(!segment.end().after(self.rcv.nxt));
                    self.note_duplicate(cx, segment);
                    self.rcv.ack_now();
                }
                return Ok(());
            }
            if self.resets_unread(segment) {
                cx.counters.abort_on_data += 1;
                self.reset_by_peer(cx);
                return Err(Reply::Reset);
            }
            if self.take_packet(cx, segment) {
                return Ok(());
            }
            if !self.rcv.has_memory_for_text(cx) {
                return Ok(());
            }
            let text = self.text_arrival(segment.header.flags, segment.payload.len() as u32, fin);
            let accepted = self.take_text(cx, segment);
            if self.text_taken(cx, &text, accepted) {
                self.arm_delayed_ack(cx);
                return Ok(());
            }
        } else if !self.rcv.fin_received && self.is_open() && self.take_packet(cx, segment) {
            return Ok(());
        } else if fin.is_some_and(|fin| fin != self.rcv.nxt) {
            // The FIN is a repetition, or follows missing data. RFC 5681 §4.2: "the receiver SHOULD
            // send an immediate duplicate ACK when it receives a data segment above a gap in the
            // sequence space."
            self.count_stray_fin(cx, segment);
            self.note_duplicate(cx, segment);
            self.rcv.ack_now();
        }
        self.follow_with_fin(fin, &cx.config);
        self.arm_delayed_ack(cx);
        Ok(())
    }

    /// Resets the connection if the application will not read the text, or the missing text before
    /// a FIN (RFC 1122 §4.2.2.13: "SHOULD send a RST to show that data was lost").
    fn refuse_text(&mut self, cx: &mut Context, segment: &Segment) -> Result<(), Stop> {
        let fin = u32::from(segment.has(Flags::FIN));
        if !(segment.end() - fin).after(self.rcv.nxt) {
            return Ok(());
        }
        cx.counters.abort_on_data += 1;
        self.terminate(&mut cx.counters, CloseReason::Aborted);
        Err(Reply::Reset)
    }

    /// Counts a FIN without text that is not next in order.
    #[cold]
    fn count_stray_fin(&mut self, cx: &mut Context, segment: &Segment) {
        if segment.seq().before(self.rcv.nxt) {
            cx.counters.delayed_ack_lost += 1;
        } else if !self.rcv.fin_received {
            cx.counters.ofo_queue += 1;
            self.counts(cx.now).rcv_ooopack += 1;
        }
    }

    /// Reports duplicate text by D-SACK. It tells the sender which retransmissions were unnecessary
    /// (RFC 2883).
    pub(super) fn note_duplicate(&mut self, cx: &mut Context, segment: &Segment) {
        let syn = u32::from(segment.has(Flags::SYN));
        let len = segment.len() - syn;
        if !self.agreed.sack || !cx.config.tcp_dsack || len == 0 {
            return;
        }
        if let Some((part, in_order)) = self.rcv.duplicate(segment.seq() + syn, len) {
            self.rcv.report_duplicate(part);
            cx.counters.dsack_old_sent += u64::from(in_order);
            cx.counters.dsack_ofo_sent += u64::from(!in_order);
        }
    }

    /// Reports a duplicate SYN by D-SACK (RFC 2883).
    pub(super) fn note_repeated_syn(&mut self, cx: &mut Context) {
        if self.agreed.sack && cx.config.tcp_dsack {
            self.rcv.report_duplicate((self.rcv.irs, self.rcv.irs + 1));
            cx.counters.dsack_old_sent += 1;
        }
    }

    /// Returns whether the application has closed both directions, so that it will not read this
    /// text (RFC 1122 §4.2.2.13; Linux's `RCV_SHUTDOWN`).
    fn resets_unread(&self, segment: &Segment) -> bool {
        let shut = self.special.as_ref().is_some_and(|special| special.reads_no_more);
        let fin = u32::from(segment.has(Flags::FIN));
        shut && matches!(self.state, State::FinWait1 | State::FinWait2)
            && (segment.end() - fin).after(self.rcv.nxt)
    }

    /// Describes text that arrives. Must be called before the text is taken.
    #[inline(always)]
    pub(super) fn text_arrival(&self, flags: Flags, len: u32, fin: Option<SeqNum>) -> TextArrival {
        TextArrival {
            before: self.rcv.last_data_at(),
            owed: self.rcv.ack_owed,
            len,
            full_sized: len + 40 >= u32::from(self.advmss),
            pushed: flags.contains(Flags::PSH),
            syn: flags.contains(Flags::SYN),
            fin,
        }
    }

    /// Handles `accepted` bytes that became readable, with a segment of `len` bytes.
    #[inline(always)]
    pub(super) fn text_accepted(
        &mut self,
        cx: &Context,
        len: u32,
        accepted: u32,
        timestamps: Option<Timestamps>,
    ) {
        self.events |= Events::READABLE;
        self.note_arrival(cx.now);
        if self.rcv.is_tunable() {
            let full_sized = self.rcv.is_full_sized(len);
            let echo = if full_sized { self.echo_age(cx, timestamps) } else { None };
            self.rcv.note_round(cx.now, accepted, echo);
        }
    }

    /// Decides when text is acknowledged that was just taken, `accepted` bytes of it in order.
    /// Accepts the FIN behind it. Returns whether a FIN is in order now.
    #[inline(always)]
    pub(super) fn text_taken(&mut self, cx: &mut Context, text: &TextArrival, accepted: u32) -> bool {
        let estimates_delay = cx.config.ack_habit == AckHabit::QuickStart;
        if text.fin == Some(self.rcv.nxt) && estimates_delay {
            // A duplicate part of the text is not reported any more (as in Linux's `tcp_fin`).
            self.rcv.ack_owed = text.owed;
            self.rcv.forget_report();
        }
        if accepted > 0 && text.fin.is_some() && estimates_delay {
            self.rcv.measure_delay(cx, text.before, &self.rtt);
        }
        if self.follow_with_fin(text.fin, &cx.config) {
            // The text may have filled the gap before an early FIN. RFC 5681 §4.2: "the receiver
            // SHOULD send an immediate ACK when it receives a data segment that fills in all or
            // part of a gap in the sequence space."
            let fills_gap = text.fin.is_none() || self.rcv.has_much_to_acknowledge();
            if estimates_delay && !text.syn && fills_gap {
                self.rcv.ack_now();
            }
            return true;
        }
        if accepted > 0 {
            self.rcv.owe_ack(cx, text, &self.rtt);
            if self.route_metrics().is_some_and(|route| route.quickack) {
                self.rcv.ack_now();
            }
        }
        false
    }

    /// Takes the text of a segment. Returns the bytes that became readable.
    fn take_text(&mut self, cx: &mut Context, segment: &mut Segment) -> u32 {
        if self.rcv.may_know(segment.seq()) {
            self.note_duplicate(cx, segment);
        }
        let seq = segment.seq() + u32::from(segment.has(Flags::SYN));
        let len = segment.payload.len() as u32;
        let end = segment.end();
        let accepted = self.rcv.accept(cx.now, seq, segment.payload.take(), &mut cx.spare);
        if accepted > 0 {
            self.text_accepted(cx, len, accepted, segment.header.options.timestamps);
        } else if (seq + len).after(self.rcv.nxt) {
            let refused = self.rcv.wnd() == 0;
            cx.counters.zero_window_drop += u64::from(refused);
            cx.counters.ofo_queue += u64::from(!refused);
            if !refused {
                self.counts(cx.now).rcv_ooopack += segment.payload.packets(len);
            }
            if !cx.memory.is_under_pressure() {
                self.rcv.fit_gap(seq + len, &cx.config);
            }
        } else if !end.after(self.rcv.nxt) {
            cx.counters.delayed_ack_lost += 1;
        }
        self.keep_within_memory(cx);
        accepted
    }

    /// Returns the timestamp that a segment echoes, and its age.
    pub(in crate::tcp) fn echo_age(
        &self,
        cx: &Context,
        timestamps: Option<Timestamps>,
    ) -> Option<(u32, Duration)> {
        let echo = timestamps.filter(|_| self.agreed.timestamps)?.tsecr;
        let age = self.tsval(cx.now).wrapping_sub(echo);
        // An echo from the future is not ours.
        (age < u32::MAX / 2).then_some((echo, Duration::from_millis(age.into())))
    }

    /// Accepts the FIN of this segment, or one that came out of order and is now in order. Returns
    /// whether a FIN is in order now.
    #[inline(always)]
    pub(super) fn follow_with_fin(&mut self, fin: Option<SeqNum>, config: &Config) -> bool {
        if fin.is_none() && !self.rcv.awaits_fin() {
            return false;
        }
        let in_order = fin.is_some_and(|fin| self.rcv.accept_fin(fin))
            || (!self.rcv.fin_received && self.rcv.fin_in_order());
        if in_order {
            self.fin_received(config);
        }
        in_order
    }

    /// Handles the end of the peer's direction. The application is about to close, and one FIN-ACK
    /// can acknowledge everything. So the acknowledgment waits for it, as in Linux, whose `tcp_fin`
    /// enters pingpong mode. An acknowledgment that was due at once stays so.
    #[inline(never)]
    pub(in crate::tcp) fn fin_received(&mut self, config: &Config) {
        self.events |= Events::READABLE;
        self.rcv.enter_pingpong(config);
        self.rcv.stop_tuning();
        if self.rcv.ack_owed != AckOwed::Now || config.ack_habit == AckHabit::Merge {
            self.rcv.ack_owed = AckOwed::Delayed;
        }
        self.transition(Transition::FinReceived);
        if matches!(self.state, State::TimeWait | State::Closing) {
            self.rcv.ack_now();
        }
        if self.state == State::TimeWait {
            self.timers.stop(Timer::Life);
            self.finish();
        }
    }
}
