//! Part of the fast path (`predicted`) for connections that end: the peer's FIN, the ACK of ours,
//! and segments while one direction is closed.

use crate::tcp::connection::{Connection, Context};
use crate::tcp::segment::SegmentFields;
use crate::tcp::timers::Timer;
use crate::{Events, State};
use wire::{Flags, SeqNum};

impl Connection {
    /// Returns whether one direction is closed, or closes with this segment.
    pub(crate) fn ends_with(&self, segment: &SegmentFields) -> bool {
        segment.has(Flags::FIN) || self.state != State::Established
    }

    /// Returns whether the segment may be delivered: nothing follows a FIN, and text has a reader.
    pub(super) fn has_use_for(&self, segment: &SegmentFields) -> bool {
        let (text, fin) = (segment.payload_len > 0, segment.has(Flags::FIN));
        !(self.rcv.fin_received && (text || fin) || self.orphan && text)
    }

    /// Handles the ACK of our FIN when nothing else was in flight.
    pub(super) fn only_fin_is_acknowledged(&mut self, cx: &mut Context, ack: SeqNum) {
        self.advance_una(cx, ack, 0);
        self.timers.stop(Timer::Retransmit);
        self.fin_is_acknowledged(cx);
        if self.writer_waits {
            self.room_to_write(cx);
        }
        self.events |= Events::SENT_ALL;
    }
}
