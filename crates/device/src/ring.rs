//! Receive buffers that are used again: as a network card's ring, but grown on demand.
use bytes::{Bytes, BytesMut};
use std::collections::VecDeque;

/// Packets up to this length are worth a copy.
pub const SMALL: usize = 512;

/// So many of the buffers lent last are looked at first: one of them that is free again is still in the caches.
const RECENT: usize = 4;

/// Buffers of one size. What was received in a buffer may be kept in part or whole for any time; the buffer comes back when none of it
/// is held any more. So a stream costs no allocation per packet, nor the page faults of memory that the allocator has given back.
pub struct Ring {
    /// Oldest first.
    lent: VecDeque<Bytes>,
    buffer_len: usize,
    most: usize,
}

impl Ring {
    /// An empty ring of buffers of `buffer_len` bytes, which keeps at most `most` of them.
    pub fn new(buffer_len: usize, most: usize) -> Ring {
        Ring { lent: VecDeque::new(), buffer_len, most }
    }

    /// A buffer to receive into; its bytes mean nothing. A full ring leaves its oldest buffer to whoever still holds it.
    pub fn take(&mut self) -> BytesMut {
        let recent = self.lent.len().saturating_sub(RECENT)..self.lent.len();
        if let Some(free) = recent.rev().find(|index| self.lent[*index].is_unique())
            && let Some(Ok(buffer)) = self.lent.remove(free).map(Bytes::try_into_mut)
        {
            return buffer;
        }
        let is_free = self.lent.front().is_some_and(Bytes::is_unique);
        let oldest = if is_free || self.lent.len() >= self.most { self.lent.pop_front() } else { None };
        // Splitting makes the memory counted, and a counted buffer comes back without an allocation.
        oldest
            .and_then(|oldest| oldest.try_into_mut().ok())
            .unwrap_or_else(|| BytesMut::zeroed(self.buffer_len).split())
    }

    /// A buffer from [`take`](Self::take), received into: to be sliced and kept.
    pub fn lend(&mut self, buffer: BytesMut) -> Bytes {
        let whole = buffer.freeze();
        self.lent.push_back(whole.clone());
        whole
    }

    /// Frees what the ring keeps.
    pub fn clear(&mut self) {
        self.lent.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_comes_back_when_nothing_of_it_is_held() {
        let mut ring = Ring::new(100, 8);
        let first = ring.take();
        let address = first.as_ptr();
        let packet = ring.lend(first).slice(10..20);
        let second = ring.take();
        assert_ne!(second.as_ptr(), address, "the first is still held");
        drop(packet);
        let again = ring.take();
        assert_eq!((again.as_ptr(), again.len()), (address, 100));
    }

    #[test]
    fn a_full_ring_forgets_its_oldest_buffer() {
        let mut ring = Ring::new(10, 2);
        let held: Vec<Bytes> = (0..5)
            .map(|n| {
                let mut buffer = ring.take();
                buffer.fill(n);
                ring.lend(buffer)
            })
            .collect();
        assert_eq!(ring.lent.len(), 2);
        let contents: Vec<u8> = held.iter().map(|buffer| buffer[0]).collect();
        assert_eq!(contents, [0, 1, 2, 3, 4]);
    }
}
