//! fq: flows take turns, and no packet leaves before its time (Linux's `sch_fq.c`). Pacing follows
//! an earliest departure time, or a maximum rate per flow.
//!
//! Three bands by priority share by weights, as since Linux 6.7. Left out are the rate requested by
//! a socket (the packet's departure time has it) and the splitting of flows by `orphan_mask` (a
//! packet names its flow).
mod bands;
mod flow;

use crate::{Dequeue, DropReason, Dropped, Nanos, Packet, Qdisc, Skb, Stats, Verdict};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use bands::Bands;
use flow::Flow;

/// Options of an fq.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FqConfig {
    /// Packets of one band that may wait.
    pub limit: usize,
    /// Packets of one flow that may wait.
    pub flow_limit: usize,
    /// Hash buckets of flows; flows never collide, here as there.
    pub buckets: u32,
    /// Bytes that a flow sends in one turn.
    pub quantum: u32,
    /// Bytes that a new flow sends in its first turn.
    pub initial_quantum: u32,
    /// The greatest rate of a flow, bytes per second; `None`: no limit.
    pub maxrate: Option<u64>,
    /// At or below this rate, bytes per second, a flow is given no credit for a burst.
    pub low_rate_threshold: u64,
    /// After a pause of so long a flow's credit is filled up.
    pub refill_delay: Nanos,
    /// True if pacing is on.
    pub pacing: bool,
    /// Allowed lateness of timers.
    pub timer_slack: Nanos,
    /// Packets that may leave only later than this are dropped, or made earlier.
    pub horizon: Nanos,
    /// True if packets beyond the horizon are dropped.
    pub horizon_drop: bool,
    /// Packets that leave later than they might by this are marked.
    pub ce_threshold: Option<Nanos>,
    /// Whatever is below this share of a socket's hash (shown only).
    pub orphan_mask: u32,
}

impl FqConfig {
    /// Linux's defaults for a device with frames of up to `mtu` bytes.
    pub fn new(mtu: u32) -> FqConfig {
        FqConfig {
            limit: 10_000,
            flow_limit: 100,
            buckets: 1024,
            quantum: mtu.saturating_mul(2),
            initial_quantum: mtu.saturating_mul(10),
            maxrate: None,
            low_rate_threshold: 550_000 / 8,
            refill_delay: 40_000_000,
            pacing: true,
            timer_slack: 10_000,
            horizon: 10_000_000_000,
            horizon_drop: true,
            ce_threshold: None,
            orphan_mask: 1023,
        }
    }
}

/// Additional counters (`struct tc_fq_qd_stats`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct FqXstats {
    /// Flows that were forgotten because nothing came for long.
    pub gc_flows: u64,
    /// Packets of the highest priority, which go past all flows.
    pub highprio_packets: u64,
    /// Number of times that a flow had to wait for its time.
    pub throttled: u64,
    /// Packets rejected because their flow had too many.
    pub flows_plimit: u64,
    /// Gaps between packets that were cut to a second.
    pub pkts_too_long: u64,
    /// Packets marked because they were late.
    pub ce_mark: u64,
    /// Packets dropped because of the horizon.
    pub horizon_drops: u64,
    /// Packets made earlier because of the horizon.
    pub horizon_caps: u64,
    /// Flows known.
    pub flows: u32,
    /// Flows without packets.
    pub inactive_flows: u32,
    /// Flows that wait for their time.
    pub throttled_flows: u32,
    /// When the first of those may go.
    pub time_next_delayed_flow: Option<Nanos>,
}

/// A flow without packets is forgotten after this (`FQ_GC_AGE`).
const GC_AGE: Nanos = 3_000_000_000;
const NANOS_PER_SECOND: Nanos = 1_000_000_000;
/// Packets of this priority go past all flows (`TC_PRIO_CONTROL`).
const PRIO_CONTROL: u32 = 7;

/// Flows in turns, paced.
#[derive(Clone, Debug)]
pub struct Fq<P> {
    config: FqConfig,
    flows: BTreeMap<u32, Flow<P>>,
    /// Packets of the highest priority.
    internal: Flow<P>,
    bands: Bands,
    /// Flows that wait for their time.
    throttled: BTreeSet<(Nanos, u32)>,
    xstats: FqXstats,
    stats: Stats,
}

impl<P: Packet> Fq<P> {
    /// Without flows.
    pub fn new(config: FqConfig) -> Fq<P> {
        Fq {
            config,
            flows: BTreeMap::new(),
            internal: Flow::new(0, 0),
            bands: Bands::default(),
            throttled: BTreeSet::new(),
            xstats: FqXstats::default(),
            stats: Stats::default(),
        }
    }

    /// Returns the configuration.
    pub fn config(&self) -> FqConfig {
        self.config
    }

    /// Changes the configuration. Packets that no longer fit are dropped in sending order.
    pub fn set_config(&mut self, now: Nanos, config: FqConfig, dropped: &mut Vec<Dropped<P>>) {
        self.config = config;
        while self.stats.qlen > self.config.limit {
            let Dequeue::Packet(skb) = self.dequeue(now, dropped) else { return };
            self.stats.packets -= 1;
            self.stats.bytes -= u64::from(skb.len);
            self.stats.drop(skb, DropReason::QueueFull, dropped);
        }
    }

    /// Returns the additional counters.
    pub fn xstats(&self) -> FqXstats {
        FqXstats {
            flows: self.flows.len() as u32,
            inactive_flows: self.flows.values().filter(|flow| flow.is_empty()).count() as u32,
            throttled_flows: self.throttled.len() as u32,
            time_next_delayed_flow: self.throttled.first().map(|(at, _)| *at),
            ..self.xstats
        }
    }

    /// Forgets old flows once there are more than two a bucket (`fq_gc`).
    fn collect_garbage(&mut self, now: Nanos) {
        if self.flows.len() < self.config.buckets as usize * 2 {
            return;
        }
        let before = self.flows.len();
        self.flows.retain(|_, flow| !flow.is_forgotten(now, GC_AGE));
        self.xstats.gc_flows += (before - self.flows.len()) as u64;
    }

    /// Flows whose time has come take turns again.
    fn check_throttled(&mut self, now: Nanos) {
        while let Some((_, number)) = self.throttled.pop_first_if(|(at, _)| *at <= now) {
            if let Some(flow) = self.flows.get_mut(&number) {
                flow.throttled = false;
                self.bands.add_old(flow.band, number);
            }
        }
    }

    /// When a flow may send again after a packet that counts as `plen`.
    fn pace(flow: &mut Flow<P>, config: &FqConfig, now: Nanos, plen: u32, timed: bool, too_long: &mut u64) {
        let Some(rate) = config.maxrate.filter(|_| config.pacing) else { return };
        let mut plen = plen;
        if !timed {
            if rate <= config.low_rate_threshold {
                flow.credit = 0;
            } else {
                plen = plen.max(config.quantum);
                if flow.credit > 0 {
                    return;
                }
            }
        }
        let mut gap = u128::from(plen) * u128::from(NANOS_PER_SECOND) / u128::from(rate.max(1));
        if gap > NANOS_PER_SECOND.into() {
            gap = NANOS_PER_SECOND.into();
            *too_long += 1;
        }
        let mut gap = gap as Nanos;
        // A packet that left late is not made up for by more than half a gap.
        if flow.time_next_packet > 0 {
            gap -= (gap / 2).min(now.saturating_sub(flow.time_next_packet));
        }
        flow.time_next_packet = now.saturating_add(gap);
    }
}

/// `BTreeSet::pop_first` under a condition.
trait PopFirstIf<T> {
    fn pop_first_if(&mut self, condition: impl FnOnce(&T) -> bool) -> Option<T>;
}

impl<T: Ord> PopFirstIf<T> for BTreeSet<T> {
    fn pop_first_if(&mut self, condition: impl FnOnce(&T) -> bool) -> Option<T> {
        if condition(self.first()?) { self.pop_first() } else { None }
    }
}

impl<P: Packet> Qdisc<P> for Fq<P> {
    fn enqueue(&mut self, now: Nanos, mut skb: Skb<P>, dropped: &mut Vec<Dropped<P>>) -> Verdict {
        let band = Bands::of_priority(skb.packet.priority());
        if self.bands.packets(band) >= self.config.limit {
            return self.stats.drop(skb, DropReason::QueueFull, dropped);
        }
        skb.time = match skb.packet.departs_at() {
            Some(at) if at > now.saturating_add(self.config.horizon) => {
                if self.config.horizon_drop {
                    self.xstats.horizon_drops += 1;
                    return self.stats.drop(skb, DropReason::Horizon, dropped);
                }
                self.xstats.horizon_caps += 1;
                now.saturating_add(self.config.horizon)
            }
            Some(at) => at,
            None => now,
        };
        if skb.packet.priority() & 15 == PRIO_CONTROL {
            self.xstats.highprio_packets += 1;
            self.stats.entered(&skb);
            self.internal.push(skb);
            return Verdict::Queued;
        }
        let number = skb.packet.flow_hash();
        self.collect_garbage(now);
        let config = &self.config;
        let flow = self.flows.entry(number).or_insert_with(|| Flow::new(config.initial_quantum.into(), now));
        if flow.len() >= config.flow_limit {
            self.xstats.flows_plimit += 1;
            return self.stats.drop(skb, DropReason::FlowLimit, dropped);
        }
        if flow.is_detached() {
            flow.listed = true;
            if now > flow.age.saturating_add(config.refill_delay) {
                flow.credit = flow.credit.max(config.quantum.into());
            }
            self.bands.add_new(band, number);
        }
        flow.band = band;
        self.bands.count(band, 1);
        self.stats.entered(&skb);
        flow.push(skb);
        Verdict::Queued
    }

    fn dequeue(&mut self, now: Nanos, _: &mut Vec<Dropped<P>>) -> Dequeue<P> {
        if let Some(skb) = self.internal.pop() {
            self.stats.left(&skb);
            return Dequeue::Packet(skb);
        }
        self.check_throttled(now);
        while let Some((number, new)) = self.bands.next() {
            let Some(flow) = self.flows.get_mut(&number) else {
                self.bands.remove_head(new);
                continue;
            };
            if flow.credit <= 0 {
                flow.credit += i64::from(self.config.quantum.max(1));
                self.bands.remove_head(new);
                self.bands.add_old(flow.band, number);
                continue;
            }
            let Some(due) = flow.next_due() else {
                self.bands.remove_head(new);
                // A new flow passes through the old ones, so that they are not starved.
                if new {
                    self.bands.add_old(flow.band, number);
                } else {
                    flow.listed = false;
                    flow.age = now;
                }
                continue;
            };
            let due = due.max(flow.time_next_packet);
            if self.config.pacing && due > now {
                flow.time_next_packet = due;
                flow.throttled = true;
                self.bands.remove_head(new);
                self.throttled.insert((due, number));
                self.xstats.throttled += 1;
                continue;
            }
            let band = flow.band;
            let Some(mut skb) = flow.pop() else { continue };
            self.bands.count(band, -1);
            self.stats.left(&skb);
            let late = now.saturating_sub(due);
            if self.config.ce_threshold.is_some_and(|threshold| late > threshold) && skb.set_ce() {
                self.xstats.ce_mark += 1;
            }
            flow.credit -= i64::from(skb.len);
            self.bands.spend(skb.len);
            let timed = skb.packet.departs_at().is_some();
            Self::pace(flow, &self.config, now, skb.len, timed, &mut self.xstats.pkts_too_long);
            return Dequeue::Packet(skb);
        }
        match self.throttled.first() {
            Some((at, _)) => Dequeue::Throttled(*at),
            None => Dequeue::Empty,
        }
    }

    fn reset(&mut self, dropped: &mut Vec<Dropped<P>>) {
        self.internal.purge(dropped);
        core::mem::take(&mut self.flows).values_mut().for_each(|flow| flow.purge(dropped));
        self.bands = Bands::default();
        self.throttled.clear();
        self.stats.emptied();
    }

    fn stats(&self) -> Stats {
        self.stats
    }
}
