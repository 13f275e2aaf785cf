//! LISTEN (RFC 9293 §3.10.7.2), the SYN queue, and the server's half of Fast Open (RFC 7413 §4.2).

use super::holders::Name;
use super::listener::Listener;
use super::request::{CookieReply, Request, Syn};
use super::{FirstNumbers, Stack};
use crate::fast_open::{CookieCheck, Guard, KeyRing};
use crate::isn::TupleSecret;
use crate::tcp::connection::Connection;
use crate::tcp::handshake::{Handshake, PassiveOpen};
use crate::tcp::input::Segment;
use crate::tcp::negotiation::Negotiated;
use crate::tcp::state::Transition;
use crate::tcp::timers::Timer;
use crate::tuple::FourTuple;
use crate::{Config, ConnId, DropReason, Events, Instant, ListenerId, SocketId, State, fastopen};
use core::time::Duration;
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
        if self.attention.is_some() && !self.is_near_enough_for_listener(id) {
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
        let lacking = self.no_room_for_syn(listener, room);
        self.shared.counters.req_q_full_do_cookies += u64::from(room == Room::Cookie);
        if let Some(reason) = lacking {
            return self.drop_at_listener(id, reason);
        }
        let decision = if room == Room::SynQueue || self.shared.config.fast_open_past_syn_queue {
            self.decide_fast_open(now, id, &tuple, segment)
        } else {
            FastOpenServer::Refuse(None)
        };
        match (decision, room) {
            (FastOpenServer::Accept(cookie, secret), _) => {
                let numbers = self.numbers_of(secret, now, min_isn);
                self.open_fast(now, id, name, segment, numbers, cookie);
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

    fn no_room_for_syn(&self, listener: &Listener, room: Room) -> Option<DropReason> {
        let past_queue = self.shared.config.fast_open_past_syn_queue;
        match () {
            () if room == Room::Nowhere && !past_queue => Some(DropReason::SynQueueFull),
            () if listener.accept_queue_full() => Some(DropReason::AcceptQueueFull),
            () if self.too_many_connections() => Some(DropReason::TooManyConnections),
            () if self.shared.config.refuse_without_memory && self.shared.memory.is_exhausted() => {
                Some(DropReason::NoMemory)
            }
            () => None,
        }
    }

    /// There is room in the SYN queue of this listener, and in what may come behind it.
    pub(super) fn has_room_for_syn(&self, now: Instant, listener: &Listener, tuple: &FourTuple) -> bool {
        let room = self.room_for_request(now, listener, tuple);
        room == Room::SynQueue && self.no_room_for_syn(listener, room).is_none()
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

    /// The order of Linux's `tcp_try_fastopen`, with two differences that are settings: a full queue still hands out cookies, and
    /// a SYN seen before is not taken again.
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
        let offered = option.is_some() || !segment.payload.is_empty();
        if bits & fastopen::SERVER == 0 || !offered {
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
        if (wants_slot || !cookie_on_overflow) && !listener.pending.try_admit(now) {
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
    fn keys_of<'a>(&'a self, listener: &'a Listener) -> &'a KeyRing {
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

    /// A Fast Open child: a full connection in SYN-RECEIVED that the application may accept, read and answer before the final ACK.
    fn open_fast(
        &mut self,
        now: Instant,
        id: ListenerId,
        Name { tuple, hash }: Name,
        segment: &mut Segment,
        FirstNumbers { iss, ts_offset }: FirstNumbers,
        cookie: CookieReply,
    ) {
        let Some(listener) = self.listener(id) else { return };
        let hold = self.hold_time(now, listener, &tuple);
        let mut socket = listener.socket.clone();
        self.reflect_class(&mut socket, segment.dscp);
        let saved_syn = self.syn_to_save(&socket.rare);
        let syn_end = segment.end();
        let cookie_request = segment.payload.is_empty()
            && segment.header.options.fast_open.is_none_or(|option| option.cookie.is_none());
        let route = self.route_of(&tuple);
        let cx = self.shared.context(now);
        let child = Connection::new(cx, tuple, State::SynReceived, iss, socket, route);
        let child_id = self.insert_connection(child, hash, None);
        let Some(child) = self.connections.get_mut(child_id.index) else { return };
        let cx = self.shared.context(now);
        child.take_syn(cx, segment, ts_offset);
        child.fast_opened = true;
        child.tally.came(segment.payload.len(), segment.gso_size);
        // Until there is a sample (Linux's `tcp_init_metrics`; RFC 6298 §5.7 if there never is).
        child.rtt.on_syn_retransmitted();
        child.parent = Some(id);
        child.keep_syn(now, saved_syn);
        child.unaccepted = true;
        let room_left = usize::from(child.advmss).saturating_sub(segment.payload.len());
        let request_goes_on = room_left <= OPTIONS_MAX && !segment.has(Flags::FIN);
        child.take_syn_data(cx, segment);
        // An answer rides only on a SYN-ACK that acknowledges all of the SYN: whatever did not fit was not understood yet.
        // A mere cookie request, which a listener without cookies accepts too, is not kept waiting.
        let data_allowed = cx.config.synack_data && child.rcv.nxt == syn_end && !cookie_request;
        let due = hold.is_zero() || !data_allowed;
        if !due {
            child.timers.set(Timer::SynAckHold, now + hold);
        }
        child.handshake = Some(cx.handshakes.place(Handshake::Passive(PassiveOpen {
            fast_open: true,
            crossed: None,
            cookie,
            data_allowed,
            due,
            transmissions: 0,
            sent_at: now,
            data_sent: 0,
            fin_sent: false,
            wrote: false,
            fin_waits: false,
            request_goes_on,
        })));
        child.early_len = child.rcv.buffer.len() as u16;
        self.shared.counters.passive_opens += 1;
        self.queue_acceptable(id, child_id, true);
        self.settle(now, child_id.index);
    }

    /// How long the SYN-ACK may wait: a quarter of what a round trip to this client takes, if that is known, but no less than an
    /// application needs to be woken.
    fn hold_time(&self, now: Instant, listener: &Listener, tuple: &FourTuple) -> Duration {
        let config = &self.shared.config;
        let set = listener.synack_hold.unwrap_or(config.synack_hold);
        match config.synack_data {
            false => Duration::ZERO,
            true => {
                let srtt = self.remembered_rtt(now, tuple);
                srtt.map_or(set, |srtt| set.min((srtt / 4).max(HOLD_MIN)))
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
        let syn = Syn {
            seq: segment.seq(),
            window: segment.header.window,
            tsval: options.timestamps.map_or(0, |timestamps| timestamps.tsval),
            dscp: segment.dscp,
        };
        Request::new(now, id, name, numbers, (agreed, rcv_wscale), &syn)
    }

    /// A connection may be accepted, which the application is told; perhaps while it is still `pending`.
    pub(super) fn queue_acceptable(&mut self, id: ListenerId, connection: ConnId, pending: bool) {
        let Some(listener) = self.listener_mut(id) else { return };
        if pending {
            listener.pending.admitted();
        }
        listener.accept_queue.push_back(connection);
        if !std::mem::replace(&mut listener.listed, true) {
            self.agenda.events.push_back(SocketId::Listener(id));
        }
    }
}

/// Bytes of options that a SYN may carry, or leave room for.
const OPTIONS_MAX: usize = 40;
/// Waking another thread takes some 50 µs, and the answer must be computed: on paths of a few microseconds a quarter of the round trip
/// would end every hold before the answer can come.
const HOLD_MIN: Duration = Duration::from_micros(250);

fn check_cookie(keys: &KeyRing, tuple: &FourTuple, option: Option<FastOpenOption>) -> CookieCheck {
    match option.and_then(|option| option.cookie) {
        Some(cookie) => keys.check(tuple.peer, tuple.local, &cookie),
        None => CookieCheck::Invalid,
    }
}

impl Connection {
    /// The peer's SYN begins the connection.
    pub(super) fn take_syn(
        &mut self,
        cx: &crate::tcp::connection::Context,
        segment: &Segment,
        ts_offset: u32,
    ) {
        let options = &segment.header.options;
        let agreed = Negotiated::from_syn(&cx.config, self.tuple.peer.is_v4(), options);
        self.begin_agreed(cx, agreed.with_ecn(&cx.config, segment), segment.seq());
        self.marks_agreed_by_syn(cx, 1);
        self.count_syn_data(segment);
        self.ts_offset = ts_offset;
        self.remember_timestamp(cx.now, options.timestamps.map_or(0, |timestamps| timestamps.tsval));
        self.snd.wnd = segment.header.window.into();
        self.snd.wnd_max = self.snd.wnd;
        self.window_grew();
        self.snd.wl1 = segment.seq();
        self.snd.wl2 = self.snd.iss;
    }

    /// Data, and the FIN, of an accepted Fast Open SYN.
    fn take_syn_data(&mut self, cx: &mut crate::tcp::connection::Context, segment: &mut Segment) {
        let fin = segment.has(Flags::FIN).then(|| segment.end() - 1);
        if self.rcv.space.packets().is_some() && !segment.payload.is_empty() {
            self.queue_syn_packet(cx, segment);
            self.events |= Events::READABLE;
        } else if !segment.payload.is_empty() {
            let fits = segment.payload.len() <= self.rcv.wnd() as usize;
            let payload = std::mem::take(&mut segment.payload);
            let (seq, truesize, gso_size) = (segment.seq() + 1, segment.truesize, segment.gso_size);
            match fits {
                true => self.rcv.accept_next(cx.now, payload, truesize, gso_size, &mut cx.spare),
                false => self.rcv.accept(cx.now, seq, payload, truesize, gso_size, &mut cx.spare),
            };
            self.events |= Events::READABLE;
        }
        if fin.is_some_and(|fin| self.rcv.accept_fin(fin)) {
            self.transition(Transition::FinReceived);
            self.events |= Events::READABLE;
        }
        self.rcv.ack_owed = crate::tcp::receiver::AckOwed::No;
    }
}
