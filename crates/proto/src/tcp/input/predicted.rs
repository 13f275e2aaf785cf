//! The fast path of the ordinary segment: what comes next on an open connection where nothing is missing, and that acknowledges, tells and
//! brings nothing but what was to be expected (header prediction: RFC 1144's, as Linux's `tcp_rcv_established`); and with which such a
//! connection ends, which is more than Linux predicts (`ending`).
//!
//! The eight checks of RFC 9293 §3.10.7.4 are passed at once, by the fields they would look at. What follows from acknowledgement and text
//! is what the slow path does, in its order; left out is what would do nothing. Random worlds compare the two (`cargo xtask simulate
//! --differential`).
//!
//! It saves a seventh of the instructions of an exchange on a connection of its own, and a fifth of those of a request on an open one (here, as in
//! the files that say the same of other fast paths: `firstbyte-bench instructions`, with and without it).

use super::ack::count_predicted;
use crate::Events;
use crate::tcp::connection::{Connection, Context};
use crate::tcp::recovery::Purpose;
use crate::tcp::recv::ack_delay::Came;
use crate::tcp::recv::payload::Payload;
use crate::tcp::recv::receiver::Receiver;
use crate::tcp::send::nagle::Nagle;
use crate::tcp::send::send_queue::Lone;
use crate::tcp::timers::Timer;
use wire::{Flags, PlainSegment, SeqNum, Timestamps};

/// A segment without other options than timestamps, and flags than ACK, PSH and FIN.
#[derive(Clone, Copy)]
pub(crate) struct Ordinary {
    pub(crate) seq: SeqNum,
    pub(crate) ack: SeqNum,
    /// SEG.WND, unscaled.
    pub(crate) window: u16,
    pub(super) pushed: bool,
    pub(crate) fin: bool,
    pub(crate) timestamps: Option<Timestamps>,
    /// Bytes of its payload.
    pub(super) len: usize,
    /// It has just completed the handshake: header prediction, as counted, begins behind it.
    pub(crate) completes: bool,
}

impl Ordinary {
    /// `None`: it has other flags. Nothing is said of its options.
    #[inline(always)]
    pub(crate) fn of(segment: &PlainSegment) -> Option<Ordinary> {
        let ordinary = Ordinary::by_fields(segment);
        (segment.flags - Flags::PSH - Flags::FIN == Flags::ACK).then_some(ordinary)
    }

    /// The fields of a SYN-ACK, whose timestamps are among its other options; `None`: it has other flags.
    #[inline(always)]
    pub(crate) fn of_syn_ack(segment: &PlainSegment) -> Option<Ordinary> {
        (segment.flags - Flags::PSH - Flags::FIN == Flags::SYN | Flags::ACK)
            .then(|| Ordinary::by_fields(segment))
    }

    #[inline(always)]
    fn by_fields(segment: &PlainSegment) -> Ordinary {
        let PlainSegment { seq, ack, window, flags, timestamps, payload_len: len, .. } = *segment;
        let (pushed, fin) = (flags.contains(Flags::PSH), flags.contains(Flags::FIN));
        Ordinary { seq, ack, window, pushed, fin, timestamps, len, completes: false }
    }
}

impl Connection {
    /// The segment is the one that was to be expected: no check of its numbers and window finds anything.
    #[inline(always)]
    pub(crate) fn predicts(&self, cx: &Context, segment: &Ordinary) -> bool {
        self.takes_fast_paths_open(cx)
            && self.is_open()
            && self.has_use_for(segment)
            && self.is_next(segment)
            && self.offers_enough(segment)
            && self.is_timely(segment)
            && !cx.memory.is_under_pressure()
    }

    /// It begins where the last ended, acknowledges nothing that was not sent, or was acknowledged before, and fits the window.
    #[inline(always)]
    pub(super) fn is_next(&self, segment: &Ordinary) -> bool {
        segment.seq == self.rcv.nxt
            && segment.ack.since(self.snd.una) <= self.snd.max.since(self.snd.una)
            && segment.len <= self.rcv.wnd() as usize
    }

    /// The window it offers is no smaller than it was, and not closed.
    #[inline(always)]
    fn offers_enough(&self, segment: &Ordinary) -> bool {
        self.offered_in(segment.window) >= self.snd.wnd.max(1)
    }

    /// RFC 7323 §5.3.
    #[inline(always)]
    pub(super) fn is_timely(&self, segment: &Ordinary) -> bool {
        segment.timestamps.is_none_or(|timestamps| {
            !self.agreed.timestamps || timestamps.tsval.wrapping_sub(self.ts_recent).cast_signed() >= 0
        })
    }

    /// Takes a segment that [`predicts`](Self::predicts) holds for. `text`: its payload, if it has any.
    #[inline(always)]
    pub(crate) fn take_predicted(
        &mut self,
        cx: &mut Context,
        segment: &Ordinary,
        text: Option<Payload<'_, '_>>,
    ) {
        let (len, ack, ends) = (segment.len, segment.ack, self.ends_with(segment));
        debug_assert!(ends || !self.orphan && !self.snd.fin_queued() && !self.rcv.fin_received);
        self.tally.came(len, text.as_ref().map_or(0, |text| text.gso_size()));
        let progress = ack != self.snd.una;
        let offered = self.offered_in(segment.window);
        let numbers = (segment.seq, ack);
        let mut same_window = true;
        if self.updates_window(&cx.config, numbers, offered) {
            same_window = offered == self.snd.wnd;
            if !same_window && self.snd.flight_size() == 0 && self.unsent() > 0 {
                self.window_kept_back();
            }
            self.take_window(numbers, offered);
        }
        let counts = same_window && !ends && !segment.completes;
        count_predicted(cx, counts, progress, (len, len as u32 + u32::from(segment.fin)));
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
        self.note_timely(cx, segment);
        match text {
            Some(text) => self.take_predicted_text(cx, segment, text),
            None if segment.fin => self.take_predicted_fin(cx),
            None => {}
        }
        self.arm_delayed_ack(cx);
    }

    /// RFC 7323 §4.3.
    #[inline(always)]
    fn note_timely(&mut self, cx: &Context, segment: &Ordinary) {
        if let Some(timestamps) = segment.timestamps.filter(|_| self.agreed.timestamps)
            && segment.seq.before_or_eq(self.rcv.last_ack_sent)
        {
            self.remember_timestamp(cx.now, timestamps.tsval);
        }
    }

    /// It acknowledges something. True: all that there is to acknowledge, so that nothing waits for a timer.
    #[inline(always)]
    fn take_predicted_ack(&mut self, cx: &mut Context, segment: &Ordinary) -> bool {
        let ack = segment.ack;
        if self.snd.queue.is_vacant() {
            self.only_fin_is_acknowledged(cx, ack);
            return true;
        }
        // A FIN has the number behind all text.
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
            self.arm_probe(cx, self.in_flight(), false);
        }
        false
    }

    /// All that was ever written went as one segment, and has arrived: nothing is in flight, nothing waits, no timer runs for it.
    #[inline(always)]
    fn all_is_acknowledged(&mut self, cx: &mut Context, segment: &Ordinary, lone: &Lone) {
        let Some((sent, flight, round)) = lone.parts() else { return };
        if self.fast_opened && cx.paths.has_verdicts() {
            self.path_is_not_stalled(cx);
        }
        self.snd.una = segment.ack;
        self.snd.nxt = segment.ack;
        self.bytes_acked += u64::from(sent.len);
        self.soft_error = None;
        let rtt = cx.now.nanos_since(sent.sent_at);
        let first_sample = !self.rtt.is_sampled();
        // As `may_be_delayed` says of a lone segment.
        self.note_min_rtt(cx, rtt, |c| {
            sent.len < c.smss().into() && c.snd.queue.delivery.is_still_at(&sent.snapshot)
        });
        self.rtt.on_delayed_nanos(rtt, self.snd.span());
        if first_sample {
            self.remember_rtt(cx);
        }
        self.hear_round_trip(cx, rtt);
        self.timers.stop(Timer::Retransmit);
        if self.snd.blocked {
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

    /// It brings the text that comes next, all of which lies in the window, and perhaps the FIN behind it.
    #[inline(always)]
    pub(super) fn take_predicted_text(
        &mut self,
        cx: &mut Context,
        segment: &Ordinary,
        text: Payload<'_, '_>,
    ) {
        let (len, owed) = (segment.len, self.rcv.ack_owed);
        let came = Came {
            before: self.rcv.last_data_at,
            len: len as u32,
            full_sized: len + 40 >= usize::from(self.advmss),
            pushed: segment.pushed,
        };
        take_out(&mut self.rcv, cx, text);
        self.events |= Events::READABLE;
        if self.rcv.is_tunable() {
            let full_sized = self.rcv.is_full_sized(came.len);
            let echo = if full_sized { self.echo_age(cx, segment.timestamps) } else { None };
            self.rcv.note_round(cx.now, came.len, echo);
        }
        self.keep_within_memory(cx);
        if segment.fin {
            return self.text_ends(cx, &came, owed);
        }
        self.owe_ack(cx, &came);
    }
}

/// Apart, so that what it needs lies in registers there, and what the others need here.
#[inline(never)]
fn take_out(receiver: &mut Receiver, cx: &mut Context, text: Payload<'_, '_>) {
    receiver.accept_next(cx.now, text, &mut cx.spare);
}
