//! The SYN-ACK of a half-open request, and how the request is kept with its first.

use super::request::{CookieReply, Request};
use crate::Instant;
use crate::stack::Stack;
use crate::stack::demux::holders::Holder;
use crate::tcp::ecn::accurate::add_to_syn_ack;
use crate::tcp::open::negotiation::{self, TIMESTAMPS_LEN};
use crate::tcp::recv::window_space::first_field;
use alloc::boxed::Box;
use wire::{Flags, TcpHeader, TcpOptions, Timestamps};

impl Stack {
    /// Keeps a request, and sends its first SYN-ACK.
    pub(in crate::stack) fn queue_request(
        &mut self,
        now: Instant,
        mut request: Request,
        cookie: CookieReply,
    ) {
        let (id, hash, tuple, dscp) = (request.listener, request.hash, request.tuple, request.dscp);
        if self.hooks.is_some() {
            let saved = self.listener(id).and_then(|listener| self.syn_to_save(&listener.socket.rare));
            request.saved_syn = saved.map(Box::new);
        }
        let Some(listener) = self.listener_mut(id) else { return };
        listener.requests += 1;
        listener.young += 1;
        self.shared.counters.out_segs += 1;
        request.transmissions = 1;
        let (index, generation) = self.requests.insert(request);
        self.hold(hash, Holder::Request(index), None);
        let at = now + self.shared.fresh.handshake_rto(&self.shared.config, 0);
        self.request_timers.begin(&mut self.requests, (index, generation), now, at);
        self.work.deadlines.note_other(at);
        let Some(request) = self.requests.get(index) else { return };
        let syn_ack = self.syn_ack_of(request, now.as_millis() as u32, cookie);
        self.reply_for(Some((id, dscp)), tuple.local, tuple.peer, &syn_ack);
    }

    /// The SYN-ACK of a request; `clock` is TSval before its offset.
    pub(in crate::stack) fn syn_ack_of(
        &self,
        request: &Request,
        clock: u32,
        cookie: CookieReply,
    ) -> TcpHeader {
        let config = &self.shared.config;
        let route = self.routes.lookup(request.tuple.peer).map(|route| &route.metrics);
        let own_mss = negotiation::advertised_mss(config, &self.shared.capabilities, &request.tuple, route);
        let initrwnd = route.and_then(|route| route.initrwnd);
        let socket = self.listeners.get(request.listener.index).map(|listener| &listener.socket.rare);
        let timestamps_len = if request.agreed.timestamps { TIMESTAMPS_LEN } else { 0 };
        let mss = socket.map_or(own_mss, |socket| own_mss.min(negotiation::mss_clamp(socket)));
        let segment = u32::from(mss.saturating_sub(timestamps_len));
        let first = initrwnd.map_or(u32::MAX, |segments| segments.saturating_mul(segment));
        let space = socket.map(|socket| self.shared.fresh.window(config, socket)).unwrap_or_default();
        let window = first_field(config, space.min(first), segment);
        let tsval = clock.wrapping_add(request.ts_offset);
        let mut options = TcpOptions {
            mss: Some(mss),
            window_scale: request.agreed.snd_wscale.map(|_| request.rcv_wscale),
            sack_permitted: request.agreed.sack,
            timestamps: request.agreed.timestamps.then_some(Timestamps { tsval, tsecr: request.ts_recent }),
            fast_open: cookie,
            ..TcpOptions::default()
        };
        if request.timeouts == 0 && request.agreed.ecn.is_accurate() {
            let signs = socket.is_some_and(|socket| socket.signs(&request.tuple.peer));
            let signature = if signs { wire::SIGNATURE_OPTION_LEN } else { 0 };
            add_to_syn_ack(config, request.agreed.ecn, signature, &mut options);
        }
        TcpHeader {
            src_port: request.tuple.local_port,
            dst_port: request.tuple.peer_port,
            seq: request.iss,
            ack: request.irs + 1,
            flags: Flags::SYN | Flags::ACK | request.agreed.ecn_of_syn_ack(),
            window: window as u16,
            urgent: 0,
            options,
        }
    }
}
