//! Memory for what writes copy, and for the queues they wait in, used again when the peer has acknowledged all of it.
//!
//! A send buffer empties and fills all the time. Given back to the allocator, its blocks may go back to the kernel (glibc trims the top of
//! its heap), and the next write pays a page fault for every 4 KiB: three times the cost of a bulk transfer to a TUN device.

use crate::Instant;
use crate::tcp::send::send_queue::Held;
use alloc::boxed::Box;
use alloc::vec::Vec;
use bytes::{Bytes, BytesMut};
use core::time::Duration;

/// See [`SendBlocks::BLOCK`].
const BLOCK: usize = SendBlocks::BLOCK;
/// Small writes share a block of this size: no more than a connection takes anyway, should it alone be left of those who share it.
const SHARED: usize = 2048;
/// Empty queues that are kept, and the segments they may have room for.
const QUEUES: usize = 64;
const QUEUE_LEN: usize = 8;
/// A block that was not needed for this long is freed.
const UNUSED: Duration = Duration::from_secs(1);

/// Blocks that nobody uses now, of one stack.
#[derive(Debug)]
pub(crate) struct SendBlocks {
    free: Vec<BytesMut>,
    /// The rest of a block for small writes.
    shared: BytesMut,
    #[expect(clippy::vec_box, reason = "the box, too, is used again")]
    queues: Vec<Box<Held>>,
    most: usize,
    /// Fewest blocks that were free since the last look.
    spare: usize,
    looked_at: Instant,
}

impl SendBlocks {
    /// Bytes of a block. One burst for a device with segmentation offload fits.
    pub(crate) const BLOCK: usize = 64 * 1024;

    /// Smaller writes allocate what they need: a block would be half empty.
    pub(crate) const LARGE: usize = BLOCK / 2;

    /// Smaller ones than this share a block.
    pub(crate) const SMALL: usize = 512;

    /// Keeps at most as many free blocks as fill a send buffer of `largest` bytes.
    pub(crate) fn new(largest: usize) -> SendBlocks {
        SendBlocks {
            free: Vec::new(),
            shared: BytesMut::new(),
            queues: Vec::new(),
            most: largest / BLOCK,
            spare: 0,
            looked_at: Instant::ZERO,
        }
    }

    /// A copy of a small write.
    pub(crate) fn copy(&mut self, data: &[u8]) -> Bytes {
        if self.shared.capacity() < data.len() {
            // The same memory again if all writes in it are acknowledged.
            self.shared.reserve(SHARED.max(data.len()));
        }
        self.shared.extend_from_slice(data);
        self.shared.split().freeze()
    }

    /// An empty queue.
    pub(in crate::tcp) fn queue(&mut self) -> Box<Held> {
        self.queues.pop().unwrap_or_default()
    }

    /// A queue is empty, and not needed any more.
    #[inline(always)]
    pub(in crate::tcp) fn keep_queue(&mut self, queue: Box<Held>) {
        if self.queues.len() < QUEUES && queue.capacity() <= QUEUE_LEN {
            self.queues.push(queue);
        }
    }

    /// An empty block.
    pub(crate) fn take(&mut self) -> BytesMut {
        let block = self.free.pop();
        self.spare = self.spare.min(self.free.len());
        block.unwrap_or_else(|| BytesMut::with_capacity(BLOCK))
    }

    /// A part of what was sent is not needed any more. If it is the last that anybody holds of its block, the block is free.
    pub(crate) fn give_back(&mut self, part: Bytes) {
        if self.free.len() >= self.most {
            return;
        }
        let Ok(mut block) = part.try_into_mut() else { return };
        block.clear();
        // Bytes of an application may come by here too, of any capacity.
        if block.try_reclaim(BLOCK) && block.capacity() == BLOCK {
            self.free.push(block);
        }
    }

    /// Frees what was not needed lately.
    pub(crate) fn shrink(&mut self, now: Instant) {
        if self.free.is_empty() || now.since(self.looked_at) < UNUSED {
            return;
        }
        self.looked_at = now;
        self.free.truncate(self.free.len() - self.spare);
        self.spare = self.free.len();
    }

    /// Frees what is large: there is no connection left.
    pub(crate) fn clear(&mut self) {
        if !self.free.is_empty() {
            self.free = Vec::new();
        }
        self.spare = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: usize = 4;

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    /// Blocks that are written, cut into slices, and given back slice by slice.
    fn cycle(blocks: &mut SendBlocks, count: usize) {
        let used: Vec<BytesMut> = (0..count).map(|_| blocks.take()).collect();
        for mut block in used {
            block.extend_from_slice(&[1; 3000]);
            let first = block.split().freeze();
            block.extend_from_slice(&[2; 3000]);
            let second = block.split().freeze();
            drop(block);
            blocks.give_back(first);
            blocks.give_back(second);
        }
    }

    #[test]
    fn a_block_comes_back_whole_with_its_last_part() {
        let mut blocks = SendBlocks::new(MOST * BLOCK);
        let mut block = blocks.take();
        let address = block.as_ptr();
        block.extend_from_slice(b"first");
        let first = block.split().freeze();
        block.extend_from_slice(b"second");
        let (second, held) = (block.split().freeze(), first.clone());
        drop(block);
        blocks.give_back(first);
        assert_eq!(blocks.free.len(), 0, "two parts are held");
        drop(held);
        blocks.give_back(second);
        let again = blocks.take();
        assert_eq!((again.as_ptr(), again.len(), again.capacity()), (address, 0, BLOCK));
    }

    #[test]
    fn no_more_are_kept_than_a_send_buffer_holds() {
        let mut blocks = SendBlocks::new(MOST * BLOCK);
        cycle(&mut blocks, 10);
        assert_eq!(blocks.free.len(), MOST);
    }

    #[test]
    fn memory_of_another_size_is_not_kept() {
        let mut blocks = SendBlocks::new(MOST * BLOCK);
        blocks.give_back(Bytes::from_static(b"of the program"));
        blocks.give_back(Bytes::from(vec![0; 100]));
        blocks.give_back(Bytes::from(vec![0; 10 * BLOCK]).slice(5..10));
        assert_eq!(blocks.free.len(), 0);
    }

    #[test]
    fn what_is_not_needed_for_a_second_is_freed() {
        let mut blocks = SendBlocks::new(MOST * BLOCK);
        cycle(&mut blocks, 4);
        blocks.shrink(at(1000));
        assert_eq!(blocks.free.len(), 4, "all were needed just now");
        cycle(&mut blocks, 3);
        blocks.shrink(at(1500));
        assert_eq!(blocks.free.len(), 4, "too early");
        blocks.shrink(at(2000));
        assert_eq!(blocks.free.len(), 3);
        blocks.shrink(at(3000));
        assert_eq!(blocks.free.len(), 0);
    }
}
