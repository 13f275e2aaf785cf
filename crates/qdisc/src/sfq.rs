//! sfq: flows take turns by deficit round robin. If there is no room, the longest flow loses a
//! packet (Linux's `sch_sfq.c`).
//!
//! Its RED mode (`redflowlimit`) is left out.
use crate::queue::Queue;
use crate::rng::mix;
use crate::{Dequeue, DropReason, Dropped, Handle, Nanos, Packet, Qdisc, Rng, Skb, Stats, Verdict};
use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// Options of an sfq.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SfqConfig {
    /// Packets that may wait, all flows together.
    pub limit: usize,
    /// Bytes that a flow sends in one turn.
    pub quantum: u32,
    /// Packets of one flow that may wait.
    pub depth: u32,
    /// Flows that may wait at once.
    pub flows: u32,
    /// Values of the hash; a power of two.
    pub divisor: u32,
    /// Seconds between changes of the hash. 0: never.
    pub perturb: u32,
    /// True if the oldest packet of a flow is dropped instead of the newest.
    pub headdrop: bool,
}

impl SfqConfig {
    /// Linux's defaults for a device with frames of up to `mtu` bytes.
    pub fn new(mtu: u32) -> SfqConfig {
        SfqConfig {
            limit: 127,
            quantum: mtu,
            depth: 127,
            flows: 128,
            divisor: 1024,
            perturb: 0,
            headdrop: false,
        }
    }
}

/// The most that one flow may hold (`SFQ_MAX_DEPTH`), and the most flows (`SFQ_MAX_FLOWS`).
pub(crate) const MAX_DEPTH: u32 = 127;
pub(crate) const MAX_FLOWS: u32 = 65_536 - 128;

/// Flows in turns.
#[derive(Clone, Debug)]
pub struct Sfq<P> {
    handle: Handle,
    config: SfqConfig,
    rng: Rng,
    perturbation: u64,
    perturb_at: Nanos,
    /// Those that wait, in the order of their turns.
    flows: VecDeque<Flow<P>>,
    /// Counts changes of a flow's length: of two as long the one that became so last pays.
    changes: u64,
    stats: Stats,
}

#[derive(Clone, Debug)]
struct Flow<P> {
    hash: u32,
    queue: Queue<P>,
    allot: i64,
    changed: u64,
}

const NANOS_PER_SECOND: Nanos = 1_000_000_000;

impl<P: Packet> Sfq<P> {
    /// Empty, with a hash from this seed.
    pub fn new(handle: Handle, config: SfqConfig, now: Nanos, seed: u64) -> Sfq<P> {
        let mut rng = Rng::new(seed);
        Sfq {
            handle,
            config,
            perturbation: rng.next_u64(),
            rng,
            perturb_at: now.saturating_add(period(config)),
            flows: VecDeque::new(),
            changes: 0,
            stats: Stats::default(),
        }
    }

    /// Returns the configuration.
    pub fn config(&self) -> SfqConfig {
        self.config
    }

    /// Changes the configuration. Packets that no longer fit are dropped from the longest flow. The
    /// divisor stays, as in Linux.
    pub fn set_config(&mut self, now: Nanos, config: SfqConfig, dropped: &mut Vec<Dropped<P>>) {
        self.config = SfqConfig { divisor: self.config.divisor, ..config };
        self.perturb_at = now.saturating_add(period(config));
        while self.stats.qlen > self.config.limit {
            if self.drop_from_longest(dropped).is_none() {
                return;
            }
        }
    }

    fn classify(&self, skb: &Skb<P>) -> u32 {
        let class = Handle::from(skb.packet.priority());
        let named = u32::from(class.minor());
        if class.major() == self.handle.major()
            && class.major() != 0
            && (1..=self.config.divisor).contains(&named)
        {
            return named - 1;
        }
        (mix(u64::from(skb.packet.flow_hash()) ^ self.perturbation) >> 32) as u32
            & self.config.divisor.saturating_sub(1)
    }

    /// Lets the hash change; the packets that wait are sorted anew.
    fn perturb(&mut self, now: Nanos, dropped: &mut Vec<Dropped<P>>) {
        let period = period(self.config);
        if period == Nanos::MAX || now < self.perturb_at {
            return;
        }
        let passed = (now - self.perturb_at) / period + 1;
        self.perturb_at = self.perturb_at.saturating_add(period.saturating_mul(passed));
        self.perturbation = self.rng.next_u64();
        let old = core::mem::take(&mut self.flows);
        self.stats.emptied();
        for mut flow in old {
            while let Some(skb) = flow.queue.pop() {
                self.put(skb, dropped);
            }
        }
    }

    fn put(&mut self, skb: Skb<P>, dropped: &mut Vec<Dropped<P>>) -> Verdict {
        let hash = self.classify(&skb);
        self.changes += 1;
        let changed = self.changes;
        let Some(flow) = self.flows.iter_mut().find(|flow| flow.hash == hash) else {
            if self.flows.len() >= self.config.flows.min(MAX_FLOWS) as usize {
                return self.stats.drop(skb, DropReason::QueueFull, dropped);
            }
            let mut queue = Queue::new();
            self.stats.entered(&skb);
            queue.push(skb);
            self.flows.push_back(Flow { hash, queue, allot: self.config.quantum.into(), changed });
            return Verdict::Queued;
        };
        let mut verdict = Verdict::Queued;
        if flow.queue.len() >= self.config.depth as usize {
            let oldest = if self.config.headdrop { flow.queue.pop() } else { None };
            let Some(oldest) = oldest else {
                return self.stats.drop(skb, DropReason::FlowLimit, dropped);
            };
            self.stats.removed(&oldest);
            self.stats.drop(oldest, DropReason::FlowLimit, dropped);
            verdict = Verdict::Congestion;
        } else {
            flow.changed = changed;
        }
        self.stats.entered(&skb);
        flow.queue.push(skb);
        verdict
    }

    /// Makes room at the cost of the longest flow; which was it? (`sfq_drop`.)
    fn drop_from_longest(&mut self, dropped: &mut Vec<Dropped<P>>) -> Option<u32> {
        let longest = self.flows.iter().map(|flow| flow.queue.len()).max()?;
        // If all have one packet, the flow whose turn is next pays.
        let place = match longest {
            0 | 1 => 0,
            _ => {
                let same = self.flows.iter().enumerate().filter(|(_, flow)| flow.queue.len() == longest);
                same.max_by_key(|(_, flow)| flow.changed)?.0
            }
        };
        self.changes += 1;
        let flow = self.flows.get_mut(place)?;
        flow.changed = self.changes;
        let skb = if self.config.headdrop { flow.queue.pop() } else { flow.queue.pop_back() }?;
        let hash = flow.hash;
        if flow.queue.is_empty() {
            self.flows.remove(place);
        }
        self.stats.removed(&skb);
        self.stats.drop(skb, DropReason::QueueFull, dropped);
        Some(hash)
    }
}

fn period(config: SfqConfig) -> Nanos {
    if config.perturb == 0 { Nanos::MAX } else { Nanos::from(config.perturb) * NANOS_PER_SECOND }
}

impl<P: Packet> Qdisc<P> for Sfq<P> {
    fn enqueue(&mut self, now: Nanos, skb: Skb<P>, dropped: &mut Vec<Dropped<P>>) -> Verdict {
        self.perturb(now, dropped);
        let hash = self.classify(&skb);
        let verdict = self.put(skb, dropped);
        if self.stats.qlen <= self.config.limit {
            return verdict;
        }
        match self.drop_from_longest(dropped) {
            Some(paid) if paid == hash => Verdict::Congestion,
            _ => verdict,
        }
    }

    fn dequeue(&mut self, now: Nanos, dropped: &mut Vec<Dropped<P>>) -> Dequeue<P> {
        self.perturb(now, dropped);
        loop {
            let Some(flow) = self.flows.front_mut() else { return Dequeue::Empty };
            if flow.allot <= 0 {
                flow.allot += i64::from(self.config.quantum.max(1));
                self.flows.rotate_left(1);
                continue;
            }
            self.changes += 1;
            flow.changed = self.changes;
            let next = flow.queue.pop();
            if flow.queue.is_empty() {
                self.flows.pop_front();
            } else if let Some(skb) = &next {
                flow.allot -= i64::from(skb.len);
            }
            let Some(skb) = next else { continue };
            self.stats.left(&skb);
            return Dequeue::Packet(skb);
        }
    }

    fn reset(&mut self, dropped: &mut Vec<Dropped<P>>) {
        self.flows.drain(..).for_each(|mut flow| flow.queue.purge(dropped));
        self.stats.emptied();
    }

    fn stats(&self) -> Stats {
        self.stats
    }
}
