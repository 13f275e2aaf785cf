//! Reusable receive buffers: like the ring of a network card, but growing on demand.
use bytes::{Bytes, BytesMut};
use std::collections::VecDeque;

/// Longest packet that is copied instead of keeping its buffer.
pub const SMALL: usize = 512;

/// Number of recently lent buffers that are checked first: a free one among them is still in the
/// CPU caches.
const RECENT: usize = 4;

/// Buffers of one size. Received data may be kept in part or whole for any time; a buffer returns
/// when none of it is held any more. This saves an allocation per packet, and the page faults of
/// memory that the allocator has returned to the system.
pub struct Ring {
    /// Lent buffers, oldest first.
    lent: VecDeque<Bytes>,
    buffer_len: usize,
    most: usize,
}

impl Ring {
    /// Creates an empty ring of buffers of `buffer_len` bytes that keeps at most `most` of them.
    pub fn new(buffer_len: usize, most: usize) -> Ring {
        Ring { lent: VecDeque::new(), buffer_len, most }
    }

    /// Returns a buffer to receive into, with arbitrary content. If the ring is full, it drops its
    /// oldest buffer, which lives on with its other holders.
    pub fn take(&mut self) -> BytesMut {
        let recent = self.lent.len().saturating_sub(RECENT)..self.lent.len();
        if let Some(free) = recent.rev().find(|index| self.lent[*index].is_unique())
            && let Some(Ok(buffer)) = self.lent.remove(free).map(Bytes::try_into_mut)
        {
            return buffer;
        }
        let is_free = self.lent.front().is_some_and(Bytes::is_unique);
        let oldest = if is_free || self.lent.len() >= self.most { self.lent.pop_front() } else { None };
        // Splitting makes the memory reference-counted, so that it can be reclaimed without an
        // allocation.
        oldest
            .and_then(|oldest| oldest.try_into_mut().ok())
            .unwrap_or_else(|| BytesMut::zeroed(self.buffer_len).split())
    }

    /// Lends a filled buffer from [`take`](Self::take), to be sliced and kept.
    pub fn lend(&mut self, buffer: BytesMut) -> Bytes {
        let whole = buffer.freeze();
        self.lent.push_back(whole.clone());
        whole
    }

    /// Frees the buffers of the ring.
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
