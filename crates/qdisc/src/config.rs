//! Configuration of a link.
use crate::{Limit, Loss, Nanos, Probability};
use alloc::vec::Vec;
use core::num::NonZeroU64;

/// One direction of a link. [`LinkConfig::new`] is a perfect one: no delay, no limit, no loss.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct LinkConfig {
    /// Bit rate, bit/s; `None` = infinitely fast.
    pub rate: Option<NonZeroU64>,
    /// Bytes that each packet takes on the wire in addition to its length (Ethernet: 14 header + 4
    /// FCS + 8 preamble + 12 gap).
    pub overhead: usize,
    /// Limit of the queue before the transmitter. The packet being sent does not count, as in
    /// Linux's pfifo and bfifo.
    pub limit: Limit,
    /// Propagation delay, nanoseconds.
    pub delay: Nanos,
    /// Jitter: each delay is uniformly distributed in `delay − jitter ..= delay + jitter` (at least
    /// 0).
    pub jitter: Nanos,
    /// True if jitter lets a packet overtake an earlier one, as in netem.
    pub jitter_reorders: bool,
    /// Packets lost at the entrance.
    pub loss: Loss,
    /// Exactly these packets are lost, counted from 1 as they are offered.
    pub drop_nth: Vec<u64>,
    /// A copy follows the packet.
    pub duplicate: Probability,
    /// One bit of the packet, chosen at random, is to be flipped.
    pub corrupt: Probability,
    /// Packets that skip the propagation delay.
    pub reorder: Option<Reorder>,
}

/// Reordering as netem does it: some packets are sent at once and so overtake those in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reorder {
    /// Probability that a candidate skips the delay.
    pub probability: Probability,
    /// Every `gap`-th packet is a candidate; 0 and 1: every one.
    pub gap: u64,
}

impl LinkConfig {
    /// A perfect link.
    pub fn new() -> LinkConfig {
        LinkConfig::default()
    }

    /// Sets the rate in bit/s; 0 = infinitely fast.
    pub fn rate(mut self, bits_per_second: u64) -> LinkConfig {
        self.rate = NonZeroU64::new(bits_per_second);
        self
    }

    /// Sets the cost of each packet beyond its length, bytes.
    pub fn overhead(mut self, bytes: usize) -> LinkConfig {
        self.overhead = bytes;
        self
    }

    /// Sets how much may wait.
    pub fn limit(mut self, limit: Limit) -> LinkConfig {
        self.limit = limit;
        self
    }

    /// Sets the propagation delay, nanoseconds.
    pub fn delay(mut self, delay: Nanos) -> LinkConfig {
        self.delay = delay;
        self
    }

    /// Sets the jitter, nanoseconds; order is kept.
    pub fn jitter(mut self, jitter: Nanos) -> LinkConfig {
        self.jitter = jitter;
        self.jitter_reorders = false;
        self
    }

    /// Sets the jitter, nanoseconds; packets may overtake each other.
    pub fn jitter_with_reordering(mut self, jitter: Nanos) -> LinkConfig {
        self.jitter = jitter;
        self.jitter_reorders = true;
        self
    }

    /// Sets the loss.
    pub fn loss(mut self, loss: Loss) -> LinkConfig {
        self.loss = loss;
        self
    }

    /// Loses exactly these packets, counted from 1 as they are offered.
    pub fn drop_nth(mut self, numbers: impl IntoIterator<Item = u64>) -> LinkConfig {
        self.drop_nth = numbers.into_iter().collect();
        self
    }

    /// Sets the probability that a packet is doubled.
    pub fn duplicate(mut self, p: Probability) -> LinkConfig {
        self.duplicate = p;
        self
    }

    /// Sets the probability that one bit of a packet is flipped.
    pub fn corrupt(mut self, p: Probability) -> LinkConfig {
        self.corrupt = p;
        self
    }

    /// Sets the reordering.
    pub fn reorder(mut self, reorder: Reorder) -> LinkConfig {
        self.reorder = Some(reorder);
        self
    }
}
