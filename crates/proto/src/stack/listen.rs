//! LISTEN (RFC 9293 §3.10.7.2), the SYN queue, and the server's half of Fast Open (RFC 7413 §4.2).

pub(in crate::stack) mod fast_child;
pub(in crate::stack) mod listener;
pub(in crate::stack) mod migration;
pub(in crate::stack) mod open;
pub(in crate::stack) mod request;
pub(crate) mod shares;
pub(in crate::stack) mod stateless;
pub(in crate::stack) mod syn_ack;
pub(in crate::stack) mod syn_cookie;

use super::{FirstNumbers, Stack};
use crate::fast_open::{CookieCheck, Guard, KeyRing};
use crate::isn::TupleSecret;
use crate::stack::listen::listener::Listener;
use crate::stack::listen::request::{CookieReply, Request};
use crate::tcp::input::Segment;
use crate::tcp::open::negotiation::Negotiated;
use crate::tuple::FourTuple;
use crate::tuple::Name;
use crate::{Config, ConnId, DropReason, Instant, ListenerId, SocketId, fastopen};
use wire::{FastOpenOption, Flags, SeqNum};

/// Where an ordinary half-open peer can be kept.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Room {
    /// In the SYN queue.
    SynQueue,
    /// In a SYN cookie.
    Cookie,
    Nowhere,
}

/// What the server decides about a SYN.
enum FastOpenServer {
    /// Take the data; the SYN-ACK may bring a new cookie. With the tuple's secret.
    Accept(CookieReply, TupleSecret),
    /// An ordinary request; its SYN-ACK may bring a cookie.
    Refuse(CookieReply),
}

impl Stack {
    /// The listener that fits best.
    pub(super) fn find_listener(&self, tuple: &FourTuple) -> Option<ListenerId> {
        if self.listeners_by_port.is_empty() {
            return None;
        }
        let candidates = self.listeners_by_port.get(&tuple.local_port)?;
        if let [id] = candidates[..] {
            return self.listener(id)?.fit(tuple).map(|_| id);
        }
        let fitting = candidates.iter().filter_map(|id| Some((self.listener(*id)?.fit(tuple)?, *id)));
        let best = fitting.clone().map(|(fit, _)| fit).max()?;
        let equals = fitting.filter(|(fit, _)| *fit == best).map(|(_, id)| id);
        // Only those that share a port are equals.
        let turn = match equals.clone().count() {
            1 => 0,
            count => (tuple.hash(&self.hash_key) % count as u64) as usize,
        };
        equals.clone().nth(turn)
    }

    /// A segment for a listener. `min_isn`: the old connection of this tuple was in TIME-WAIT until now.
    pub(super) fn for_listener(
        &mut self,
        now: Instant,
        id: ListenerId,
        name: Name,
        segment: &mut Segment,
        min_isn: Option<SeqNum>,
    ) {
        let tuple = name.tuple;
        if self.hooks.is_some() && !self.is_near_enough_for_listener(id) {
            return;
        }
        if segment.has(Flags::RST) {
            return self.drops.count(DropReason::StrayReset);
        }
        if segment.has(Flags::ACK) {
            return self.ack_for_listener(now, id, tuple, segment);
        }
        let fin_refused = segment.has(Flags::FIN) && !self.shared.config.syn_fin;
        if !segment.has(Flags::SYN)
            || fin_refused
            || tuple.local == tuple.peer && tuple.local_port == tuple.peer_port
        {
            return self.drops.count(DropReason::NotForListener);
        }
        // Who had a connection here has proved its address: its request is queued without limit, as Linux does.
        let Some(listener) = self.listener(id) else { return };
        let room =
            if min_isn.is_some() { Room::SynQueue } else { self.room_for_request(now, listener, &tuple) };
        let lacking = self.no_room_for_syn(now, listener, &tuple, room);
        self.shared.counters.req_q_full_do_cookies += u64::from(room == Room::Cookie);
        if let Some(reason) = lacking {
            return self.drop_at_listener(id, reason);
        }
        let offered = segment.header.options.fast_open.is_some() || !segment.payload.is_empty();
        let decision = if offered && (room == Room::SynQueue || self.shared.config.fast_open_past_syn_queue) {
            self.decide_fast_open(now, id, &tuple, segment)
        } else {
            FastOpenServer::Refuse(None)
        };
        match (decision, room) {
            (FastOpenServer::Accept(cookie, secret), _) => {
                let numbers = self.numbers_of(secret, now, min_isn);
                self.open_fast(now, id, name, segment, (numbers, cookie));
            }
            (FastOpenServer::Refuse(cookie), Room::SynQueue) => {
                let numbers = self.first_numbers(now, &tuple, min_isn);
                let request = self.request_from_syn(now, id, name, numbers, segment);
                self.queue_request(now, request, cookie);
            }
            (FastOpenServer::Refuse(cookie), Room::Cookie) => {
                self.answer_statelessly(now, id, name, segment, cookie);
            }
            (FastOpenServer::Refuse(_), Room::Nowhere) => {
                self.drop_at_listener(id, DropReason::SynQueueFull);
            }
        }
    }

    fn room_for_request(&self, now: Instant, listener: &Listener, tuple: &FourTuple) -> Room {
        let config = &self.shared.config;
        let full = listener.syn_queue_full();
        let known = || self.remembered_rtt(now, tuple).is_some();
        match config.tcp_syncookies {
            0 if full || listener.few_requests_left(config) && !known() => Room::Nowhere,
            1 if full => Room::Cookie,
            0 | 1 => Room::SynQueue,
            _ => Room::Cookie,
        }
    }

    fn no_room_for_syn(
        &self,
        now: Instant,
        listener: &Listener,
        tuple: &FourTuple,
        room: Room,
    ) -> Option<DropReason> {
        let Config { fast_open_past_syn_queue, refuse_without_memory, .. } = self.shared.config;
        if room == Room::Nowhere && !fast_open_past_syn_queue {
            return Some(DropReason::SynQueueFull);
        }
        let memory = &self.shared.memory;
        let without_memory =
            || memory.is_full() || memory.is_scarce() && self.takes_memory_of_others(now, tuple);
        self.lacks_place(now, listener, tuple)
            .or_else(|| (refuse_without_memory && without_memory()).then_some(DropReason::NoMemory))
    }

    pub(super) fn too_many_connections(&self) -> bool {
        self.connections.len() >= self.shared.config.max_connections as usize
    }

    /// A SYN, or a final ACK, that there is no room for.
    pub(super) fn drop_at_listener(&mut self, id: ListenerId, reason: DropReason) {
        let overflow = u64::from(reason == DropReason::AcceptQueueFull);
        let crowded = u64::from(reason == DropReason::SynQueueFull);
        self.shared.counters.listen_drops += 1;
        self.shared.counters.listen_overflows += overflow;
        self.shared.counters.refused_on_memory += u64::from(reason == DropReason::NoMemory);
        if let Some(listener) = self.listener_mut(id) {
            listener.drops.dropped += 1;
            listener.drops.accept_queue_full += overflow;
            listener.drops.syn_queue_full += crowded;
            let overflown = listener.syn_queue_full();
            self.shared.counters.req_q_full_drop += crowded * u64::from(overflown);
        }
        self.drops.count(reason);
    }

    /// Decides on a SYN with an option or data, in the order of Linux's `tcp_try_fastopen`, with two differences that are settings: a full queue
    /// still hands out cookies, and a SYN seen before is not taken again. RFC 7413 §4.2, of PendingFastOpenRequests: "If this variable goes over a
    /// preset system limit, the server MUST disable TFO for all new connection requests until PendingFastOpenRequests drops below the system
    /// limit."
    fn decide_fast_open(
        &mut self,
        now: Instant,
        id: ListenerId,
        tuple: &FourTuple,
        segment: &Segment,
    ) -> FastOpenServer {
        let option = segment.header.options.fast_open;
        let requested = option.is_some_and(|option| option.cookie.is_none());
        self.shared.counters.tcp_fastopen_cookie_reqd += u64::from(requested);
        let bits = self.shared.config.tcp_fastopen;
        if bits & fastopen::SERVER == 0 {
            return FastOpenServer::Refuse(None);
        }
        let Some(listener) = self.listeners.find_mut(id.index, id.generation) else {
            return FastOpenServer::Refuse(None);
        };
        if listener.pending.max_qlen() == 0 || listener.socket.rare.signs(&tuple.peer) {
            return FastOpenServer::Refuse(None);
        }
        let Config { fast_open_key_rotation: every, cookie_on_overflow, .. } = self.shared.config;
        self.shared.counters.key_rotations += self.rotation.bring_up(now, every, &mut self.keys);
        let of_route =
            || self.routes.lookup(tuple.peer).is_some_and(|route| route.metrics.fastopen_no_cookie);
        let no_cookie = bits & fastopen::SERVER_NO_COOKIE != 0 || listener.no_cookie || of_route();
        let check = check_cookie(listener.keys.as_ref().unwrap_or(&self.keys), tuple, option);
        let wants_slot = no_cookie || check != CookieCheck::Invalid;
        if (wants_slot || !cookie_on_overflow) && !listener.pending.try_admit(now, tuple.peer) {
            self.shared.counters.tcp_fastopen_listen_overflow += 1;
            if !cookie_on_overflow {
                return FastOpenServer::Refuse(None);
            }
            self.shared.counters.cookie_on_overflow += u64::from(option.is_some());
            return FastOpenServer::Refuse(self.fresh_cookie(id, tuple, option));
        }
        if !wants_slot {
            let full = listener.pending.is_full();
            self.shared.counters.cookie_on_overflow += u64::from(full && option.is_some());
            self.shared.counters.tcp_fastopen_passive_fail += u64::from(option.is_some() && !requested);
            return FastOpenServer::Refuse(self.fresh_cookie(id, tuple, option));
        }
        let secret = self.isn.of_tuple(tuple);
        if !self.first_sight(now, secret, segment) {
            return FastOpenServer::Refuse(self.fresh_cookie(id, tuple, option));
        }
        self.shared.counters.tcp_fastopen_passive += 1;
        if !no_cookie && check == CookieCheck::Backup {
            self.shared.counters.tcp_fastopen_passive_alt_key += 1;
            return FastOpenServer::Accept(self.fresh_cookie(id, tuple, option), secret);
        }
        FastOpenServer::Accept(None, secret)
    }

    /// The listener's, or the stack's.
    pub(super) fn keys_of<'a>(&'a self, listener: &'a Listener) -> &'a KeyRing {
        listener.keys.as_ref().unwrap_or(&self.keys)
    }

    /// The cookie that answers a Fast Open option, in its kind.
    fn fresh_cookie(&self, id: ListenerId, tuple: &FourTuple, option: Option<FastOpenOption>) -> CookieReply {
        let (FastOpenOption { kind, .. }, listener) = (option?, self.listener(id)?);
        let cookie = self.keys_of(listener).cookie(tuple.peer, tuple.local);
        Some(FastOpenOption { kind, cookie: Some(cookie) })
    }

    /// The replay guard: is this SYN new to us?
    fn first_sight(&mut self, now: Instant, tuple: TupleSecret, segment: &Segment) -> bool {
        if !self.shared.config.replay_guard {
            return true;
        }
        match self.guard.check_and_insert(now, tuple, segment.seq()) {
            Guard::Fresh => true,
            Guard::Replay => {
                self.shared.counters.replay_guard_hits += 1;
                false
            }
            Guard::Full => {
                self.shared.counters.replay_guard_full += 1;
                false
            }
        }
    }

    /// What a SYN says, and we begin with.
    pub(super) fn request_from_syn(
        &self,
        now: Instant,
        id: ListenerId,
        name: Name,
        numbers: FirstNumbers,
        segment: &Segment,
    ) -> Request {
        let tuple = &name.tuple;
        let config = &self.shared.config;
        let options = &segment.header.options;
        let mut agreed = Negotiated::from_syn(config, tuple.peer.is_v4(), options).with_ecn(config, segment);
        let socket = self.listener(id).map(|listener| &listener.socket.rare);
        if socket.is_some_and(|socket| socket.signs(&tuple.peer)) {
            // There is no room for blocks beside both (Linux's `tcp_synack_options`).
            agreed.timestamps &= !agreed.sack;
        }
        let shift = |socket| self.shared.fresh.window_shift(config, socket);
        let rcv_wscale = agreed.snd_wscale.and(socket).map_or(0, shift);
        Request::new(now, id, name, numbers, (agreed, rcv_wscale), segment)
    }

    /// A connection may be accepted, which is an event for the application; perhaps while it is still `pending`.
    pub(super) fn queue_acceptable(&mut self, id: ListenerId, connection: ConnId, pending: bool) {
        let child = self.connections.get(connection.index).filter(|_| pending);
        let peer = child.map(|child| child.tuple.peer);
        let Some(listener) = self.listener_mut(id) else { return };
        if let Some(peer) = peer {
            listener.pending.admitted(peer);
        }
        listener.accept_queue.push_back(connection);
        if !core::mem::replace(&mut listener.listed, true) {
            self.work.events.push(SocketId::Listener(id));
        }
    }
}

fn check_cookie(keys: &KeyRing, tuple: &FourTuple, option: Option<FastOpenOption>) -> CookieCheck {
    match option.and_then(|option| option.cookie) {
        Some(cookie) => keys.check(tuple.peer, tuple.local, &cookie),
        None => CookieCheck::Invalid,
    }
}
