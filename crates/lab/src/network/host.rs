//! One host: a stack, its addresses, and the application on it.

use super::app::App;
use super::card::{Card, CardEvent, CardPlan, CardStats};
use super::frames::Frames;
use super::sink::Sink;
use super::sys::{Calls, Sys};
use super::ways::Ways;
use super::{derived_seed, earlier};
use bytes::Bytes;
use core::net::IpAddr;
use proto::{Config, Events, Instant, SocketId, Stack};
use std::collections::VecDeque;
use wire::{Capabilities, RxBatch, RxPacket};

/// The behavior of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Profile {
    /// Firstbyte: `Config::default()`, and programs whose calls form one batch (`serve` writes and
    /// shuts down in the same poll).
    Firstbyte,
    /// Linux 6.18: `Config::linux()` with both Fast Open bits set, and programs whose every system
    /// call sends at once.
    Linux,
}

impl Profile {
    /// Returns the settings, with Fast Open enabled for clients and servers.
    pub fn config(self) -> Config {
        match self {
            Profile::Firstbyte => Config::default().tcp_fastopen(0x3),
            Profile::Linux => Config::linux().tcp_fastopen(0x3),
        }
    }

    /// Returns the times at which packets leave.
    pub fn calls(self) -> Calls {
        match self {
            Profile::Firstbyte => Calls::Batched,
            Profile::Linux => Calls::OneByOne,
        }
    }

    /// Returns the name for headings.
    pub fn name(self) -> &'static str {
        match self {
            Profile::Firstbyte => "Firstbyte",
            Profile::Linux => "Linux",
        }
    }
}

/// The plan of a host.
#[derive(Clone, Debug)]
pub struct HostPlan {
    /// Settings of its stack.
    pub config: Config,
    /// Times at which its programs' packets leave.
    pub calls: Calls,
    /// Its addresses; each network is a /24 (IPv4) or a /64 (IPv6).
    pub addresses: Vec<IpAddr>,
    /// Largest IP packet it sends, bytes.
    pub mtu: usize,
    /// Its network card. Without one, packets are on the path at once.
    pub card: Option<CardPlan>,
}

impl HostPlan {
    /// Creates a host of a profile with one address and an MTU of 1500.
    pub fn new(profile: Profile, address: impl Into<IpAddr>) -> HostPlan {
        HostPlan {
            config: profile.config(),
            calls: profile.calls(),
            addresses: vec![address.into()],
            mtu: 1500,
            card: None,
        }
    }
}

pub(super) struct Host {
    pub(super) stack: Stack,
    pub(super) app: Box<dyn App>,
    pub(super) addresses: Vec<IpAddr>,
    pub(super) ways: Option<Ways>,
    /// True for a router.
    pub(super) forwards: bool,
    /// Packets that arrived for a host outside; `None` for a host with a stack.
    pub(super) outside: Option<Vec<Bytes>>,
    calls: Calls,
    sink: Sink,
    events: VecDeque<(SocketId, Events)>,
    /// Needs of stack, application and card at the last look.
    seen: Seen,
}

/// Needs of a host's stack, application and card.
#[derive(Clone, Copy, Default)]
struct Seen {
    /// Time at which the stack's timers are due.
    stack_due: Option<Instant>,
    /// Time at which the application wants to be woken.
    app_due: Option<Instant>,
    /// Time of the card's next event.
    card_due: Option<Instant>,
    has_connections: bool,
}

impl Host {
    pub(super) fn new(plan: HostPlan, app: Box<dyn App>, frames: Frames, records: bool, seed: u64) -> Host {
        let cuts = plan.card.as_ref().is_some_and(|card| card.cuts);
        let gso_max_size = if cuts { GSO_MAX_SIZE } else { 0 };
        // A card that cuts computes the checksums of the pieces, so the stack's is not needed.
        // Without a reader no checksum is.
        let tx_checksum = cuts || !frames.has_sums();
        let capabilities = Capabilities { mtu: plan.mtu, gso_max_size, tx_checksum };
        let card = plan.card.as_ref().map(|card| Card::new(card, &frames, records, seed));
        let sink = Sink::new(card, frames);
        let mut stack = Stack::new(plan.config, capabilities, stack_seed(seed));
        for address in &plan.addresses {
            stack.add_address(*address, prefix_len(*address));
        }
        let (addresses, calls) = (plan.addresses, plan.calls);
        Host {
            stack,
            app,
            addresses,
            ways: None,
            forwards: false,
            outside: None,
            calls,
            sink,
            events: VecDeque::new(),
            seen: Seen::default(),
        }
    }

    /// Adds an address, unless the host has it.
    pub(super) fn add_address(&mut self, address: IpAddr) {
        if !self.addresses.contains(&address) {
            self.addresses.push(address);
            self.stack.add_address(address, prefix_len(address));
        }
    }

    pub(super) fn calls(&self) -> Calls {
        self.calls
    }

    /// Delivers packets that arrived together. Packets that the stack does not claim are dropped:
    /// hosts of the lab use only TCP and ICMP. `room` is an empty batch.
    pub(super) fn handle_packets(
        &mut self,
        now: Instant,
        packets: impl IntoIterator<Item = RxPacket>,
        room: &mut RxBatch,
    ) {
        packets.into_iter().for_each(|packet| room.push(packet));
        self.stack.handle_packets(now, room);
        room.clear();
    }

    /// Calls the stack and the application if their time has come. Returns whether either was
    /// called.
    pub(super) fn handle_time(&mut self, now: Instant) -> bool {
        let is_due = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        let (of_stack, of_app) = (is_due(self.seen.stack_due), is_due(self.seen.app_due));
        if of_stack {
            self.stack.handle_timeout(now);
            self.drain(now);
        }
        if of_app {
            self.act(now, |app, sys| app.handle_wake(sys));
        }
        of_stack || of_app
    }

    /// Passes one event to the application. Returns `false` if there is none.
    pub(super) fn handle_next_event(&mut self, now: Instant) -> bool {
        let Some((socket, events)) = self.events.pop_front() else { return false };
        self.act(now, |app, sys| app.handle_event(sys, socket, events));
        true
    }

    pub(super) fn act<R>(&mut self, now: Instant, act: impl FnOnce(&mut dyn App, &mut Sys<'_>) -> R) -> R {
        let Host { stack, app, calls, sink, events, .. } = self;
        act(&mut **app, &mut Sys::new(now, stack, *calls, sink, events))
    }

    /// Returns its card, if it has one.
    pub(super) fn card_mut(&mut self) -> Option<&mut Card> {
        self.sink.card.as_deref_mut()
    }

    /// Takes the stack's output if it `is_changed`, and advances the card, which may change the
    /// stack. Puts events into `events`, which must be empty. Returns whether there may be more.
    pub(super) fn work(
        &mut self,
        now: Instant,
        room: &mut RxBatch,
        events: &mut Vec<CardEvent>,
        is_changed: &mut bool,
    ) -> bool {
        if *is_changed {
            self.drain(now);
        }
        if self.sink.card.is_some() {
            *is_changed |= self.run_card(now, room);
        }
        core::mem::swap(events, &mut self.sink.card_events);
        self.seen.card_due = self.sink.card.as_ref().and_then(|card| card.next_event());
        self.seen.card_due.is_some_and(|at| at <= now)
    }

    /// Advances the card. Returns whether the stack changed.
    fn run_card(&mut self, now: Instant, room: &mut RxBatch) -> bool {
        let Sink { card: Some(card), card_events, .. } = &mut self.sink else { return false };
        card.run(&mut self.stack, now, card_events);
        let arrived = card.take_arrived(now, card_events);
        if arrived.is_empty() && !card.holds_back() {
            return false;
        }
        match self.calls {
            _ if arrived.is_empty() => {}
            Calls::Batched => self.handle_packets(now, arrived, room),
            Calls::OneByOne => arrived.into_iter().for_each(|packet| {
                self.handle_packets(now, [packet], room);
                self.drain(now);
            }),
        }
        self.drain(now);
        true
    }

    /// Returns the statistics of the card.
    pub(super) fn card_stats(&self) -> Option<CardStats> {
        self.sink.card.as_ref().map(|card| card.stats())
    }

    /// Updates the needs of the stack and the application after a change.
    pub(super) fn look(&mut self) {
        let sizes = self.stack.table_sizes();
        self.seen = Seen {
            stack_due: self.stack.poll_timeout(),
            app_due: self.app.next_wake(),
            card_due: self.seen.card_due,
            has_connections: sizes.connections > 0 || sizes.requests > 0,
        };
    }

    /// Returns the time of the next event, and whether anything is in flight.
    pub(super) fn next_event(&self) -> (Option<Instant>, bool) {
        let Seen { stack_due, app_due, card_due, has_connections } = self.seen;
        let is_busy = has_connections || app_due.is_some() || card_due.is_some();
        (earlier(stack_due, earlier(app_due, card_due)), is_busy)
    }

    fn drain(&mut self, now: Instant) {
        self.sink.drain(&mut self.stack, now, &mut self.events);
    }
}

/// Maximum segment that a card cuts (Linux's `GSO_LEGACY_MAX_SIZE` without headers).
const GSO_MAX_SIZE: usize = 65_536 - 320;

fn prefix_len(address: IpAddr) -> u8 {
    if address.is_ipv4() { 24 } else { 64 }
}

/// Derives the 32 bytes of a stack's seed from one number.
fn stack_seed(seed: u64) -> [u8; 32] {
    let mut bytes = [0; 32];
    for (part, chunk) in bytes.chunks_exact_mut(8).enumerate() {
        chunk.copy_from_slice(&derived_seed(seed, part as u64).to_le_bytes());
    }
    bytes
}
