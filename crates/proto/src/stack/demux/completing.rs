//! The fast path of the segment that completes a handshake as nearly all do: it follows the peer's SYN, acknowledges ours, has no options
//! but timestamps, and finds room.
//!
//! What `open` asks of it step by step is asked here at once. Then it is to the new connection what any segment is that was to be
//! expected. Whatever else there may be is left to the slow path, and random worlds compare the two
//! (`cargo xtask simulate --differential`).
//!
//! It saves 3 % of the instructions of an exchange without Fast Open.

use super::holders::Holder;
use crate::Instant;
use crate::fast_paths::FastPath;
use crate::stack::Stack;
use crate::stack::listen::open::FinalAck;
use crate::stack::listen::request::Request;
use crate::stack::timers::settle::notify_listener;
use crate::tcp::input::predicted::Ordinary;
use core::ops::Range;
use wire::Arrival;

impl Stack {
    /// A half-open request becomes a connection, which takes what the segment brings. False: this is another segment, and nothing has
    /// happened.
    #[inline(never)]
    pub(in crate::stack) fn take_completing(
        &mut self,
        now: Instant,
        index: u32,
        ordinary: &Ordinary,
        text: Range<usize>,
        packet: &mut Arrival<'_>,
    ) -> bool {
        let nobody_looks = self.hooks.is_none() && self.trace.is_none();
        let Some(request) = self.requests.get(index) else { return false };
        let has_room = self.listener(request.listener).is_some_and(|listener| {
            listener.defer_timeouts == 0 && self.lacks_place(now, listener, &request.tuple).is_none()
        });
        if !nobody_looks
            || !has_room
            || !request.is_completed_by(ordinary)
            || self.shared.fresh.payload_space().is_none()
            || !self.shared.takes_fast_paths()
        {
            return false;
        }
        let Some(request) = self.take_request(index) else { return false };
        self.shared.took(FastPath::Completing);
        let ack = FinalAck { window: ordinary.window, timestamps: ordinary.timestamps };
        let index = self.open_request(now, request, Some(Holder::Request(index)), Some(ack));
        if let Some(connection) = self.connections.get_mut(index) {
            connection.note_plain();
        }
        if !self.take_predicted(now, index, ordinary, text, packet) {
            self.take_again(now, packet);
        }
        true
    }

    /// Completes the handshake of a Fast Open child. False: something is left to be done about the segment, perhaps all, by the slow path.
    #[inline(never)]
    pub(in crate::stack) fn take_completing_child(
        &mut self,
        now: Instant,
        index: u32,
        ordinary: &Ordinary,
        text: Range<usize>,
        packet: &mut Arrival<'_>,
    ) -> bool {
        let nobody_looks = self.hooks.is_none() && self.trace.is_none();
        let Some(connection) = self.connections.get_mut(index) else { return false };
        let cx = self.shared.context(now);
        if !nobody_looks || !connection.completes(cx, ordinary) {
            return false;
        }
        cx.took(FastPath::CompletingChild);
        connection.complete(cx, ordinary);
        notify_listener(&mut self.listeners, now, connection);
        connection.note_plain();
        let mut ordinary = *ordinary;
        ordinary.completes = true;
        self.take_predicted(now, index, &ordinary, text, packet)
    }
}

impl Request {
    /// Its number is the very next, it acknowledges the SYN-ACK and nothing else, and its time is right. (It is no SYN and no reset.)
    #[inline(always)]
    fn is_completed_by(&self, segment: &Ordinary) -> bool {
        (segment.seq, segment.ack) == (self.irs + 1, self.iss + 1)
            && self.of_another_time(segment.timestamps).is_none()
            && !self.agreed.ecn.is_accurate()
    }
}
