//! Fast path of a segment that arrives in order on an open connection without losses (header
//! prediction: RFC 1144, Linux's `tcp_rcv_established`). `ending` extends it to the segments that
//! close such a connection, which Linux does not predict.
//!
//! A predicate passes the eight checks of RFC 9293 §3.10.7.4 at once. The effects are those of the
//! general path, in its order, without the steps that would do nothing. Random runs compare both
//! paths (`cargo xtask simulate --differential`).
//!
//! Saves a seventh of the instructions of an exchange on its own connection, and a fifth of those
//! of a request on an open connection (`firstbyte-bench instructions`, with and without it).

use super::ack::count_predicted;
use crate::Events;
use crate::tcp::connection::{Connection, Context};
use crate::tcp::recovery::Purpose;
use crate::tcp::recv::payload::Payload;
use crate::tcp::recv::receiver::Receiver;
use crate::tcp::segment::SegmentFields;
use crate::tcp::send::nagle::Nagle;
use crate::tcp::send::send_queue::Lone;
use crate::tcp::timers::Timer;
use wire::Flags;

impl Connection {
    /// Returns whether no check of RFC 9293 §3.10.7.4 would find anything in this segment.
    pub(crate) fn predicts(&self, cx: &Context, segment: &SegmentFields) -> bool {
        self.takes_fast_paths_open(cx)
            && self.is_open()
            && self.has_use_for(segment)
            && self.is_next(segment)
            && self.offers_enough(segment)
            && self.is_timely(segment)
            && !cx.memory.is_under_pressure()
    }

    /// Returns whether the segment starts at RCV.NXT, fits the window, acknowledges only what is in
    /// flight, and has no flags but ACK, PSH and FIN.
    #[inline]
    pub(super) fn is_next(&self, segment: &SegmentFields) -> bool {
        segment.seq == self.rcv.nxt
            && segment.flags - Flags::PSH - Flags::FIN == Flags::ACK
            && segment.ack.since(self.snd.una) <= self.snd.max.since(self.snd.una)
            && segment.payload_len <= self.rcv.wnd()
    }

    /// Returns whether the offered window is open, and no smaller than before.
    fn offers_enough(&self, segment: &SegmentFields) -> bool {
        self.offered_in(segment.window) >= self.snd.wnd.max(1)
    }

    /// Returns whether the segment passes PAWS (RFC 7323 §5.3).
    pub(super) fn is_timely(&self, segment: &SegmentFields) -> bool {
        segment.timestamps.is_none_or(|timestamps| {
            !self.agreed.timestamps || timestamps.tsval.wrapping_sub(self.ts_recent).cast_signed() >= 0
        })
    }

    /// Handles a segment for which [`predicts`](Self::predicts) is true. `text` is its payload, if
    /// any. `completes`: the segment has just completed the handshake, so it does not count as
    /// predicted.
    pub(crate) fn take_predicted(
        &mut self,
        cx: &mut Context,
        segment: &SegmentFields,
        text: Option<Payload<'_, '_>>,
        completes: bool,
    ) {
        let (len, ack, ends) = (segment.payload_len, segment.ack, self.ends_with(segment));
        let fin = segment.has(Flags::FIN);
        debug_assert!(ends || !self.orphan && !self.snd.fin_queued() && !self.rcv.fin_received);
        self.tally.came(len as usize, text.as_ref().map_or(0, |text| text.gso_size()));
        let progress = ack != self.snd.una;
        let offered = self.offered_in(segment.window);
        let mut same_window = true;
        if self.snd.updates_window(&cx.config, segment.seq, ack, offered) {
            same_window = offered == self.snd.wnd;
            if !same_window && self.snd.flight_size() == 0 && self.snd.unsent() > 0 {
                self.snd.window_kept_back();
            }
            self.take_window(segment.seq, ack, offered);
        }
        let counts = same_window && !ends && !completes;
        count_predicted(cx, counts, progress, len as usize, len + u32::from(fin));
        self.moments.heard(cx.now);
        if self.special.is_some() {
            self.special_hears(cx, ack);
        }
        let nothing_waits = progress && self.take_predicted_ack(cx, segment);
        self.snd.nagle.remove(Nagle::MORE);
        if ends && !self.is_open() {
            return self.finish();
        }
        if !nothing_waits {
            self.segments_delivered(cx);
            self.persist_after_ack(cx);
        }
        self.note_timestamp(cx, segment.seq, segment.timestamps);
        match text {
            Some(text) => self.take_predicted_text(cx, segment, text),
            None => {
                let fin = fin.then_some(self.rcv.nxt);
                self.follow_with_fin(fin, &cx.config);
            }
        }
        self.arm_delayed_ack(cx);
    }

    /// Handles an acknowledgment of new data. Returns true if nothing in flight is left that needs
    /// a timer.
    fn take_predicted_ack(&mut self, cx: &mut Context, segment: &SegmentFields) -> bool {
        let ack = segment.ack;
        if self.snd.queue.is_vacant() {
            self.only_fin_is_acknowledged(cx, ack);
            return true;
        }
        // The number of a FIN is the one behind all text.
        let beyond = ack.since(self.snd.queue.end());
        if ack == self.snd.max
            && beyond <= 1
            && let Some(lone) = self.snd.queue.take_lone()
        {
            self.all_is_acknowledged(cx, segment, &lone);
            if beyond == 1 {
                self.fin_is_acknowledged(cx);
            }
            lone.give_back(&mut cx.blocks);
            return !self.snd.fin_queued() || beyond == 1;
        }
        self.acknowledge_in_order(cx, ack, segment.timestamps);
        self.segments_delivered(cx);
        if self.purpose == Purpose::Timeout {
            self.arm_probe(cx, self.snd.in_flight(), false);
        }
        false
    }

    /// Handles the ACK of the only segment ever written to the queue. Nothing is in flight
    /// afterwards.
    fn all_is_acknowledged(&mut self, cx: &mut Context, segment: &SegmentFields, lone: &Lone) {
        let Some((sent, flight, round)) = lone.parts() else { return };
        self.advance_una(cx, segment.ack, sent.len);
        let rtt = cx.now.nanos_since(sent.sent_at);
        let first_sample = !self.rtt.is_sampled();
        // The same test as `may_be_delayed`, for a single segment.
        self.note_min_rtt(cx, rtt, |c| {
            sent.len < c.smss().into() && c.snd.queue.delivery.is_still_at(&sent.snapshot)
        });
        self.rtt.on_delayed_nanos(rtt, self.snd.span());
        if first_sample {
            self.remember_rtt(cx);
        }
        self.hear_round_trip(cx, rtt);
        self.timers.stop(Timer::Retransmit);
        if self.writer_waits {
            self.room_to_write(cx);
        }
        self.events |= Events::SENT_ALL;
        self.window_may_grow_after(cx, round, sent.len, Some(rtt));
        let min_rtt = self.rtt.min_rtt_micros();
        let rate = self.snd.queue.delivery.sample_lone(
            flight,
            cx.now,
            min_rtt,
            (sent.weight, sent.sent_at),
            sent.snapshot,
        );
        self.count_delivered(cx, &rate);
        self.report_rate(cx.now, &rate, 0, round.was_full());
    }

    /// Accepts the text that comes next and lies within the window, and the FIN behind it, if any.
    pub(super) fn take_predicted_text(
        &mut self,
        cx: &mut Context,
        segment: &SegmentFields,
        text: Payload<'_, '_>,
    ) {
        let (len, fin) = (segment.payload_len, segment.has(Flags::FIN));
        let arrival = self.text_arrival(segment.flags, len, fin.then(|| self.rcv.nxt + len));
        take_out(&mut self.rcv, cx, text);
        self.text_accepted(cx, len, len, segment.timestamps);
        self.keep_within_memory(cx);
        self.text_taken(cx, &arrival, len);
    }
}

/// Not inlined: both this function and its caller need most registers.
#[inline(never)]
fn take_out(receiver: &mut Receiver, cx: &mut Context, text: Payload<'_, '_>) {
    receiver.accept_next(cx.now, text, &mut cx.spare);
}
