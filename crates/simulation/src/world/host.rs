//! A host's stack, or two that must do the same: one with fast paths, and one that takes the
//! general path always, packet by packet.
//!
//! Every call goes to both. What they return is compared by value at once; counters, deadlines and
//! everything that sockets tell, when both have been drained.

use super::Failure;
use bytes::Bytes;
use core::fmt::Debug;
use core::ops::Deref;
use proto::{
    AcceptError, Capabilities, Config, ConnId, ConnectError, ConnectOptions, Events, Instant, ListenError,
    ListenOptions, ListenerId, OptionError, ReadError, RouteMetrics, RxBatch, RxPacket, SavedConnection,
    SettingError, SocketId, SocketOption, SocketOptions, Stack, TxPacket, WriteError, WriteFlags,
    fast_open::Network,
};
use std::net::{IpAddr, SocketAddr};

/// Characters of a value that are shown around the first difference.
const SHOWN: usize = 300;

pub(super) struct Host {
    stack: Stack,
    /// The one without fast paths.
    general: Option<Box<Stack>>,
    /// The first that they did differently.
    difference: Option<Failure>,
    /// Has anything been done to them since they were compared?
    is_changed: bool,
}

/// What only looks is asked of the stack with fast paths.
impl Deref for Host {
    type Target = Stack;

    fn deref(&self) -> &Stack {
        &self.stack
    }
}

impl Host {
    pub(super) fn new(config: Config, capabilities: Capabilities, seed: [u8; 32], two: bool) -> Host {
        let general = two.then(|| {
            #[cfg_attr(not(debug_assertions), expect(unused_mut, reason = "fast paths cannot be turned off"))]
            let mut stack = Stack::new(config.clone(), capabilities, seed);
            #[cfg(debug_assertions)]
            stack.set_fast_paths(false);
            Box::new(stack)
        });
        Host { stack: Stack::new(config, capabilities, seed), general, difference: None, is_changed: true }
    }

    /// Both do the same, with the same result.
    fn both<T: PartialEq + Debug>(&mut self, what: &str, act: impl FnMut(&mut Stack) -> T) -> T {
        self.is_changed = true;
        self.ask_both(what, act)
    }

    /// As [`both`](Host::both), where it changes nothing.
    fn ask_both<T: PartialEq + Debug>(&mut self, what: &str, mut ask: impl FnMut(&mut Stack) -> T) -> T {
        let told = ask(&mut self.stack);
        if let Some(general) = &mut self.general {
            let expected = ask(general);
            self.must_be_equal(what, &told, &expected);
        }
        told
    }

    /// As [`ask_both`](Host::ask_both), of what is costly to collect: both are asked only where
    /// they `differ`.
    fn ask_both_if<T: PartialEq + Debug>(
        &mut self,
        what: &str,
        differ: impl Fn(&Stack, &Stack) -> bool,
        ask: impl Fn(&Stack) -> T,
    ) {
        if self.general.as_ref().is_some_and(|general| differ(&self.stack, general)) {
            self.ask_both(what, |stack| ask(stack));
        }
    }

    fn must_be_equal<T: PartialEq + Debug>(&mut self, what: &str, done: &T, expected: &T) {
        if done != expected && self.difference.is_none() {
            let kind = format!("fast and general path differ: {what}");
            self.difference = Some(Failure::new(&kind, difference(done, expected)));
        }
    }

    /// What they have told and hold, if that can have changed.
    pub(super) fn compare(&mut self, now: Instant) -> Result<(), Failure> {
        if self.general.is_some() && core::mem::take(&mut self.is_changed) {
            self.ask_both_if(
                "counters",
                |a, b| a.counters() != b.counters(),
                |stack| stack.counters().clone(),
            );
            self.ask_both_if(
                "drops",
                |a, b| a.drops().all().ne(b.drops().all()),
                |stack| stack.drops().all().collect::<Vec<_>>(),
            );
            self.ask_both("deadline", Stack::poll_timeout);
            self.ask_both("memory", |stack| (stack.memory(), stack.orphans(), stack.table_sizes()));
            self.ask_both_if(
                "sockets",
                |a, b| a.sockets().ne(b.sockets()),
                |stack| stack.sockets().collect::<Vec<_>>(),
            );
            self.ask_both("paths", |stack| stack.export_paths(now));
        }
        self.difference.take().map_or(Ok(()), Err)
    }

    pub(super) fn add_address(&mut self, address: IpAddr, prefix_len: u8) {
        self.both("add_address", |stack| stack.add_address(address, prefix_len));
    }

    pub(super) fn fix_isn(&mut self, isn: Option<u32>) {
        self.both("fix_isn", |stack| stack.fix_isn(isn));
    }

    pub(super) fn set_route(&mut self, now: Instant, to: Network, metrics: RouteMetrics) {
        self.both("set_route", |stack| stack.set_route(now, to, metrics));
    }

    pub(super) fn set(
        &mut self,
        now: Instant,
        name: &str,
        value: &str,
    ) -> Result<Option<String>, SettingError> {
        self.both("set", |stack| stack.set(now, name, value))
    }

    pub(super) fn listen(
        &mut self,
        now: Instant,
        local: SocketAddr,
        options: ListenOptions,
    ) -> Result<ListenerId, ListenError> {
        self.both("listen", |stack| stack.listen(now, local, options.clone()))
    }

    pub(super) fn close_listener(&mut self, now: Instant, id: ListenerId) {
        self.both("close_listener", |stack| stack.close_listener(now, id));
    }

    pub(super) fn accept(
        &mut self,
        now: Instant,
        id: ListenerId,
    ) -> Result<(ConnId, SocketAddr), AcceptError> {
        self.both("accept", |stack| stack.accept(now, id))
    }

    pub(super) fn connect(
        &mut self,
        now: Instant,
        peer: SocketAddr,
        options: ConnectOptions,
    ) -> Result<ConnId, ConnectError> {
        self.both("connect", |stack| stack.connect(now, peer, options.clone()))
    }

    pub(super) fn read(&mut self, now: Instant, id: ConnId, buf: &mut [u8]) -> Result<usize, ReadError> {
        if self.general.is_none() {
            return self.stack.read(now, id, buf);
        }
        self.both("read", |stack| {
            let read = stack.read(now, id, buf);
            let text = buf[..read.unwrap_or(0)].to_vec();
            (read, text, stack.arrived_at(id, 0), stack.urgent_mark(id))
        })
        .0
    }

    pub(super) fn write_with(
        &mut self,
        now: Instant,
        id: ConnId,
        data: &[u8],
        flags: WriteFlags,
    ) -> Result<usize, WriteError> {
        self.both("write", |stack| match flags.is_empty() {
            true => stack.write(now, id, data),
            false => stack.write_with(now, id, data, flags),
        })
    }

    pub(super) fn write_bytes(
        &mut self,
        now: Instant,
        id: ConnId,
        data: &mut Bytes,
    ) -> Result<usize, WriteError> {
        let (taken, left) = self.both("write_bytes", |stack| {
            let mut data = data.clone();
            (stack.write_bytes(now, id, &mut data), data)
        });
        *data = left;
        taken
    }

    pub(super) fn push(&mut self, now: Instant, id: ConnId) {
        self.both("push", |stack| stack.push(now, id));
    }

    pub(super) fn shutdown(&mut self, now: Instant, id: ConnId) -> Result<(), WriteError> {
        self.both("shutdown", |stack| stack.shutdown(now, id))
    }

    pub(super) fn shutdown_read(&mut self, now: Instant, id: ConnId) {
        self.both("shutdown_read", |stack| stack.shutdown_read(now, id));
    }

    pub(super) fn close(&mut self, now: Instant, id: ConnId) {
        self.both("close", |stack| stack.close(now, id));
    }

    pub(super) fn abort(&mut self, now: Instant, id: ConnId) {
        self.both("abort", |stack| stack.abort(now, id));
    }

    pub(super) fn discard(&mut self, now: Instant, id: ConnId) {
        self.both("discard", |stack| stack.discard(now, id));
    }

    pub(super) fn set_option(
        &mut self,
        now: Instant,
        id: ConnId,
        option: SocketOption,
    ) -> Result<(), OptionError> {
        self.both("set_option", |stack| stack.set_option(now, id, option))
    }

    pub(super) fn save_connection(&mut self, now: Instant, id: ConnId) -> Option<SavedConnection> {
        self.both("save_connection", |stack| stack.save_connection(now, id))
    }

    pub(super) fn restore_connection(
        &mut self,
        now: Instant,
        saved: &SavedConnection,
        options: SocketOptions,
    ) -> Result<ConnId, ConnectError> {
        self.both("restore_connection", |stack| stack.restore_connection(now, saved, options.clone()))
    }

    pub(super) fn handle_packet(&mut self, now: Instant, packet: RxPacket) {
        self.both("handle_packet", |stack| stack.handle_packet(now, packet.clone()).is_some());
    }

    /// The stack without fast paths is given them one by one: who hands them over together cannot
    /// tell.
    pub(super) fn handle_packets(&mut self, now: Instant, batch: &mut RxBatch) {
        self.is_changed = true;
        let arrived = self.general.is_some().then(|| batch.clone());
        self.stack.handle_packets(now, batch);
        if let (Some(general), Some(mut arrived)) = (&mut self.general, arrived) {
            let unclaimed = arrived.drain().filter_map(|packet| general.handle_packet(now, packet)).count();
            self.must_be_equal("packets of a batch that nobody wants", &batch.len(), &unclaimed);
        }
    }

    pub(super) fn handle_refusal(&mut self, now: Instant, packet: &TxPacket) {
        self.both("handle_refusal", |stack| stack.handle_refusal(now, packet));
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) {
        self.is_changed |= self.poll_timeout().is_some_and(|at| at <= now);
        self.ask_both("handle_timeout", |stack| stack.handle_timeout(now));
    }

    pub(super) fn poll_timeout(&mut self) -> Option<Instant> {
        self.ask_both("poll_timeout", Stack::poll_timeout)
    }

    pub(super) fn poll_event(&mut self) -> Option<(SocketId, Events)> {
        let event = self.ask_both("poll_event", Stack::poll_event);
        self.is_changed |= event.is_some();
        event
    }

    pub(super) fn poll_transmit(&mut self, now: Instant) -> Option<TxPacket> {
        if self.general.is_none() {
            return self.stack.poll_transmit(now);
        }
        let mut sent = None;
        self.ask_both("poll_transmit", |stack| {
            let packet = stack.poll_transmit(now);
            let seen = packet.as_ref().map(seen);
            sent = sent.take().or(packet);
            seen
        });
        self.is_changed |= sent.is_some();
        sent
    }

    #[cfg(debug_assertions)]
    pub(super) fn complaint(&mut self, now: Instant) -> Option<proto::Complaint> {
        self.stack.complaint(now)
    }
}

/// All that a device sees of a packet. In how many parts its text lies is nobody's concern.
fn seen(packet: &TxPacket) -> (Bytes, u16, wire::TxChecksum, bool) {
    (packet.to_bytes(), packet.gso_size, packet.checksum, packet.repeats_cwr)
}

/// Where two values that are not equal begin to differ.
fn difference(fast: &impl Debug, general: &impl Debug) -> String {
    let [fast, general] = [format!("{fast:?}"), format!("{general:?}")];
    let alike = fast.chars().zip(general.chars()).take_while(|(fast, general)| fast == general).count();
    let part = |text: &str| text.chars().skip(alike.saturating_sub(60)).take(SHOWN).collect::<String>();
    format!("with fast paths …{}…, without …{}…", part(&fast), part(&general))
}
