//! Further SYN-ACKs with other numbers: from another server behind the same address, or from a
//! server that answers each SYN with new numbers.

use super::half::{Half, Offer};
use super::handshake::SynAck;
use super::{Connection, Side};
use crate::packet::Packet;
use core::time::Duration;
use wire::{Flags, SeqNum};

/// A later answer.
#[derive(Clone, Debug)]
pub(super) struct Rival {
    isn: SeqNum,
    offer: Option<Offer>,
    at: Duration,
    syn_ack: SynAck,
}

/// Distance from its first number up to which numbers are considered its own: resets, and an
/// answer.
const NUMBERS: u32 = 1 << 16;

/// Most other answers that are stored. Each may be a new SYN cookie.
const RIVALS_MAX: usize = 4;

impl Rival {
    /// Returns whether this packet belongs to the rival, or is the client's answer to it.
    pub(super) fn is_about(&self, side: Side, packet: &Packet<'_>) -> bool {
        match side {
            Side::Server => packet.seq.within(self.isn, NUMBERS),
            Side::Client => packet.flags.contains(Flags::ACK) && packet.ack.within(self.isn + 1, NUMBERS),
        }
    }
}

impl Connection {
    /// Stores the answer of another server, because the client may choose it.
    pub(super) fn note_rival(&mut self, packet: &Packet<'_>) {
        let is_known = self.rivals.iter().any(|rival| rival.isn == packet.seq);
        if !packet.is_syn_ack() || is_known || self.handshake.is_acknowledged() {
            return;
        }
        if self.rivals.len() == RIVALS_MAX {
            self.rivals.remove(0);
        }
        self.rivals.push(Rival {
            isn: packet.seq,
            offer: Offer::of(packet),
            at: packet.at,
            syn_ack: self.handshake.answer(packet),
        });
    }

    /// Returns whether this packet belongs to another server, or is the client's answer to it.
    pub(super) fn is_rivals(&self, side: Side, packet: &Packet<'_>) -> bool {
        self.rivals.iter().any(|rival| rival.is_about(side, packet))
    }

    /// Makes a later answer the connection's, if the client acknowledges it. The first answer is
    /// then the other server's.
    pub(super) fn prefers_rival(&mut self, side: Side, packet: &Packet<'_>) -> bool {
        let is_answer = side == Side::Client
            && packet.flags.contains(Flags::ACK)
            && !packet.flags.intersects(Flags::RST | Flags::SYN)
            && !self.handshake.is_acknowledged();
        let place = self.rivals.iter().position(|rival| is_answer && rival.is_about(side, packet));
        let Some(rival) = place.map(|place| self.rivals.remove(place)) else { return false };
        let server = &mut self.halves[Side::Server as usize];
        let former = std::mem::replace(server, Half::begun(rival.isn, rival.offer, rival.at));
        let (syn_ack, syn_acks) = self.handshake.replace_answer(rival.syn_ack, self.other_answers);
        self.other_answers = u64::from(syn_acks);
        self.rivals.extend(former.isn().zip(syn_ack).map(|(isn, syn_ack)| Rival {
            isn,
            offer: former.offer(),
            at: syn_ack.at(),
            syn_ack,
        }));
        true
    }
}
