//! Which queue a packet's flow has, and which entries its hosts have (Linux's `cake_hash`).
//!
//! Eight queues make a set; the hash chooses the set, and the queue in which the search begins. A flow keeps its queue as long as
//! anything is known of it, so that two flows share one only if all eight of a set are taken.
use super::CakeIsolation;
use super::flow::{Flow, Standing};
use crate::Packet;
use crate::rng::mix;
use alloc::vec::Vec;

/// Queues of a tin (`CAKE_QUEUES`).
pub(super) const QUEUES: usize = 1024;
/// Queues of a set (`CAKE_SET_WAYS`).
const WAYS: usize = 8;

/// What a packet is found by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Key {
    flow: u32,
    source: u32,
    destination: u32,
}

impl Key {
    fn of<P: Packet>(packet: &P, isolation: CakeIsolation, perturbation: u64) -> Key {
        let spread = |hash: u32| (mix(u64::from(hash) ^ perturbation) >> 32) as u32;
        let (source, destination) = (spread(packet.source_hash()), spread(packet.destination_hash()));
        let mut flow = 0;
        if isolation.by_flow() {
            flow = spread(packet.flow_hash());
        } else {
            if isolation.by_source() {
                flow ^= source;
            }
            if isolation.by_destination() {
                // Rotated, so that the order of the two counts.
                flow ^= destination.rotate_left(16);
            }
        }
        Key { flow, source, destination }
    }
}

/// One side's hosts: who has an entry, and how many bulk flows each has.
#[derive(Clone, Debug)]
pub(super) struct Hosts {
    tags: Vec<u32>,
    bulk_flows: Vec<u16>,
}

impl Hosts {
    fn new() -> Hosts {
        Hosts { tags: vec![0; QUEUES], bulk_flows: vec![0; QUEUES] }
    }

    /// The entry of a host; if it has none, one of its set that no bulk flow needs; else the first.
    fn entry_of(&mut self, tag: u32) -> u16 {
        let found = ways(tag).find(|entry| self.tags.get(*entry) == Some(&tag));
        let free = || ways(tag).find(|entry| self.bulk_flows.get(*entry) == Some(&0));
        let entry = found.or_else(free).unwrap_or(tag as usize % QUEUES);
        if let Some(owner) = self.tags.get_mut(entry) {
            *owner = tag;
        }
        entry as u16
    }

    fn add(&mut self, entry: u16) {
        if let Some(count) = self.bulk_flows.get_mut(usize::from(entry)) {
            *count = count.saturating_add(1);
        }
    }

    fn remove(&mut self, entry: u16) {
        if let Some(count) = self.bulk_flows.get_mut(usize::from(entry)) {
            *count = count.saturating_sub(1);
        }
    }

    fn load(&self, entry: u16) -> u16 {
        self.bulk_flows.get(usize::from(entry)).copied().unwrap_or(0)
    }
}

/// The places of a set, from where the search begins.
fn ways(hash: u32) -> impl Iterator<Item = usize> {
    let reduced = hash as usize % QUEUES;
    let first = reduced - reduced % WAYS;
    (0..WAYS).map(move |way| first + (reduced + way) % WAYS)
}

/// How the search for a queue went, for the statistics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(super) struct WayCounters {
    /// A flow's queue was found beside the place that the hash names.
    pub(super) hits: u32,
    /// A flow was given a queue.
    pub(super) misses: u32,
    /// A flow had to take the queue of another.
    pub(super) collisions: u32,
}

/// The flows that queues belong to, and their hosts.
#[derive(Clone, Debug)]
pub(super) struct Table {
    perturbation: u64,
    tags: Vec<u32>,
    sources: Hosts,
    destinations: Hosts,
    counters: WayCounters,
}

impl Table {
    pub(super) fn new(perturbation: u64) -> Table {
        Table {
            perturbation,
            tags: vec![0; QUEUES],
            sources: Hosts::new(),
            destinations: Hosts::new(),
            counters: WayCounters::default(),
        }
    }

    pub(super) fn counters(&self) -> WayCounters {
        self.counters
    }

    /// The queue of a packet's flow.
    pub(super) fn queue_of<P: Packet>(
        &mut self,
        packet: &P,
        isolation: CakeIsolation,
        flows: &mut [Flow<P>],
    ) -> usize {
        if isolation == CakeIsolation::Flowblind {
            return 0;
        }
        let key = Key::of(packet, isolation, self.perturbation);
        let reduced = key.flow as usize % QUEUES;
        let owned = |queue: &usize| self.tags.get(*queue) == Some(&key.flow);
        let is_free = |queue: &usize| flows.get(*queue).is_some_and(|flow| flow.standing == Standing::None);
        if owned(&reduced) && !is_free(&reduced) {
            return reduced;
        }
        let queue = if let Some(queue) = ways(key.flow).find(owned) {
            self.counters.hits += u32::from(queue != reduced);
            if !is_free(&queue) {
                return queue;
            }
            queue
        } else if let Some(queue) = ways(key.flow).find(is_free) {
            self.counters.misses += 1;
            queue
        } else {
            self.counters.collisions += 1;
            if let Some(flow) = flows.get(reduced).filter(|flow| flow.standing == Standing::Bulk) {
                self.remove_bulk(flow, isolation);
            }
            reduced
        };
        if let Some(owner) = self.tags.get_mut(queue) {
            *owner = key.flow;
        }
        if let Some(flow) = flows.get_mut(queue) {
            self.give_hosts(flow, key, isolation);
        }
        queue
    }

    fn give_hosts<P>(&mut self, flow: &mut Flow<P>, key: Key, isolation: CakeIsolation) {
        if isolation.shares_by_source() {
            flow.source = self.sources.entry_of(key.source);
        }
        if isolation.shares_by_destination() {
            flow.destination = self.destinations.entry_of(key.destination);
        }
        if flow.standing == Standing::Bulk {
            self.add_bulk(flow, isolation);
        }
    }

    /// A flow's hosts have one bulk flow more.
    pub(super) fn add_bulk<P>(&mut self, flow: &Flow<P>, isolation: CakeIsolation) {
        if isolation.shares_by_source() {
            self.sources.add(flow.source);
        }
        if isolation.shares_by_destination() {
            self.destinations.add(flow.destination);
        }
    }

    /// A flow's hosts have one bulk flow less.
    pub(super) fn remove_bulk<P>(&mut self, flow: &Flow<P>, isolation: CakeIsolation) {
        if isolation.shares_by_source() {
            self.sources.remove(flow.source);
        }
        if isolation.shares_by_destination() {
            self.destinations.remove(flow.destination);
        }
    }

    /// The bulk flows of whichever of a flow's hosts has more, at least one: by so much its quantum is divided. A thousand flows of one
    /// host have quanta of a byte or two, so that a packet takes hundreds of rounds, here as in Linux.
    pub(super) fn load<P>(&self, flow: &Flow<P>, isolation: CakeIsolation) -> u16 {
        let mut load = 1;
        if isolation.shares_by_source() {
            load = load.max(self.sources.load(flow.source));
        }
        if isolation.shares_by_destination() {
            load = load.max(self.destinations.load(flow.destination));
        }
        load
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone)]
    struct OfFlow(u32);
    impl Packet for OfFlow {
        fn flow_hash(&self) -> u32 {
            self.0
        }
    }

    fn flows() -> Vec<Flow<OfFlow>> {
        (0..QUEUES).map(|_| Flow::new()).collect()
    }

    /// Gives each flow the queue that it asks for, and lets it be busy.
    fn place(table: &mut Table, flows: &mut [Flow<OfFlow>], number: u32) -> usize {
        let queue = table.queue_of(&OfFlow(number), CakeIsolation::Flows, flows);
        flows[queue].standing = Standing::Sparse;
        queue
    }

    #[test]
    fn a_set_is_searched_from_the_place_of_the_hash() {
        assert!(ways(1029).eq([5, 6, 7, 0, 1, 2, 3, 4]));
        assert!(ways(1023).eq([1023, 1016, 1017, 1018, 1019, 1020, 1021, 1022]));
    }

    #[test]
    fn busy_flows_keep_queues_of_their_own() {
        let (mut table, mut flows) = (Table::new(12_345), flows());
        let first: Vec<usize> = (0..200).map(|number| place(&mut table, &mut flows, number)).collect();
        let again: Vec<usize> = (0..200).map(|number| place(&mut table, &mut flows, number)).collect();
        assert_eq!(first, again);
        // Of 200 in 1024 single places some 18 would share one.
        let counters = table.counters();
        assert_eq!((counters.misses, counters.collisions), (200, 0));
        assert!(counters.hits > 0, "some were found beside their places");
        let mut distinct = first;
        distinct.sort_unstable();
        distinct.dedup();
        assert_eq!(distinct.len(), 200);
    }

    #[test]
    fn the_ninth_of_a_set_takes_the_queue_of_another() {
        let (mut table, mut flows) = (Table::new(3), flows());
        let set =
            |number: u32| Key::of(&OfFlow(number), CakeIsolation::Flows, 3).flow as usize % QUEUES / WAYS;
        let same: Vec<u32> = (0..).filter(|number| set(*number) == set(0)).take(9).collect();
        for number in &same[..8] {
            place(&mut table, &mut flows, *number);
        }
        assert_eq!((table.counters().misses, table.counters().collisions), (8, 0));
        place(&mut table, &mut flows, same[8]);
        assert_eq!((table.counters().misses, table.counters().collisions), (8, 1));
    }

    #[test]
    fn a_bulk_flow_that_is_taken_over_counts_for_its_new_host() {
        #[derive(Clone)]
        struct From(u32, u32);
        impl Packet for From {
            fn flow_hash(&self) -> u32 {
                self.1
            }
            fn source_hash(&self) -> u32 {
                self.0
            }
        }
        let isolation = CakeIsolation::DualSrcHost;
        let mut table = Table::new(3);
        let mut flows: Vec<Flow<From>> = (0..QUEUES).map(|_| Flow::new()).collect();
        let set = |number: u32| Key::of(&From(0, number), isolation, 3).flow as usize % QUEUES / WAYS;
        let same: Vec<u32> = (0..).filter(|number| set(*number) == set(0)).take(9).collect();
        for number in &same[..8] {
            let queue = table.queue_of(&From(1, *number), isolation, &mut flows);
            flows[queue].standing = Standing::Bulk;
            table.add_bulk(&flows[queue], isolation);
        }
        let first = table.queue_of(&From(1, same[0]), isolation, &mut flows);
        let of_first = flows[first].source;
        assert_eq!(table.sources.load(of_first), 8);
        let taken = table.queue_of(&From(2, same[8]), isolation, &mut flows);
        assert_eq!(table.sources.load(of_first), 7);
        assert_eq!((table.sources.load(flows[taken].source), table.load(&flows[taken], isolation)), (1, 1));
    }

    #[test]
    fn hosts_that_talk_to_each_other_are_one_flow_of_hosts_in_each_direction() {
        #[derive(Clone)]
        struct Between(u32, u32, u32);
        impl Packet for Between {
            fn flow_hash(&self) -> u32 {
                self.2
            }
            fn source_hash(&self) -> u32 {
                self.0
            }
            fn destination_hash(&self) -> u32 {
                self.1
            }
        }
        let key = |isolation, source, destination, flow| {
            Key::of(&Between(source, destination, flow), isolation, 5).flow
        };
        use CakeIsolation::{DstHost, Flows, Hosts, SrcHost};
        assert_eq!(key(Hosts, 1, 2, 7), key(Hosts, 1, 2, 8));
        assert_ne!(key(Hosts, 1, 2, 7), key(Hosts, 1, 3, 7));
        assert_eq!(key(SrcHost, 1, 2, 7), key(SrcHost, 1, 3, 8));
        assert_eq!(key(DstHost, 1, 2, 7), key(DstHost, 4, 2, 8));
        assert_ne!(key(Flows, 1, 2, 7), key(Flows, 1, 2, 8));
    }
}
