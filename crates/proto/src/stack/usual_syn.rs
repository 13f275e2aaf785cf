//! The short way of the SYN that nearly all ordinary openings begin with: the usual options and nothing else, from somebody new, to a listener
//! that has room and asks for nothing special. `ingress` and `listen` ask for all that here is asked at once, and leave the same.

use super::Stack;
use super::holders::Name;
use super::request::{Request, Syn};
use crate::Instant;
use crate::tcp::negotiation::Negotiated;
use core::ops::Range;
use wire::{PlainSegment, RxPacket, UsualSyn};

impl Stack {
    /// A half-open request is kept, and answered. The SYN has no other flags, and nobody has its tuple. False: it is not such a SYN, and
    /// nothing has happened.
    #[inline(never)]
    pub(super) fn take_usual_syn(
        &mut self,
        now: Instant,
        name: Name,
        plain: &PlainSegment,
        options: Range<usize>,
        packet: &RxPacket,
    ) -> bool {
        let Some(options) = packet.data.get(options).and_then(UsualSyn::read) else { return false };
        let nobody_looks = self.attention.is_none() && self.trace.is_none();
        let (tuple, shared) = (&name.tuple, &self.shared);
        if !nobody_looks
            || plain.payload_len > 0
            || !shared.fresh.agrees_as_usual
            || !shared.takes_short_ways()
            || tuple.local == tuple.peer
            || self.routes.lookup(tuple.peer).is_some()
            || self.time_wait.find(name.hash, tuple).is_some()
        {
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
        let syn =
            Syn { seq: plain.seq, window: plain.window, tsval: options.timestamps.tsval, dscp: plain.dscp };
        let request = Request::new(now, id, name, numbers, (agreed, rcv_wscale), &syn);
        self.shared.took_short_way();
        self.queue_request(now, request, None);
        true
    }
}
