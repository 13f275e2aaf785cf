//! SEGMENT ARRIVES (RFC 9293 §3.10.7): the RFC's order, one call per check.
//!
//! CLOSED and LISTEN are the stack's (`stack::ingress`), TIME-WAIT has its table. The third check (security) has no meaning here
//! and the sixth (urgent) only sets a mark in the stream (`tcp/rare/urgent`).

mod ack;
mod arrives;
mod completing;
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

use crate::tcp::recv::payload::Payload;
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
