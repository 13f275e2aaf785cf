//! The way of packets out of a stack: directly to the wire or to a card.

use super::card::{Card, CardEvent};
use super::frames::Frames;
use proto::{Events, Instant, SocketId, Stack};
use std::collections::VecDeque;
use wire::TxPacket;

/// The exit of a host.
pub(super) struct Sink {
    /// The card; `None` if the stack sends directly to the path.
    pub(super) card: Option<Box<Card>>,
    /// Events for the network.
    pub(super) card_events: Vec<CardEvent>,
    frames: Frames,
    /// Reusable memory for packets of the stack.
    packet: TxPacket,
}

impl Sink {
    pub(super) fn new(card: Option<Card>, frames: Frames) -> Sink {
        Sink { card: card.map(Box::new), card_events: Vec::new(), frames, packet: TxPacket::default() }
    }

    /// Drains the stack's output, as the engine requires after every mutation.
    #[inline]
    pub(super) fn drain(
        &mut self,
        stack: &mut Stack,
        now: Instant,
        events: &mut VecDeque<(SocketId, Events)>,
    ) {
        if stack.is_transmit_pending() {
            self.take_packets(stack, now);
        }
        while let Some(event) = stack.poll_event() {
            events.push_back(event);
        }
    }

    fn take_packets(&mut self, stack: &mut Stack, now: Instant) {
        let Sink { card, card_events, frames, packet } = self;
        while stack.poll_transmit_into(now, packet) {
            match card {
                None => frames.cut(packet, |frame| card_events.push(CardEvent::Sent(frame))),
                Some(card) => card.send(stack, now, packet, frames, card_events),
            }
            packet.clear_payload();
        }
    }
}
