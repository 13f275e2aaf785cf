//! pfifo_fast: three bands by priority, a fifo each (Linux's `pfifo_fast_ops` in `sch_generic.c`).
use crate::queue::Queue;
use crate::{Dequeue, DropReason, Dropped, Nanos, Packet, Qdisc, Skb, Stats, Verdict};
use alloc::vec::Vec;

/// The band of each priority: Linux's `sch_default_prio2band`.
pub(crate) const PRIOMAP: [u8; 16] = [1, 2, 2, 2, 1, 2, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1];
const BANDS: usize = 3;
/// Of a priority only this counts (`TC_PRIO_MAX`).
pub(crate) const TC_PRIO_MAX: u32 = 15;

/// Strict priority over three bands. Each band holds as many packets as the device's `txqueuelen`.
#[derive(Clone, Debug)]
pub struct PfifoFast<P> {
    limit: usize,
    bands: [Queue<P>; BANDS],
    stats: Stats,
}

impl<P> PfifoFast<P> {
    /// Empty bands of `limit` packets each (Linux: the device's `txqueuelen`).
    pub fn new(limit: usize) -> PfifoFast<P> {
        PfifoFast { limit, bands: [const { Queue::new() }; BANDS], stats: Stats::default() }
    }

    /// The length of the packet that goes next.
    pub(crate) fn front_len(&self) -> Option<u32> {
        self.bands.iter().find_map(|band| Some(band.front()?.len))
    }
}

impl<P: Packet> Qdisc<P> for PfifoFast<P> {
    fn enqueue(&mut self, _: Nanos, skb: Skb<P>, dropped: &mut Vec<Dropped<P>>) -> Verdict {
        let band = PRIOMAP[(skb.packet.priority() & TC_PRIO_MAX) as usize];
        let Some(band) = self.bands.get_mut(band as usize).filter(|band| band.len() < self.limit) else {
            return self.stats.drop(skb, DropReason::QueueFull, dropped);
        };
        self.stats.entered(&skb);
        band.push(skb);
        Verdict::Queued
    }

    fn dequeue(&mut self, _: Nanos, _: &mut Vec<Dropped<P>>) -> Dequeue<P> {
        let Some(skb) = self.bands.iter_mut().find_map(Queue::pop) else { return Dequeue::Empty };
        self.stats.left(&skb);
        Dequeue::Packet(skb)
    }

    fn reset(&mut self, dropped: &mut Vec<Dropped<P>>) {
        self.bands.iter_mut().for_each(|band| band.purge(dropped));
        self.stats.emptied();
    }

    fn stats(&self) -> Stats {
        self.stats
    }

    fn qlen(&self) -> usize {
        self.stats.qlen
    }

    fn can_bypass(&self) -> bool {
        true
    }
}
