//! The short ways of the SYNs that nearly all openings begin with, from somebody new to a listener that has room and asks for nothing special:
//! the one with the usual options and nothing else, which becomes a half-open request; and the one that brings our Fast Open cookie,
//! too, and data, perhaps with the FIN behind it, which becomes a connection.
//!
//! `ingress` and `listen` ask for all that here is asked at once, and leave the same. To them is left what asks for a cookie, or brings
//! another than that of our first key; and whatever has other options, no room, or was seen before.

use super::Stack;
use super::fast_child::FastSyn;
use super::holders::Name;
use super::request::{Request, Syn};
use crate::fast_open::{CookieCheck, Guard};
use crate::tcp::connection::{Connection, Context};
use crate::tcp::input::predicted::Payload;
use crate::tcp::negotiation::Negotiated;
use crate::tcp::receiver::AckOwed;
use crate::tcp::state::Transition;
use crate::tuple::FourTuple;
use crate::{Events, Instant, fastopen};
use core::ops::Range;
use wire::{Arrival, Flags, Layout, PlainSegment, UsualSyn};

impl Stack {
    /// A SYN, which has no other flags but perhaps FIN, and whose tuple, of this hash, nobody has, is taken and will be answered. False: it is
    /// not one of these, and nothing has happened.
    ///
    /// (It is read again: kept at hand for this, the headers of every packet would lie in memory.)
    #[inline(never)]
    pub(super) fn take_usual_syn(&mut self, now: Instant, hash: u64, packet: &mut Arrival<'_>) -> bool {
        let plain = PlainSegment::read_v4(&packet.data, false);
        let plain = plain.or_else(|| PlainSegment::read_v6(&packet.data, false));
        let Some((plain, Layout { options, text })) = plain else { return false };
        let name = Name { tuple: FourTuple::of_arrival(&plain), hash };
        match self.is_usual_stranger(&name) {
            false => false,
            true if text.is_empty() => self.take_plain_syn(now, name, &plain, options, packet),
            true => self.take_fast_open_syn(now, name, &plain, (options, text), packet),
        }
    }

    /// The SYN has no data: a half-open request is kept, and answered.
    #[inline(always)]
    fn take_plain_syn(
        &mut self,
        now: Instant,
        name: Name,
        plain: &PlainSegment,
        options: Range<usize>,
        packet: &Arrival<'_>,
    ) -> bool {
        let Some(options) = packet.data.get(options).and_then(UsualSyn::read) else { return false };
        let (tuple, shared) = (&name.tuple, &self.shared);
        if plain.flags != Flags::SYN {
            return false;
        }
        let Some(id) = self.find_listener(tuple) else { return false };
        let Some(listener) = self.listener(id) else { return false };
        let socket = &listener.socket.rare;
        if !socket.is_ordinary() || !self.has_room_for_syn(now, listener, tuple) {
            return false;
        }
        let agreed = Negotiated::as_usual(&shared.config, tuple.peer.is_v4(), &options);
        let rcv_wscale = shared.fresh.window_shift(&shared.config, socket);
        if self.is_martian(now, tuple.local, tuple.peer) {
            return true;
        }
        let numbers = self.first_numbers(now, tuple, None);
        let request = Request::new(now, id, name, numbers, (agreed, rcv_wscale), &syn_of(plain, &options));
        self.queue_request(now, request, None);
        true
    }

    /// The same of a SYN with data: its cookie is the listener's, and the data fits the window. A Fast Open child.
    #[inline(never)]
    fn take_fast_open_syn(
        &mut self,
        now: Instant,
        name: Name,
        plain: &PlainSegment,
        (options, text): (Range<usize>, Range<usize>),
        packet: &mut Arrival<'_>,
    ) -> bool {
        let Some((options, cookie)) = packet.data.get(options).and_then(UsualSyn::read_with_cookie) else {
            return false;
        };
        let (tuple, fin) = (&name.tuple, plain.flags.contains(Flags::FIN));
        let Some(id) = self.find_listener(tuple) else { return false };
        let Some(listener) = self.listener(id) else { return false };
        let config = &self.shared.config;
        let window = self.shared.fresh.payload_space().map_or(0, |space| space.full());
        if text.len() > window.min(u16::MAX.into()) as usize
            || config.tcp_fastopen & fastopen::SERVER == 0
            || fin && !config.syn_fin
            || !listener.socket.rare.is_ordinary()
            || listener.pending.is_full()
            || !self.has_room_for_syn(now, listener, tuple)
        {
            return false;
        }
        if self.is_martian(now, tuple.local, tuple.peer) {
            return true;
        }
        let every = self.shared.config.fast_open_key_rotation;
        self.shared.counters.key_rotations += self.rotation.bring_up(now, every, &mut self.keys);
        let Some(listener) = self.listener(id) else { return false };
        let check = self.keys_of(listener).check_bytes(tuple.peer, tuple.local, cookie);
        let secret = self.isn.of_tuple(tuple);
        if check != CookieCheck::Primary
            || self.shared.config.replay_guard
                && self.guard.check_and_insert(now, secret, plain.seq) != Guard::Fresh
        {
            return false;
        }
        self.shared.counters.tcp_fastopen_passive += 1;
        let numbers = self.numbers_of(secret, now, None);
        let syn = FastSyn {
            syn: syn_of(plain, &options),
            agreed: Negotiated::as_usual(&self.shared.config, tuple.peer.is_v4(), &options),
            len: text.len(),
            fin,
            gso_size: packet.gso_size,
            is_request: false,
        };
        let data = Payload { packet, place: text };
        self.open_fast(now, id, name, &syn, (numbers, None), |child, cx| {
            child.take_fitting_syn_data(cx, data, fin);
        });
        true
    }

    /// Nobody looks, the settings let SYNs agree on the usual, and the peer may be answered: it has no TIME-WAIT here, and no route.
    #[inline(always)]
    fn is_usual_stranger(&self, Name { tuple, hash }: &Name) -> bool {
        self.attention.is_none()
            && self.trace.is_none()
            && self.shared.fresh.agrees_as_usual
            && self.shared.takes_fast_paths()
            && tuple.local != tuple.peer
            && self.routes.lookup(tuple.peer).is_none()
            && self.time_wait.find(*hash, tuple).is_none()
    }
}

fn syn_of(plain: &PlainSegment, options: &UsualSyn) -> Syn {
    Syn { seq: plain.seq, window: plain.window, tsval: options.timestamps.tsval, dscp: plain.dscp }
}

impl Connection {
    /// All data of a SYN, and the FIN behind it.
    #[inline(always)]
    fn take_fitting_syn_data(&mut self, cx: &mut Context, data: Payload<'_, '_>, fin: bool) {
        self.rcv.accept_next(cx.now, data.packet, data.place, &mut cx.spare);
        if fin {
            self.rcv.accept_fin(self.rcv.nxt);
            self.transition(Transition::FinReceived);
        }
        self.events |= Events::READABLE;
        self.rcv.ack_owed = AckOwed::No;
    }
}
