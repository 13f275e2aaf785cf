//! Where a host's packets go when its stack gives them: at once on the wire, or to a card.

use super::card::Card;
use bytes::Bytes;
use proto::{Events, Instant, SocketId, Stack};
use std::collections::VecDeque;

/// The way out of a host.
pub(super) enum Sink {
    /// Nothing between the stack and the path: what is to be put on that.
    Wire(Vec<Bytes>),
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
        while let Some(packet) = stack.poll_transmit(now) {
            match self {
                Sink::Wire(packets) => packets.extend(packet.segments()),
                Sink::Card(card) => card.send(stack, now, &packet),
            }
        }
        while let Some(event) = stack.poll_event() {
            events.push_back(event);
        }
    }
}
