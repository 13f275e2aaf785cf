//! Fast Open children: connections in SYN-RECEIVED, created by an accepted SYN (RFC 7413 §4.2.2),
//! and the hold of their SYN-ACK. `listen` decides whether a SYN is accepted.

use super::listener::Listener;
use super::request::CookieReply;
use crate::fast_open::{Exchange, unvalidated_window};
use crate::stack::timers::settle::settle_open;
use crate::stack::{FirstNumbers, Stack};
use crate::tcp::connection::{Connection, Context};
use crate::tcp::input::Segment;
use crate::tcp::open::handshake::{Handshake, PassiveOpen};
use crate::tcp::open::negotiation::Negotiated;
use crate::tcp::recv::receiver::AckOwed;
use crate::tcp::state::Transition;
use crate::tcp::timers::Timer;
use crate::time::nanos;
use crate::tuple::FourTuple;
use crate::tuple::Name;
use crate::{Config, Events, Instant, ListenerId, State};
use wire::Flags;

impl Stack {
    /// Creates the child. The application may accept it, read and answer before the final ACK.
    #[inline(never)]
    pub(in crate::stack) fn open_fast(
        &mut self,
        now: Instant,
        id: ListenerId,
        name: Name,
        segment: &mut Segment,
        (FirstNumbers { iss, ts_offset }, cookie): (FirstNumbers, CookieReply),
    ) {
        let (len, end, fin) = (segment.payload.len(), segment.end(), segment.has(Flags::FIN));
        let cookie_brought = segment.header.options.fast_open.is_some_and(|option| option.cookie.is_some());
        let is_request = len == 0 && !cookie_brought;
        let Some(listener) = self.listener(id) else { return };
        let hold = self.hold_time(now, listener, &name.tuple);
        let mut socket = listener.socket.clone();
        self.reflect_class(&mut socket, segment.dscp);
        socket.rare.narrow_md5_keys(&name.tuple.peer);
        let saved_syn = self.syn_to_save(&socket.rare);
        let child_id = self.begin_connection(now, name, (State::SynReceived, iss), socket, None);
        let Some(child) = self.connections.get_mut(child_id.index) else { return };
        let cx = self.shared.context(now);
        child.ts_offset = ts_offset;
        child.fast_opened = true;
        child.take_syn(cx, segment);
        let most = child.limit_answer(cx, len);
        child.tally.came(len, segment.payload.gso_size());
        // There is no sample yet (Linux's `tcp_init_metrics`; RFC 6298 §5.7 if there never is one).
        child.rtt.on_syn_retransmitted();
        child.parent = Some(id);
        child.keep_syn(now, saved_syn);
        child.unaccepted = true;
        let room_left = usize::from(child.advmss).saturating_sub(len);
        let request_goes_on = room_left <= OPTIONS_MAX && !fin;
        child.marks_agreed_by_syn(cx, 1);
        child.count_syn_data(segment);
        child.take_syn_data(cx, segment);
        // An answer goes only with a SYN-ACK that acknowledges the whole SYN: the application has
        // not read data that did not fit. A mere cookie request, which a listener without cookies
        // accepts too, is not held.
        let is_taken = child.rcv.nxt == end;
        let data_allowed = cx.config.synack_data && is_taken && !is_request && most != Some(0);
        let due = hold == 0 || !data_allowed;
        if !due {
            child.timers.set(Timer::SynAckHold, now.plus_nanos(hold));
        }
        child.handshake = Some(cx.handshakes.place(Handshake::Passive(PassiveOpen {
            fast_open: true,
            crossed: None,
            cookie,
            data_allowed,
            limited: most.is_some(),
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
        child.note_plain();
        settle_open(&mut self.shared, &mut self.work, now, child_id, child);
        self.queue_acceptable(id, child_id, true);
        if self.trace.is_some() {
            self.trace_changes(now, child_id.index);
        }
    }

    /// Returns how many nanoseconds the SYN-ACK may wait: a quarter of the client's round trip, if
    /// known, but at least the time to wake an application.
    fn hold_time(&self, now: Instant, listener: &Listener, tuple: &FourTuple) -> u64 {
        let Config { synack_hold, synack_data, path_metrics_life: life, .. } = self.shared.config;
        let set = nanos(listener.synack_hold.unwrap_or(synack_hold));
        match self.shared.paths.lookup(tuple.local, tuple.peer) {
            _ if !synack_data => 0,
            Some(path) if path.rtt_nanos > 0 && path.is_fresh(now, life) => {
                set.min((path.rtt_nanos / 4).max(HOLD_MIN))
            }
            _ => set,
        }
    }
}

impl Connection {
    /// Begins the connection with the peer's SYN.
    fn take_syn(&mut self, cx: &Context, segment: &Segment) {
        let options = &segment.header.options;
        let agreed = Negotiated::from_syn(&cx.config, self.tuple.peer.is_v4(), options);
        self.begin_agreed(cx, agreed.with_ecn(&cx.config, segment), segment.seq());
        self.remember_timestamp(cx.now, options.timestamps.map_or(0, |timestamps| timestamps.tsval));
        self.snd.wnd = segment.header.window.into();
        self.snd.wnd_max = self.snd.wnd;
        self.window_grew();
        self.snd.wl1 = segment.seq();
        self.snd.wl2 = self.snd.iss;
    }

    /// Limits what may be sent before the final ACK to less than the SYN's window, if a setting
    /// says so. The final ACK brings the full window.
    fn limit_answer(&mut self, cx: &Context, received: usize) -> Option<u32> {
        let ip_header = self.tuple.ip_header_len() as u32;
        let exchange = Exchange { received: received as u32, ip_header, segment: self.smss().into() };
        let most = unvalidated_window(cx.config.fast_open_amplification, &exchange)?;
        self.snd.wnd = self.snd.wnd.min(most);
        Some(most)
    }

    /// Takes data and FIN of an accepted Fast Open SYN.
    fn take_syn_data(&mut self, cx: &mut Context, segment: &mut Segment) {
        let fin = segment.has(Flags::FIN).then(|| segment.end() - 1);
        if !segment.payload.is_empty() {
            if !self.queue_syn_packet(cx, segment) {
                let seq = segment.seq() + 1;
                self.rcv.accept(cx.now, seq, segment.payload.take(), &mut cx.spare);
            }
            self.events |= Events::READABLE;
        }
        if fin.is_some_and(|fin| self.rcv.accept_fin(fin)) {
            self.transition(Transition::FinReceived);
            self.events |= Events::READABLE;
        }
        self.rcv.ack_owed = AckOwed::No;
    }
}

/// Largest length of a SYN's options.
const OPTIONS_MAX: usize = 40;
/// Shortest hold in nanoseconds. Waking another thread takes some 50 µs, and the answer must be
/// computed. On paths of a few microseconds a quarter of the round trip would end every hold too
/// early.
const HOLD_MIN: u64 = 250_000;
