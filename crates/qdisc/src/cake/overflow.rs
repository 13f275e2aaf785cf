//! Which queue is the longest (Linux's `cake_heapify` and `overflow_heap`).
//!
//! A heap of all queues by their backlogs, kept only while memory is short: from the first overflow until 65,535 packets have left without
//! another.
use super::hash::QUEUES;
use super::tin::Tin;
use alloc::vec::Vec;

/// A queue of a tin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) tin: u16,
    pub(super) queue: u16,
}

/// Packets that leave until the heap is given up.
const PATIENCE: u32 = 65_535;

/// The longest queue first.
#[derive(Clone, Debug, Default)]
pub(super) struct Overflow {
    heap: Vec<Place>,
    /// Of each tin's queues, one tin after the other: where in the heap it is.
    index: Vec<usize>,
    packets_left: u32,
}

fn backlog<P>(tins: &[Tin<P>], place: Place) -> u64 {
    let tin = tins.get(usize::from(place.tin));
    tin.and_then(|tin| tin.flows.get(usize::from(place.queue))).map_or(0, |flow| flow.backlog)
}

impl Overflow {
    /// Gives the heap up: there are other tins now, or it is not true any more.
    pub(super) fn forget(&mut self) {
        self.packets_left = 0;
    }

    /// A packet left.
    pub(super) fn packet_left(&mut self) {
        self.packets_left = self.packets_left.saturating_sub(1);
    }

    /// The longest queue of all.
    pub(super) fn longest<P>(&mut self, tins: &[Tin<P>]) -> Option<Place> {
        if self.packets_left == 0 {
            self.build(tins);
        }
        self.packets_left = PATIENCE;
        self.heap.first().copied()
    }

    fn build<P>(&mut self, tins: &[Tin<P>]) {
        self.heap.clear();
        self.index = vec![0; tins.len() * QUEUES];
        for queue in 0..QUEUES {
            for tin in 0..tins.len() {
                let place = Place { tin: tin as u16, queue: queue as u16 };
                self.note(place, self.heap.len());
                self.heap.push(place);
            }
        }
        for node in (0..self.heap.len() / 2).rev() {
            self.sink(node, tins);
        }
    }

    fn note(&mut self, place: Place, node: usize) {
        let slot = usize::from(place.tin) * QUEUES + usize::from(place.queue);
        if let Some(index) = self.index.get_mut(slot) {
            *index = node;
        }
    }

    /// The backlog of a queue has become larger.
    pub(super) fn grew<P>(&mut self, place: Place, tins: &[Tin<P>]) {
        let Some(mut node) = self.node_of(place) else { return };
        while node > 0 {
            let parent = (node - 1) / 2;
            if self.backlog_at(node, tins) <= self.backlog_at(parent, tins) {
                return;
            }
            self.swap(node, parent);
            node = parent;
        }
    }

    /// The backlog of a queue has become smaller.
    pub(super) fn shrank<P>(&mut self, place: Place, tins: &[Tin<P>]) {
        if let Some(node) = self.node_of(place) {
            self.sink(node, tins);
        }
    }

    fn node_of(&self, place: Place) -> Option<usize> {
        if self.packets_left == 0 {
            return None;
        }
        self.index.get(usize::from(place.tin) * QUEUES + usize::from(place.queue)).copied()
    }

    fn backlog_at<P>(&self, node: usize, tins: &[Tin<P>]) -> Option<u64> {
        self.heap.get(node).map(|place| backlog(tins, *place))
    }

    fn sink<P>(&mut self, mut node: usize, tins: &[Tin<P>]) {
        loop {
            let mut largest = node;
            for child in [2 * node + 1, 2 * node + 2] {
                if self.backlog_at(child, tins) > self.backlog_at(largest, tins) {
                    largest = child;
                }
            }
            if largest == node {
                return;
            }
            self.swap(node, largest);
            node = largest;
        }
    }

    fn swap(&mut self, a: usize, b: usize) {
        let (Some(at_a), Some(at_b)) = (self.heap.get(a).copied(), self.heap.get(b).copied()) else { return };
        self.heap.swap(a, b);
        self.note(at_a, b);
        self.note(at_b, a);
    }
}
