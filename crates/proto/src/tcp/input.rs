//! SEGMENT ARRIVES (RFC 9293 §3.10.7): the RFC's order, one call per check.
//!
//! CLOSED and LISTEN are the stack's (`stack::ingress`), TIME-WAIT has its table. The third check (security) has no meaning here
//! and the sixth (urgent) only sets a mark in the stream (`tcp/urgent`).

mod ack;
mod completing;
mod duplicate;
mod embryo;
mod ending;
pub(crate) mod gro_run;
mod loss;
pub(crate) mod predicted;
mod reported;
mod reset;
mod sequence;
mod syn_sent;
mod text;
pub(crate) mod usual_syn_ack;

use super::connection::{Connection, Context};
use super::handshake::Handshake;
use super::payload::Payload;
use wire::{Ecn, Flags, SeqNum, TcpHeader};

/// A segment for a connection.
#[derive(Debug)]
pub(crate) struct Segment<'p, 'd> {
    pub(crate) header: TcpHeader,
    pub(crate) payload: Payload<'p, 'd>,
    /// Of the IP header.
    pub(crate) ecn: Ecn,
    /// Its class (RFC 2474).
    pub(crate) dscp: u8,
}

impl Segment<'_, '_> {
    pub(crate) fn has(&self, flags: Flags) -> bool {
        self.header.flags.contains(flags)
    }

    pub(crate) fn seq(&self) -> SeqNum {
        self.header.seq
    }

    /// SEG.LEN: payload, SYN and FIN.
    pub(crate) fn len(&self) -> u32 {
        self.payload.len() as u32 + u32::from(self.has(Flags::SYN)) + u32::from(self.has(Flags::FIN))
    }

    /// Sequence number after the segment.
    pub(crate) fn end(&self) -> SeqNum {
        self.seq() + self.len()
    }
}

/// What goes back to the sender of a segment, beside what the connection itself will send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    Nothing,
    /// The reset that RFC 9293 §3.10.7.1 makes from the segment's own numbers.
    Reset,
}

/// Processing of this segment ends here, with this reply.
pub(crate) type Stop = Reply;

impl Connection {
    /// A segment has arrived; its payload is taken out of it if it is taken at all.
    #[inline(always)]
    pub(crate) fn segment_arrives(&mut self, cx: &mut Context, segment: &mut Segment) -> Reply {
        self.tally.came(segment.payload.len(), segment.payload.gso_size());
        if matches!(self.handshake.as_deref(), Some(Handshake::Active(_))) {
            return self.arrives_in_syn_sent(cx, segment);
        }
        self.arrives_later(cx, segment).err().unwrap_or(Reply::Nothing)
    }

    fn arrives_later(&mut self, cx: &mut Context, segment: &mut Segment) -> Result<(), Stop> {
        if self.is_embryo(cx) {
            self.check_embryo(cx, segment)?;
        }
        if !segment.header.flags.intersects(Flags::ACK | Flags::RST | Flags::SYN) {
            // No peer that is synchronized sends it: it is not worth an answer, wherever it lies (as Linux).
            return Err(Reply::Nothing);
        }
        self.predict_packet(cx, segment);
        self.check_sequence(cx, segment)?;
        self.check_reset(cx, segment)?;
        self.check_syn(cx, segment)?;
        let before = self.ecn_before_ack(cx, segment);
        let offered = self.snd.wnd;
        self.check_ack(cx, segment)?;
        if cx.config.resend_before_text && segment.len() > 0 && !self.recovery.is_idle() {
            self.resend_meanwhile(cx);
        }
        self.acknowledged_packets(cx, segment, offered);
        if !self.agreed.ecn.is_off() {
            self.ecn_after_ack(cx, segment, before);
        }
        // An ACK older than the last says nothing of now (as Linux's `tcp_ack`): whoever guesses a number has not read the others.
        if !segment.header.ack.before(self.snd.una) {
            self.note_timestamp(cx, segment);
        }
        if segment.has(Flags::URG) {
            self.check_urgent(cx, segment);
        }
        let ended = self.process_text_and_fin(cx, segment);
        if self.agreed.ecn.is_accurate() {
            self.acknowledge_change();
        }
        ended
    }
}
