//! Parallel wires and a bond that chooses one for each packet.

use super::derived_seed;
use super::link::{Loss, Wire, WirePlan};
use super::queue::Traveller;
use crate::capture::{QueueSample, WireId};
use crate::middlebox::Direction;
use proto::Instant;
use qdisc::{Bond, BondMode, BondStats, LinkStats, Packet, TcError};

/// The plan of a bond.
#[derive(Clone)]
pub(super) struct BondPlan {
    pub(super) mode: BondMode,
    /// Nanoseconds from a link's failure to its detection.
    pub(super) miimon: u64,
    /// Plans of both directions of each link.
    pub(super) links: Vec<[WirePlan; 2]>,
}

/// The bond of the host at the path's second end, and its counterpart.
pub(super) struct Bonded {
    /// The bond that chooses, per direction.
    choosers: [Bond; 2],
    links: Vec<[Wire; 2]>,
}

const DIRECTIONS: [Direction; 2] = [Direction::Forward, Direction::Backward];

fn side(direction: Direction) -> usize {
    usize::from(direction == Direction::Backward)
}

impl Bonded {
    pub(super) fn new(
        (path, hop): (usize, usize),
        plan: BondPlan,
        watched: bool,
        seed: u64,
    ) -> Result<Bonded, TcError> {
        let choosers = DIRECTIONS.map(|_| Bond::new(plan.mode, plan.links.len(), plan.miimon));
        let mut links = Vec::new();
        for (link, [forward, backward]) in plan.links.into_iter().enumerate() {
            let wire = |direction, plan| {
                // Links of one hop get numbers that no hop has.
                let id = WireId { path, hop: (link + 1) << 16 | hop, direction };
                Wire::new(id, plan, watched, derived_seed(seed, 2 * link as u64 + side(direction) as u64))
            };
            links.push([wire(Direction::Forward, forward)?, wire(Direction::Backward, backward)?]);
        }
        Ok(Bonded { choosers, links })
    }

    /// Sends on the link or links that the bond chooses.
    pub(super) fn send(&mut self, now: Instant, direction: Direction, traveller: Traveller) -> Vec<Loss> {
        let is_return = direction == Direction::Forward;
        let (flow, len) = (traveller.flow_hash(), traveller.bytes.len());
        let chosen = self.choosers[side(direction)].choose(now.as_nanos(), flow, len, is_return);
        if chosen.is_empty() {
            return vec![(traveller, qdisc::DropReason::Down)];
        }
        let mut lost = Vec::new();
        for link in chosen {
            let wire = &mut self.links[link][side(direction)];
            wire.send(now, traveller.clone());
            lost.extend(wire.take_lost());
        }
        lost
    }

    /// Returns the next packet that reached the other end on any link.
    pub(super) fn receive(
        &mut self,
        now: Instant,
        direction: Direction,
        lost: &mut Vec<Loss>,
    ) -> Option<Traveller> {
        self.links.iter_mut().find_map(|link| {
            let wire = &mut link[side(direction)];
            let traveller = wire.receive(now);
            lost.extend(wire.take_lost());
            traveller
        })
    }

    pub(super) fn next_event(&self) -> Option<u64> {
        self.links.iter().flatten().filter_map(Wire::next_event).min()
    }

    pub(super) fn take_samples(&mut self) -> Vec<QueueSample> {
        self.links.iter_mut().flatten().flat_map(Wire::take_samples).collect()
    }

    pub(super) fn stats(&self, direction: Direction) -> Vec<LinkStats> {
        self.links.iter().map(|link| link[side(direction)].stats()).collect()
    }

    /// Returns the statistics of the bond in a direction.
    pub(super) fn bond_stats(&self, direction: Direction) -> &BondStats {
        self.choosers[side(direction)].stats()
    }

    /// Takes a link down or up in both directions. The bonds detect it after `miimon`.
    pub(super) fn set_link_up(&mut self, now: Instant, link: usize, up: bool) {
        self.choosers.iter_mut().for_each(|bond| bond.set_up(now.as_nanos(), link, up));
        self.links.get_mut(link).into_iter().flatten().for_each(|wire| wire.set_up(up));
    }

    /// Takes all links down or up in a direction, without a failure that the bond detects.
    pub(super) fn set_up(&mut self, direction: Direction, up: bool) {
        self.links.iter_mut().for_each(|link| link[side(direction)].set_up(up));
    }

    /// Changes the loss of every link in a direction.
    pub(super) fn set_loss(&mut self, direction: Direction, loss: &qdisc::Loss) {
        self.links.iter_mut().for_each(|link| link[side(direction)].set_loss(loss.clone()));
    }
}
