//! One flow of an fq: its packets by the time at which they may leave.
use crate::{DropReason, Dropped, Nanos, Skb};
use alloc::collections::VecDeque;
use alloc::vec::Vec;

#[derive(Clone, Debug)]
pub(super) struct Flow<P> {
    /// By departure time; of the same the first to come goes first.
    packets: VecDeque<Skb<P>>,
    /// Bytes that it may send in this turn.
    pub(super) credit: i64,
    pub(super) band: usize,
    pub(super) time_next_packet: Nanos,
    /// When it last had nothing to send.
    pub(super) age: Nanos,
    /// In a list of its band?
    pub(super) listed: bool,
    pub(super) throttled: bool,
}

impl<P> Flow<P> {
    pub(super) fn new(credit: i64, now: Nanos) -> Flow<P> {
        Flow {
            packets: VecDeque::new(),
            credit,
            band: 0,
            time_next_packet: 0,
            age: now,
            listed: false,
            throttled: false,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.packets.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    pub(super) fn is_detached(&self) -> bool {
        !self.listed && !self.throttled
    }

    pub(super) fn is_forgotten(&self, now: Nanos, age: Nanos) -> bool {
        self.is_empty() && self.is_detached() && now > self.age.saturating_add(age)
    }

    pub(super) fn push(&mut self, skb: Skb<P>) {
        let place = self.packets.iter().rposition(|other| other.time <= skb.time).map_or(0, |last| last + 1);
        self.packets.insert(place, skb);
    }

    pub(super) fn next_due(&self) -> Option<Nanos> {
        self.packets.front().map(|skb| skb.time)
    }

    pub(super) fn pop(&mut self) -> Option<Skb<P>> {
        self.packets.pop_front()
    }

    pub(super) fn purge(&mut self, dropped: &mut Vec<Dropped<P>>) {
        let purged = |skb| Dropped { skb, reason: DropReason::Purged };
        dropped.extend(self.packets.drain(..).map(purged));
    }
}
