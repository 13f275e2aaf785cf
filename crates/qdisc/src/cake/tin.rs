//! A tin: its flows, whose turn it is, its clock and its counters (Linux's `struct cake_tin_data`).
use super::cobalt::CobaltParams;
use super::diffserv::Share;
use super::flow::{Flow, Standing};
use super::hash::{QUEUES, Table};
use super::rounds::Rounds;
use super::shaper::{ByteTime, TinClock};
use super::xstats::CakeTinXstats;
use super::{CakeConfig, CakeIsolation};
use crate::{Nanos, Rng};
use alloc::vec::Vec;

/// A tin's counters that only rise, and their averages.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counters {
    pub(super) packets: u64,
    pub(super) bytes: u64,
    pub(super) drops: u32,
    pub(super) ecn_marks: u32,
    pub(super) ack_drops: u32,
    pub(super) max_len: u32,
    peak_delay: Nanos,
    average_delay: Nanos,
    base_delay: Nanos,
}

/// One class of traffic.
#[derive(Clone, Debug)]
pub(super) struct Tin<P> {
    pub(super) flows: Vec<Flow<P>>,
    pub(super) table: Table,
    pub(super) clock: TinClock,
    pub(super) params: CobaltParams,
    pub(super) counters: Counters,
    /// Bytes that wait.
    pub(super) backlog: u64,
    /// Its weight while there is no shaper, and what is left of it.
    pub(super) quantum: i64,
    pub(super) deficit: i64,
    flow_quantum: u16,
    threshold: u64,
    pub(super) rounds: Rounds,
    pub(super) unresponsive_flows: u32,
}

/// A quantum without a shaper, and at most, bytes.
const QUANTUM_MAX: u64 = 1514;
const QUANTUM_MIN: u64 = 300;
/// A quantum takes so many parts of a second: 2^12.
const QUANTUM_SHIFT: u32 = 12;

impl<P> Tin<P> {
    pub(super) fn new(perturbation: u64) -> Tin<P> {
        Tin {
            flows: (0..QUEUES).map(|_| Flow::new()).collect(),
            table: Table::new(perturbation),
            clock: TinClock::default(),
            params: CobaltParams::default(),
            counters: Counters::default(),
            backlog: 0,
            quantum: 0,
            deficit: 0,
            flow_quantum: 0,
            threshold: 0,
            rounds: Rounds::new(),
            unresponsive_flows: 0,
        }
    }

    /// Gives it its share (`cake_set_rate`). At low rates a frame alone takes longer than the target, which is raised to one and a
    /// half of them, and the interval with it.
    pub(super) fn set_share(&mut self, share: Share, config: &CakeConfig, mtu: u32) {
        let byte_time = ByteTime::of_rate(share.rate);
        let mtu_time = byte_time.of(mtu);
        let quantum = match share.rate {
            0 => QUANTUM_MAX,
            rate => (rate >> QUANTUM_SHIFT).clamp(QUANTUM_MIN, QUANTUM_MAX),
        };
        self.flow_quantum = quantum as u16;
        self.quantum = share.quantum.into();
        self.threshold = share.rate;
        self.clock.byte_time = byte_time;
        let target = (mtu_time.saturating_mul(3) / 2).max(config.target);
        let interval = config.interval.saturating_add(target - config.target);
        self.params = CobaltParams { target, interval: interval.max(target.saturating_mul(2)), mtu_time };
    }

    /// A packet came to a queue: a flow that was empty takes its place in the rounds.
    pub(super) fn join(&mut self, queue: u16, isolation: CakeIsolation, rng: &mut Rng) {
        let Some(flow) = self.flows.get_mut(usize::from(queue)) else { return };
        let before = flow.standing;
        match before {
            Standing::None | Standing::Decaying => {
                self.rounds.begin(queue, before);
                flow.standing = Standing::Sparse;
                flow.deficit = quantum(self.flow_quantum, self.table.load(flow, isolation), rng);
            }
            Standing::SparseWait => {
                flow.standing = Standing::Bulk;
                self.table.add_bulk(flow, isolation);
            }
            Standing::Sparse | Standing::Bulk => return,
        }
        self.rounds.recount(before, flow.standing);
    }

    /// Is anything left of what a flow may send in this turn?
    pub(super) fn may_send(&self, queue: u16) -> bool {
        self.flows.get(usize::from(queue)).is_some_and(|flow| flow.deficit > 0)
    }

    /// A flow has used up its turn and goes to the end of the old ones, with a new quantum.
    pub(super) fn end_turn(&mut self, queue: u16, isolation: CakeIsolation, rng: &mut Rng) {
        let Some(flow) = self.flows.get_mut(usize::from(queue)) else { return };
        if flow.standing == Standing::Sparse {
            flow.standing = if flow.queue.is_empty() { Standing::SparseWait } else { Standing::Bulk };
            self.rounds.recount(Standing::Sparse, flow.standing);
            if flow.standing == Standing::Bulk {
                self.table.add_bulk(flow, isolation);
            }
        }
        flow.deficit += quantum(self.flow_quantum, self.table.load(flow, isolation), rng);
        self.rounds.requeue(queue);
    }

    /// A flow that may send more in this turn stays the first.
    pub(super) fn keep_turn(&mut self, queue: u16) {
        let standing = self.flows.get(usize::from(queue)).map(|flow| flow.standing);
        self.rounds.keep(queue, standing.unwrap_or_default());
    }

    /// It was a flow's turn, and nothing was there: it is forgotten, or remembered until COBALT has come to rest.
    pub(super) fn run_dry(&mut self, now: Nanos, queue: u16, isolation: CakeIsolation) {
        let Some(flow) = self.flows.get_mut(usize::from(queue)) else { return };
        if flow.cobalt.queue_is_empty(now, &self.params) {
            self.unresponsive_flows = self.unresponsive_flows.saturating_sub(1);
        }
        let before = flow.standing;
        if before == Standing::Bulk {
            self.table.remove_bulk(flow, isolation);
        }
        if flow.cobalt.is_at_rest(now) {
            flow.standing = Standing::None;
        } else {
            flow.standing = Standing::Decaying;
            self.rounds.decay(queue);
        }
        self.rounds.recount(before, flow.standing);
    }

    /// A packet leaves that has waited so long.
    pub(super) fn note_delay(&mut self, delay: Nanos) {
        let Counters { peak_delay, average_delay, base_delay, .. } = &mut self.counters;
        *average_delay = moved(*average_delay, delay, SLOWLY);
        *peak_delay = moved(*peak_delay, delay, if delay > *peak_delay { FAST } else { SLOWLY });
        *base_delay = moved(*base_delay, delay, if delay < *base_delay { FAST } else { SLOWLY });
    }

    pub(super) fn xstats(&self) -> CakeTinXstats {
        let ways = self.table.counters();
        let Counters { packets, bytes, drops, ecn_marks, ack_drops, max_len, .. } = self.counters;
        CakeTinXstats {
            threshold: self.threshold,
            target: self.params.target,
            interval: self.params.interval,
            peak_delay: self.counters.peak_delay,
            average_delay: self.counters.average_delay,
            base_delay: self.counters.base_delay,
            backlog: self.backlog,
            packets,
            bytes,
            way_indirect_hits: ways.hits,
            way_misses: ways.misses,
            way_collisions: ways.collisions,
            drops,
            ecn_marks,
            ack_drops,
            sparse_flows: self.rounds.sparse_flows() + self.rounds.decaying_flows(),
            bulk_flows: self.rounds.bulk_flows(),
            unresponsive_flows: self.unresponsive_flows,
            max_len,
            quantum: self.flow_quantum,
        }
    }
}

/// What a flow may send in a turn: its part of the quantum, to which its host's other flows have the same right
/// (`cake_get_flow_quantum`). Random bits make the fractions of a byte even out.
fn quantum(whole: u16, load: u16, rng: &mut Rng) -> i64 {
    let part = u64::from(u16::MAX / load.max(1));
    let dither = u64::from(rng.next_u32() >> 16);
    ((u64::from(whole) * part + dither) >> 16) as i64
}

/// A new value counts for 1/4, or for 1/256.
const FAST: u32 = 2;
const SLOWLY: u32 = 8;

/// A moving average (`cake_ewma`).
fn moved(average: Nanos, sample: Nanos, shift: u32) -> Nanos {
    average - (average >> shift) + (sample >> shift)
}
