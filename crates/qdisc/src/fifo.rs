//! pfifo, bfifo and pfifo_head_drop: first in, first out, within a limit (Linux's `sch_fifo.c`).
use crate::queue::Queue;
use crate::{Dequeue, DropReason, Dropped, Nanos, Qdisc, Skb, Stats, Verdict};
use alloc::vec::Vec;

/// The limit of a queue. Both limits apply. By default there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Limit {
    /// Packets (pfifo); `None` = no limit, `Some(0)` = nothing waits.
    pub packets: Option<usize>,
    /// Bytes (bfifo).
    pub bytes: Option<u64>,
}

impl Limit {
    /// No limit.
    pub const NONE: Limit = Limit { packets: None, bytes: None };

    /// At most `n` packets wait: Linux's `pfifo limit n`.
    pub const fn packets(n: usize) -> Limit {
        Limit { packets: Some(n), bytes: None }
    }

    /// At most `n` bytes wait: Linux's `bfifo limit n`.
    pub const fn bytes(n: u64) -> Limit {
        Limit { packets: None, bytes: Some(n) }
    }
}

/// The most that a [`Fifo`] has seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Peaks {
    /// Most packets that ever waited.
    pub qlen: usize,
    /// Most bytes that ever waited.
    pub backlog: u64,
    /// Longest time a packet waited, nanoseconds.
    pub sojourn: Nanos,
}

/// Drop-tail FIFO that rejects packets that do not fit (Linux's pfifo and bfifo), or drops the
/// oldest packet (pfifo_head_drop).
#[derive(Clone, Debug)]
pub struct Fifo<P> {
    limit: Limit,
    drops_head: bool,
    queue: Queue<P>,
    stats: Stats,
    peaks: Peaks,
}

impl<P> Fifo<P> {
    /// Creates an empty queue that rejects packets that do not fit.
    pub fn new(limit: Limit) -> Fifo<P> {
        Fifo {
            limit,
            drops_head: false,
            queue: Queue::new(),
            stats: Stats::default(),
            peaks: Peaks::default(),
        }
    }

    /// An empty queue that drops its oldest packet for a new one (pfifo_head_drop).
    pub fn head_drop(limit: Limit) -> Fifo<P> {
        Fifo { drops_head: true, ..Fifo::new(limit) }
    }

    /// Returns the limit.
    pub fn limit(&self) -> Limit {
        self.limit
    }

    /// Changes the limit. Packets that already wait stay.
    pub fn set_limit(&mut self, limit: Limit) {
        self.limit = limit;
    }

    /// The most that waited, and the longest.
    pub fn peaks(&self) -> Peaks {
        self.peaks
    }

    /// Does the oldest make room for the newest?
    pub(crate) fn drops_head(&self) -> bool {
        self.drops_head
    }

    /// The length of the packet that goes next.
    pub(crate) fn front_len(&self) -> Option<u32> {
        self.queue.front().map(|skb| skb.len)
    }

    fn has_room(&self, len: u32) -> bool {
        self.limit.packets.is_none_or(|max| self.queue.len() < max)
            && self.limit.bytes.is_none_or(|max| self.queue.bytes().saturating_add(len.into()) <= max)
    }
}

impl<P> Qdisc<P> for Fifo<P> {
    fn enqueue(&mut self, now: Nanos, mut skb: Skb<P>, dropped: &mut Vec<Dropped<P>>) -> Verdict {
        let mut verdict = Verdict::Queued;
        if !self.has_room(skb.len) {
            let oldest = if self.drops_head { self.queue.pop() } else { None };
            let Some(oldest) = oldest else {
                return self.stats.drop(skb, DropReason::QueueFull, dropped);
            };
            self.stats.removed(&oldest);
            self.stats.drop(oldest, DropReason::QueueFull, dropped);
            verdict = Verdict::Congestion;
        }
        skb.time = now;
        self.stats.entered(&skb);
        self.queue.push(skb);
        self.peaks.qlen = self.peaks.qlen.max(self.stats.qlen);
        self.peaks.backlog = self.peaks.backlog.max(self.stats.backlog);
        verdict
    }

    fn dequeue(&mut self, now: Nanos, _: &mut Vec<Dropped<P>>) -> Dequeue<P> {
        let Some(skb) = self.queue.pop() else { return Dequeue::Empty };
        self.stats.left(&skb);
        self.peaks.sojourn = self.peaks.sojourn.max(now.saturating_sub(skb.time));
        Dequeue::Packet(skb)
    }

    fn reset(&mut self, dropped: &mut Vec<Dropped<P>>) {
        self.queue.purge(dropped);
        self.stats.emptied();
    }

    fn stats(&self) -> Stats {
        self.stats
    }

    fn qlen(&self) -> usize {
        self.stats.qlen
    }

    fn can_bypass(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offer<P>(q: &mut Fifo<P>, now: Nanos, packet: P, len: usize) -> Verdict {
        q.enqueue(now, Skb::new(packet, len), &mut Vec::new())
    }

    fn take<P>(q: &mut Fifo<P>, now: Nanos) -> Option<(P, usize)> {
        q.dequeue(now, &mut Vec::new()).packet().map(|skb| (skb.packet, skb.len as usize))
    }

    const FULL: Verdict = Verdict::Dropped(DropReason::QueueFull);

    #[test]
    fn pfifo_counts_packets() {
        let mut q = Fifo::new(Limit::packets(2));
        assert_eq!(offer(&mut q, 0, 'a', 1500), Verdict::Queued);
        assert_eq!(offer(&mut q, 5, 'b', 40), Verdict::Queued);
        let mut dropped = Vec::new();
        assert_eq!(q.enqueue(6, Skb::new('c', 40), &mut dropped), FULL);
        assert_eq!(dropped, [Dropped { skb: Skb::new('c', 40), reason: DropReason::QueueFull }]);
        assert_eq!(q.stats(), Stats { qlen: 2, backlog: 1540, drops: 1, ..Stats::default() });
        assert_eq!(take(&mut q, 7), Some(('a', 1500)));
        assert_eq!(offer(&mut q, 8, 'd', 60), Verdict::Queued);
        assert_eq!(take(&mut q, 9), Some(('b', 40)));
        assert_eq!(take(&mut q, 9), Some(('d', 60)));
        assert_eq!(take(&mut q, 9), None);
        assert_eq!(q.stats(), Stats { packets: 3, bytes: 1600, drops: 1, ..Stats::default() });
        assert_eq!(q.peaks(), Peaks { qlen: 2, backlog: 1540, sojourn: 7 });
    }

    #[test]
    fn bfifo_counts_bytes_and_lets_a_small_packet_in_after_a_refused_big_one() {
        let mut q = Fifo::new(Limit::bytes(3000));
        assert_eq!(offer(&mut q, 0, 1, 1500), Verdict::Queued);
        assert_eq!(offer(&mut q, 0, 2, 1501), FULL);
        assert_eq!(offer(&mut q, 0, 3, 1500), Verdict::Queued);
        assert_eq!(offer(&mut q, 0, 4, 1), FULL);
        assert_eq!(q.stats().drops, 2);
    }

    #[test]
    fn both_limits_hold() {
        let mut q = Fifo::new(Limit { packets: Some(2), bytes: Some(100) });
        assert_eq!(offer(&mut q, 0, 1, 101), FULL);
        assert_eq!(offer(&mut q, 0, 2, 10), Verdict::Queued);
        assert_eq!(offer(&mut q, 0, 3, 10), Verdict::Queued);
        assert_eq!(offer(&mut q, 0, 4, 10), FULL);
        q.set_limit(Limit::NONE);
        assert_eq!(offer(&mut q, 0, 5, usize::MAX), Verdict::Queued);
    }

    #[test]
    fn with_head_drop_the_oldest_makes_room() {
        let mut q = Fifo::head_drop(Limit::packets(2));
        assert_eq!((offer(&mut q, 0, 'a', 1), offer(&mut q, 0, 'b', 1)), (Verdict::Queued, Verdict::Queued));
        let mut dropped = Vec::new();
        assert_eq!(q.enqueue(0, Skb::new('c', 1), &mut dropped), Verdict::Congestion);
        assert_eq!(dropped[0].skb.packet, 'a');
        assert_eq!((take(&mut q, 0), take(&mut q, 0)), (Some(('b', 1)), Some(('c', 1))));
        let mut nothing_fits = Fifo::head_drop(Limit::packets(0));
        assert_eq!(offer(&mut nothing_fits, 0, 'a', 1), FULL);
    }
}
