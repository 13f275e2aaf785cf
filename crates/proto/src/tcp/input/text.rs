//! Seventh and eighth check: the segment text, and FIN (RFC 9293 §3.10.7.4).

use super::{Reply, Segment, Stop};
use crate::tcp::connection::{Connection, Context};
use crate::tcp::recv::ack_delay::Came;
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
                // Nothing may follow a FIN: "Ignore the segment text." What came before is acknowledged again.
                if segment.seq().before(self.rcv.nxt) {
                    cx.counters.delayed_ack_lost += u64::from(!segment.end().after(self.rcv.nxt));
                    self.note_duplicate(cx, segment);
                    self.ack_now();
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
            if !self.has_memory_for_text(cx) {
                return Ok(());
            }
            let came = Came {
                before: self.rcv.last_data_at,
                len: segment.payload.len() as u32,
                full_sized: segment.payload.len() + 40 >= usize::from(self.advmss),
                pushed: segment.has(Flags::PSH),
            };
            let owed = self.rcv.ack_owed;
            let accepted = self.take_text(cx, segment);
            let estimates_delay = cx.config.ack_habit == AckHabit::QuickStart;
            if fin == Some(self.rcv.nxt) && estimates_delay {
                // That some of the text came before is not reported any more (as Linux's `tcp_fin`).
                self.rcv.ack_owed = owed;
                self.rcv.forget_report();
            }
            if accepted > 0 && fin.is_some() && estimates_delay {
                self.measure_delay(cx, &came);
            }
            if self.follow_with_fin(fin, &cx.config) {
                let quick = estimates_delay && !segment.has(Flags::SYN);
                // A FIN that was out of order is reached. RFC 5681 §4.2: "the receiver SHOULD send an immediate ACK when it receives a data segment
                // that fills in all or part of a gap in the sequence space."
                if quick && (fin.is_none() || self.rcv.has_much_to_acknowledge()) {
                    self.ack_now();
                }
                self.arm_delayed_ack(cx);
                return Ok(());
            }
            if accepted > 0 {
                self.owe_ack(cx, &came);
                if self.route_metrics().is_some_and(|route| route.quickack) {
                    self.ack_now();
                }
            }
        } else if !self.rcv.fin_received && self.is_open() && self.take_packet(cx, segment) {
            return Ok(());
        } else if fin.is_some_and(|fin| fin != self.rcv.nxt) {
            // Repeated, or ahead of what is missing. RFC 5681 §4.2: "the receiver SHOULD send an immediate duplicate ACK when it receives a data
            // segment above a gap in the sequence space."
            self.count_stray_fin(cx, segment);
            self.note_duplicate(cx, segment);
            self.ack_now();
        }
        self.follow_with_fin(fin, &cx.config);
        self.arm_delayed_ack(cx);
        Ok(())
    }

    /// Nobody will read what comes, or what is missing before a FIN (RFC 1122 §4.2.2.13: "SHOULD send a RST to show that data was lost").
    fn refuse_text(&mut self, cx: &mut Context, segment: &Segment) -> Result<(), Stop> {
        let fin = u32::from(segment.has(Flags::FIN));
        if !(segment.end() - fin).after(self.rcv.nxt) {
            return Ok(());
        }
        cx.counters.abort_on_data += 1;
        self.terminate(&mut cx.counters, CloseReason::Aborted);
        Err(Reply::Reset)
    }

    /// A FIN alone that is not the next number.
    #[cold]
    fn count_stray_fin(&mut self, cx: &mut Context, segment: &Segment) {
        if segment.seq().before(self.rcv.nxt) {
            cx.counters.delayed_ack_lost += 1;
        } else if !self.rcv.fin_received {
            cx.counters.ofo_queue += 1;
            self.counts(cx.now).rcv_ooopack += 1;
        }
    }

    /// RFC 2883: what arrives twice is reported, so that the sender learns which of its retransmissions were in vain.
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

    /// RFC 2883: a SYN that arrives twice is reported by D-SACK.
    pub(super) fn note_repeated_syn(&mut self, cx: &mut Context) {
        if self.agreed.sack && cx.config.tcp_dsack {
            self.rcv.report_duplicate((self.rcv.irs, self.rcv.irs + 1));
            cx.counters.dsack_old_sent += 1;
        }
    }

    /// The application has shut both directions and will not read what comes (RFC 1122 §4.2.2.13; Linux's `RCV_SHUTDOWN`).
    fn resets_unread(&self, segment: &Segment) -> bool {
        let shut = self.special.as_ref().is_some_and(|special| special.reads_no_more);
        let fin = u32::from(segment.has(Flags::FIN));
        shut && matches!(self.state, State::FinWait1 | State::FinWait2)
            && (segment.end() - fin).after(self.rcv.nxt)
    }

    /// Returns the bytes that became readable.
    fn take_text(&mut self, cx: &mut Context, segment: &mut Segment) -> u32 {
        if self.rcv.may_know(segment.seq()) {
            self.note_duplicate(cx, segment);
        }
        let seq = segment.seq() + u32::from(segment.has(Flags::SYN));
        let len = segment.payload.len() as u32;
        let end = segment.end();
        let accepted = self.rcv.accept(cx.now, seq, segment.payload.take(), &mut cx.spare);
        if accepted > 0 {
            self.events |= Events::READABLE;
            self.note_arrival(cx.now);
            if self.rcv.is_tunable() {
                let echo = self
                    .echo_age(cx, segment.header.options.timestamps)
                    .filter(|_| self.rcv.is_full_sized(len));
                self.rcv.note_round(cx.now, accepted, echo);
            }
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

    /// The timestamp that a segment echoes, and how old it is.
    pub(in crate::tcp) fn echo_age(
        &self,
        cx: &Context,
        timestamps: Option<Timestamps>,
    ) -> Option<(u32, Duration)> {
        let echo = timestamps.filter(|_| self.agreed.timestamps)?.tsecr;
        let age = self.tsval(cx.now).wrapping_sub(echo);
        // What lies in the future is no echo of ours.
        (age < u32::MAX / 2).then_some((echo, Duration::from_millis(age.into())))
    }

    /// A FIN with this segment, or one that came out of order, is now in order.
    #[inline(always)]
    fn follow_with_fin(&mut self, fin: Option<SeqNum>, config: &Config) -> bool {
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

    /// The peer has ended its direction. The application is about to close, and one FIN-ACK will acknowledge everything: so what
    /// is owed waits for it, as `tcp_fin` does by entering pingpong mode. Linux still answers at once what it already owed so.
    #[inline(never)]
    pub(in crate::tcp) fn fin_received(&mut self, config: &Config) {
        self.events |= Events::READABLE;
        self.enter_pingpong(config);
        self.rcv.tuner = None;
        if self.rcv.ack_owed != AckOwed::Now || config.ack_habit == AckHabit::Merge {
            self.rcv.ack_owed = AckOwed::Delayed;
        }
        self.transition(Transition::FinReceived);
        if matches!(self.state, State::TimeWait | State::Closing) {
            self.ack_now();
        }
        if self.state == State::TimeWait {
            self.timers.stop(Timer::Life);
            self.finish();
        }
    }
}
