//! prio: strict priority over classes, each with a discipline of its own (Linux's `sch_prio.c`).
use crate::node::{Node, through};
use crate::pfifo_fast::{PRIOMAP, TC_PRIO_MAX};
use crate::{Dequeue, Dropped, Handle, Nanos, Packet, Qdisc, Skb, Stats, Verdict};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// Number of bands, and the band of each priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrioConfig {
    /// 2 to 16.
    pub bands: u8,
    /// The band of each priority.
    pub priomap: [u8; 16],
}

/// The fewest and the most bands (`TCQ_MIN_PRIO_BANDS`, `TCQ_PRIO_BANDS`).
pub(crate) const PRIO_BANDS: core::ops::RangeInclusive<u8> = 2..=16;

impl Default for PrioConfig {
    fn default() -> PrioConfig {
        PrioConfig { bands: 3, priomap: PRIOMAP }
    }
}

impl PrioConfig {
    /// Returns whether the number of bands and all entries of the map are in range.
    pub fn is_valid(&self) -> bool {
        PRIO_BANDS.contains(&self.bands) && self.priomap.iter().all(|band| *band < self.bands)
    }
}

/// Bands in the order of their priority: a band is served only while those before it are empty.
#[derive(Clone, Debug)]
pub struct Prio<P> {
    handle: Handle,
    config: PrioConfig,
    bands: Vec<Node<P>>,
    filters: BTreeMap<u32, Handle>,
    stats: Stats,
}

impl<P: Packet> Prio<P> {
    /// Creates bands with a pfifo of `limit` packets each. The configuration must be valid. Invalid
    /// band numbers count as the last band.
    pub fn new(handle: Handle, config: PrioConfig, limit: usize) -> Prio<P> {
        let mut prio =
            Prio { handle, config, bands: Vec::new(), filters: BTreeMap::new(), stats: Stats::default() };
        prio.set_config(config, limit, &mut Vec::new());
        prio
    }

    /// Returns the configuration.
    pub fn config(&self) -> PrioConfig {
        self.config
    }

    /// Changes bands and map. Packets of removed bands are dropped.
    pub fn set_config(&mut self, config: PrioConfig, limit: usize, dropped: &mut Vec<Dropped<P>>) {
        self.config = config;
        let bands = usize::from(config.bands.max(1));
        while self.bands.len() > bands {
            if let Some(mut band) = self.bands.pop() {
                through(&mut self.stats, &mut band, dropped, |band, dropped| band.reset(dropped));
            }
        }
        while self.bands.len() < bands {
            let class = self.handle.class(self.bands.len() as u16 + 1);
            self.bands.push(Node::pfifo(class, limit));
        }
    }

    /// Sends packets with this mark to that class (`tc filter … handle MARK fw flowid CLASS`).
    pub fn add_filter(&mut self, mark: u32, class: Handle) {
        self.filters.insert(mark, class);
    }

    /// The marks that filters know, and their classes.
    pub(crate) fn filters(&self) -> &BTreeMap<u32, Handle> {
        &self.filters
    }

    /// The discipline of each band.
    pub(crate) fn bands_mut(&mut self) -> &mut [Node<P>] {
        &mut self.bands
    }

    pub(crate) fn bands(&self) -> &[Node<P>] {
        &self.bands
    }

    /// The number of a class's band, if that class exists.
    pub(crate) fn band_of(&self, class: Handle) -> Option<usize> {
        let band = usize::from(class.minor()).checked_sub(1)?;
        (class.major() == self.handle.major() && band < self.bands.len()).then_some(band)
    }

    pub(crate) fn stats_mut(&mut self) -> &mut Stats {
        &mut self.stats
    }

    /// Swaps a band's discipline; what waited in the old one is dropped.
    pub(crate) fn graft(&mut self, band: usize, new: Node<P>, dropped: &mut Vec<Dropped<P>>) {
        let Some(old) = self.bands.get_mut(band) else { return };
        through(&mut self.stats, old, dropped, |old, dropped| old.reset(dropped));
        *old = new;
    }

    fn classify(&self, skb: &Skb<P>) -> usize {
        let priority = skb.packet.priority();
        let map = |priority: u32| usize::from(self.config.priomap[(priority & TC_PRIO_MAX) as usize]);
        let class = Handle::from(priority);
        if class.major() != self.handle.major() || self.handle.major() == 0 {
            let Some(class) = self.filters.get(&skb.packet.mark()) else {
                return map(if class.major() == 0 { priority } else { 0 });
            };
            return self.band_of(*class).unwrap_or_else(|| map(0));
        }
        self.band_of(class).unwrap_or_else(|| map(0))
    }
}

impl<P: Packet> Qdisc<P> for Prio<P> {
    fn enqueue(&mut self, now: Nanos, skb: Skb<P>, dropped: &mut Vec<Dropped<P>>) -> Verdict {
        let band = self.classify(&skb).min(self.bands.len().saturating_sub(1));
        let Some(band) = self.bands.get_mut(band) else {
            return self.stats.drop(skb, crate::DropReason::NoClass, dropped);
        };
        through(&mut self.stats, band, dropped, |band, dropped| band.enqueue(now, skb, dropped))
    }

    fn dequeue(&mut self, now: Nanos, dropped: &mut Vec<Dropped<P>>) -> Dequeue<P> {
        let mut until = None;
        for band in self.bands.iter_mut().filter(|band| band.load().0 > 0) {
            match through(&mut self.stats, band, dropped, |band, dropped| band.dequeue(now, dropped)) {
                Dequeue::Packet(skb) => {
                    self.stats.sent(&skb);
                    return Dequeue::Packet(skb);
                }
                Dequeue::Throttled(at) => until = Some(until.map_or(at, |until: Nanos| until.min(at))),
                Dequeue::Empty => {}
            }
        }
        until.map_or(Dequeue::Empty, Dequeue::Throttled)
    }

    fn reset(&mut self, dropped: &mut Vec<Dropped<P>>) {
        self.bands.iter_mut().for_each(|band| band.reset(dropped));
        self.stats.emptied();
    }

    fn stats(&self) -> Stats {
        self.stats
    }
}
