//! A flow's queue, and its place in the rounds of its tin.
use super::cobalt::Cobalt;
use crate::{DropReason, Dropped, Skb};
use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// A packet as it waits, and the bytes that it takes on the wire.
#[derive(Clone, Debug)]
pub(super) struct Waiting<P> {
    pub(super) skb: Skb<P>,
    pub(super) wire_len: u32,
}

/// Where a flow stands (`CAKE_SET_…`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(super) enum Standing {
    /// Nowhere: its queue may be given to another.
    #[default]
    None,
    /// Among the new flows, which go first.
    Sparse,
    /// It used up its quantum and was empty then: it waits among the old flows, and still counts as sparse.
    SparseWait,
    /// Among the old flows.
    Bulk,
    /// Empty, but COBALT still remembers something of it.
    Decaying,
}

/// A queue with what is known of its flow (`struct cake_flow`).
#[derive(Clone, Debug)]
pub(super) struct Flow<P> {
    pub(super) queue: VecDeque<Waiting<P>>,
    /// Bytes that wait.
    pub(super) backlog: u64,
    pub(super) deficit: i64,
    pub(super) cobalt: Cobalt,
    pub(super) standing: Standing,
    /// The entries of its hosts.
    pub(super) source: u16,
    pub(super) destination: u16,
}

impl<P> Flow<P> {
    pub(super) fn new() -> Flow<P> {
        Flow {
            queue: VecDeque::new(),
            backlog: 0,
            deficit: 0,
            cobalt: Cobalt::default(),
            standing: Standing::None,
            source: 0,
            destination: 0,
        }
    }

    pub(super) fn push(&mut self, waiting: Waiting<P>) {
        self.backlog += u64::from(waiting.skb.len);
        self.queue.push_back(waiting);
    }

    pub(super) fn pop(&mut self) -> Option<Waiting<P>> {
        let waiting = self.queue.pop_front()?;
        self.backlog -= u64::from(waiting.skb.len);
        Some(waiting)
    }

    /// Takes one from between.
    pub(super) fn take(&mut self, place: usize) -> Option<Waiting<P>> {
        let waiting = self.queue.remove(place)?;
        self.backlog -= u64::from(waiting.skb.len);
        Some(waiting)
    }

    pub(super) fn purge(&mut self, dropped: &mut Vec<Dropped<P>>) {
        self.backlog = 0;
        let purged = |waiting: Waiting<P>| Dropped { skb: waiting.skb, reason: DropReason::Purged };
        dropped.extend(self.queue.drain(..).map(purged));
    }
}
