//! fq_codel: flows take turns, each under CoDel (RFC 8290; Linux's `sch_fq_codel.c`).
use crate::codel::{Control, Source};
use crate::queue::Queue;
use crate::rng::mix;
use crate::{CodelParams, Dequeue, DropReason, Dropped, Handle, Nanos, Packet, Qdisc, Skb, Stats, Verdict};
use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// Options of an fq_codel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FqCodelConfig {
    /// Packets that may wait, all flows together.
    pub limit: usize,
    /// Queues that flows are hashed to; fixed when it is made.
    pub flows: u32,
    /// Bytes that a flow sends in one turn.
    pub quantum: u32,
    /// Memory limit of waiting packets, in bytes.
    pub memory_limit: u32,
    /// The most packets that are dropped at once when there is no room.
    pub drop_batch: u32,
    /// CoDel's parameters.
    pub params: CodelParams,
}

impl FqCodelConfig {
    /// Linux's defaults for a device with frames of up to `mtu` bytes.
    pub fn new(mtu: u32) -> FqCodelConfig {
        FqCodelConfig {
            limit: 10 * 1024,
            flows: 1024,
            quantum: mtu,
            memory_limit: 32 << 20,
            drop_batch: 64,
            params: CodelParams { ecn: true, ..CodelParams::DEFAULT },
        }
    }
}

/// Additional counters (`struct tc_fq_codel_qd_stats`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct FqCodelXstats {
    /// The longest packet that went through.
    pub maxpacket: u32,
    /// Packets dropped for want of room.
    pub drop_overlimit: u32,
    /// Dropped packets that exceeded the memory limit.
    pub drop_overmemory: u32,
    /// Number of new flows.
    pub new_flow_count: u32,
    /// Packets marked instead of dropped.
    pub ecn_mark: u32,
    /// Packets marked because of `ce_threshold`.
    pub ce_mark: u32,
    /// Flows that have just begun.
    pub new_flows_len: u32,
    /// Flows that have had a turn.
    pub old_flows_len: u32,
    /// Memory of waiting packets, in bytes.
    pub memory_usage: u64,
}

/// Flows under CoDel in turns.
#[derive(Clone, Debug)]
pub struct FqCodel<P> {
    handle: Handle,
    config: FqCodelConfig,
    mtu: u32,
    perturbation: u64,
    flows: Vec<Flow<P>>,
    new_flows: VecDeque<u32>,
    old_flows: VecDeque<u32>,
    memory_usage: u64,
    xstats: FqCodelXstats,
    stats: Stats,
}

#[derive(Clone, Debug)]
struct Flow<P> {
    queue: Queue<P>,
    control: Control,
    deficit: i64,
    /// In one of the two lists?
    listed: bool,
}

impl<P: Packet> FqCodel<P> {
    /// Empty queues for a device with frames of up to `mtu` bytes; the seed perturbs the hash.
    pub fn new(handle: Handle, config: FqCodelConfig, mtu: u32, seed: u64) -> FqCodel<P> {
        let flow = Flow { queue: Queue::new(), control: Control::default(), deficit: 0, listed: false };
        let flows = config.flows.clamp(1, 65_536) as usize;
        FqCodel {
            handle,
            config,
            mtu,
            perturbation: seed,
            flows: vec![flow; flows],
            new_flows: VecDeque::new(),
            old_flows: VecDeque::new(),
            memory_usage: 0,
            xstats: FqCodelXstats::default(),
            stats: Stats::default(),
        }
    }

    /// Returns the configuration.
    pub fn config(&self) -> FqCodelConfig {
        self.config
    }

    /// Changes all options except the number of flows. Packets that no longer fit are dropped in
    /// sending order.
    pub fn set_config(&mut self, now: Nanos, config: FqCodelConfig, dropped: &mut Vec<Dropped<P>>) {
        self.config = FqCodelConfig { flows: self.config.flows, ..config };
        while self.stats.qlen > self.config.limit || self.memory_usage > u64::from(self.config.memory_limit) {
            let Dequeue::Packet(skb) = self.dequeue(now, dropped) else { return };
            self.stats.packets -= 1;
            self.stats.bytes -= u64::from(skb.len);
            self.stats.drop(skb, DropReason::QueueFull, dropped);
        }
    }

    /// Returns the additional counters.
    pub fn xstats(&self) -> FqCodelXstats {
        FqCodelXstats {
            new_flows_len: self.new_flows.len() as u32,
            old_flows_len: self.old_flows.len() as u32,
            memory_usage: self.memory_usage,
            ..self.xstats
        }
    }

    /// A priority that names one of its classes, else the hash.
    fn classify(&self, skb: &Skb<P>) -> usize {
        let class = Handle::from(skb.packet.priority());
        let named = usize::from(class.minor());
        if class.major() == self.handle.major()
            && class.major() != 0
            && (1..=self.flows.len()).contains(&named)
        {
            return named - 1;
        }
        let hash = mix(u64::from(skb.packet.flow_hash()) ^ self.perturbation) >> 32;
        (hash as usize * self.flows.len()) >> 32
    }

    /// Drops up to half of the longest queue, oldest first; whose was it? (`fq_codel_drop`.)
    fn drop_from_fattest(&mut self, dropped: &mut Vec<Dropped<P>>) -> Option<(usize, u32)> {
        // Of several the first, as a search from the first queue finds it.
        let fattest = (0..self.flows.len())
            .rev()
            .max_by_key(|number| self.flows.get(*number).map(|flow| flow.queue.bytes()))?;
        let flow = self.flows.get_mut(fattest)?;
        let threshold = flow.queue.bytes() / 2;
        let (mut count, mut bytes) = (0, 0);
        while let Some(skb) = flow.queue.pop() {
            bytes += u64::from(skb.len);
            self.memory_usage -= skb.memory();
            self.stats.removed(&skb);
            self.stats.drop(skb, DropReason::QueueFull, dropped);
            count += 1;
            if count >= self.config.drop_batch.max(1) || bytes >= threshold {
                break;
            }
        }
        flow.control.add_count(count);
        Some((fattest, count))
    }
}

/// A flow as CoDel sees it: its own packets, but the backlog of all (as in Linux).
struct FlowSource<'a, P> {
    queue: &'a mut Queue<P>,
    stats: &'a mut Stats,
    memory_usage: &'a mut u64,
}

impl<P: Packet> Source<P> for FlowSource<'_, P> {
    fn pop(&mut self) -> Option<Skb<P>> {
        let skb = self.queue.pop()?;
        self.stats.removed(&skb);
        *self.memory_usage -= skb.memory();
        Some(skb)
    }

    fn backlog(&self) -> u64 {
        self.stats.backlog
    }

    fn drop(&mut self, skb: Skb<P>, dropped: &mut Vec<Dropped<P>>) {
        self.stats.drop(skb, DropReason::Congested, dropped);
    }
}

impl<P: Packet> Qdisc<P> for FqCodel<P> {
    fn enqueue(&mut self, now: Nanos, mut skb: Skb<P>, dropped: &mut Vec<Dropped<P>>) -> Verdict {
        let number = self.classify(&skb);
        let Some(flow) = self.flows.get_mut(number) else {
            return self.stats.drop(skb, DropReason::NoClass, dropped);
        };
        skb.time = now;
        self.memory_usage += skb.memory();
        self.stats.entered(&skb);
        flow.queue.push(skb);
        if !flow.listed {
            flow.listed = true;
            flow.deficit = self.config.quantum.into();
            self.new_flows.push_back(number as u32);
            self.xstats.new_flow_count += 1;
        }
        let over_memory = self.memory_usage > u64::from(self.config.memory_limit);
        if self.stats.qlen <= self.config.limit && !over_memory {
            return Verdict::Queued;
        }
        let Some((fattest, count)) = self.drop_from_fattest(dropped) else { return Verdict::Queued };
        self.xstats.drop_overlimit += count;
        if over_memory {
            self.xstats.drop_overmemory += count;
        }
        if fattest == number { Verdict::Congestion } else { Verdict::Queued }
    }

    fn dequeue(&mut self, now: Nanos, dropped: &mut Vec<Dropped<P>>) -> Dequeue<P> {
        loop {
            let new = !self.new_flows.is_empty();
            let list = if new { &mut self.new_flows } else { &mut self.old_flows };
            let Some(number) = list.pop_front() else { return Dequeue::Empty };
            let Some(flow) = self.flows.get_mut(number as usize) else { continue };
            if flow.deficit <= 0 {
                flow.deficit += i64::from(self.config.quantum.max(1));
                self.old_flows.push_back(number);
                continue;
            }
            let mut source = FlowSource {
                queue: &mut flow.queue,
                stats: &mut self.stats,
                memory_usage: &mut self.memory_usage,
            };
            let before = flow.control.xstats();
            let next = flow.control.dequeue(now, &self.config.params, self.mtu, &mut source, dropped);
            let after = flow.control.xstats();
            self.xstats.ecn_mark += after.ecn_mark - before.ecn_mark;
            self.xstats.ce_mark += after.ce_mark - before.ce_mark;
            self.xstats.maxpacket = self.xstats.maxpacket.max(after.maxpacket);
            let Some(skb) = next else {
                // A new flow that is empty passes through the old ones, so that they are not starved.
                if new && !self.old_flows.is_empty() {
                    self.old_flows.push_back(number);
                } else {
                    flow.listed = false;
                }
                continue;
            };
            flow.deficit -= i64::from(skb.len);
            let list = if new { &mut self.new_flows } else { &mut self.old_flows };
            list.push_front(number);
            self.stats.sent(&skb);
            return Dequeue::Packet(skb);
        }
    }

    fn reset(&mut self, dropped: &mut Vec<Dropped<P>>) {
        for flow in &mut self.flows {
            flow.queue.purge(dropped);
            flow.control = Control::default();
            flow.listed = false;
        }
        self.new_flows.clear();
        self.old_flows.clear();
        self.memory_usage = 0;
        self.stats.emptied();
    }

    fn stats(&self) -> Stats {
        self.stats
    }

    fn can_bypass(&self) -> bool {
        true
    }
}
