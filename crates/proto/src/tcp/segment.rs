//! A received segment: [`SegmentFields`] has the fields that every segment has, [`Segment`] also
//! the options and the payload.

use crate::tcp::recv::payload::Payload;
use wire::{Ecn, Flags, PlainSegment, SeqNum, TcpHeader, Timestamps};

/// Header fields of a received segment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SegmentFields {
    /// SEG.SEQ.
    pub(crate) seq: SeqNum,
    /// SEG.ACK.
    pub(crate) ack: SeqNum,
    pub(crate) flags: Flags,
    /// SEG.WND, unscaled.
    pub(crate) window: u16,
    pub(crate) timestamps: Option<Timestamps>,
    /// Payload length in bytes.
    pub(crate) payload_len: u32,
}

impl SegmentFields {
    pub(crate) fn has(&self, flags: Flags) -> bool {
        self.flags.contains(flags)
    }

    /// Returns whether it occupies sequence numbers, other than a SYN's.
    pub(crate) fn has_text(&self) -> bool {
        !self.has(Flags::SYN) && (self.payload_len > 0 || self.has(Flags::FIN))
    }
}

impl From<&PlainSegment> for SegmentFields {
    #[inline]
    fn from(segment: &PlainSegment) -> SegmentFields {
        let PlainSegment { seq, ack, flags, window, timestamps, payload_len, .. } = *segment;
        SegmentFields { seq, ack, flags, window, timestamps, payload_len: payload_len as u32 }
    }
}

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
    pub(crate) fn fields(&self) -> SegmentFields {
        SegmentFields {
            seq: self.header.seq,
            ack: self.header.ack,
            flags: self.header.flags,
            window: self.header.window,
            timestamps: self.header.options.timestamps,
            payload_len: self.payload.len() as u32,
        }
    }

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
