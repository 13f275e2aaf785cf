//! Bytes of the peer in order, for the application or behind a gap (`reassembly`).
//!
//! Payloads are kept as slices of the packets they came in, unless that would pin more than four times their size: then they are
//! copied together. So the memory a peer can make us hold is bounded by four times the buffer.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use bytes::{Bytes, BytesMut};
use core::fmt;
use core::ops::Range;
use wire::RxData;

/// A payload smaller than its packet's memory by this factor is copied.
const PIN_FACTOR: usize = 4;
/// Copied payloads share chunks as large as the buffer, up to this size.
const COMPACT_CHUNK: usize = 2048;
/// Least size of a chunk that copied payloads share.
const COMPACT_FIRST: usize = 64;
/// Payloads that are copied together later, for want of memory, share chunks of this size.
const COLLAPSED_CHUNK: usize = 16_384;

/// Memory that a payload takes when it is kept, which pins `truesize` bytes.
pub(crate) fn pinned(len: usize, truesize: usize) -> usize {
    let kept = if len * PIN_FACTOR >= truesize { truesize } else { len };
    kept + size_of::<Bytes>()
}

/// Places for payloads that are kept while nobody needs one.
const SPARE: usize = 64;
/// Payloads that a spare place may have room for.
const SPARE_LEN: usize = 8;

/// Empty places for payloads, of one stack, used again: an ordinary connection needs one for a moment, and then again.
#[derive(Debug, Default)]
#[expect(clippy::vec_box, reason = "the box is what is used again")]
pub(crate) struct Spare(Vec<Box<Held>>);

impl Spare {
    fn take(&mut self) -> Box<Held> {
        self.0.pop().unwrap_or_default()
    }

    /// An emptied one.
    fn keep(&mut self, mut held: Box<Held>) {
        if self.0.len() < SPARE && held.chunks.capacity() <= SPARE_LEN {
            if held.small.capacity() > COMPACT_CHUNK {
                held.small = BytesMut::new();
            }
            self.0.push(held);
        }
    }
}

/// Bytes without a gap.
#[derive(Debug, Default)]
pub(crate) struct ReceiveBuffer {
    /// Only while there is something: an idle connection must stay small.
    held: Option<Box<Held>>,
}

#[derive(Default)]
pub(crate) struct Held {
    /// Not empty, unless all there is are `small` payloads.
    first: Bytes,
    /// Behind it.
    chunks: VecDeque<Bytes>,
    /// Copied small payloads, behind all `chunks`.
    small: BytesMut,
    /// Bytes in all.
    len: u32,
    /// Memory that they take, as far as payloads tell.
    memory: u32,
}

impl Held {
    fn push(&mut self, chunk: Bytes) {
        if self.first.is_empty() {
            self.first = chunk;
        } else {
            self.chunks.push_back(chunk);
        }
    }

    #[inline]
    fn freeze_small(&mut self) {
        if !self.small.is_empty() {
            self.push_small();
        }
    }

    fn push_small(&mut self) {
        let small = self.small.split().freeze();
        self.push(small);
    }

    /// The first `most` bytes, or as many as lie together.
    #[inline]
    fn take(&mut self, most: usize) -> Bytes {
        if self.first.is_empty() {
            self.freeze_small();
        }
        if self.first.len() <= most {
            let next = self.chunks.pop_front().unwrap_or_default();
            core::mem::replace(&mut self.first, next)
        } else {
            self.first.split_to(most)
        }
    }

    /// Appends a copy of a payload, which `len` counts already.
    #[inline(never)]
    fn copy(&mut self, payload: &[u8]) {
        if self.small.capacity() - self.small.len() < payload.len() {
            self.freeze_small();
            let chunk_len = (self.len as usize).clamp(COMPACT_FIRST, COMPACT_CHUNK).max(payload.len());
            // Not `reserve`: it could move bytes a reader still holds a part of.
            self.small = BytesMut::with_capacity(chunk_len);
        }
        self.small.extend_from_slice(payload);
    }

    fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let chunks = self.chunks.iter().map(|chunk| &chunk[..]);
        [&self.first[..]].into_iter().chain(chunks).chain([&self.small[..]])
    }
}

/// Without regard to how the bytes lie there.
impl fmt::Debug for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = Bytes::from_iter(self.iter().flatten().copied());
        f.debug_struct("Held").field("bytes", &bytes).field("memory", &self.memory).finish()
    }
}

impl ReceiveBuffer {
    pub(crate) fn len(&self) -> usize {
        self.held.as_ref().map_or(0, |held| held.len as usize)
    }

    /// Bytes of memory it takes.
    pub(crate) fn memory(&self) -> u32 {
        self.held.as_ref().map_or(0, |held| held.memory)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.held.is_none()
    }

    /// Appends a payload that pins `truesize` bytes.
    pub(crate) fn push(&mut self, mut payload: Bytes, truesize: usize, spare: &mut Spare) {
        let len = payload.len();
        if len > 0 {
            self.push_from(&mut RxData::Shared(&mut payload), 0..len, truesize, spare);
        }
    }

    /// Appends the payload at `place` of a packet, which pins `truesize` bytes and is not empty.
    #[inline(always)]
    pub(crate) fn push_from(
        &mut self,
        data: &mut RxData<'_>,
        place: Range<usize>,
        truesize: usize,
        spare: &mut Spare,
    ) {
        let len = place.len();
        let held = match &mut self.held {
            Some(held) => held,
            none => none.insert(spare.take()),
        };
        held.len += len as u32;
        held.memory = held.memory.saturating_add(pinned(len, truesize) as u32);
        if data.is_shared() && len * PIN_FACTOR >= truesize {
            held.freeze_small();
            held.push(data.take(place));
        } else {
            held.copy(data.get(place).unwrap_or_default());
        }
    }

    /// Appends all of another one.
    pub(crate) fn append(&mut self, other: ReceiveBuffer) {
        let Some(mut behind) = other.held else { return };
        let Some(held) = &mut self.held else {
            self.held = Some(behind);
            return;
        };
        held.len += behind.len;
        held.memory = held.memory.saturating_add(behind.memory);
        held.freeze_small();
        behind.freeze_small();
        held.push(behind.first);
        held.chunks.append(&mut behind.chunks);
    }

    pub(crate) fn read(&mut self, buf: &mut [u8], spare: &mut Spare) -> usize {
        let Some(held) = &mut self.held else { return 0 };
        // Most reads take all there is, and that lies together.
        let len = held.len as usize;
        let (are_small, is_one) = (held.small.len() == len, held.first.len() == len);
        if (are_small || is_one)
            && let Some(all) = buf.get_mut(..len)
        {
            if are_small {
                all.copy_from_slice(&held.small);
                held.small.clear();
            } else {
                all.copy_from_slice(&held.first);
                held.first = Bytes::new();
            }
            (held.len, held.memory) = (0, 0);
            if let Some(held) = self.held.take() {
                spare.keep(held);
            }
            return len;
        }
        let most = buf.len().min(len);
        let mut left = &mut buf[..most];
        while !left.is_empty() {
            let chunk = held.take(left.len());
            let (now, later) = left.split_at_mut(chunk.len());
            now.copy_from_slice(&chunk);
            left = later;
        }
        if let Some(held) = self.took(most) {
            spare.keep(held);
        }
        most
    }

    /// Copies what is behind the first `skip` bytes; takes nothing.
    pub(crate) fn peek(&self, mut skip: usize, buf: &mut [u8]) -> usize {
        let mut peeked = 0;
        for chunk in self.held.iter().flat_map(|held| held.iter()) {
            let skipped = skip.min(chunk.len());
            skip -= skipped;
            let chunk = &chunk[skipped..];
            let len = chunk.len().min(buf.len() - peeked);
            buf[peeked..peeked + len].copy_from_slice(&chunk[..len]);
            peeked += len;
        }
        peeked
    }

    /// Takes at most `max` bytes of the first chunk.
    pub(crate) fn pop(&mut self, max: usize) -> Option<Bytes> {
        let taken = self.held.as_mut().filter(|_| max > 0)?.take(max);
        self.took(taken.len());
        Some(taken)
    }

    /// `len` bytes are gone, and their share of the memory: payloads are of one kind mostly. With the last of them goes their place.
    fn took(&mut self, len: usize) -> Option<Box<Held>> {
        let held = self.held.as_mut()?;
        let before = held.len;
        held.len -= len as u32;
        if held.len > 0 {
            held.memory = (u64::from(held.memory) * u64::from(held.len) / u64::from(before)) as u32;
            return None;
        }
        held.memory = 0;
        self.held.take()
    }

    /// Forgets all but the first `len` bytes, at least one.
    pub(crate) fn truncate(&mut self, len: usize) {
        let Some(held) = &mut self.held else { return };
        let before = held.len;
        held.freeze_small();
        let mut rest = len - held.first.len().min(len);
        held.first.truncate(len);
        held.chunks.retain_mut(|chunk| {
            chunk.truncate(rest);
            rest -= chunk.len();
            !chunk.is_empty()
        });
        held.len = held.len.min(len as u32);
        held.memory = (u64::from(held.memory) * u64::from(held.len) / u64::from(before.max(1))) as u32;
    }

    /// Copies the payloads together. False: there is nothing to gain.
    pub(crate) fn collapse(&mut self) -> bool {
        let (len, memory) = (self.len() as u32, self.memory());
        if memory - memory / 8 <= len {
            return false;
        }
        let mut packed = Held { len, memory: len, ..Held::default() };
        let mut run = BytesMut::new();
        while let Some(piece) = self.pop(COLLAPSED_CHUNK) {
            if run.len() + piece.len() > COLLAPSED_CHUNK {
                packed.push(core::mem::take(&mut run).freeze());
            }
            if run.is_empty() {
                run.reserve(COLLAPSED_CHUNK.min(self.len() + piece.len()));
            }
            run.extend_from_slice(&piece);
        }
        packed.push(run.freeze());
        self.held = Some(Box::new(packed));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunks(buffer: &ReceiveBuffer) -> usize {
        buffer.held.as_ref().map_or(0, |held| usize::from(!held.first.is_empty()) + held.chunks.len())
    }

    #[test]
    fn small_payloads_are_copied_together_and_keep_their_order() {
        let mut buffer = ReceiveBuffer::default();
        buffer.push(Bytes::from_static(b"big one"), 7, &mut Spare::default());
        buffer.push(Bytes::from_static(b"a"), 1500, &mut Spare::default());
        buffer.push(Bytes::from_static(b"b"), 1500, &mut Spare::default());
        buffer.push(Bytes::from_static(b" and on"), 7, &mut Spare::default());
        assert_eq!((buffer.len(), chunks(&buffer)), (16, 3));
        let mut out = [0; 32];
        assert_eq!(buffer.read(&mut out[..8], &mut Spare::default()), 8);
        assert_eq!(buffer.pop(100).as_deref(), Some(b"b".as_slice()));
        assert_eq!(buffer.read(&mut out[8..], &mut Spare::default()), 7);
        assert_eq!(&out[..15], b"big onea and on");
        assert!(buffer.is_empty() && buffer.pop(1).is_none());
    }

    #[test]
    fn the_place_of_what_was_read_serves_the_next() {
        let (mut buffer, mut spare) = (ReceiveBuffer::default(), Spare::default());
        for _ in 0..2 {
            buffer.push(Bytes::from_static(b"a"), 1500, &mut spare);
            buffer.push(Bytes::from_static(b"bc"), 2, &mut spare);
            assert_eq!((buffer.len(), spare.0.len()), (3, 0));
            assert_eq!(buffer.read(&mut [0; 2], &mut spare), 2);
            assert_eq!((buffer.len(), spare.0.len()), (1, 0));
            assert_eq!(buffer.read(&mut [0; 2], &mut spare), 1);
            assert_eq!((buffer.memory(), spare.0.len()), (0, 1));
        }
    }

    #[test]
    fn a_look_may_begin_further_on() {
        let mut buffer = ReceiveBuffer::default();
        for piece in ["abc", "defg", "h", "ij"] {
            buffer.push(Bytes::from_static(piece.as_bytes()), piece.len(), &mut Spare::default());
        }
        for skip in 0..=10 {
            let mut out = [0; 4];
            let peeked = buffer.peek(skip, &mut out);
            assert_eq!(&out[..peeked], &b"abcdefghij"[skip..10.min(skip + 4)]);
        }
        assert_eq!(buffer.peek(11, &mut [0; 4]), 0);
    }

    /// Thirty payloads of 1000 bytes in packets of 3000: what is read takes its share with it.
    #[test]
    fn loose_payloads_are_counted_with_what_they_pin_until_they_are_packed() {
        let mut buffer = ReceiveBuffer::default();
        for byte in 0..30 {
            buffer.push(Bytes::from(vec![byte; 1000]), 3000, &mut Spare::default());
        }
        assert_eq!(buffer.memory(), 30 * 3032);
        buffer.pop(1000);
        assert_eq!((buffer.len(), buffer.memory()), (29_000, 29 * 3032));
        assert!(buffer.collapse());
        assert_eq!((buffer.len(), buffer.memory(), chunks(&buffer)), (29_000, 29_000, 2));
        assert!(!buffer.collapse());
        let mut all = vec![0; 29_000];
        assert_eq!(buffer.read(&mut all, &mut Spare::default()), 29_000);
        let expected: Vec<u8> = (1..30).flat_map(|byte| vec![byte; 1000]).collect();
        assert!(all == expected);
        assert_eq!(buffer.memory(), 0);
    }
}
