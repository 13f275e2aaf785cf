//! What is on its way along a link, in the order of arrival.

use super::InFlight;
use alloc::collections::{BinaryHeap, VecDeque};

/// Nearly every packet arrives after those before it: they are a queue. One that overtakes others waits apart.
#[derive(Clone, Debug)]
pub(super) struct Flight<P> {
    in_order: VecDeque<InFlight<P>>,
    overtaking: BinaryHeap<InFlight<P>>,
}

impl<P> Flight<P> {
    pub(super) fn new() -> Flight<P> {
        Flight { in_order: VecDeque::new(), overtaking: BinaryHeap::new() }
    }

    pub(super) fn len(&self) -> usize {
        self.in_order.len() + self.overtaking.len()
    }

    /// Adds one that was sent after all that are here.
    pub(super) fn push(&mut self, packet: InFlight<P>) {
        match self.in_order.back() {
            Some(last) if last.arrives_at > packet.arrives_at => self.overtaking.push(packet),
            _ => self.in_order.push_back(packet),
        }
    }

    /// The one that arrives next.
    pub(super) fn peek(&self) -> Option<&InFlight<P>> {
        match self.overtaking.peek() {
            None => self.in_order.front(),
            // The greater one is the earlier.
            overtaking => self.in_order.front().max(overtaking),
        }
    }

    /// Takes that one.
    pub(super) fn pop(&mut self) -> Option<InFlight<P>> {
        match self.overtaking.peek() {
            overtaking @ Some(_) if self.in_order.front() < overtaking => self.overtaking.pop(),
            _ => self.in_order.pop_front(),
        }
    }
}
