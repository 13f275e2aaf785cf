//! The short way of the segments with which a connection ends: the peer's FIN, alone or behind text; the acknowledgement of ours; and what
//! goes the one way while the other is over. To these it is what `predicted` is to those of a connection that goes on, and held to the long
//! way by the same tests.

use super::predicted::{Ordinary, Payload};
use crate::tcp::connection::{Connection, Context};
use crate::tcp::nagle::Nagle;
use crate::tcp::recovery::Purpose;
use crate::tcp::timers::Timer;
use crate::{AckHabit, Events};

impl Connection {
    /// The segment is the one that was to be expected, of a connection that [ends with it](Self::ends_with), or has begun to.
    #[inline(always)]
    pub(crate) fn predicts_ending(&self, cx: &Context, segment: &Ordinary) -> bool {
        self.is_open()
            && self.is_next(segment)
            && self.has_use_for(segment)
            && self.offers_enough(segment)
            && self.is_timely(segment)
            && self.is_in_order()
            && self.is_ordinary()
            && self.options.is_ordinary()
            && self.special.is_none()
            && self.agreed.ecn.is_off()
            && !cx.memory.is_under_pressure()
    }

    /// Nothing follows a FIN, and of text there is somebody to read it.
    #[inline(always)]
    pub(super) fn has_use_for(&self, segment: &Ordinary) -> bool {
        let (text, fin) = (segment.len > 0, segment.fin);
        !(self.rcv.fin_received && (text || fin) || self.orphan && text)
    }

    /// Takes a segment that [`predicts_ending`](Self::predicts_ending) holds for.
    #[inline(always)]
    pub(crate) fn take_ending(&mut self, cx: &mut Context, segment: &Ordinary, payload: Payload) {
        self.tally.came(segment.len, payload.gso_size);
        self.ecn.forget_reduction(self.snd.una);
        let (numbers, offered) = ((segment.seq, segment.ack), self.offered_in(segment.window));
        if self.tells_window(&cx.config, numbers, offered) {
            self.take_window(numbers, offered);
        }
        cx.counters.pure_acks += u64::from(segment.len == 0 && !segment.fin);
        self.moments.heard(cx.now);
        if segment.ack != self.snd.una {
            self.take_ending_ack(cx, segment);
        }
        self.snd.nagle.remove(Nagle::MORE);
        if !self.is_open() {
            return self.finish();
        }
        self.persist_after_ack(cx);
        self.note_timely(cx, segment);
        if segment.len > 0 {
            self.take_last_text(cx, segment, payload);
        } else if segment.fin {
            self.take_fin(cx);
        }
        self.arm_delayed_ack(cx);
    }

    /// It acknowledges something: our FIN, text, or both.
    #[inline(always)]
    fn take_ending_ack(&mut self, cx: &mut Context, segment: &Ordinary) {
        let ack = segment.ack;
        if self.snd.queue.is_vacant() {
            return self.only_fin_is_acknowledged(cx, segment);
        }
        let fin = self.snd.fin_seq().is_some_and(|fin| ack.after(fin));
        let everything = ack == self.snd.max && (fin || ack == self.snd.queue.end());
        if everything && let Some(lone) = self.snd.queue.take_lone() {
            self.all_is_acknowledged(cx, segment, &lone);
            if fin {
                self.fin_is_acknowledged(cx);
            }
            return lone.give_back(&mut cx.blocks);
        }
        self.acknowledge_in_order(cx, ack, segment.timestamps);
        self.segments_delivered(cx);
        if self.purpose == Purpose::Timeout {
            self.arm_probe(cx, self.in_flight(), false);
        }
    }

    /// Nothing else was in flight.
    #[inline(always)]
    fn only_fin_is_acknowledged(&mut self, cx: &mut Context, segment: &Ordinary) {
        if self.fast_opened && cx.paths.has_verdicts() {
            self.path_is_not_stalled(cx);
        }
        self.snd.una = segment.ack;
        self.snd.nxt = self.snd.nxt.latest(segment.ack);
        self.soft_error = None;
        self.timers.stop(Timer::Retransmit);
        self.fin_is_acknowledged(cx);
        if self.snd.blocked {
            self.room_to_write(cx);
        }
        self.events |= Events::SENT_ALL;
    }

    /// It brings the text that comes next, and perhaps the FIN behind it.
    #[inline(never)]
    fn take_last_text(&mut self, cx: &mut Context, segment: &Ordinary, payload: Payload) {
        if !segment.fin {
            return self.take_predicted_text(cx, segment, payload);
        }
        let owed = self.rcv.ack_owed;
        let came = self.take_next_text(cx, segment, payload);
        let quick = cx.config.ack_habit == AckHabit::QuickStart;
        if quick {
            self.rcv.ack_owed = owed;
        }
        self.measure_delay(cx, &came);
        self.take_fin(cx);
        if quick && self.rcv.has_much_to_acknowledge() {
            self.ack_now();
        }
    }

    /// The FIN comes next.
    #[inline(always)]
    fn take_fin(&mut self, cx: &Context) {
        self.rcv.take_fin();
        self.fin_received(&cx.config);
    }
}
