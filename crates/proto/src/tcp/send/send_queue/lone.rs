//! A request, or an answer: all that is queued is one segment, and all of it is acknowledged at once.

use super::{Held, SendQueue, TxSegment};
use crate::tcp::send::delivery::Flight;
use crate::tcp::send::send_queue::blocks::SendBlocks;
use crate::tcp::send::window_use::Round;
use alloc::boxed::Box;

/// All that was queued: one segment, sent once, with what is known of its flight.
pub(crate) struct Lone(Box<Held>);

impl SendQueue {
    /// Is all there is one segment of which nothing is known but that it was sent, once?
    #[inline(always)]
    pub(crate) fn holds_lone(&self) -> bool {
        self.held.as_deref().is_some_and(Held::is_lone)
    }

    /// All there is, if that is one segment of which nothing is known but that it was sent, once: the queue is empty then.
    #[inline(always)]
    pub(crate) fn take_lone(&mut self) -> Option<Lone> {
        let held = self.held.take_if(|held| held.is_lone())?;
        self.len = 0;
        Some(Lone(held))
    }
}

impl Held {
    #[inline(always)]
    fn is_lone(&self) -> bool {
        self.segments.len() == 1
            && self.unit == 1
            && !self.has_blocks
            && !self.flight.has_news()
            && self.segments.front().is_some_and(TxSegment::is_fresh)
    }
}

impl Lone {
    /// The segment, its flight, and how the window was used meanwhile.
    #[inline(always)]
    pub(in crate::tcp) fn parts(&self) -> Option<(&TxSegment, &Flight, &Round)> {
        self.0.segments.front().map(|segment| (segment, &self.0.flight, &self.0.round))
    }

    /// It is not needed any more.
    #[inline(always)]
    pub(crate) fn give_back(self, blocks: &mut SendBlocks) {
        let Lone(mut held) = self;
        held.acked_weight = held.segments.pop_front().map_or(0, |segment| segment.weight);
        held.empty_tail();
        blocks.keep_queue(held);
    }
}
