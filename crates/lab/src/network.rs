//! A network in virtual time: hosts, the paths between them, and the clock.
//!
//! ```text
//!   Host ──(Left)──► Path: wire ─ box ─ wire ──(Arrived)──► Host          Capture: every (Left), (Arrived), loss
//!    ├ proto::Stack          └ qdisc::Link per direction      ├ proto::Stack
//!    └ App ── Sys                                             └ App ── Sys
//! ```
//!
//! A step is one instant: packets leave wires, then hosts whose timer is due act, then applications
//! that asked to be woken. Every host follows the engine's rule: one mutation, then everything
//! `poll_*` returns. Packets that reach a host at the same instant are one batch, unless the host
//! behaves like Linux. Nothing here reads a clock, and all random numbers come from the seed, so a
//! run with the same calls gives the same capture, byte for byte.
//!
//! ```
//! use firstbyte_lab::apps::{Client, Closer, Opening, Server, Service, Visit};
//! use firstbyte_lab::network::{HostPlan, Network, Profile, Route};
//! use std::net::{Ipv4Addr, SocketAddr};
//! use std::time::Duration;
//!
//! let (here, there) = (Ipv4Addr::new(192, 0, 2, 1), Ipv4Addr::new(198, 51, 100, 1));
//! let peer = SocketAddr::from((there, 7));
//! let mut network = Network::new(1);
//! let client = network.add_host(HostPlan::new(Profile::Firstbyte, here), Client::new());
//! let program = Server::new(peer, Some(16), Service::Echo, Closer::Client);
//! let server = network.add_host(HostPlan::new(Profile::Firstbyte, there), program);
//! network.join(client, server, Route::with_rtt(Duration::from_millis(40)));
//!
//! let visit = Visit {
//!     peer,
//!     local: None,
//!     opening: Opening::ConnectThenWrite,
//!     request: "hello".into(),
//!     reply: "hello".into(),
//!     closer: Closer::Client,
//! };
//! network.with_app(client, |client: &mut Client, sys| client.begin(sys, visit)).unwrap();
//! assert!(network.run_until_quiet(Duration::from_secs(10)));
//! assert!(network.app::<Client>(client).ends()[0].unwrap().is_exact);
//! ```

mod app;
mod bonded;
mod card;
mod frames;
mod headers;
mod host;
mod link;
mod merge;
mod outside;
mod passage;
mod path;
mod queue;
mod router;
mod schedule;
mod sink;
mod sys;
mod table;
mod ways;

pub use app::{App, Idle};
pub(crate) use card::nanos;
pub use card::{CardPlan, CardStats};
pub(crate) use headers::flow_hash;
pub use host::{HostPlan, Profile};
pub use passage::Passage;
pub use path::Route;
pub use sys::{Calls, Sys};
pub use table::NextHopError;
pub use ways::Ways;

use crate::capture::{Capture, CardSample, HostId, PacketId, Place};
use crate::middlebox::{Direction, Middlebox};
use bytes::Bytes;
use card::CardEvent;
use core::any::Any;
use core::net::Ipv4Addr;
use core::time::Duration;
use frames::Frames;
use hashbrown::HashMap;
use host::Host;
use path::{Outcome, Outcomes, Path};
use proto::{Instant, Stack, TraceMask};
use qdisc::{LinkStats, Packet};
use queue::Traveller;
use schedule::{Party, Schedule};
use smallvec::SmallVec;
use wire::{Addr, IpHeader, RxBatch, RxPacket};

/// A path of a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PathId(usize);

/// Maximum steps at one instant. More indicate a loop of zero-delay packets, which is a bug of the
/// scenario.
const STEPS_PER_INSTANT_MAX: u32 = 100_000;

/// Hosts, paths and the clock.
pub struct Network {
    now: Instant,
    seed: u64,
    hosts: Vec<Host>,
    paths: Vec<Path>,
    /// Paths of each host, in the order of joining.
    attached: Vec<Vec<usize>>,
    /// For each host, the paths to each address: one per holder of the address.
    ways_to: Vec<HashMap<Addr, SmallVec<[usize; 1]>>>,
    schedule: Schedule,
    records: bool,
    capture: Capture,
    /// Maximum packets and bytes of the capture.
    limits: Option<(u64, u64)>,
    frames: Frames,
    /// Reusable memory for packets that arrive together.
    room: RxBatch,
    /// Reusable memory for events of cards.
    events: Vec<CardEvent>,
    /// Number of times a due host or path was handled.
    #[cfg(test)]
    pub(crate) turns: usize,
}

impl Network {
    /// Creates an empty network. All randomness comes from `seed`.
    pub fn new(seed: u64) -> Network {
        Network {
            now: Instant::ZERO,
            seed,
            hosts: Vec::new(),
            paths: Vec::new(),
            attached: Vec::new(),
            ways_to: Vec::new(),
            schedule: Schedule::default(),
            records: true,
            capture: Capture::new(),
            limits: None,
            frames: Frames::new(true),
            room: RxBatch::default(),
            events: Vec::new(),
            #[cfg(test)]
            turns: 0,
        }
    }

    /// Creates a network without a capture, whose hosts report no events: for large runs where only
    /// counters matter. Checksums are computed only if something on a path may alter a packet.
    pub fn without_capture(seed: u64) -> Network {
        Network { records: false, frames: Frames::new(false), ..Network::new(seed) }
    }

    /// Adds a host with its application, which starts at once.
    ///
    /// # Panics
    /// If TCP cannot work with the settings of the plan: see
    /// [`Config::check`](proto::Config::check).
    pub fn add_host(&mut self, plan: HostPlan, app: impl App) -> HostId {
        let id = HostId(self.hosts.len());
        let seed = derived_seed(self.seed, id.0 as u64);
        self.hosts.push(Host::new(plan, Box::new(app), self.frames.clone(), self.records, seed));
        self.attached.push(Vec::new());
        self.ways_to.push(HashMap::new());
        if self.records {
            self.hosts[id.0].stack.set_trace(TraceMask::all());
        }
        self.with_app_dyn(id, |app, sys| app.start(sys));
        id
    }

    /// Adds a router. It forwards packets for others by its table and decrements their time to
    /// live. [`Network::join_link`] joins its links.
    pub fn add_router(&mut self, address: Ipv4Addr) -> HostId {
        let id = self.add_host(HostPlan::new(Profile::Linux, address), Idle);
        let router = &mut self.hosts[id.0];
        (router.ways, router.forwards) = (Some(Ways::default()), true);
        id
    }

    /// Joins two hosts. A host sends to the path whose other end holds the destination address,
    /// else to its first path. A host with a routing table ([`Network::join_link`]) follows the
    /// table.
    pub fn join(&mut self, first: HostId, second: HostId, route: Route) -> PathId {
        let seed = derived_seed(self.seed, 1 << 32 | self.paths.len() as u64);
        let path = self.paths.len();
        let devices = [first, second].map(|end| self.attached[end.0].len());
        if route.may_alter() {
            self.frames.need_sums();
        }
        self.paths.push(Path::new(path, [first, second], devices, route, self.records, seed));
        for (host, peer) in [(first, second), (second, first)] {
            self.attached[host.0].push(path);
            for address in &self.hosts[peer.0].addresses {
                let ways = self.ways_to[host.0].entry(Addr::from(*address)).or_default();
                if !ways.iter().any(|way| self.paths[*way].peer_of(host) == Some(peer)) {
                    ways.push(path);
                }
            }
        }
        PathId(path)
    }

    /// Joins two hosts by a link with its own network, in which both have an address. Each gets a
    /// routing table that contains the other's network. [`Ways::replace_route`] adds next hops for
    /// further networks.
    pub fn join_link(
        &mut self,
        ends: [HostId; 2],
        addresses: [Ipv4Addr; 2],
        prefix_len: u8,
        route: Route,
    ) -> PathId {
        let id = self.join(ends[0], ends[1], route);
        let path = &mut self.paths[id.0];
        path.set_addresses(addresses);
        for (end, [own, neighbour]) in ends.into_iter().zip([addresses, [addresses[1], addresses[0]]]) {
            let device = path.device_of(end);
            let host = &mut self.hosts[end.0];
            host.add_address(own.into());
            let ways = host.ways.get_or_insert_default();
            ways.add_link(device, neighbour, prefix_len);
        }
        id
    }

    /// Returns the current virtual time.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// Returns the capture so far.
    pub fn capture(&self) -> &Capture {
        &self.capture
    }

    /// Takes the capture so far; later packets are not in it.
    pub(crate) fn take_capture(&mut self) -> Capture {
        core::mem::take(&mut self.capture)
    }

    /// Returns a host's stack.
    pub fn stack(&self, host: HostId) -> &Stack {
        &self.hosts[host.0].stack
    }

    /// Changes a host's stack (settings, caches) and sends the resulting packets.
    pub fn with_stack<R>(&mut self, host: HostId, change: impl FnOnce(&mut Stack, Instant) -> R) -> R {
        let result = change(&mut self.hosts[host.0].stack, self.now);
        self.settle(host);
        result
    }

    /// Returns a host's application.
    ///
    /// # Panics
    /// If the host runs an application of another type.
    pub fn app<A: App>(&self, host: HostId) -> &A {
        let app: &dyn Any = &*self.hosts[host.0].app;
        app.downcast_ref().expect("the host runs another application")
    }

    /// Lets a host's application act now.
    ///
    /// # Panics
    /// If the host runs an application of another type.
    pub fn with_app<A: App, R>(&mut self, host: HostId, act: impl FnOnce(&mut A, &mut Sys<'_>) -> R) -> R {
        self.with_app_dyn(host, |app, sys| {
            let app: &mut dyn Any = app;
            act(app.downcast_mut().expect("the host runs another application"), sys)
        })
    }

    /// Replaces a host's application. The new one starts at once.
    pub fn set_app(&mut self, host: HostId, app: impl App) {
        self.hosts[host.0].app = Box::new(app);
        self.with_app_dyn(host, |app, sys| app.start(sys));
    }

    /// Returns the middleboxes of a path, in order from its first end.
    pub fn middleboxes(&mut self, path: PathId) -> impl Iterator<Item = &mut dyn Middlebox> {
        self.paths[path.0].middleboxes()
    }

    /// Returns the counters of a path's wires in one direction, from its first end.
    pub fn link_stats(&self, path: PathId, direction: Direction) -> Vec<LinkStats> {
        self.paths[path.0].stats(direction)
    }

    /// Returns a host's routing table and filters for changes.
    pub fn ways_mut(&mut self, host: HostId) -> Option<&mut Ways> {
        self.hosts[host.0].ways.as_mut()
    }

    /// Changes a host's routes: its table, if it has one, and the metrics in its stack.
    pub(crate) fn with_routes<R>(
        &mut self,
        host: HostId,
        change: impl FnOnce(Instant, &mut Stack, Option<&mut Ways>) -> R,
    ) -> R {
        let Host { stack, ways, .. } = &mut self.hosts[host.0];
        let result = change(self.now, stack, ways.as_mut());
        self.settle(host);
        result
    }

    /// Returns a host's routing table and filters, if it has any.
    pub fn ways(&self, host: HostId) -> Option<&Ways> {
        self.hosts[host.0].ways.as_ref()
    }

    /// Returns the statistics of a host's card, if it has one.
    pub fn card_stats(&self, host: HostId) -> Option<CardStats> {
        self.hosts[host.0].card_stats()
    }

    /// Returns the packets that the bonds of a path sent on each link in one direction.
    pub fn bond_packets(&self, path: PathId, direction: Direction) -> Vec<u64> {
        self.paths[path.0].bonds(direction).flat_map(|bond| bond.packets.iter().copied()).collect()
    }

    /// Takes one link of a path's bond down or up, in both directions.
    pub fn set_link_up(&mut self, path: PathId, link: usize, up: bool) {
        self.paths[path.0].set_link_up(self.now, link, up);
        self.note_path(path.0);
    }

    /// Takes a path down or up in one direction. Packets on it still arrive.
    pub fn set_path_up(&mut self, path: PathId, direction: Direction, up: bool) {
        self.paths[path.0].set_up(direction, up);
    }

    /// Changes the loss of a path's first wire, or of every link of a bond there, in one direction.
    pub fn set_loss(&mut self, path: PathId, direction: Direction, loss: qdisc::Loss) {
        self.paths[path.0].set_loss(direction, loss);
    }

    /// Injects a packet at the last wire of a path in this direction, as if it came from outside.
    pub fn inject(&mut self, by: &'static str, path: PathId, direction: Direction, packet: Bytes) {
        let id = self.new_packet();
        self.record(id, Place::Injected { by }, &packet);
        let outcomes = self.paths[path.0].inject(self.now, direction, id, packet);
        self.finish(path.0, outcomes);
    }

    /// Ends every run as soon as the capture has more packets or takes more bytes.
    pub(crate) fn limit(&mut self, packets: u64, memory: u64) {
        self.limits = Some((packets, memory));
    }

    /// Returns whether the capture exceeds its limits.
    pub(crate) fn is_over_limit(&self) -> bool {
        let is_over = |(packets, memory)| self.capture.packets() > packets || self.capture.memory() > memory;
        self.limits.is_some_and(is_over)
    }

    /// Runs until `done` returns true, nothing is left to happen, or `limit` has passed. Returns
    /// whether `done` did.
    pub fn run_until(&mut self, limit: Duration, mut done: impl FnMut(&Network) -> bool) -> bool {
        let end = self.now + limit;
        let mut steps_here = 0;
        loop {
            if done(self) {
                return true;
            }
            if self.is_over_limit() {
                return false;
            }
            match self.next_event() {
                Some(next) if next <= end => {
                    steps_here = if next > self.now { 0 } else { steps_here + 1 };
                    assert!(steps_here < STEPS_PER_INSTANT_MAX, "time stands still at {:?}", self.now);
                    self.step(next);
                }
                _ => {
                    self.now = end.min(self.next_event().unwrap_or(end)).max(self.now);
                    return false;
                }
            }
        }
    }

    /// Runs for exactly this time.
    pub fn run_for(&mut self, span: Duration) {
        let end = self.now + span;
        self.run_until(span, |_| false);
        self.now = end;
    }

    /// Runs until every connection is over (except TIME-WAIT) and no packet is in flight, at most
    /// for `limit`.
    pub fn run_until_quiet(&mut self, limit: Duration) -> bool {
        self.run_until(limit, Network::is_quiet)
    }

    /// Returns whether no packet is in flight and no connection is open in any stack.
    pub fn is_quiet(&self) -> bool {
        self.schedule.is_quiet()
    }

    fn next_event(&mut self) -> Option<Instant> {
        self.schedule.next().map(|next| next.max(self.now))
    }

    fn step(&mut self, next: Instant) {
        self.now = next;
        let mut from = Party::Path(0);
        while let Some(party) = self.schedule.due(self.now, from) {
            match party {
                Party::Path(path) => {
                    let outcomes = self.paths[path].poll(self.now);
                    self.finish(path, outcomes);
                }
                Party::Host(host) => {
                    let changes = self.hosts[host].handle_time(self.now);
                    self.settle_after(HostId(host), changes);
                }
            }
            from = party.next();
            #[cfg(test)]
            {
                self.turns += 1;
            }
        }
    }

    fn with_app_dyn<R>(&mut self, host: HostId, act: impl FnOnce(&mut dyn App, &mut Sys<'_>) -> R) -> R {
        let result = self.hosts[host.0].act(self.now, act);
        self.settle(host);
        result
    }

    /// Passes a host's packets to its paths and events to its application, until there are no more.
    fn settle(&mut self, host: HostId) {
        self.settle_after(host, true);
    }

    /// Settles a host. `is_changed` is false if only its card had an event.
    fn settle_after(&mut self, host: HostId, mut is_changed: bool) {
        let mut events = core::mem::take(&mut self.events);
        loop {
            let is_more = self.hosts[host.0].work(self.now, &mut self.room, &mut events, &mut is_changed);
            events.drain(..).for_each(|event| self.note_card(host, event));
            if is_more {
                continue;
            }
            if !self.hosts[host.0].handle_next_event(self.now) {
                break;
            }
            is_changed = true;
        }
        self.events = events;
        if is_changed {
            while let Some(event) = self.hosts[host.0].stack.poll_trace() {
                self.capture.note(host, event);
            }
            self.hosts[host.0].look();
        }
        let (at, is_busy) = self.hosts[host.0].next_event();
        self.schedule.put(self.now, Party::Host(host.0), at, is_busy);
    }

    /// Updates the schedule after a change of a path.
    fn note_path(&mut self, path: usize) {
        let at = self.paths[path].next_event();
        self.schedule.put(self.now, Party::Path(path), at, at.is_some());
    }

    fn record(&mut self, packet: PacketId, place: Place, bytes: &Bytes) {
        if self.records {
            self.capture.push(self.now, packet, place, bytes.clone());
        }
    }

    /// Puts a packet on the path to its destination.
    fn transmit(&mut self, host: HostId, traveller: Traveller) {
        let path = match self.route(host, &traveller) {
            Ok(path) => path,
            Err(by) => return self.record(traveller.packet, Place::Lost { by }, &traveller.bytes),
        };
        let outcomes = self.paths[path].send(self.now, host, traveller);
        self.finish(path, outcomes);
    }

    fn note_card(&mut self, host: HostId, event: CardEvent) {
        let (Traveller { packet, bytes, .. }, place) = match event {
            CardEvent::OnLine(frame) => return self.transmit(host, frame),
            CardEvent::Holds(held) => {
                return self.capture.note_card(CardSample { host, at: self.now, held });
            }
            CardEvent::Sent(frame) => {
                self.record(frame.packet, Place::Left(host), &frame.bytes);
                return self.transmit(host, frame);
            }
            CardEvent::Left(frame) => (frame, Place::Left(host)),
            CardEvent::Arrived(frame) => (frame, Place::Arrived(host)),
            CardEvent::Lost(frame, by) => (frame, Place::Lost { by: by.into() }),
        };
        self.record(packet, place, &bytes);
    }

    /// Returns the path by the host's table, if it has one, else by the holder of the address. If
    /// several hosts hold it, flows are distributed by their hash, as a load balancer or a router
    /// with equal routes does. An error names the cause of the loss.
    fn route(&self, host: HostId, packet: &Traveller) -> Result<usize, String> {
        let destination = || IpHeader::parse(&packet.bytes).ok().map(|(ip, _)| ip.dst);
        let attached = &self.attached[host.0];
        let no_route = || "no route".to_owned();
        if let Some(ways) = &self.hosts[host.0].ways {
            let next = destination().and_then(|destination| ways.next_hop(destination.to_ip()));
            let (device, neighbour) = next.ok_or_else(no_route)?;
            let path = *attached.get(device).ok_or_else(no_route)?;
            return match self.paths[path].lacks(host, neighbour) {
                true => Err(format!("no neighbour {neighbour} on eth{device}")),
                false => Ok(path),
            };
        }
        if let [only] = attached[..] {
            return Ok(only);
        }
        let destination = destination().ok_or_else(no_route)?;
        let way = match self.ways_to[host.0].get(&destination).map(SmallVec::as_slice) {
            None | Some([]) => attached.first(),
            Some([only]) => Some(only),
            Some(several) => several.get(packet.flow_hash() as usize % several.len()),
        };
        way.copied().ok_or_else(no_route)
    }

    /// Returns whether the host's filters accept the packet from this path.
    fn admits(&mut self, host: HostId, path: usize, packet: &[u8]) -> bool {
        let Some(ways) = &mut self.hosts[host.0].ways else { return true };
        ways.admits(packet, self.paths[path].device_of(host))
    }

    /// Forwards a packet at a router.
    fn forward(&mut self, router: HostId, traveller: Traveller) {
        match router::passed_on(&traveller.bytes) {
            Some(bytes) => self.transmit(router, Traveller { bytes, ..traveller }),
            None => {
                let place = Place::Lost { by: "time to live exceeded".into() };
                self.record(traveller.packet, place, &traveller.bytes);
                let own = self.hosts[router.0].addresses[0];
                let Some(told) = router::time_exceeded(&traveller.bytes, own) else { return };
                let answer = Traveller::new(self.new_packet(), told);
                self.record(answer.packet, Place::Left(router), &answer.bytes);
                self.transmit(router, answer);
            }
        }
    }

    /// Handles the outcomes of a path: arrivals, losses and queue samples.
    fn finish(&mut self, path: usize, mut outcomes: Outcomes) {
        if self.records {
            self.capture.note_queues(self.paths[path].take_samples());
        }
        self.note_path(path);
        if outcomes.is_empty() {
            return;
        }
        if outcomes.len() == 1 {
            let arrival = outcomes.pop().and_then(|outcome| self.arrive(path, outcome));
            return arrival
                .into_iter()
                .for_each(|mut arrival| self.deliver(core::slice::from_mut(&mut arrival)));
        }
        let mut arrivals: Vec<Arrival> =
            outcomes.into_iter().filter_map(|outcome| self.arrive(path, outcome)).collect();
        arrivals.sort_by_key(|(host, _)| *host);
        for batch in arrivals.chunk_by_mut(|a, b| a.0 == b.0) {
            self.deliver(batch);
        }
    }

    /// Handles a packet at the end of its path. Returns `None` if it reaches no stack.
    fn arrive(&mut self, path: usize, Outcome { traveller, place }: Outcome) -> Option<Arrival> {
        let Place::Arrived(host) = place else {
            self.record(traveller.packet, place, &traveller.bytes);
            return None;
        };
        if !self.admits(host, path, &traveller.bytes) {
            let by = "reverse path filter".into();
            self.record(traveller.packet, Place::Lost { by }, &traveller.bytes);
            return None;
        }
        let entry = &mut self.hosts[host.0];
        if let Some(arrived) = &mut entry.outside {
            arrived.push(traveller.bytes.clone());
            self.record(traveller.packet, place, &traveller.bytes);
            return None;
        }
        if entry.forwards && router::is_for_others(&traveller.bytes, &entry.addresses) {
            self.forward(host, traveller);
            return None;
        }
        if let Some(card) = entry.card_mut() {
            return card.receive(self.now, traveller).then_some((host, None));
        }
        self.record(traveller.packet, place, &traveller.bytes);
        Some((host, Some(traveller.into_received())))
    }

    /// Delivers to one host the packets that arrived at the same instant.
    fn deliver(&mut self, batch: &mut [Arrival]) {
        let host = batch[0].0;
        let mut packets = batch.iter_mut().filter_map(|(_, packet)| packet.take()).peekable();
        match self.hosts[host.0].calls() {
            _ if packets.peek().is_none() => self.settle_after(host, false),
            Calls::Batched => {
                self.hosts[host.0].handle_packets(self.now, packets, &mut self.room);
                self.settle(host);
            }
            Calls::OneByOne => {
                for packet in packets {
                    self.hosts[host.0].handle_packets(self.now, [packet], &mut self.room);
                    self.settle(host);
                }
            }
        }
    }

    fn new_packet(&mut self) -> PacketId {
        self.frames.number()
    }
}

/// A packet for a host's stack. `None` if the host's card holds it and has work to do.
type Arrival = (HostId, Option<RxPacket>);

/// Returns the earlier of two optional times.
fn earlier<T: Ord>(a: Option<T>, b: Option<T>) -> Option<T> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

/// Derives a seed for one part of the network (SplitMix64's finalizer over both numbers).
fn derived_seed(seed: u64, part: u64) -> u64 {
    let mut z = seed.wrapping_add(part.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests;
