//! Data that the application wrote and the peer has not acknowledged, as segments over shared
//! bytes.
//!
//! A write forms [`TxSegment`]s up to the size goal. They are split on demand, so that each one is
//! either sent or unsent as a whole. A segment has the data that loss recovery needs about its
//! transmissions. The queue holds bytes only; SYN and FIN belong to the sender.

mod app_limited;
pub(crate) mod blocks;
mod cutting;
mod join;
mod kinds;
mod lone;
mod marked;
mod marking;
mod refused;
mod repeated;
mod segment;
mod segments;
mod starts;
mod unsent;
mod weight;

use super::window_use::Round;
use crate::Instant;
use crate::tcp::send::delivery::{Delivery, Flight, LostSegment, RateSample, Snapshot};
use crate::tcp::send::send_queue::blocks::SendBlocks;
use alloc::boxed::Box;
use alloc::vec::Vec;
use bytes::{Bytes, BytesMut};
use core::ops::{Deref, DerefMut};
pub(crate) use kinds::Kind;
pub(crate) use lone::Lone;
use marked::Place;
pub(crate) use marking::Packets;
pub(crate) use segment::TxSegment;
use segments::Segments;
use smallvec::SmallVec;
pub(crate) use weight::Reweighed;
use weight::weight;
use wire::{SeqNum, TEXT_MOST};

/// Payload of one transmission: slices in order.
pub(crate) type Slices = SmallVec<[Bytes; 2]>;

/// The send buffer.
#[derive(Debug)]
pub(crate) struct SendQueue {
    /// `None` if the queue is empty: an idle connection must stay small.
    held: Option<Box<Held>>,
    /// Sequence number after the last byte written.
    end: SeqNum,
    len: u32,
    /// Largest number of bytes that it should hold.
    pub(crate) limit: u32,
    /// Delivery rate estimator: records every segment sent and acknowledged.
    pub(crate) delivery: Delivery,
}

/// Sizes by which a write is cut.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Goal {
    /// Largest segment in bytes.
    pub(crate) segment: u32,
    /// Bytes of a long write between two pushes.
    pub(crate) push_span: u32,
}

impl From<u32> for Goal {
    /// Pushes at the end of the write only.
    fn from(segment: u32) -> Goal {
        Goal { segment, push_span: u32::MAX >> 1 }
    }
}

/// A transmission.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sending {
    pub(in crate::tcp) now: Instant,
    /// Bytes in flight before this transmission.
    pub(in crate::tcp) in_flight: u32,
    /// Unit of a segment's weight in bytes. With 1, a segment weighs its length.
    pub(in crate::tcp) unit: u32,
    /// Payload bytes of a packet.
    pub(in crate::tcp) packet: u32,
    /// The data is in flight already.
    pub(in crate::tcp) again: bool,
}

/// Content of a queue. `SendQueue` derefs to it. When the queue is empty, its memory serves the
/// next one (`send_blocks`).
#[derive(Debug)]
pub(crate) struct Held {
    flight: Flight,
    round: Round,
    /// Sequence number after the last byte pushed.
    pushed: SeqNum,
    /// Some segment ends a record, or did lately.
    has_records: bool,
    /// Unit of the weights in bytes.
    unit: u32,
    /// Weight of all segments in flight.
    sent_weight: u32,
    /// Weight of the segments acknowledged last.
    acked_weight: u32,
    reweighed: Reweighed,
    segments: Segments,
    /// Unshared bytes of the last segment, to which writes append. They may stay here and leave as
    /// inline text.
    tail: Option<BytesMut>,
    /// Some of the bytes may lie in reusable blocks.
    has_blocks: bool,
}

impl Held {
    /// Returns for how many segments there is memory.
    pub(in crate::tcp) fn capacity(&self) -> usize {
        self.segments.capacity()
    }

    #[inline]
    fn freeze_tail(&mut self) {
        if self.tail.is_some() {
            self.freeze_open_tail();
        }
    }

    /// Empties the tail. Keeps the memory of a small one.
    #[inline]
    fn empty_tail(&mut self) {
        match &mut self.tail {
            Some(tail) if tail.capacity() <= TEXT_MOST => tail.clear(),
            tail => *tail = None,
        }
    }

    /// Finds the last segment that begins before `end`.
    fn place_before(&self, end: SeqNum) -> Option<Place> {
        let place = self.segments.find(end - 1);
        match self.segments.get(place) {
            Some(segment) => segment.seq.before(end).then_some(place),
            None => self.segments.last_place(),
        }
    }

    fn freeze_open_tail(&mut self) {
        if let (Some(tail), Some(last)) = (&mut self.tail, self.segments.back_mut()) {
            last.freeze(tail);
        }
    }
}

const EMPTY: Held = Held {
    flight: Flight::FIRST,
    round: Round::NONE,
    pushed: SeqNum(0),
    has_records: false,
    unit: 1,
    sent_weight: 0,
    acked_weight: 0,
    reweighed: Reweighed::NOTHING,
    segments: Segments::EMPTY,
    tail: None,
    has_blocks: false,
};

static NOTHING: Held = EMPTY;

impl Default for Held {
    fn default() -> Held {
        EMPTY
    }
}

impl Deref for SendQueue {
    type Target = Held;

    fn deref(&self) -> &Held {
        self.held.as_deref().unwrap_or(&NOTHING)
    }
}

impl DerefMut for SendQueue {
    fn deref_mut(&mut self) -> &mut Held {
        self.held.get_or_insert_default()
    }
}

impl SendQueue {
    /// Returns an empty queue. `start` is the number of its first byte.
    pub(crate) fn new(start: SeqNum) -> SendQueue {
        SendQueue { held: None, end: start, len: 0, limit: u32::MAX, delivery: Delivery::default() }
    }

    /// Returns the queue with another limit.
    pub(crate) fn limited(self, limit: u32) -> SendQueue {
        SendQueue { limit, ..self }
    }

    /// Drops everything.
    pub(crate) fn clear(&mut self) {
        (self.held, self.len) = (None, 0);
    }

    /// Returns the bytes that are written and not acknowledged.
    pub(crate) fn len(&self) -> usize {
        self.len as usize
    }

    /// Returns the bytes of memory it takes. The first and the last block may be partly used;
    /// together they count as one more.
    pub(crate) fn memory(&self) -> u32 {
        let partly_used = if self.has_blocks { SendBlocks::BLOCK } else { 0 };
        self.len.saturating_add((self.segments.len() * size_of::<TxSegment>() + partly_used) as u32)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the sequence number after the last byte written.
    pub(crate) fn end(&self) -> SeqNum {
        self.end
    }

    /// Copies `data` in, filling the unsent tail up to the `goal`.
    pub(crate) fn write(&mut self, mut data: &[u8], goal: impl Into<Goal>, blocks: &mut SendBlocks) {
        let goal = goal.into();
        self.begin(data.len(), blocks);
        while !data.is_empty() {
            let room = self.tail_room(goal).min(data.len());
            if room == data.len()
                && room <= SendBlocks::SMALL
                && let Some(last) = self.segments.back_mut().filter(|last| last.len == 0)
            {
                last.parts.push(blocks.copy(data));
                return self.grow_last(room as u32);
            }
            let tail = self.tail.get_or_insert_default();
            if tail.capacity() - tail.len() < room {
                self.extend_tail(data.len(), blocks);
            }
            let (now, later) = data.split_at(room);
            self.tail.get_or_insert_default().extend_from_slice(now);
            self.grow_last(room as u32);
            data = later;
        }
    }

    /// Takes memory for a queue that is about to get data.
    fn begin(&mut self, len: usize, blocks: &mut SendBlocks) {
        if len > 0 && self.held.is_none() {
            let mut held = blocks.queue();
            (held.flight, held.round) = (self.delivery.new_flight(), Round::at(self.end));
            (held.pushed, held.has_records) = (self.end, false);
            (held.sent_weight, held.acked_weight, held.reweighed) = (0, 0, Reweighed::NOTHING);
            self.held = Some(held);
        }
    }

    /// Makes room in the tail for a write of `len` bytes, or takes its next block.
    fn extend_tail(&mut self, len: usize, blocks: &mut SendBlocks) {
        if len < SendBlocks::LARGE {
            return self.tail.get_or_insert_default().reserve(len);
        }
        self.freeze_tail();
        self.has_blocks = true;
        self.tail = Some(blocks.take());
    }

    /// Takes `data` without copying.
    pub(crate) fn write_bytes(&mut self, mut data: Bytes, goal: impl Into<Goal>, blocks: &mut SendBlocks) {
        let Goal { segment: goal, push_span } = goal.into();
        self.begin(data.len(), blocks);
        while !data.is_empty() {
            let joined = self.room_in_last(goal);
            let room = if joined > 0 { joined } else { goal.max(1) };
            let now = data.split_to(data.len().min(room as usize));
            self.freeze_tail();
            let len = now.len() as u32;
            if joined > 0
                && let Some(last) = self.segments.back_mut()
            {
                last.len += len;
                last.parts.push(now);
            } else {
                self.push_long_write(push_span);
                let begun = TxSegment::of(self.end, len, SmallVec::from_buf([now]));
                self.segments.push_back(begun);
            }
            (self.end, self.len) = (self.end + len, self.len + len);
        }
    }

    /// Returns how many bytes may join the last segment up to `goal`.
    pub(crate) fn room_in_last(&self, goal: u32) -> u32 {
        let open = |last: &&TxSegment| last.transmissions == 0 && !last.eor;
        self.segments.back().filter(open).map_or(0, |last| goal.saturating_sub(last.len))
    }

    /// Returns the room in the last segment. Begins a new one if the last is full or sent.
    fn tail_room(&mut self, Goal { segment: goal, push_span }: Goal) -> usize {
        let goal = goal.max(1);
        match self.room_in_last(goal) {
            0 => {
                self.freeze_tail();
                self.push_long_write(push_span);
                let begun = TxSegment::new(self.end);
                self.segments.push_back(begun);
                goal as usize
            }
            room => room as usize,
        }
    }

    fn grow_last(&mut self, by: u32) {
        if let Some(last) = self.segments.back_mut() {
            last.len += by;
        }
        self.end += by;
        self.len += by;
    }

    /// Begins a write. The segment that it joins need not be delivered before the write ends.
    pub(crate) fn join_last(&mut self, goal: u32) {
        if self.room_in_last(goal) > 0
            && let Some(last) = self.held.as_mut().and_then(|held| held.segments.back_mut())
        {
            last.push = false;
        }
    }

    /// Pushes the last byte written.
    pub(crate) fn mark_push(&mut self) {
        if let Some(held) = &mut self.held
            && let Some(last) = held.segments.back_mut()
        {
            last.push = true;
            held.pushed = self.end;
        }
    }

    /// Pushes the byte before `end`.
    pub(crate) fn push_before(&mut self, end: SeqNum) {
        if end == self.end {
            return self.mark_push();
        }
        self.cut(end);
        let Some(held) = &mut self.held else { return };
        if let Some(place) = held.place_before(end)
            && let Some(segment) = held.segments.get_mut(place)
        {
            segment.push = true;
            held.pushed = held.pushed.latest(end);
        }
    }

    /// Returns whether the last byte written is more than `span` behind the last pushed byte.
    pub(crate) fn is_push_due(&self, span: u32) -> bool {
        self.held.as_ref().is_some_and(|held| self.end.after(held.pushed + span))
    }

    /// Pushes a full last segment in the middle of a write, if a push is due.
    fn push_long_write(&mut self, span: u32) {
        if self.is_push_due(span) && self.segments.back().is_some_and(|last| last.transmissions == 0) {
            self.mark_push();
        }
    }

    /// Ends a record with the last byte written.
    pub(crate) fn end_record(&mut self) {
        if let Some(held) = &mut self.held
            && let Some(last) = held.segments.back_mut()
        {
            last.eor = true;
            held.has_records = true;
        }
    }

    /// Returns the bytes from `seq` to the end of its record, if more may follow.
    pub(crate) fn record_len(&self, seq: SeqNum) -> Option<u32> {
        if !self.has_records {
            return None;
        }
        let last = self.starting(seq).find(|segment| segment.eor)?;
        Some(last.end().since(seq))
    }

    fn freeze_tail(&mut self) {
        if let Some(held) = &mut self.held {
            held.freeze_tail();
        }
    }

    /// Returns when the first unacknowledged segment was last sent.
    pub(crate) fn oldest_sent_at(&self) -> Option<Instant> {
        self.segments.front().map(|segment| segment.sent_at)
    }

    /// Returns whether at most one segment before `nxt` is unacknowledged.
    pub(crate) fn is_lone(&self, nxt: SeqNum) -> bool {
        self.segments.second().is_none_or(|second| second.seq.after_or_eq(nxt))
    }

    /// Returns the number of segments.
    pub(crate) fn count(&self) -> usize {
        self.segments.len()
    }

    /// Iterates over all segments.
    pub(crate) fn all(&self) -> impl Iterator<Item = &TxSegment> {
        self.segments.iter()
    }

    /// Iterates over the segments from the one with byte `seq` on.
    pub(crate) fn starting(&self, seq: SeqNum) -> impl Iterator<Item = &TxSegment> {
        self.segments.iter_from(self.segments.find(seq))
    }

    /// Takes `bytes` of the last acknowledgment out of the delivery rate: they were counted before.
    pub(crate) fn was_delivered_before(&mut self, bytes: u32, segment: u32) {
        if let Some(held) = &mut self.held {
            self.delivery.was_delivered_before(&mut held.flight, bytes, segment);
        }
    }

    /// Begins a flight: the next segment is sent with nothing in flight.
    pub(in crate::tcp) fn begin_flight(&mut self, now: Instant) {
        if let Some(held) = &mut self.held {
            held.flight.begin(now);
        }
    }

    /// Records that a transmission is lost.
    pub(in crate::tcp) fn on_lost(&mut self, range: (SeqNum, u32), snapshot: &Snapshot) -> LostSegment {
        let delivered = self.delivery.delivered();
        self.flight.on_lost(delivered, range, snapshot)
    }

    /// The use of the window.
    pub(in crate::tcp) fn round(&self) -> &Round {
        &self.held.as_deref().unwrap_or(&NOTHING).round
    }

    /// The use of the window, mutable. `None` if the queue is empty.
    pub(in crate::tcp) fn round_mut(&mut self) -> Option<&mut Round> {
        self.held.as_mut().map(|held| &mut held.round)
    }

    /// Returns whether something was acknowledged since the last sample.
    #[inline]
    pub(in crate::tcp) fn has_news(&self) -> bool {
        self.flight.has_news()
    }

    /// Returns the bytes acknowledged since the last sample, and in how many runs.
    pub(in crate::tcp) fn news(&self) -> (u32, u8) {
        self.flight.news()
    }

    /// Returns whether these bytes are one run, and nothing else was acknowledged since they were
    /// sent.
    pub(in crate::tcp) fn news_is_lone(&self) -> bool {
        let (bytes, runs) = self.news();
        let before = self.flight.delivered_before_newest();
        runs == 1 && before.is_some_and(|before| before.wrapping_add(bytes) == self.delivery.delivered())
    }

    /// See [`Delivery::take_sample`].
    pub(in crate::tcp) fn take_sample(&mut self, now: Instant, min_rtt: u32) -> Option<RateSample> {
        let held = self.held.as_mut()?;
        self.delivery.take_sample(&mut held.flight, now, min_rtt)
    }

    /// Ends the handling of an acknowledgment: an empty queue returns its memory.
    #[inline]
    pub(in crate::tcp) fn release(&mut self, blocks: &mut SendBlocks) {
        if self.len == 0
            && let Some(mut held) = self.held.take()
        {
            held.has_blocks = false;
            blocks.keep_queue(held);
        }
    }

    /// Returns whether the last segment is marked lost.
    pub(crate) fn ends_lost(&self) -> bool {
        self.segments.back().is_some_and(|last| last.lost && !last.retransmitted)
    }

    /// Returns whether the last segment was sent and may still arrive.
    pub(crate) fn ends_in_flight(&self) -> bool {
        self.segments.back().is_some_and(|last| last.transmissions > 0 && last.is_thought_in_flight())
    }

    /// Returns the number of the last segment's first byte.
    pub(crate) fn last_segment(&self) -> Option<SeqNum> {
        self.segments.back().map(|last| last.seq)
    }

    /// Copies the payload of the segment with this byte.
    pub(crate) fn copy_of_segment(&self, byte: SeqNum) -> Bytes {
        let place = self.segments.find(byte);
        let Some(segment) = self.segments.get(place) else { return Bytes::new() };
        let open = self.tail.as_deref().filter(|_| self.segments.is_last(place)).unwrap_or_default();
        let parts = segment.parts.iter().map(|part| &part[..]).chain([open]);
        parts.collect::<Vec<&[u8]>>().concat().into()
    }

    /// Returns the bytes from `seq` to the end of its segment.
    pub(crate) fn left_of_segment(&self, seq: SeqNum) -> u32 {
        self.segments.get(self.segments.find(seq)).map_or(0, |segment| segment.end().since(seq))
    }

    /// Returns the number and length of the last segment before `end`.
    pub(crate) fn last_before(&self, end: SeqNum) -> Option<(SeqNum, u32)> {
        let last = self.segments.get(self.place_before(end)?)?;
        Some((last.seq, last.len.min(end.since(last.seq))))
    }

    /// Joins the segments up to `end`, which were sent as one packet. They must belong to one
    /// record.
    #[cold]
    pub(crate) fn join_before(&mut self, end: SeqNum) {
        let Some(held) = &mut self.held else { return };
        held.freeze_tail();
        let first = held.segments.first_place();
        while held.segments.second().is_some_and(|next| next.end().before_or_eq(end)) {
            let second = held.segments.behind(first);
            let Some(next) = held.segments.remove(second) else { return };
            held.segments.update_sent(first, |first| first.absorb(next));
        }
    }

    /// Marks up to `max` bytes from `seq` on as sent now, but none beyond their record. Adds their
    /// slices to `slices`. Returns how many bytes these are, and whether the application pushed the
    /// last one.
    pub(crate) fn transmit(
        &mut self,
        Sending { now, mut in_flight, unit, packet, again }: Sending,
        seq: SeqNum,
        max: u32,
        slices: &mut Slices,
    ) -> (u32, bool) {
        let mut taken = 0;
        let mut push = false;
        if max == 0 {
            return (taken, push);
        }
        let Some(held) = self.held.as_deref_mut() else { return (taken, push) };
        let mut place = held.cut(seq, again);
        held.unit = unit;
        while taken < max
            && let Some(segment) = held.segments.get(place)
        {
            let len = segment.len.min(max - taken);
            if again || segment.transmissions > 0 {
                place = held.segments.marked_place(place);
            }
            if held.segments.get(place).is_some_and(|segment| segment.len > len) {
                place = if again { held.cut_at(place, len) } else { held.split_at(place, len) };
            } else if held.segments.is_last(place) {
                held.freeze_tail();
            }
            let weight = weight(taken, len, unit, packet);
            // A SYN has no packet size: its data is one packet.
            let follows = taken > 0 && (packet == 1 || !taken.is_multiple_of(packet));
            if again {
                held.reweigh(place, weight);
            } else {
                held.sent_weight += weight;
            }
            in_flight = in_flight.saturating_add(weight);
            let snapshot = self.delivery.snapshot(&held.flight, in_flight);
            let sent = held.segments.update_sent(place, |segment| {
                (segment.weight, segment.follows) = (weight, follows);
                segment.transmissions = segment.transmissions.saturating_add(1);
                segment.losses = 0;
                segment.sent_at = now;
                segment.snapshot = snapshot;
                segment.add_parts_to(slices);
                (segment.push, segment.eor)
            });
            let Some((pushed, eor)) = sent else { break };
            taken += len;
            // Joined retransmissions keep the push of any part (Linux's `tcp_collapse_retrans`).
            push = pushed || (again && push);
            if eor {
                break;
            }
            place = held.segments.behind(place);
        }
        (taken, push)
    }

    /// Drops everything before `una`, passes each segment to `gone`, and returns its memory to
    /// `blocks`. `smss` is the packet size. Returns when the first and the last newly acknowledged
    /// byte were sent, if each of these segments was sent once.
    pub(crate) fn acknowledge(
        &mut self,
        una: SeqNum,
        smss: u32,
        blocks: &mut SendBlocks,
        mut gone: impl FnMut(&TxSegment),
    ) -> Option<(Instant, Instant)> {
        let Some(held) = &mut self.held else { return None };
        if una.after_or_eq(self.end) {
            // The rest of the last block would keep the block from being reused.
            held.empty_tail();
        }
        held.acked_weight = 0;
        let mut sample = None;
        let mut ambiguous = false;
        while let Some(first) = held.segments.front() {
            if first.seq.after_or_eq(una) {
                break;
            }
            if first.end().after(una) {
                let acknowledged = una.since(first.seq);
                let begun = first.begun || first.len <= smss;
                held.split_begun(acknowledged, begun);
            }
            let Some(first) = held.segments.pop_front() else { break };
            held.sent_weight = held.sent_weight.saturating_sub(first.weight);
            held.acked_weight += first.weight;
            // Part of a segment that counts as a whole has no meaning yet.
            if !first.sacked && (first.weight > 0 || held.unit == 1) {
                ambiguous |= first.transmissions != 1;
                let earliest = sample.map_or(first.sent_at, |(earliest, _)| earliest);
                sample = Some((earliest, first.sent_at));
                self.delivery.on_delivered(&mut held.flight, first.departure(), &first.snapshot);
            }
            self.len -= first.len;
            gone(&first);
            if held.has_blocks {
                first.parts.into_iter().for_each(|part| blocks.give_back(part));
            }
        }
        sample.filter(|_| !ambiguous)
    }

    #[cfg(test)]
    pub(crate) fn sent(&mut self, now: Instant, seq: SeqNum, max: u32) -> (Slices, u32, bool) {
        let mut slices = Slices::new();
        let sending = Sending { now, in_flight: 0, unit: 1, packet: 1, again: false };
        let (taken, push) = self.transmit(sending, seq, max, &mut slices);
        (slices, taken, push)
    }

    #[cfg(test)]
    fn shape(&self) -> Vec<(u32, u32, u8)> {
        self.segments.iter().map(|s| (s.seq.0, s.len, s.transmissions)).collect()
    }
}

#[cfg(test)]
mod tests;
