//! Packets in a row.
use crate::{DropReason, Dropped, Skb};
use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// First in, first out, with the sum of the lengths.
#[derive(Clone, Debug)]
pub(crate) struct Queue<P> {
    packets: VecDeque<Skb<P>>,
    bytes: u64,
}

impl<P> Queue<P> {
    pub(crate) const fn new() -> Queue<P> {
        Queue { packets: VecDeque::new(), bytes: 0 }
    }

    pub(crate) fn push(&mut self, skb: Skb<P>) {
        self.bytes += u64::from(skb.len);
        self.packets.push_back(skb);
    }

    pub(crate) fn pop(&mut self) -> Option<Skb<P>> {
        let skb = self.packets.pop_front()?;
        self.bytes -= u64::from(skb.len);
        Some(skb)
    }

    pub(crate) fn pop_back(&mut self) -> Option<Skb<P>> {
        let skb = self.packets.pop_back()?;
        self.bytes -= u64::from(skb.len);
        Some(skb)
    }

    /// Takes everything out.
    pub(crate) fn purge(&mut self, dropped: &mut Vec<Dropped<P>>) {
        self.bytes = 0;
        let purged = |skb| Dropped { skb, reason: DropReason::Purged };
        dropped.extend(self.packets.drain(..).map(purged));
    }

    pub(crate) fn front(&self) -> Option<&Skb<P>> {
        self.packets.front()
    }

    pub(crate) fn len(&self) -> usize {
        self.packets.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }
}
