//! What was written and not sent, where it is one segment: the queue's part of short ways (`output/ordinary`, `write`).

use super::{Held, SendBlocks, SendQueue, TxSegment};
use crate::Instant;
use crate::tcp::send::delivery::{Delivery, Flight};
use bytes::{Bytes, BytesMut};
use smallvec::SmallVec;
use wire::{SeqNum, TEXT_MOST, TxPacket};

/// That segment, and who else in the queue learns of its departure.
pub(in crate::tcp) struct Unsent<'a> {
    segment: &'a mut TxSegment,
    tail: &'a mut Option<BytesMut>,
    sent_weight: &'a mut u32,
    pub(in crate::tcp::send) flight: &'a mut Flight,
    delivery: &'a Delivery,
}

impl Unsent<'_> {
    /// [`transmit`](SendQueue::transmit) of it, with which so much is in flight. True: it is pushed.
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
    /// The one segment that was written and never sent, if it begins at `seq` and no record has ended lately. It is about to leave.
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

    /// Nothing was written that is not acknowledged, and all that follows from it has been done.
    #[inline(always)]
    pub(crate) fn is_vacant(&self) -> bool {
        self.held.is_none()
    }

    /// All that was written is one segment, and pushed at its end.
    #[inline(always)]
    pub(in crate::tcp) fn is_pushed_whole(&self) -> bool {
        self.held.as_deref().is_some_and(|held| match (held.segments.len(), held.segments.front()) {
            (1, Some(only)) => only.push,
            _ => false,
        })
    }

    /// Copies `data` in as one segment, pushed at its end. The queue is vacant.
    #[inline(always)]
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

    #[inline(always)]
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
