//! A second SYN-ACK with other numbers: another server behind the same address, or one that answers each SYN anew.

use super::half::{Half, Offer};
use super::handshake::SynAck;
use super::{Connection, Side};
use crate::packet::Packet;
use core::time::Duration;
use wire::{Flags, SeqNum};

/// The answer that came second.
#[derive(Clone, Debug)]
pub(super) struct Rival {
    isn: SeqNum,
    offer: Option<Offer>,
    at: Duration,
    syn_ack: SynAck,
}

/// Numbers behind its first one that are taken for its own: resets, and an answer.
const NUMBERS: u32 = 1 << 16;

impl Rival {
    /// Whether this packet is the rival's, or the client's answer to it.
    pub(super) fn is_about(&self, side: Side, packet: &Packet<'_>) -> bool {
        match side {
            Side::Server => packet.seq.within(self.isn, NUMBERS),
            Side::Client => packet.flags.contains(Flags::ACK) && packet.ack.within(self.isn + 1, NUMBERS),
        }
    }
}

impl Connection {
    /// Remembers the answer of another server, as the client may take that one.
    pub(super) fn note_rival(&mut self, packet: &Packet<'_>) {
        let is_open = self.handshake.is_acknowledged();
        if packet.is_syn_ack() && !is_open && self.rival.is_none() {
            self.rival = Some(Rival {
                isn: packet.seq,
                offer: Offer::of(packet),
                at: packet.at,
                syn_ack: self.handshake.answer(packet),
            });
        }
    }

    /// The client acknowledges the second answer: that is the connection, and the first the other server's.
    pub(super) fn prefers_rival(&mut self, side: Side, packet: &Packet<'_>) -> bool {
        let is_answer = side == Side::Client
            && packet.flags.contains(Flags::ACK)
            && !packet.flags.intersects(Flags::RST | Flags::SYN)
            && !self.handshake.is_acknowledged();
        let Some(rival) = self.rival.take_if(|rival| is_answer && rival.is_about(side, packet)) else {
            return false;
        };
        self.halves[Side::Server as usize] = Half::begun(rival.isn, rival.offer, rival.at);
        self.handshake.replace_answer(rival.syn_ack);
        true
    }
}
