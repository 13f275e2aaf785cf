//! Allocation of packets: each gets a number, and memory in a block shared with its neighbors.
//!
//! Packets and blocks are mostly freed in the order of allocation. The most recently freed block is
//! reused first, while it may still be in the processor's cache, and the system allocator is rarely
//! called.

use super::queue::Traveller;
use crate::capture::PacketId;
use bytes::{Bytes, BytesMut};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use wire::{TxChecksum, TxPacket};

/// Bytes of a block: about forty full-sized packets per allocation.
const BLOCK: usize = 64 * 1024;
/// Maximum number of full blocks kept for reuse.
const BLOCKS_MAX: usize = 1024;

/// The allocator shared by all hosts of a network; clones share its state.
#[derive(Clone)]
pub(super) struct Frames {
    made: Rc<Cell<u64>>,
    memory: Rc<RefCell<Memory>>,
    /// Memory of merged packets, which live much shorter than frames allocated at the same time.
    joined: Rc<RefCell<Memory>>,
    /// True if TCP checksums that hosts leave to their cards must be correct.
    sums: Rc<Cell<bool>>,
}

struct Memory {
    block: BytesMut,
    /// Blocks without room, oldest first.
    full: VecDeque<BytesMut>,
    /// Blocks freed by all packets, in that order.
    free: Vec<BytesMut>,
}

impl Default for Memory {
    fn default() -> Memory {
        Memory { block: BytesMut::with_capacity(BLOCK), full: VecDeque::new(), free: Vec::new() }
    }
}

impl Memory {
    /// Returns the current block with room for `len` bytes.
    fn room(&mut self, len: usize) -> &mut BytesMut {
        if self.block.capacity() < len {
            self.next_block(len);
        }
        &mut self.block
    }

    #[inline]
    fn filled(&mut self, len: usize, fill: impl FnOnce(&mut BytesMut)) -> Bytes {
        let block = self.room(len);
        fill(block);
        block.split().freeze()
    }

    #[cold]
    fn next_block(&mut self, len: usize) {
        while let Some(block) = self.full.pop_front_if(|block| block.try_reclaim(BLOCK)) {
            self.free.push(block);
        }
        let next = self.free.pop_if(|block| block.capacity() >= len);
        let next = next.unwrap_or_else(|| BytesMut::with_capacity(BLOCK.max(len)));
        let full = core::mem::replace(&mut self.block, next);
        if self.full.len() == BLOCKS_MAX {
            // A packet of this block is still in use.
            self.full.pop_front();
        }
        self.full.push_back(full);
    }
}

impl Frames {
    /// Creates the allocator. `sums` is true if packets need correct checksums; nothing verifies
    /// them if nothing reads or alters packets.
    pub(super) fn new(sums: bool) -> Frames {
        Frames {
            made: Rc::default(),
            memory: Rc::default(),
            joined: Rc::default(),
            sums: Rc::new(Cell::new(sums)),
        }
    }

    /// Returns whether packets have correct checksums.
    pub(super) fn has_sums(&self) -> bool {
        self.sums.get()
    }

    /// Requires correct checksums from now on.
    pub(super) fn need_sums(&self) {
        self.sums.set(true);
    }

    /// Returns the number of the next packet.
    pub(super) fn number(&self) -> PacketId {
        self.made.set(self.made.get() + 1);
        PacketId(self.made.get())
    }

    /// Returns the number of frames of a stack's packet.
    pub(super) fn count(packet: &TxPacket) -> usize {
        match usize::from(packet.gso_size) {
            0 => 1,
            size => packet.payload_len().div_ceil(size).max(1),
        }
    }

    /// Cuts a stack's packet into frames.
    pub(super) fn cut(&self, packet: &TxPacket, mut take: impl FnMut(Traveller)) {
        let Some(segments) = packet.cut() else {
            let is_complete = packet.checksum == TxChecksum::Complete || !self.sums.get();
            let bytes = if is_complete { self.copied(packet) } else { self.summed(packet) };
            return take(Traveller::new(self.number(), bytes));
        };
        let mut segments = if self.sums.get() { segments } else { segments.without_sums() };
        while let Some(len) = segments.next_len() {
            take(Traveller::new(self.number(), self.made_in(len, |block| _ = segments.append_next(block))));
        }
    }

    /// Copies a packet as it is.
    fn copied(&self, packet: &TxPacket) -> Bytes {
        self.made_in(packet.len(), |block| {
            block.extend_from_slice(packet.header());
            packet.slices().for_each(|slice| block.extend_from_slice(slice));
        })
    }

    /// Copies a packet with its checksum.
    fn summed(&self, packet: &TxPacket) -> Bytes {
        self.made_in(packet.len(), |block| {
            block.resize(packet.len(), 0);
            packet.copy_into(block);
        })
    }

    /// Returns the bytes that `fill` writes into a block with room for `len` bytes.
    #[inline]
    fn made_in(&self, len: usize, fill: impl FnOnce(&mut BytesMut)) -> Bytes {
        self.memory.borrow_mut().filled(len, fill)
    }

    /// Returns `len` bytes of several frames that `fill` concatenates.
    pub(super) fn joined(&self, len: usize, fill: impl FnOnce(&mut BytesMut)) -> Bytes {
        self.joined.borrow_mut().filled(len, fill)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_numbered_and_lie_behind_each_other() {
        let frames = Frames::new(true);
        let mut made = Vec::new();
        for text in [&b"first"[..], b"second"] {
            let packet = TxPacket::new(&[0; 20], [Bytes::from_static(text)].into_iter().collect());
            frames.clone().cut(&packet, |frame| made.push(frame));
        }
        let [first, second] = made.as_slice() else { panic!("two frames") };
        assert_eq!((first.packet, second.packet), (PacketId(1), PacketId(2)));
        assert_eq!((&first.bytes[20..], &second.bytes[20..]), (&b"first"[..], &b"second"[..]));
        assert_eq!(second.bytes.as_ptr() as usize - first.bytes.as_ptr() as usize, 25, "in one block");
    }

    #[test]
    fn a_block_is_used_again_when_its_frames_are_gone_and_not_before() {
        let frames = Frames::new(true);
        let frame = |len: usize| {
            let packet = TxPacket::new(&[0; 20], [Bytes::from(vec![1; len - 20])].into_iter().collect());
            let mut made = None;
            frames.cut(&packet, |frame| made = Some(frame.bytes));
            made.expect("one frame")
        };
        let blocks = [frame(BLOCK), frame(BLOCK), frame(BLOCK)];
        let places = blocks.each_ref().map(|frame| frame.as_ptr());
        let [first, second, third] = blocks;
        drop(second);
        let fourth = frame(BLOCK);
        assert!(!places.contains(&fourth.as_ptr()), "the first, which is the oldest, is still there");
        drop(first);
        assert_eq!([frame(BLOCK).as_ptr(), frame(BLOCK).as_ptr()], [places[1], places[0]]);
        assert!(third.iter().all(|byte| *byte <= 1));
    }
}
