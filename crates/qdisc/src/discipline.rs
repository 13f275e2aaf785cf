//! The trait of queueing disciplines, and their counters.
use crate::{Nanos, Skb};
use alloc::vec::Vec;

/// A queueing discipline: packets wait here for a transmitter.
///
/// `now` must not decrease between calls. All packets that a call drops, including the offered one,
/// are appended to `dropped`.
pub trait Qdisc<P> {
    /// Offers a packet.
    fn enqueue(&mut self, now: Nanos, skb: Skb<P>, dropped: &mut Vec<Dropped<P>>) -> Verdict;

    /// Asks for the packet to send next.
    fn dequeue(&mut self, now: Nanos, dropped: &mut Vec<Dropped<P>>) -> Dequeue<P>;

    /// Drops everything that waits (Linux's `qdisc_reset`).
    fn reset(&mut self, dropped: &mut Vec<Dropped<P>>);

    /// Returns the counters and the present backlog.
    fn stats(&self) -> Stats;

    /// Packets that wait now.
    fn qlen(&self) -> usize {
        self.stats().qlen
    }

    /// Returns whether a packet may bypass the empty queue to an idle transmitter, uncounted
    /// (Linux's `TCQ_F_CAN_BYPASS`).
    fn can_bypass(&self) -> bool {
        false
    }
}

/// The outcome for an offered packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It waits (unless the discipline drops it later, as CoDel does).
    Queued,
    /// It waits, and now says that it met congestion.
    Marked,
    /// Queued, but another packet, possibly of its flow, was dropped to make room (Linux's
    /// `NET_XMIT_CN`).
    Congestion,
    /// It is lost.
    Dropped(DropReason),
}

/// Why a packet was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DropReason {
    /// The queue was full.
    QueueFull,
    /// Active queue management chose it: RED, CoDel, PIE.
    Congested,
    /// Too many packets of its flow were waiting.
    FlowLimit,
    /// It may depart only beyond fq's horizon.
    Horizon,
    /// It is longer than the token bucket is deep, so it could never leave.
    TooBig,
    /// No class accepts it.
    NoClass,
    /// A model of loss said so ([`Loss`](crate::Loss), netem).
    Loss,
    /// The link was configured to lose it by number.
    Nth,
    /// The link was down.
    Down,
    /// A later acknowledgment says all that it said (cake's `ack-filter`).
    NeedlessAck,
    /// Its queue was removed.
    Purged,
}

/// A packet that a discipline dropped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dropped<P> {
    /// The packet.
    pub skb: Skb<P>,
    /// Why.
    pub reason: DropReason,
}

/// The answer of a discipline to the transmitter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Dequeue<P> {
    /// This packet.
    Packet(Skb<P>),
    /// Packets wait, but none may leave before this moment.
    Throttled(Nanos),
    /// Nothing.
    Empty,
}

impl<P> Dequeue<P> {
    /// The packet, if there is one.
    pub fn packet(self) -> Option<Skb<P>> {
        match self {
            Dequeue::Packet(skb) => Some(skb),
            Dequeue::Throttled(_) | Dequeue::Empty => None,
        }
    }
}

/// Counters of every discipline and class (Linux's `struct gnet_stats_basic` and
/// `gnet_stats_queue`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Stats {
    /// Bytes that left.
    pub bytes: u64,
    /// Packets that left.
    pub packets: u64,
    /// Packets lost here or below.
    pub drops: u64,
    /// Number of packets that were delayed by a rate, marked, or dropped early.
    pub overlimits: u64,
    /// Packets that the device handed back.
    pub requeues: u64,
    /// Packets waiting now.
    pub qlen: usize,
    /// Bytes waiting now.
    pub backlog: u64,
}

impl Stats {
    pub(crate) fn entered<P>(&mut self, skb: &Skb<P>) {
        self.qlen += 1;
        self.backlog += u64::from(skb.len);
    }

    /// Nothing waits any more.
    pub(crate) fn emptied(&mut self) {
        self.qlen = 0;
        self.backlog = 0;
    }

    /// It is no longer here, without having been sent.
    pub(crate) fn removed<P>(&mut self, skb: &Skb<P>) {
        self.qlen = self.qlen.saturating_sub(1);
        self.backlog = self.backlog.saturating_sub(u64::from(skb.len));
    }

    pub(crate) fn sent<P>(&mut self, skb: &Skb<P>) {
        self.bytes += u64::from(skb.len);
        self.packets += 1;
    }

    pub(crate) fn left<P>(&mut self, skb: &Skb<P>) {
        self.removed(skb);
        self.sent(skb);
    }

    /// Counts and records the loss of a packet that does not (or no longer does) wait here.
    pub(crate) fn drop<P>(
        &mut self,
        skb: Skb<P>,
        reason: DropReason,
        dropped: &mut Vec<Dropped<P>>,
    ) -> Verdict {
        self.drops += 1;
        dropped.push(Dropped { skb, reason });
        Verdict::Dropped(reason)
    }
}
