//! Fast path of the ACK that completes the handshake of a Fast Open child without losses or special
//! options. `predicted` handles the rest of the segment.
//!
//! Saves 5 % of the instructions of an exchange with Fast Open.

use crate::tcp::connection::{Connection, Context};
use crate::tcp::open::handshake::{Handshake, PassiveOpen};
use crate::tcp::recovery::Purpose;
use crate::tcp::segment::SegmentFields;
use crate::tcp::timers::Timer;
use wire::SeqNum;

impl Connection {
    /// Returns whether the segment completes the handshake, and is the next one expected.
    #[inline]
    pub(crate) fn completes(&self, cx: &Context, segment: &SegmentFields) -> bool {
        let Some(Handshake::Passive(passive)) = self.handshake.as_deref() else { return false };
        passive.went_as_usual()
            && passive.is_acknowledged_as_a_whole(self.snd.iss, segment.ack)
            && segment.ack.since(self.snd.iss) <= self.snd.max.since(self.snd.iss)
            && segment.window > 0
            && !self.rcv.advertised_zero()
            && self.is_next(segment)
            && self.has_use_for(segment)
            && self.is_timely(segment)
            && self.agreed.sack
            && !cx.memory.is_under_pressure()
            && self.takes_fast_paths(cx)
    }

    /// Completes the handshake. The caller then handles numbers and text of the segment.
    pub(crate) fn complete(&mut self, cx: &mut Context, segment: &SegmentFields) {
        let Some(handshake) = self.handshake.take() else { return };
        let Handshake::Passive(passive) = &*handshake else { return };
        self.timers.stop(Timer::SynAckHold);
        self.timers.stop(Timer::Retransmit);
        self.rtt.on_sample_nanos(cx.now, cx.now.nanos_since(passive.sent_at), self.snd.span());
        cx.handshakes.keep(handshake);
        self.open_passively(cx, segment.seq, segment.ack, self.offered_in(segment.window));
        if self.snd.flight_size() > 0 && segment.ack == self.snd.max {
            // No timer, because the segment acknowledges everything.
            self.purpose = Purpose::Timeout;
        } else if self.snd.flight_size() > 0 {
            self.arm_rto(cx.now);
        }
    }
}

impl PassiveOpen {
    /// Returns whether this is a Fast Open with one SYN-ACK, and nothing waits for the end of the
    /// handshake.
    fn went_as_usual(&self) -> bool {
        self.fast_open && self.transmissions == 1 && !self.fin_waits
    }

    /// Returns whether the ACK covers the data of the SYN-ACK, if it had any. Otherwise the data
    /// would have to be retransmitted (`resend_after_synack`).
    fn is_acknowledged_as_a_whole(&self, iss: SeqNum, ack: SeqNum) -> bool {
        ack.after(iss + 1) || ack == iss + 1 && self.data_sent == 0 && !self.fin_sent
    }
}
