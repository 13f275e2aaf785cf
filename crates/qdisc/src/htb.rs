//! htb: a hierarchy of token buckets that lend to each other (Linux's `sch_htb.c`).
//!
//! A class may send at its `rate`, and up to its `ceil` by borrowing from its parent. Leaves that
//! may send are in rows, one per level and priority. Level 0 contains leaves that send with their
//! own tokens. The rows above contain inner classes that lend to the leaves in their `feed`. The
//! lowest row goes first, and in it the lowest priority number. In a row, leaves take turns by
//! deficit round robin.
//!
//! - [`Htb`]: adds, changes and removes classes; classifies, queues and chooses packets.
//! - `class`: one class, its buckets and its mode.
//! - `listing`: the order in which Linux shows classes.
//! - `tree`: rows and feeds, and the search from a row to the next leaf.

mod class;
mod listing;
mod tree;

use alloc::vec::Vec;
pub use class::HtbClassConfig;
pub(crate) use class::{Class, Mode};

use crate::node::{Node, through};
use crate::queue::Queue;
use crate::{Dequeue, DropReason, Dropped, Handle, Nanos, Packet, Qdisc, Skb, Stats, Verdict};
use alloc::collections::{BTreeMap, BTreeSet};
use listing::Listing;
use tree::{Ring, Row};

/// Levels (`TC_HTB_MAXDEPTH`) and priorities (`TC_HTB_NUMPRIO`).
pub(crate) const MAXDEPTH: usize = 8;
pub(crate) const NUMPRIO: usize = 8;
const NANOS_PER_SECOND: Nanos = 1_000_000_000;

/// Options of an htb.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HtbConfig {
    /// Minor number of the class for packets that no other class claims. With 0 they bypass all
    /// classes.
    pub default_class: u32,
    /// A class's quantum is its rate in bytes per second divided by this.
    pub rate2quantum: u32,
    /// Limit of packets that bypass all classes.
    pub direct_qlen: usize,
}

/// Why a class could not be added, changed or removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HtbError {
    /// The number does not belong to this htb, is missing, or is in use; or a rate is 0.
    Invalid,
    /// Below the lowest level.
    TooDeep,
    /// There is no such class.
    NoClass,
    /// It has children.
    InUse,
}

/// The hierarchy.
#[derive(Clone, Debug)]
pub struct Htb<P> {
    handle: Handle,
    config: HtbConfig,
    /// Removed classes leave a hole, so that numbers stay.
    classes: Vec<Option<Class<P>>>,
    by_id: BTreeMap<u32, usize>,
    listing: Listing,
    filters: BTreeMap<u32, Handle>,
    direct: Queue<P>,
    direct_pkts: u64,
    levels: [Level; MAXDEPTH],
    /// When the clock was last looked at.
    now: Nanos,
    stats: Stats,
}

/// The rows of a level, and the classes that wait for tokens.
#[derive(Clone, Debug, Default)]
struct Level {
    rows: [Row; NUMPRIO],
    /// The rows that are not empty, a bit each.
    row_mask: u8,
    waiting: BTreeSet<(Nanos, u64, usize)>,
    near_event: Nanos,
    /// Counts classes as they begin to wait: of two with the same moment the first goes first.
    order: u64,
}

impl<P: Packet> Htb<P> {
    /// Without classes: every packet goes past.
    pub fn new(handle: Handle, config: HtbConfig) -> Htb<P> {
        Htb {
            handle,
            config,
            classes: Vec::new(),
            by_id: BTreeMap::new(),
            listing: Listing::default(),
            filters: BTreeMap::new(),
            direct: Queue::new(),
            direct_pkts: 0,
            levels: core::array::from_fn(|_| Level::default()),
            now: 0,
            stats: Stats::default(),
        }
    }

    /// Returns the configuration.
    pub fn config(&self) -> HtbConfig {
        self.config
    }

    /// Changes the class for unclaimed packets. Linux's htb accepts no other change.
    pub fn set_default(&mut self, class: u32) {
        self.config.default_class = class;
    }

    /// Returns the number of packets that bypassed all classes.
    pub fn direct_packets(&self) -> u64 {
        self.direct_pkts
    }

    /// Sends packets with this mark to that class (`tc filter … handle MARK fw flowid CLASS`).
    pub fn add_filter(&mut self, mark: u32, class: Handle) {
        self.filters.insert(mark, class);
    }

    /// Adds a class under `parent`, or at the top without one. If the parent was a leaf, its queue
    /// is dropped.
    pub fn add_class(
        &mut self,
        now: Nanos,
        id: Handle,
        parent: Option<Handle>,
        config: HtbClassConfig,
        leaf_limit: usize,
        dropped: &mut Vec<Dropped<P>>,
    ) -> Result<(), HtbError> {
        let belongs = id.minor() != 0 && id.major() == self.handle.major();
        if !belongs || self.by_id.contains_key(&id.into()) || !config.is_valid() {
            return Err(HtbError::Invalid);
        }
        let parent = parent.and_then(|id| self.by_id.get(&id.into()).copied());
        if let Some(parent) = parent {
            self.make_inner(parent, dropped)?;
        }
        let class = Class::new(now, id, parent, config, Node::pfifo(id, leaf_limit));
        self.by_id.insert(id.into(), self.classes.len());
        self.classes.push(Some(class));
        self.listing.insert(id.into());
        Ok(())
    }

    /// Changes rates, bursts, priority and quantum of a class. Its tokens stay.
    pub fn change_class(&mut self, id: Handle, config: HtbClassConfig) -> Result<(), HtbError> {
        let number = self.by_id.get(&id.into()).copied().ok_or(HtbError::NoClass)?;
        if !config.is_valid() {
            return Err(HtbError::Invalid);
        }
        let Some(class) = self.class(number) else { return Err(HtbError::NoClass) };
        let active = class.is_leaf() && class.activity != 0;
        if active {
            self.deactivate(number);
        }
        if let Some(class) = self.class_mut(number) {
            class.set_config(config);
        }
        if active {
            self.activate(number);
        }
        Ok(())
    }

    /// Removes a class without children, and drops its queue. A parent without children becomes a
    /// leaf again.
    pub fn remove_class(
        &mut self,
        id: Handle,
        leaf_limit: usize,
        dropped: &mut Vec<Dropped<P>>,
    ) -> Result<(), HtbError> {
        let number = self.by_id.get(&id.into()).copied().ok_or(HtbError::NoClass)?;
        if self.classes.iter().flatten().any(|class| class.parent == Some(number)) {
            return Err(HtbError::InUse);
        }
        self.drop_backlog(number, dropped);
        self.forget_wait(number);
        self.by_id.remove(&id.into());
        self.listing.remove(id.into());
        let parent = self.classes.get_mut(number).and_then(Option::take).and_then(|class| class.parent);
        let Some(parent) = parent else { return Ok(()) };
        if !self.classes.iter().flatten().any(|class| class.parent == Some(parent)) {
            self.forget_wait(parent);
            let now = self.now;
            if let Some(class) = self.class_mut(parent) {
                class.become_leaf(now, leaf_limit);
            }
        }
        Ok(())
    }

    /// The marks that filters know, and their classes.
    pub(crate) fn filters(&self) -> &BTreeMap<u32, Handle> {
        &self.filters
    }

    /// The classes in the order in which Linux lists them.
    pub(crate) fn classes(&self) -> impl Iterator<Item = &Class<P>> {
        self.listing.iter().filter_map(|id| self.find(id.into()))
    }

    pub(crate) fn parent_id(&self, class: &Class<P>) -> Option<Handle> {
        class.parent.and_then(|number| Some(self.class(number)?.id))
    }

    pub(crate) fn find(&self, id: Handle) -> Option<&Class<P>> {
        self.class(self.by_id.get(&id.into()).copied()?)
    }

    pub(crate) fn find_mut(&mut self, id: Handle) -> Option<&mut Class<P>> {
        self.class_mut(self.by_id.get(&id.into()).copied()?)
    }

    /// The disciplines of the leaves.
    pub(crate) fn leaves_mut(&mut self) -> impl Iterator<Item = &mut Node<P>> {
        self.classes.iter_mut().flatten().filter_map(|class| class.leaf.as_deref_mut())
    }

    pub(crate) fn stats_mut(&mut self) -> &mut Stats {
        &mut self.stats
    }

    /// Swaps a leaf's discipline; what waited in the old one is dropped. False if there is no such leaf.
    pub(crate) fn graft(&mut self, id: Handle, new: Node<P>, dropped: &mut Vec<Dropped<P>>) -> bool {
        let Some(number) = self.by_id.get(&id.into()).copied() else { return false };
        self.drop_backlog(number, dropped);
        let leaf = self.class_mut(number).and_then(|class| class.leaf.as_deref_mut());
        leaf.map(|leaf| *leaf = new).is_some()
    }

    fn class(&self, number: usize) -> Option<&Class<P>> {
        self.classes.get(number)?.as_ref()
    }

    fn class_mut(&mut self, number: usize) -> Option<&mut Class<P>> {
        self.classes.get_mut(number)?.as_mut()
    }

    fn drop_backlog(&mut self, number: usize, dropped: &mut Vec<Dropped<P>>) {
        self.deactivate(number);
        let Some(class) = self.classes.get_mut(number).and_then(Option::as_mut) else { return };
        if let Some(leaf) = class.leaf.as_deref_mut() {
            through(&mut self.stats, leaf, dropped, |leaf, dropped| leaf.reset(dropped));
        }
    }

    /// A leaf that gets its first child lends from now on.
    fn make_inner(&mut self, number: usize, dropped: &mut Vec<Dropped<P>>) -> Result<(), HtbError> {
        let Some(class) = self.class(number) else { return Err(HtbError::NoClass) };
        let grandparent = class.parent.and_then(|parent| self.class(parent)).map(|parent| parent.level);
        if grandparent.is_some_and(|level| level < 2) {
            return Err(HtbError::TooDeep);
        }
        if class.is_leaf() {
            self.drop_backlog(number, dropped);
            self.forget_wait(number);
            if let Some(class) = self.class_mut(number) {
                class.become_inner(grandparent.unwrap_or(MAXDEPTH) - 1);
            }
        }
        Ok(())
    }

    /// The leaf for a packet; `None`: past all classes. First its priority if that is a class, then the filters, then the
    /// default class.
    fn classify(&self, skb: &Skb<P>) -> Option<usize> {
        let priority = skb.packet.priority();
        if priority == self.handle.into() {
            return None;
        }
        let leaf = |id: &u32| {
            let number = *self.by_id.get(id)?;
            self.class(number)?.is_leaf().then_some(number)
        };
        if let Some(number) = leaf(&priority) {
            return Some(number);
        }
        if let Some(class) = self.filters.get(&skb.packet.mark()) {
            if *class == self.handle {
                return None;
            }
            if let Some(number) = leaf(&(*class).into()) {
                return Some(number);
            }
        }
        leaf(&(u32::from(self.handle) | (self.config.default_class & 0xffff)))
    }

    /// Lets classes whose tokens have come back change their mode; when does the next one?
    fn do_events(&mut self, level: usize) -> Option<Nanos> {
        loop {
            let (at, order, number) = *self.levels[level].waiting.first()?;
            if at > self.now {
                return Some(at);
            }
            self.levels[level].waiting.remove(&(at, order, number));
            let now = self.now;
            let Some(class) = self.class_mut(number) else { continue };
            class.wait = None;
            let elapsed = class.elapsed(now);
            let (mode, lacking) = class.mode_after(elapsed);
            self.change_mode(number, mode);
            if mode != Mode::CanSend {
                self.wait(number, lacking);
            }
        }
    }

    /// Waits for tokens that take so long.
    fn wait(&mut self, number: usize, lacking: i64) {
        let at = self.now.saturating_add(lacking.max(1).unsigned_abs());
        let Some(class) = self.classes.get_mut(number).and_then(Option::as_mut) else { return };
        let level = &mut self.levels[class.level];
        level.order += 1;
        level.near_event = level.near_event.min(at);
        level.waiting.insert((at, level.order, number));
        class.wait = Some((at, level.order));
    }

    fn forget_wait(&mut self, number: usize) {
        let Some(class) = self.classes.get_mut(number).and_then(Option::as_mut) else { return };
        if let Some((at, order)) = class.wait.take() {
            self.levels[class.level].waiting.remove(&(at, order, number));
        }
    }

    fn change_mode(&mut self, number: usize, mode: Mode) {
        let Some(class) = self.class_mut(number) else { return };
        let (old, active) = (class.mode, class.activity != 0);
        if mode == old {
            return;
        }
        if mode == Mode::CantSend {
            class.overlimits += 1;
            self.stats.overlimits += 1;
        }
        if active && old != Mode::CantSend {
            self.deactivate_prios(number);
        }
        if let Some(class) = self.class_mut(number) {
            class.mode = mode;
        }
        if active && mode != Mode::CantSend {
            self.activate_prios(number);
        }
    }

    /// Takes the tokens for a packet that left by right of `level`: from the leaf up to the top.
    fn charge(&mut self, leaf: usize, level: usize, skb: &Skb<P>) {
        let now = self.now;
        let mut next = Some(leaf);
        while let Some(number) = next {
            let Some(class) = self.class_mut(number) else { return };
            next = class.parent;
            let old = class.mode;
            let (mode, lacking) = class.charge(now, level, skb.len);
            if class.level > 0 {
                class.stats.sent(skb);
            }
            self.change_mode(number, mode);
            if old != mode {
                self.forget_wait(number);
                if mode != Mode::CanSend {
                    self.wait(number, lacking);
                }
            }
        }
    }

    /// One packet from the leaves of a row, if a leaf has one.
    fn dequeue_row(&mut self, level: usize, prio: usize, dropped: &mut Vec<Dropped<P>>) -> Dequeue<P> {
        let now = self.now;
        let mut until: Option<Nanos> = None;
        let mut start = None;
        while let Some(number) = self.lookup_leaf(level, prio) {
            if start == Some(number) {
                break;
            }
            let Some(class) = self.classes.get_mut(number).and_then(Option::as_mut) else { break };
            let Some(leaf) = class.leaf.as_deref_mut() else { break };
            if leaf.load().0 == 0 {
                self.deactivate(number);
                continue;
            }
            let drops = dropped.len();
            let next = through(&mut self.stats, leaf, dropped, |leaf, dropped| leaf.dequeue(now, dropped));
            class.stats.drops += (dropped.len() - drops) as u64;
            match next {
                Dequeue::Packet(skb) => {
                    class.stats.sent(&skb);
                    let empty = leaf.load().0 == 0;
                    let turn_is_over = class.spend(level, skb.len);
                    if turn_is_over {
                        self.next_turn(number, level, prio);
                    }
                    if empty {
                        self.deactivate(number);
                    }
                    self.charge(number, level, &skb);
                    return Dequeue::Packet(skb);
                }
                Dequeue::Throttled(at) => until = Some(until.map_or(at, |until| until.min(at))),
                Dequeue::Empty => {}
            }
            start.get_or_insert(number);
            self.next_turn(number, level, prio);
        }
        until.map_or(Dequeue::Empty, Dequeue::Throttled)
    }
}

impl<P: Packet> Qdisc<P> for Htb<P> {
    fn enqueue(&mut self, now: Nanos, skb: Skb<P>, dropped: &mut Vec<Dropped<P>>) -> Verdict {
        let Some(number) = self.classify(&skb) else {
            if self.direct.len() >= self.config.direct_qlen {
                return self.stats.drop(skb, DropReason::QueueFull, dropped);
            }
            self.direct_pkts += 1;
            self.stats.entered(&skb);
            self.direct.push(skb);
            return Verdict::Queued;
        };
        let class = self.classes.get_mut(number).and_then(Option::as_mut);
        let Some((leaf, stats)) =
            class.and_then(|class| Some((class.leaf.as_deref_mut()?, &mut class.stats)))
        else {
            return self.stats.drop(skb, DropReason::NoClass, dropped);
        };
        let drops = dropped.len();
        let verdict =
            through(&mut self.stats, leaf, dropped, |leaf, dropped| leaf.enqueue(now, skb, dropped));
        stats.drops += (dropped.len() - drops) as u64;
        if leaf.load().0 > 0 {
            self.activate(number);
        }
        verdict
    }

    fn dequeue(&mut self, now: Nanos, dropped: &mut Vec<Dropped<P>>) -> Dequeue<P> {
        if let Some(skb) = self.direct.pop() {
            self.stats.left(&skb);
            return Dequeue::Packet(skb);
        }
        if self.stats.qlen == 0 {
            return Dequeue::Empty;
        }
        self.now = now;
        let mut next_event = now.saturating_add(5 * NANOS_PER_SECOND);
        for level in 0..MAXDEPTH {
            if now >= self.levels[level].near_event {
                let event = self.do_events(level);
                self.levels[level].near_event = event.unwrap_or(now.saturating_add(NANOS_PER_SECOND));
            }
            next_event = next_event.min(self.levels[level].near_event);
            for prio in tree::bits(self.levels[level].row_mask) {
                match self.dequeue_row(level, prio, dropped) {
                    Dequeue::Packet(skb) => {
                        self.stats.sent(&skb);
                        return Dequeue::Packet(skb);
                    }
                    Dequeue::Throttled(at) => next_event = next_event.min(at),
                    Dequeue::Empty => {}
                }
            }
        }
        if self.stats.qlen == 0 { Dequeue::Empty } else { Dequeue::Throttled(next_event) }
    }

    fn reset(&mut self, dropped: &mut Vec<Dropped<P>>) {
        self.direct.purge(dropped);
        for number in 0..self.classes.len() {
            self.drop_backlog(number, dropped);
            self.forget_wait(number);
            let now = self.now;
            if let Some(class) = self.class_mut(number) {
                class.refill(now);
            }
        }
        self.stats.emptied();
    }

    fn stats(&self) -> Stats {
        self.stats
    }
}
