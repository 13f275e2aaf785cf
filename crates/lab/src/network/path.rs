//! A path between two hosts: wires and middleboxes in a row.

use super::bonded::{BondPlan, Bonded};
use super::link::{Loss, Wire, WirePlan, words};
use super::queue::{Queue, Traveller};
use super::{derived_seed, earlier};
use crate::capture::{HostId, PacketId, Place, QueueSample, WireId};
use crate::middlebox::{Direction, Middlebox, Passed};
use bytes::Bytes;
use core::net::Ipv4Addr;
use core::time::Duration;
use proto::Instant;
use qdisc::{BondMode, BondStats, Entry, LinkConfig, LinkStats, TcError};
use smallvec::SmallVec;

/// The parts of a path, from its first end to its second.
#[derive(Default)]
pub struct Route {
    hops: Vec<HopPlan>,
}

enum HopPlan {
    Wire(Box<[WirePlan; 2]>),
    Bond(BondPlan),
    Box(Box<dyn Middlebox>),
}

impl Route {
    /// Creates an empty route; add at least one wire.
    pub fn new() -> Route {
        Route::default()
    }

    /// Creates a route of one wire with this round-trip time and no other limits.
    pub fn with_rtt(rtt: Duration) -> Route {
        let [there, back] = halves(nanos(rtt));
        Route::new().wire(LinkConfig::new().delay(there), LinkConfig::new().delay(back))
    }

    /// Creates a path of this round-trip time with a middlebox halfway.
    pub fn through(rtt: Duration, middlebox: impl Middlebox) -> Route {
        let [there, back] = halves(nanos(rtt)).map(halves);
        Route::new()
            .wire(LinkConfig::new().delay(there[0]), LinkConfig::new().delay(back[1]))
            .middlebox(middlebox)
            .wire(LinkConfig::new().delay(there[1]), LinkConfig::new().delay(back[0]))
    }

    /// Adds a wire with its two directions.
    pub fn wire(mut self, forward: LinkConfig, backward: LinkConfig) -> Route {
        let plan = |link| WirePlan { link, qdisc: None };
        self.hops.push(HopPlan::Wire(Box::new([plan(forward), plan(backward)])));
        self
    }

    /// Gives one direction of the last wire a queueing discipline in `tc`'s words, e.g. `fq_codel
    /// target 5ms`. Further commands may follow, separated by `;`: `handle 1: htb default 10; class
    /// add dev link parent 1: classid 1:10 htb rate 5mbit`. The device's name is `link`.
    ///
    /// # Errors
    /// The error of `tc` or the kernel.
    ///
    /// # Panics
    /// If the route has no wire.
    pub fn qdisc(mut self, direction: Direction, words: &str) -> Result<Route, TcError> {
        Queue::<Entry<Traveller>>::of_tc(words, 0)?;
        let wire = self.hops.iter_mut().rev().find_map(|hop| match hop {
            HopPlan::Wire(directions) => Some(directions),
            HopPlan::Bond(_) | HopPlan::Box(_) => None,
        });
        let [forward, backward] = &mut **wire.expect("the route has a wire");
        let plan = if direction == Direction::Forward { forward } else { backward };
        plan.qdisc = Some(words.to_owned());
        Ok(self)
    }

    /// Replaces the last wire by several links; a bond at the path's second end chooses between
    /// them. Each link is longer than the one before by `skew`. Failures are detected after
    /// `miimon`.
    ///
    /// # Panics
    /// If the route does not end in a wire.
    pub fn bond(mut self, mode: BondMode, links: usize, skew: Duration, miimon: Duration) -> Route {
        let Some(HopPlan::Wire(wire)) = self.hops.pop() else { panic!("the route ends in a wire") };
        let longer = |plan: &WirePlan, link: usize| {
            let mut plan = plan.clone();
            plan.link.delay = plan.link.delay.saturating_add(nanos(skew).saturating_mul(link as u64));
            plan
        };
        let links = (0..links.max(1)).map(|link| [longer(&wire[0], link), longer(&wire[1], link)]);
        self.hops.push(HopPlan::Bond(BondPlan { mode, miimon: nanos(miimon), links: links.collect() }));
        self
    }

    /// Adds a middlebox.
    pub fn middlebox(self, middlebox: impl Middlebox) -> Route {
        self.boxed(Box::new(middlebox))
    }

    /// Returns whether the path may change packets.
    pub(super) fn may_alter(&self) -> bool {
        let may = |plan: &WirePlan| !plan.link.corrupt.is_zero() || plan.qdisc.is_some();
        self.hops.iter().any(|hop| match hop {
            HopPlan::Wire(directions) => directions.iter().any(may),
            HopPlan::Bond(bond) => bond.links.iter().flatten().any(may),
            HopPlan::Box(_) => true,
        })
    }

    /// Adds a middlebox chosen at run time.
    pub fn boxed(mut self, middlebox: Box<dyn Middlebox>) -> Route {
        self.hops.push(HopPlan::Box(middlebox));
        self
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Splits a number into two parts with this sum.
fn halves(whole: u64) -> [u64; 2] {
    [whole / 2, whole - whole / 2]
}

/// Outcomes of packets on a path, usually of one.
pub(super) type Outcomes = SmallVec<[Outcome; 1]>;

/// The outcome of a packet on its path.
pub(super) struct Outcome {
    pub(super) traveller: Traveller,
    pub(super) place: Place,
}

impl Outcome {
    fn lost((traveller, reason): Loss) -> Outcome {
        Outcome { traveller, place: Place::Lost { by: words(reason).into() } }
    }
}

/// Usually nothing is lost.
#[inline]
fn add_lost(outcomes: &mut Outcomes, wire: &mut Wire) {
    if wire.has_lost() {
        outcomes.extend(wire.take_lost().map(Outcome::lost));
    }
}

enum Hop {
    Wire { forward: Box<Wire>, backward: Box<Wire> },
    Bond(Box<Bonded>),
    Box(Box<dyn Middlebox>),
}

impl Hop {
    /// Returns whether an event is due in this direction.
    fn is_due(&self, now: Instant, direction: Direction) -> bool {
        match self {
            Hop::Wire { forward, .. } if direction == Direction::Forward => forward.is_due(now),
            Hop::Wire { backward, .. } => backward.is_due(now),
            Hop::Bond(bonded) => bonded.next_event().is_some_and(|at| at <= now.as_nanos()),
            Hop::Box(_) => false,
        }
    }
}

pub(super) struct Path {
    ends: [HostId; 2],
    /// Number of the device at each end.
    devices: [usize; 2],
    /// Addresses of the ends, on a link with its own network.
    addresses: Option<[Ipv4Addr; 2]>,
    hops: Vec<Hop>,
}

impl Path {
    /// Creates the path. `watched` is true if its queues are sampled.
    pub(super) fn new(
        number: usize,
        ends: [HostId; 2],
        devices: [usize; 2],
        route: Route,
        watched: bool,
        seed: u64,
    ) -> Path {
        assert!(route.hops.iter().any(|hop| !matches!(hop, HopPlan::Box(_))), "a path needs a wire");
        let link = |hop, direction, plan, part| {
            let wire =
                Wire::new(WireId { path: number, hop, direction }, plan, watched, derived_seed(seed, part));
            Box::new(wire.expect("the discipline was checked when the route was built"))
        };
        let build = |(index, hop)| {
            let part = 2 * index as u64;
            match hop {
                HopPlan::Box(middlebox) => Hop::Box(middlebox),
                HopPlan::Bond(plan) => {
                    let bonded = Bonded::new((number, index), plan, watched, derived_seed(seed, part));
                    Hop::Bond(Box::new(bonded.expect("the discipline was checked when the route was built")))
                }
                HopPlan::Wire(directions) => {
                    let [forward, backward] = *directions;
                    Hop::Wire {
                        forward: link(index, Direction::Forward, forward, part),
                        backward: link(index, Direction::Backward, backward, part + 1),
                    }
                }
            }
        };
        Path { ends, devices, addresses: None, hops: route.hops.into_iter().enumerate().map(build).collect() }
    }

    pub(super) fn peer_of(&self, host: HostId) -> Option<HostId> {
        match self.ends {
            [first, second] if first == host => Some(second),
            [first, second] if second == host => Some(first),
            _ => None,
        }
    }

    /// Returns the number of the host's device.
    pub(super) fn device_of(&self, host: HostId) -> usize {
        self.devices[usize::from(self.ends[0] != host)]
    }

    pub(super) fn set_addresses(&mut self, addresses: [Ipv4Addr; 2]) {
        self.addresses = Some(addresses);
    }

    /// Returns whether no host on this link has the address.
    pub(super) fn lacks(&self, host: HostId, neighbour: Ipv4Addr) -> bool {
        self.addresses.is_some_and(|addresses| addresses[usize::from(self.ends[0] == host)] != neighbour)
    }

    pub(super) fn middleboxes(&mut self) -> impl Iterator<Item = &mut dyn Middlebox> {
        self.hops.iter_mut().filter_map(|hop| match hop {
            Hop::Box(middlebox) => Some(&mut **middlebox),
            Hop::Wire { .. } | Hop::Bond(_) => None,
        })
    }

    /// Returns the counters of its wires in one direction, from its first end.
    pub(super) fn stats(&self, direction: Direction) -> Vec<LinkStats> {
        let of_hop = |hop: &Hop| match (hop, direction) {
            (Hop::Wire { forward, .. }, Direction::Forward) => vec![forward.stats()],
            (Hop::Wire { backward, .. }, Direction::Backward) => vec![backward.stats()],
            (Hop::Bond(bonded), _) => bonded.stats(direction),
            (Hop::Box(_), _) => Vec::new(),
        };
        self.hops.iter().flat_map(of_hop).collect()
    }

    /// Returns the statistics of its bonds in one direction.
    pub(super) fn bonds(&self, direction: Direction) -> impl Iterator<Item = &BondStats> {
        self.hops.iter().filter_map(move |hop| match hop {
            Hop::Bond(bonded) => Some(bonded.bond_stats(direction)),
            Hop::Wire { .. } | Hop::Box(_) => None,
        })
    }

    /// Takes a link of its bonds down or up.
    pub(super) fn set_link_up(&mut self, now: Instant, link: usize, up: bool) {
        for hop in &mut self.hops {
            if let Hop::Bond(bonded) = hop {
                bonded.set_link_up(now, link, up);
            }
        }
    }

    /// Takes all its wires down or up in one direction.
    pub(super) fn set_up(&mut self, direction: Direction, up: bool) {
        for hop in &mut self.hops {
            match hop {
                Hop::Wire { forward, .. } if direction == Direction::Forward => forward.set_up(up),
                Hop::Wire { backward, .. } => backward.set_up(up),
                Hop::Bond(bonded) => bonded.set_up(direction, up),
                Hop::Box(_) => {}
            }
        }
    }

    /// Changes the loss of its first wire, or of every link of a bond in that place, in one
    /// direction.
    pub(super) fn set_loss(&mut self, direction: Direction, loss: qdisc::Loss) {
        match self.hops.iter_mut().find(|hop| !matches!(hop, Hop::Box(_))) {
            Some(Hop::Wire { forward, .. }) if direction == Direction::Forward => forward.set_loss(loss),
            Some(Hop::Wire { backward, .. }) => backward.set_loss(loss),
            Some(Hop::Bond(bonded)) => bonded.set_loss(direction, &loss),
            Some(Hop::Box(_)) | None => {}
        }
    }

    /// Takes the samples of its queues since the last call.
    pub(super) fn take_samples(&mut self) -> Vec<QueueSample> {
        let mut samples = Vec::new();
        for hop in &mut self.hops {
            match hop {
                Hop::Wire { forward, backward } => {
                    samples.extend(forward.take_samples().chain(backward.take_samples()));
                }
                Hop::Bond(bonded) => samples.extend(bonded.take_samples()),
                Hop::Box(_) => {}
            }
        }
        samples
    }

    pub(super) fn next_event(&self) -> Option<Instant> {
        let of_hop = |hop: &Hop| match hop {
            Hop::Wire { forward, backward } => earlier(forward.next_event(), backward.next_event()),
            Hop::Bond(bonded) => bonded.next_event(),
            Hop::Box(_) => None,
        };
        self.hops.iter().map(of_hop).fold(None, earlier).map(Instant::from_nanos)
    }

    /// Sends a packet from a host at one of the ends.
    pub(super) fn send(&mut self, now: Instant, from: HostId, traveller: Traveller) -> Outcomes {
        let mut outcomes = Outcomes::new();
        match self.ends[0] == from {
            true => self.travel(now, 0, Direction::Forward, traveller, &mut outcomes),
            false => self.travel(now, self.hops.len() - 1, Direction::Backward, traveller, &mut outcomes),
        }
        outcomes
    }

    /// Injects a packet at the last wire in its direction.
    pub(super) fn inject(
        &mut self,
        now: Instant,
        direction: Direction,
        packet: PacketId,
        bytes: Bytes,
    ) -> Outcomes {
        let mut outcomes = Outcomes::new();
        let is_wire = |hop: &Hop| !matches!(hop, Hop::Box(_));
        let last = match direction {
            Direction::Forward => self.hops.iter().rposition(is_wire),
            Direction::Backward => self.hops.iter().position(is_wire),
        };
        if let Some(index) = last {
            self.travel(now, index, direction, Traveller::altered(packet, bytes), &mut outcomes);
        }
        outcomes
    }

    /// Advances the packets that reached the end of a wire.
    pub(super) fn poll(&mut self, now: Instant) -> Outcomes {
        let mut outcomes = Outcomes::new();
        for index in 0..self.hops.len() {
            for direction in [Direction::Forward, Direction::Backward] {
                if !self.hops[index].is_due(now, direction) {
                    continue;
                }
                while let Some(traveller) = self.arrival(now, index, direction, &mut outcomes) {
                    self.pass_on(now, index, direction, traveller, &mut outcomes);
                    if !self.hops[index].is_due(now, direction) {
                        break;
                    }
                }
            }
        }
        outcomes
    }

    fn arrival(
        &mut self,
        now: Instant,
        index: usize,
        direction: Direction,
        outcomes: &mut Outcomes,
    ) -> Option<Traveller> {
        match &mut self.hops[index] {
            Hop::Wire { forward, backward } => {
                let wire = if direction == Direction::Forward { forward } else { backward };
                let traveller = wire.receive(now);
                add_lost(outcomes, wire);
                traveller
            }
            Hop::Bond(bonded) => {
                let mut lost = Vec::new();
                let traveller = bonded.receive(now, direction, &mut lost);
                outcomes.extend(lost.into_iter().map(Outcome::lost));
                traveller
            }
            Hop::Box(_) => None,
        }
    }

    /// Passes a packet from hop `index` to the next one in this direction, or out of the path.
    fn pass_on(
        &mut self,
        now: Instant,
        index: usize,
        direction: Direction,
        traveller: Traveller,
        outcomes: &mut Outcomes,
    ) {
        let next = match direction {
            Direction::Forward => Some(index + 1).filter(|next| *next < self.hops.len()),
            Direction::Backward => index.checked_sub(1),
        };
        match next {
            Some(next) => self.travel(now, next, direction, traveller, outcomes),
            None => {
                let end = if direction == Direction::Forward { self.ends[1] } else { self.ends[0] };
                outcomes.push(Outcome { traveller, place: Place::Arrived(end) });
            }
        }
    }

    /// Puts a packet into hop `index`.
    fn travel(
        &mut self,
        now: Instant,
        index: usize,
        direction: Direction,
        traveller: Traveller,
        outcomes: &mut Outcomes,
    ) {
        match &mut self.hops[index] {
            Hop::Wire { forward, backward } => {
                let wire = if direction == Direction::Forward { forward } else { backward };
                wire.send(now, traveller);
                add_lost(outcomes, wire);
            }
            Hop::Bond(bonded) => {
                outcomes.extend(bonded.send(now, direction, traveller).into_iter().map(Outcome::lost));
            }
            Hop::Box(middlebox) => {
                let packet = traveller.packet;
                let passed: Passed = middlebox.handle_packet(now, direction, traveller.bytes.clone());
                if passed.is_empty() {
                    let by = middlebox.name().to_string();
                    outcomes.push(Outcome { traveller, place: Place::Lost { by } });
                }
                for bytes in passed {
                    self.pass_on(now, index, direction, Traveller::altered(packet, bytes), outcomes);
                }
            }
        }
    }
}
