//! Counters of a link.

/// Counters of a [`Link`](crate::Link), and its present contents.
///
/// At any time `offered_packets + duplicated == delivered_packets + dropped() + backlog_packets +
/// transmitting + in_flight` (unless the queue is a netem that duplicates).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct LinkStats {
    /// Packets offered to `enqueue`.
    pub offered_packets: u64,
    /// Bytes of those.
    pub offered_bytes: u64,
    /// Packets that came out of `poll`.
    pub delivered_packets: u64,
    /// Bytes of those.
    pub delivered_bytes: u64,
    /// Lost because the queue was full (or dropped by its discipline).
    pub drops_queue: u64,
    /// Lost by [`Loss`](crate::Loss).
    pub drops_loss: u64,
    /// Lost because they were named by number (`LinkConfig::drop_nth`).
    pub drops_nth: u64,
    /// Lost because the link was down.
    pub drops_down: u64,
    /// Copies made.
    pub duplicated: u64,
    /// Packets marked as corrupted.
    pub corrupted: u64,
    /// Packets sent ahead of others by [`Reorder`](crate::Reorder).
    pub reordered: u64,
    /// Packets waiting in the queue now.
    pub backlog_packets: usize,
    /// Bytes waiting in the queue now.
    pub backlog_bytes: u64,
    /// Packets being serialised now: 0 or 1.
    pub transmitting: usize,
    /// Packets in flight now (serialized, not delivered yet).
    pub in_flight: usize,
}

impl LinkStats {
    /// Returns the number of lost packets.
    pub fn dropped(&self) -> u64 {
        self.drops_queue + self.drops_loss + self.drops_nth + self.drops_down
    }
}
