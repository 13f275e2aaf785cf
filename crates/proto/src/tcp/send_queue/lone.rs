//! A request, or an answer: all that is queued is one segment, and all of it is acknowledged at once.

use super::{SendQueue, TxSegment};
use crate::tcp::delivery::Lone;
use crate::tcp::send_blocks::SendBlocks;

impl SendQueue {
    /// All there is, if that is one segment of which nothing is known but that it was sent, once.
    #[inline(always)]
    fn lone(&self) -> Option<&TxSegment> {
        let held = self.held.as_deref()?;
        let ordinary =
            held.segments.len() == 1 && held.unit == 1 && !held.has_blocks && !held.flight.has_news();
        held.segments.front().filter(|only| ordinary && only.is_fresh())
    }

    /// All there is is acknowledged now. If it is one segment, sent once, it is gone; `None`: it is not, and nothing has happened.
    #[inline(always)]
    pub(crate) fn acknowledge_lone(&mut self, blocks: &mut SendBlocks) -> Option<Lone> {
        let only = self.lone()?;
        let lone = Lone {
            sent_at: only.sent_at,
            len: only.len,
            weight: only.weight,
            snapshot: only.snapshot,
            lost: self.flight.lost(),
            round: self.round,
        };
        self.len = 0;
        if let Some(mut held) = self.held.take() {
            held.segments.pop_back();
            (held.tail, held.sent_weight, held.acked_weight) = (None, 0, lone.weight);
            blocks.keep_queue(held);
        }
        Some(lone)
    }
}
