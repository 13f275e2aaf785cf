//! netem: delay, loss, duplication, corruption, reordering, rate and slots (Linux's `sch_netem.c`).
//!
//! There is one difference: a copy enters this discipline again, while in Linux it enters the top
//! of the tree.
mod config;
mod distribution;
mod loss;

use alloc::boxed::Box;
use alloc::vec::Vec;
pub use config::{NetemConfig, NetemRate, NetemSlot, SlotDelay};
pub use distribution::Distribution;
pub use loss::{Correlated, FourStates, NetemLoss};

use crate::node::{Node, through};
use crate::{Dequeue, DropReason, Dropped, Nanos, Packet, Probability, Qdisc, Rng, Skb, Stats, Verdict};
use alloc::collections::{BTreeMap, VecDeque};
use distribution::Table;
use loss::{Chance, LossModel};

/// Packets on their way, by the moment at which they are due.
#[derive(Clone, Debug)]
pub struct Netem<P> {
    config: NetemConfig,
    rng: Rng,
    loss: LossModel,
    delay: Chance,
    duplicate: Chance,
    corrupt: Chance,
    reorder: Chance,
    delay_table: Option<Table>,
    slot_table: Option<Table>,
    slot: Option<Slot>,
    /// Packets since the last that was reordered.
    counter: u64,
    /// Those that go at once.
    ahead: VecDeque<Skb<P>>,
    /// The others by due time; of the same the first to come goes first.
    due: BTreeMap<(Nanos, u64), Skb<P>>,
    sequence: u64,
    child: Option<Box<Node<P>>>,
    stats: Stats,
}

/// The present slot: nothing leaves before it begins, nor more than it has left.
#[derive(Clone, Copy, Debug)]
struct Slot {
    begins_at: Nanos,
    packets_left: u64,
    bytes_left: u64,
}

impl<P: Packet> Netem<P> {
    /// An empty network with this seed.
    pub fn new(config: NetemConfig, now: Nanos, seed: u64) -> Netem<P> {
        let mut netem = Netem {
            rng: Rng::new(seed),
            loss: LossModel::default(),
            delay: Chance::default(),
            duplicate: Chance::default(),
            corrupt: Chance::default(),
            reorder: Chance::default(),
            delay_table: None,
            slot_table: None,
            slot: None,
            counter: 0,
            ahead: VecDeque::new(),
            due: BTreeMap::new(),
            sequence: 0,
            child: None,
            stats: Stats::default(),
            config: config.clone(),
        };
        netem.set_config(config, now);
        netem
    }

    /// Returns the configuration.
    pub fn config(&self) -> &NetemConfig {
        &self.config
    }

    /// Changes it for the packets that come from now on.
    pub fn set_config(&mut self, config: NetemConfig, now: Nanos) {
        let rng = &mut self.rng;
        self.delay = Chance::new(Probability::ZERO, config.delay_correlation, rng);
        self.duplicate = Chance::of(config.duplicate, rng);
        self.corrupt = Chance::of(config.corrupt, rng);
        self.reorder = Chance::of(config.reorder, rng);
        self.loss = LossModel::new(config.loss, rng);
        self.delay_table = Table::new(config.distribution);
        self.slot_table = match config.slot.map(|slot| slot.delay) {
            Some(SlotDelay::Drawn { distribution, .. }) => Table::new(distribution),
            _ => None,
        };
        self.slot = config.slot.map(|slot| Slot {
            begins_at: now,
            packets_left: slot.packets(),
            bytes_left: slot.bytes(),
        });
        self.config = config;
    }

    pub(crate) fn child(&self) -> Option<&Node<P>> {
        self.child.as_deref()
    }

    pub(crate) fn child_mut(&mut self) -> Option<&mut Node<P>> {
        self.child.as_deref_mut()
    }

    pub(crate) fn stats_mut(&mut self) -> &mut Stats {
        &mut self.stats
    }

    /// Puts a discipline behind the delay, or none; what waited in the old one is dropped.
    pub(crate) fn graft(&mut self, new: Option<Node<P>>, dropped: &mut Vec<Dropped<P>>) {
        if let Some(old) = &mut self.child {
            through(&mut self.stats, old, dropped, |old, dropped| old.reset(dropped));
        }
        self.child = new.map(Box::new);
    }

    /// One packet: lost, corrupted, on its way.
    fn admit(&mut self, now: Nanos, mut skb: Skb<P>, copy: bool, dropped: &mut Vec<Dropped<P>>) -> Verdict {
        // Drawn in Linux's order, so that switching one impairment on changes only what comes after it.
        let doubled = copy && self.duplicate.occurs(&mut self.rng);
        let mut verdict = Verdict::Queued;
        let mut lost = self.loss.is_lost(&mut self.rng);
        if lost && self.config.ecn && skb.set_ce() {
            // Linux counts the mark as a drop, which it is not.
            self.stats.overlimits += 1;
            verdict = Verdict::Marked;
            lost = false;
        }
        if lost && !doubled {
            return self.stats.drop(skb, DropReason::Loss, dropped);
        }
        // Of a packet that is lost and doubled one is left.
        let copy = (doubled && !lost).then(|| skb.clone());
        if self.corrupt.occurs(&mut self.rng) {
            let bits = skb.wire_len() as u64 * 8;
            let bit = self.rng.below(bits);
            if bits > 0 {
                skb.packet.flip_bit(bit);
            }
        }
        if self.ahead.len() + self.due.len() >= self.config.limit {
            if let Some(copy) = copy {
                self.stats.drop(copy, DropReason::QueueFull, dropped);
            }
            return self.stats.drop(skb, DropReason::QueueFull, dropped);
        }
        if let Some(copy) = copy {
            self.admit(now, copy, false, dropped);
        }
        self.stats.entered(&skb);
        let gap = self.config.gap;
        let in_turn = gap == 0 || self.counter < gap - 1 || !self.reorder.occurs(&mut self.rng);
        if in_turn {
            self.counter += 1;
            self.sequence += 1;
            skb.time = self.due_at(now, skb.len);
            self.due.insert((skb.time, self.sequence), skb);
        } else {
            self.counter = 0;
            self.stats.requeues += 1;
            skb.time = now;
            self.ahead.push_front(skb);
        }
        verdict
    }

    /// When a packet arrives: with a rate it is sent after the last one, and its delay counts from when it came.
    fn due_at(&mut self, now: Nanos, len: u32) -> Nanos {
        let random = self.delay.draw(&mut self.rng);
        let delay =
            distribution::spread(self.config.latency, self.config.jitter, random, self.delay_table.as_ref());
        let Some(rate) = self.config.rate else { return now.saturating_add_signed(delay) };
        let last_due = self.due.last_key_value().map(|((at, _), _)| *at);
        let last = last_due.max(self.ahead.back().map(|skb| skb.time));
        let (start, delay) = match last {
            // The wait for the packets before is part of the delay.
            Some(last) => (last, delay.saturating_add_unsigned(now).saturating_sub_unsigned(last).max(0)),
            None => (now, delay),
        };
        start.saturating_add_signed(delay.saturating_add_unsigned(rate.nanos(len)))
    }

    fn next_slot(&mut self, now: Nanos) {
        let Some(slot) = self.config.slot else { return };
        let delay = match slot.delay {
            SlotDelay::Between(min, max) => {
                let span = max.saturating_sub(min);
                i64::try_from(min.saturating_add(self.rng.below(span))).unwrap_or(i64::MAX)
            }
            SlotDelay::Drawn { delay, jitter, .. } => {
                distribution::spread(delay, jitter, self.rng.next_u32(), self.slot_table.as_ref())
            }
        };
        self.slot = Some(Slot {
            begins_at: now.saturating_add_signed(delay),
            packets_left: slot.packets(),
            bytes_left: slot.bytes(),
        });
    }

    /// The next packet that has arrived by now, if the slot lets it through; else when to look again.
    fn arrived(&mut self, now: Nanos) -> Result<Skb<P>, Option<Nanos>> {
        if let Some(skb) = self.ahead.pop_front() {
            return Ok(skb);
        }
        let Some(((at, _), _)) = self.due.first_key_value() else { return Err(None) };
        let at = *at;
        if self.slot.is_some_and(|slot| slot.begins_at < at) {
            self.next_slot(now);
        }
        let open_at = self.slot.map_or(at, |slot| slot.begins_at.max(at));
        if open_at > now {
            return Err(Some(open_at));
        }
        let Some((_, skb)) = self.due.pop_first() else { return Err(None) };
        if let Some(slot) = &mut self.slot {
            slot.packets_left = slot.packets_left.saturating_sub(1);
            slot.bytes_left = slot.bytes_left.saturating_sub(skb.len.into());
            if slot.packets_left == 0 || slot.bytes_left == 0 {
                self.next_slot(now);
            }
        }
        Ok(skb)
    }
}

impl<P: Packet> Qdisc<P> for Netem<P> {
    fn enqueue(&mut self, now: Nanos, skb: Skb<P>, dropped: &mut Vec<Dropped<P>>) -> Verdict {
        self.admit(now, skb, true, dropped)
    }

    fn dequeue(&mut self, now: Nanos, dropped: &mut Vec<Dropped<P>>) -> Dequeue<P> {
        loop {
            let wait = match self.arrived(now) {
                Ok(skb) => {
                    let Some(child) = &mut self.child else {
                        self.stats.left(&skb);
                        return Dequeue::Packet(skb);
                    };
                    self.stats.removed(&skb);
                    through(&mut self.stats, child, dropped, |child, dropped| {
                        child.enqueue(now, skb, dropped)
                    });
                    continue;
                }
                Err(wait) => wait,
            };
            let below = match &mut self.child {
                Some(child) => {
                    through(&mut self.stats, child, dropped, |child, dropped| child.dequeue(now, dropped))
                }
                None => Dequeue::Empty,
            };
            return match (below, wait) {
                (Dequeue::Packet(skb), _) => {
                    self.stats.sent(&skb);
                    Dequeue::Packet(skb)
                }
                (Dequeue::Throttled(a), Some(b)) => Dequeue::Throttled(a.min(b)),
                (Dequeue::Throttled(at), None) | (Dequeue::Empty, Some(at)) => Dequeue::Throttled(at),
                (Dequeue::Empty, None) => Dequeue::Empty,
            };
        }
    }

    fn reset(&mut self, dropped: &mut Vec<Dropped<P>>) {
        let due = core::mem::take(&mut self.due).into_values();
        let purged = |skb| Dropped { skb, reason: DropReason::Purged };
        dropped.extend(self.ahead.drain(..).chain(due).map(purged));
        if let Some(child) = &mut self.child {
            child.reset(dropped);
        }
        self.stats.emptied();
    }

    fn stats(&self) -> Stats {
        self.stats
    }
}
