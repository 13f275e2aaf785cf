//! Unsent data that is one segment: the queue's part of the fast paths `output/ordinary` and
//! `write`.

use super::{Held, SendBlocks, SendQueue, Sending, TxSegment};
use crate::Instant;
use crate::tcp::send::delivery::{Delivery, Flight};
use bytes::{Bytes, BytesMut};
use smallvec::SmallVec;
use wire::{SeqNum, TEXT_MOST, TxPacket};

/// The unsent segment, with the parts of the queue that its departure changes.
pub(in crate::tcp) struct Unsent<'a> {
    segment: &'a mut TxSegment,
    tail: &'a mut Option<BytesMut>,
    sent_weight: &'a mut u32,
    pub(in crate::tcp::send) flight: &'a mut Flight,
    delivery: &'a Delivery,
}

impl Unsent<'_> {
    /// Sends the segment, like [`transmit`](SendQueue::transmit). `in_flight` includes it. Returns
    /// whether the application pushed its end.
    #[inline(always)]
    pub(in crate::tcp) fn leave(&mut self, now: Instant, in_flight: u32, packet: &mut TxPacket) -> bool {
        let segment = &mut *self.segment;
        segment.snapshot = self.delivery.snapshot(self.flight, in_flight);
        segment.sent_at = now;
        segment.transmissions = 1;
        segment.weight = segment.len;
        *self.sent_weight += segment.len;
        let inline = segment.parts.is_empty() && self.tail.as_ref().is_some_and(|tail| packet.set_text(tail));
        if !inline {
            if let Some(tail) = self.tail {
                segment.freeze(tail);
            }
            segment.add_parts_to(&mut packet.shared);
        }
        segment.push
    }
}

impl SendQueue {
    /// Returns the last segment, if it starts at `seq` and was never sent, and no record has ended
    /// lately. The caller sends it now.
    #[inline(always)]
    pub(in crate::tcp) fn unsent_segment(&mut self, seq: SeqNum) -> Option<Unsent<'_>> {
        let Held { segments, flight, sent_weight, has_records, unit, tail, .. } = self.held.as_deref_mut()?;
        let segment = segments.plain_back_mut()?;
        if segment.seq != seq || segment.transmissions > 0 || *has_records {
            return None;
        }
        *unit = 1;
        Some(Unsent { segment, tail, sent_weight, flight, delivery: &self.delivery })
    }

    /// Sends the first `len` bytes with a SYN or SYN-ACK, as one segment. Returns the number of
    /// bytes sent, and whether the application pushed the last one.
    pub(in crate::tcp) fn leave_with_syn(
        &mut self,
        now: Instant,
        start: SeqNum,
        len: u32,
        packet: &mut TxPacket,
    ) -> (u32, bool) {
        self.begin_flight(now);
        if len > 0
            && let Some(mut unsent) = self.unsent_segment(start)
            && unsent.segment.len == len
        {
            return (len, unsent.leave(now, len, packet));
        }
        let sending = Sending { now, in_flight: 0, unit: 1, packet: 1, again: false };
        self.transmit(sending, start, len, &mut packet.shared)
    }

    /// Returns whether everything that was written is acknowledged and handled.
    pub(crate) fn is_vacant(&self) -> bool {
        self.held.is_none()
    }

    /// Copies `data` in as one segment, pushed at its end. The queue must be vacant.
    pub(crate) fn write_first(&mut self, data: &[u8], blocks: &mut SendBlocks) {
        self.begin(data.len(), blocks);
        let mut parts = SmallVec::new();
        if data.len() > TEXT_MOST {
            parts.push(blocks.copy(data));
        } else if let Some(held) = &mut self.held {
            held.tail.get_or_insert_with(|| BytesMut::with_capacity(TEXT_MOST)).extend_from_slice(data);
        }
        self.push_first(data.len() as u32, parts);
    }

    fn push_first(&mut self, len: u32, parts: SmallVec<[Bytes; 1]>) {
        let seq = self.end;
        (self.end, self.len) = (seq + len, len);
        let Some(held) = &mut self.held else { return };
        held.pushed = seq + len;
        let mut segment = TxSegment::of(seq, len, parts);
        segment.push = true;
        held.segments.push_back(segment);
    }
}
