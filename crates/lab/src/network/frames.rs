//! Where packets of a network come from: each gets a number, and a place in a block of memory that those before and behind it share.
//!
//! Packets go mostly in the order in which they came, and so do blocks: the one that was left last is used again first, while the
//! processor's cache may still have it, and the system need not give and take memory.

use super::queue::Traveller;
use crate::capture::PacketId;
use bytes::{Bytes, BytesMut};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use wire::{TxChecksum, TxPacket};

/// Bytes of a block: some forty packets of full size for one allocation.
const BLOCK: usize = 64 * 1024;
/// Most full blocks that are kept in mind to be used again.
const BLOCKS_MAX: usize = 1024;

/// One for all hosts of a network; a clone is the same.
#[derive(Clone)]
pub(super) struct Frames {
    made: Rc<Cell<u64>>,
    memory: Rc<RefCell<Memory>>,
    /// Of what hosts join, which is gone long before frames are that left at the same time.
    joined: Rc<RefCell<Memory>>,
    /// Do the TCP checksums of packets that hosts leave to their cards matter to anybody?
    sums: Rc<Cell<bool>>,
}

struct Memory {
    block: BytesMut,
    /// Blocks without room, the oldest first.
    full: VecDeque<BytesMut>,
    /// Blocks that all packets have left, in that order.
    free: Vec<BytesMut>,
}

impl Default for Memory {
    fn default() -> Memory {
        Memory { block: BytesMut::with_capacity(BLOCK), full: VecDeque::new(), free: Vec::new() }
    }
}

impl Memory {
    /// The block, with room for so many bytes.
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
            // Somebody keeps a packet of it.
            self.full.pop_front();
        }
        self.full.push_back(full);
    }
}

impl Frames {
    /// `sums`: are packets complete with their checksums? Where nobody looks at them nor alters them, none is verified.
    pub(super) fn new(sums: bool) -> Frames {
        Frames {
            made: Rc::default(),
            memory: Rc::default(),
            joined: Rc::default(),
            sums: Rc::new(Cell::new(sums)),
        }
    }

    /// Are packets complete with their checksums?
    pub(super) fn has_sums(&self) -> bool {
        self.sums.get()
    }

    /// From now on packets are complete with their checksums.
    pub(super) fn need_sums(&self) {
        self.sums.set(true);
    }

    /// The number of the next packet.
    pub(super) fn number(&self) -> PacketId {
        self.made.set(self.made.get() + 1);
        PacketId(self.made.get())
    }

    /// How many frames a stack's packet becomes on a wire.
    pub(super) fn count(packet: &TxPacket) -> usize {
        match usize::from(packet.gso_size) {
            0 => 1,
            size => packet.payload_len().div_ceil(size).max(1),
        }
    }

    /// Cuts a stack's packet into the frames that it becomes on a wire.
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

    /// A packet as it is.
    fn copied(&self, packet: &TxPacket) -> Bytes {
        self.made_in(packet.len(), |block| {
            block.extend_from_slice(packet.header());
            packet.slices().for_each(|slice| block.extend_from_slice(slice));
        })
    }

    /// A packet with its checksum.
    fn summed(&self, packet: &TxPacket) -> Bytes {
        self.made_in(packet.len(), |block| {
            block.resize(packet.len(), 0);
            packet.copy_into(block);
        })
    }

    /// What `fill` puts into a block with room for `len` bytes.
    #[inline]
    fn made_in(&self, len: usize, fill: impl FnOnce(&mut BytesMut)) -> Bytes {
        self.memory.borrow_mut().filled(len, fill)
    }

    /// `len` bytes of several frames, which `fill` puts behind each other.
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
