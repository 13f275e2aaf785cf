//! Where packets of a network come from: each gets a number, and a place in a block of memory that those before and behind it share.

use super::queue::Traveller;
use crate::capture::PacketId;
use bytes::{Bytes, BytesMut};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use wire::TxPacket;

/// Bytes of a block: some forty packets of full size for one allocation.
const BLOCK: usize = 64 * 1024;

/// One for all hosts of a network; a clone is the same.
#[derive(Clone, Default)]
pub(super) struct Frames {
    made: Rc<Cell<u64>>,
    block: Rc<RefCell<BytesMut>>,
}

impl Frames {
    /// The number of the next packet.
    pub(super) fn number(&self) -> PacketId {
        self.made.set(self.made.get() + 1);
        PacketId(self.made.get())
    }

    /// The frames that a stack's packet becomes on a wire.
    pub(super) fn cut(&self, packet: &TxPacket, mut take: impl FnMut(Traveller)) {
        let mut frame = |len, write: &mut dyn FnMut(&mut [u8])| {
            take(Traveller::new(self.number(), self.written(len, write)));
        };
        let Some(mut segments) = packet.cut() else {
            return frame(packet.len(), &mut |bytes| _ = packet.copy_into(bytes));
        };
        while let Some(len) = segments.next_len() {
            frame(len, &mut |bytes| _ = segments.write_next(bytes));
        }
    }

    fn written(&self, len: usize, write: &mut dyn FnMut(&mut [u8])) -> Bytes {
        let mut block = self.block.borrow_mut();
        if block.capacity() < len {
            *block = BytesMut::with_capacity(BLOCK.max(len));
        }
        block.resize(len, 0);
        write(&mut block);
        block.split().freeze()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_numbered_and_lie_behind_each_other() {
        let frames = Frames::default();
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
}
