//! SEGMENT ARRIVES (RFC 9293 §3.10.7): the RFC's order, one call per check.
//!
//! The stack handles CLOSED and LISTEN (`stack::ingress`). TIME-WAIT has its own table. The third
//! check (security) has no meaning here. The sixth (urgent) only sets a mark in the stream
//! (`tcp/rare/urgent`).

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

use crate::tcp::recv::payload::Payload;
use wire::{Ecn, Flags, SeqNum, TcpHeader};

/// A segment for a connection.
#[derive(Debug)]
pub(crate) struct Segment<'p, 'd> {
    pub(crate) header: TcpHeader,
    pub(crate) payload: Payload<'p, 'd>,
    /// ECN field of the IP header.
    pub(crate) ecn: Ecn,
    /// DiffServ code point (RFC 2474).
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

/// Answer to the sender of a segment, in addition to what the connection sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    Nothing,
    /// The reset of RFC 9293 §3.10.7.1, whose numbers come from the segment.
    Reset,
}

/// Ends the processing of a segment, with this reply.
pub(crate) type Stop = Reply;
