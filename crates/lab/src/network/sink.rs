//! Where a host's packets go when its stack gives them: at once on the wire, or to a card.

use super::card::Card;
use super::queue::for_each_frame;
use bytes::Bytes;
use proto::{Events, Instant, SocketId, Stack};
use smallvec::SmallVec;
use std::collections::VecDeque;
use wire::TxPacket;

/// The way out of a host.
pub(super) enum Sink {
    /// Nothing between the stack and the path: what is to be put on that.
    Wire(SmallVec<[Bytes; 1]>),
    /// Disciplines, rings and a line of its own.
    Card(Box<Card>),
}

impl Sink {
    /// The engine's rule after every mutation: take everything it has to say.
    pub(super) fn drain(
        &mut self,
        stack: &mut Stack,
        now: Instant,
        events: &mut VecDeque<(SocketId, Events)>,
    ) {
        if stack.is_transmit_pending() {
            let mut packet = TxPacket::default();
            while stack.poll_transmit_into(now, &mut packet) {
                match self {
                    Sink::Wire(packets) => for_each_frame(&packet, |bytes| packets.push(bytes)),
                    Sink::Card(card) => card.send(stack, now, &packet),
                }
            }
        }
        while let Some(event) = stack.poll_event() {
            events.push_back(event);
        }
    }
}
