//! A queue of one segment, such as a request or an answer, that one ACK acknowledges.

use super::{Held, SendQueue, TxSegment};
use crate::tcp::send::delivery::Flight;
use crate::tcp::send::send_queue::blocks::SendBlocks;
use crate::tcp::send::window_use::Round;
use alloc::boxed::Box;

/// The only segment of a queue, which was sent once, and the data of its flight.
pub(crate) struct Lone(Box<Held>);

impl SendQueue {
    /// Empties the queue and returns its content, if that is one segment which was sent once and
    /// has no marks.
    pub(crate) fn take_lone(&mut self) -> Option<Lone> {
        let held = self.held.take_if(|held| held.is_lone())?;
        self.len = 0;
        Some(Lone(held))
    }
}

impl Held {
    fn is_lone(&self) -> bool {
        self.segments.len() == 1
            && self.unit == 1
            && !self.has_blocks
            && !self.flight.has_news()
            && self.segments.front().is_some_and(TxSegment::is_fresh)
    }
}

impl Lone {
    /// The segment, its flight, and how far the window was used.
    pub(in crate::tcp) fn parts(&self) -> Option<(&TxSegment, &Flight, &Round)> {
        self.0.segments.front().map(|segment| (segment, &self.0.flight, &self.0.round))
    }

    /// Returns the memory.
    pub(crate) fn give_back(self, blocks: &mut SendBlocks) {
        let Lone(mut held) = self;
        held.acked_weight = held.segments.pop_front().map_or(0, |segment| segment.weight);
        held.empty_tail();
        blocks.keep_queue(held);
    }
}
