//! codel: drops by how long packets waited (RFC 8289; Linux's `sch_codel.c`).
mod control;

use alloc::vec::Vec;
pub(crate) use control::{Control, Source};

use crate::queue::Queue;
use crate::{Dequeue, DropReason, Dropped, Nanos, Packet, Qdisc, Skb, Stats, Verdict};

/// The parameters of CoDel (RFC 8289 section 4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodelParams {
    /// The delay that is acceptable if it stands.
    pub target: Nanos,
    /// Time that the delay must stay above the target before the first drop.
    pub interval: Nanos,
    /// Above this delay ECN-capable packets are marked at once.
    pub ce_threshold: Option<Nanos>,
    /// True if ECN-capable packets are marked instead of dropped.
    pub ecn: bool,
}

impl CodelParams {
    /// Linux's `codel_params_init`, which RFC 8289 section 4.4 recommends too: 5 ms and 100 ms.
    pub const DEFAULT: CodelParams =
        CodelParams { target: 5_000_000, interval: 100_000_000, ce_threshold: None, ecn: false };
}

/// Options of a codel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodelConfig {
    /// Packets that may wait.
    pub limit: usize,
    /// The algorithm's parameters.
    pub params: CodelParams,
}

impl Default for CodelConfig {
    fn default() -> CodelConfig {
        CodelConfig { limit: 1000, params: CodelParams::DEFAULT }
    }
}

/// Additional counters of CoDel (`struct tc_codel_xstats`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct CodelXstats {
    /// The longest packet that went through.
    pub maxpacket: u32,
    /// Packets dropped in the present dropping state, including the count carried over.
    pub count: u32,
    /// `count` as that stay began.
    pub lastcount: u32,
    /// Waiting time of the last packet.
    pub ldelay: Nanos,
    /// When the next one is to be dropped.
    pub drop_next: Nanos,
    /// True in the dropping state.
    pub dropping: bool,
    /// Packets that found no room.
    pub drop_overlimit: u32,
    /// Packets marked instead of dropped.
    pub ecn_mark: u32,
    /// Packets marked because of `ce_threshold`.
    pub ce_mark: u32,
}

/// One queue under CoDel.
#[derive(Clone, Debug)]
pub struct Codel<P> {
    config: CodelConfig,
    /// A backlog of no more than a packet of this size is never dropped from.
    mtu: u32,
    control: Control,
    held: Held<P>,
    drop_overlimit: u32,
}

#[derive(Clone, Debug)]
struct Held<P> {
    queue: Queue<P>,
    stats: Stats,
}

impl<P> Codel<P> {
    /// An empty queue for a device with frames of up to `mtu` bytes.
    pub fn new(config: CodelConfig, mtu: u32) -> Codel<P> {
        let held = Held { queue: Queue::new(), stats: Stats::default() };
        Codel { config, mtu, control: Control::default(), held, drop_overlimit: 0 }
    }

    /// Returns the configuration.
    pub fn config(&self) -> CodelConfig {
        self.config
    }

    /// Changes the configuration. Packets that no longer fit are dropped, oldest first.
    pub fn set_config(&mut self, config: CodelConfig, dropped: &mut Vec<Dropped<P>>) {
        self.config = config;
        while self.held.queue.len() > config.limit {
            let Some(skb) = self.held.queue.pop() else { return };
            self.held.stats.removed(&skb);
            self.held.stats.drop(skb, DropReason::QueueFull, dropped);
        }
    }

    /// Returns the additional counters.
    pub fn xstats(&self) -> CodelXstats {
        CodelXstats { drop_overlimit: self.drop_overlimit, ..self.control.xstats() }
    }
}

impl<P: Packet> Source<P> for Held<P> {
    fn pop(&mut self) -> Option<Skb<P>> {
        let skb = self.queue.pop()?;
        self.stats.removed(&skb);
        Some(skb)
    }

    fn backlog(&self) -> u64 {
        self.stats.backlog
    }

    fn drop(&mut self, skb: Skb<P>, dropped: &mut Vec<Dropped<P>>) {
        self.stats.drop(skb, DropReason::Congested, dropped);
    }
}

impl<P: Packet> Qdisc<P> for Codel<P> {
    fn enqueue(&mut self, now: Nanos, mut skb: Skb<P>, dropped: &mut Vec<Dropped<P>>) -> Verdict {
        if self.held.queue.len() >= self.config.limit {
            self.drop_overlimit += 1;
            return self.held.stats.drop(skb, DropReason::QueueFull, dropped);
        }
        skb.time = now;
        self.held.stats.entered(&skb);
        self.held.queue.push(skb);
        Verdict::Queued
    }

    fn dequeue(&mut self, now: Nanos, dropped: &mut Vec<Dropped<P>>) -> Dequeue<P> {
        let next = self.control.dequeue(now, &self.config.params, self.mtu, &mut self.held, dropped);
        let Some(skb) = next else { return Dequeue::Empty };
        self.held.stats.sent(&skb);
        Dequeue::Packet(skb)
    }

    fn reset(&mut self, dropped: &mut Vec<Dropped<P>>) {
        self.held.queue.purge(dropped);
        self.held.stats.emptied();
        self.control = Control::default();
    }

    fn stats(&self) -> Stats {
        self.held.stats
    }

    fn can_bypass(&self) -> bool {
        self.config.limit >= 1
    }
}
