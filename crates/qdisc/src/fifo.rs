//! Queueing disciplines: the trait, and drop-tail.
use crate::Nanos;
use std::collections::VecDeque;

/// Why a discipline did not take a packet; the packet is handed back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused<P>(pub P);

/// A queueing discipline: packets wait here for the transmitter.
///
/// `now` never goes back from one call to the next. It is work-conserving: `dequeue` gives a packet whenever one waits
/// (rate limits are the link's). A discipline may also drop a packet after it took it (CoDel does);
/// it counts that in [`Qdisc::dropped`].
pub trait Qdisc<P> {
    /// Takes a packet of `len` bytes, or hands it back because there is no room.
    fn enqueue(&mut self, now: Nanos, packet: P, len: usize) -> Result<(), Refused<P>>;
    /// The packet to send next, and its length.
    fn dequeue(&mut self, now: Nanos) -> Option<(P, usize)>;
    /// Packets waiting.
    fn backlog_packets(&self) -> usize;
    /// Bytes waiting.
    fn backlog_bytes(&self) -> u64;
    /// Packets lost here so far: refused, or taken and dropped later.
    fn dropped(&self) -> u64;
}

/// How much may wait. Both limits hold; the default has none.
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

/// What went through a [`Fifo`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct FifoStats {
    /// Packets taken.
    pub packets: u64,
    /// Bytes taken.
    pub bytes: u64,
    /// Packets refused because the queue was full.
    pub drops: u64,
    /// Bytes of those packets.
    pub dropped_bytes: u64,
    /// Most packets that ever waited.
    pub backlog_packets_max: usize,
    /// Most bytes that ever waited.
    pub backlog_bytes_max: u64,
    /// Longest time a packet waited, nanoseconds.
    pub sojourn_max: Nanos,
}

/// Drop-tail: first in, first out, and what does not fit is refused (Linux's pfifo and bfifo).
#[derive(Clone, Debug)]
pub struct Fifo<P> {
    limit: Limit,
    queue: VecDeque<Waiting<P>>,
    bytes: u64,
    stats: FifoStats,
}

#[derive(Clone, Debug)]
struct Waiting<P> {
    packet: P,
    len: usize,
    enqueued_at: Nanos,
}

impl<P> Fifo<P> {
    /// An empty queue.
    pub fn new(limit: Limit) -> Fifo<P> {
        Fifo { limit, queue: VecDeque::new(), bytes: 0, stats: FifoStats::default() }
    }

    /// Changes the limit. Packets that already wait stay.
    pub fn set_limit(&mut self, limit: Limit) {
        self.limit = limit;
    }

    /// Counters.
    pub fn stats(&self) -> FifoStats {
        self.stats
    }

    fn has_room(&self, len: usize) -> bool {
        self.limit.packets.is_none_or(|max| self.queue.len() < max)
            && self.limit.bytes.is_none_or(|max| self.bytes.saturating_add(len as u64) <= max)
    }
}

impl<P> Qdisc<P> for Fifo<P> {
    fn enqueue(&mut self, now: Nanos, packet: P, len: usize) -> Result<(), Refused<P>> {
        if !self.has_room(len) {
            self.stats.drops += 1;
            self.stats.dropped_bytes += len as u64;
            return Err(Refused(packet));
        }
        self.queue.push_back(Waiting { packet, len, enqueued_at: now });
        self.bytes += len as u64;
        self.stats.packets += 1;
        self.stats.bytes += len as u64;
        self.stats.backlog_packets_max = self.stats.backlog_packets_max.max(self.queue.len());
        self.stats.backlog_bytes_max = self.stats.backlog_bytes_max.max(self.bytes);
        Ok(())
    }

    fn dequeue(&mut self, now: Nanos) -> Option<(P, usize)> {
        let Waiting { packet, len, enqueued_at } = self.queue.pop_front()?;
        self.bytes -= len as u64;
        self.stats.sojourn_max = self.stats.sojourn_max.max(now.saturating_sub(enqueued_at));
        Some((packet, len))
    }

    fn backlog_packets(&self) -> usize {
        self.queue.len()
    }

    fn backlog_bytes(&self) -> u64 {
        self.bytes
    }

    fn dropped(&self) -> u64 {
        self.stats.drops
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pfifo_counts_packets() {
        let mut q = Fifo::new(Limit::packets(2));
        assert_eq!(q.enqueue(0, 'a', 1500), Ok(()));
        assert_eq!(q.enqueue(5, 'b', 40), Ok(()));
        assert_eq!(q.enqueue(6, 'c', 40), Err(Refused('c')));
        assert_eq!((q.backlog_packets(), q.backlog_bytes(), q.dropped()), (2, 1540, 1));
        assert_eq!(q.dequeue(7), Some(('a', 1500)));
        assert_eq!(q.enqueue(8, 'd', 60), Ok(()));
        assert_eq!(q.dequeue(9), Some(('b', 40)));
        assert_eq!(q.dequeue(9), Some(('d', 60)));
        assert_eq!(q.dequeue(9), None);
        let expected = FifoStats {
            packets: 3,
            bytes: 1600,
            drops: 1,
            dropped_bytes: 40,
            backlog_packets_max: 2,
            backlog_bytes_max: 1540,
            sojourn_max: 7,
        };
        assert_eq!(q.stats(), expected);
    }

    #[test]
    fn bfifo_counts_bytes_and_lets_a_small_packet_in_after_a_refused_big_one() {
        let mut q = Fifo::new(Limit::bytes(3000));
        assert_eq!(q.enqueue(0, 1, 1500), Ok(()));
        assert_eq!(q.enqueue(0, 2, 1501), Err(Refused(2)));
        assert_eq!(q.enqueue(0, 3, 1500), Ok(()));
        assert_eq!(q.enqueue(0, 4, 1), Err(Refused(4)));
        assert_eq!(q.dropped(), 2);
    }

    #[test]
    fn both_limits_hold() {
        let mut q = Fifo::new(Limit { packets: Some(2), bytes: Some(100) });
        assert_eq!(q.enqueue(0, 1, 101), Err(Refused(1)));
        assert_eq!(q.enqueue(0, 2, 10), Ok(()));
        assert_eq!(q.enqueue(0, 3, 10), Ok(()));
        assert_eq!(q.enqueue(0, 4, 10), Err(Refused(4)));
        q.set_limit(Limit::NONE);
        assert_eq!(q.enqueue(0, 5, usize::MAX >> 8), Ok(()));
    }
}
