//! Part of the fast path (`predicted`) for connections that end: the peer's FIN, the ACK of ours,
//! and segments while one direction is closed.

use crate::tcp::connection::{Connection, Context};
use crate::tcp::recv::ack_delay::Came;
use crate::tcp::recv::receiver::AckOwed;
use crate::tcp::timers::Timer;
use crate::{AckHabit, Events, State};
use wire::{Flags, PlainSegment, SeqNum};

impl Connection {
    /// Returns whether one direction is closed, or closes with this segment.
    pub(crate) fn ends_with(&self, segment: &PlainSegment) -> bool {
        segment.flags.contains(Flags::FIN) || self.state != State::Established
    }

    /// Returns whether the segment may be delivered: nothing follows a FIN, and text has a reader.
    pub(super) fn has_use_for(&self, segment: &PlainSegment) -> bool {
        let (text, fin) = (segment.payload_len > 0, segment.flags.contains(Flags::FIN));
        !(self.rcv.fin_received && (text || fin) || self.orphan && text)
    }

    /// Handles the ACK of our FIN when nothing else was in flight.
    pub(super) fn only_fin_is_acknowledged(&mut self, cx: &mut Context, ack: SeqNum) {
        if self.fast_opened && cx.paths.has_verdicts() {
            self.path_is_not_stalled(cx);
        }
        self.snd.una = ack;
        self.snd.nxt = self.snd.nxt.latest(ack);
        self.soft_error = None;
        self.timers.stop(Timer::Retransmit);
        self.fin_is_acknowledged(cx);
        if self.writer_waits {
            self.room_to_write(cx);
        }
        self.events |= Events::SENT_ALL;
    }

    /// Accepts a FIN that comes next in order.
    pub(super) fn take_predicted_fin(&mut self, cx: &Context) {
        self.rcv.take_fin();
        self.fin_received(&cx.config);
    }

    /// Accepts a FIN behind text. `owed` is the acknowledgment that was owed before the text came.
    #[inline(never)]
    pub(super) fn text_ends(&mut self, cx: &Context, came: &Came, owed: AckOwed) {
        let estimates_delay = cx.config.ack_habit == AckHabit::QuickStart;
        if estimates_delay {
            self.rcv.ack_owed = owed;
            self.measure_delay(cx, came);
        }
        self.take_predicted_fin(cx);
        if estimates_delay && self.rcv.has_much_to_acknowledge() {
            self.ack_now();
        }
    }
}
