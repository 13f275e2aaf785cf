//! Decides whether a packet between two ports belongs to this connection: only sequence numbers
//! that fit the handshake count.
//!
//! Between the same ports a capture may contain other packets: those of an older connection,
//! challenge ACKs (RFC 5961), answers from TIME-WAIT, the SYN-ACK of another server behind the same
//! address, and forged resets. Such a packet must not move SND.NXT by 800 MB. On the other hand, a
//! capture may have gaps of any size. Numbers beyond the window are therefore accepted once both
//! sides agree on them.

use super::half::{GAP_MAX, Half};
use super::{Connection, Side};
use crate::packet::Packet;
use wire::{Flags, SeqNum};

/// The owner of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Belonging {
    /// This connection.
    Own,
    /// An older connection between the same ports.
    Older,
    /// Another server, or a server that answered the same SYN twice with different numbers.
    OtherServer,
}

/// A packet whose numbers do not fit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Suspect {
    side: Side,
    seq: SeqNum,
    end: SeqNum,
    ack: Option<SeqNum>,
    /// Later packets of the same side that continue from it.
    followers: u8,
}

/// Allowed distance beyond the known window. Acknowledgements that open the window may be missing.
const SLACK: u32 = 1 << 20;
/// Allowed distance beyond the last number if the window scale is unknown.
const UNSCALED: u32 = 1 << 24;
/// Allowed distance before the last number if the first one is unknown.
const BEHIND: u32 = 1 << 26;
/// Distance from the first number up to which numbers are compared with it. Later they may have
/// wrapped.
const COMPARED: u32 = 1 << 30;
/// Packets of one side that must continue from numbers that the other side never confirms, for
/// example if only one direction was captured.
const FOLLOWERS: u8 = 2;

impl Connection {
    /// Returns the owner of a packet that is not an opening SYN.
    pub(crate) fn belonging(&self, packet: &Packet<'_>) -> Belonging {
        let side = self.side_of(packet);
        let (own, other) = (self.half(side), self.half(side.other()));
        let has_ack = packet.flags.contains(Flags::ACK);
        let is_ack_right = !has_ack || fits_ack(own, other, packet.ack);
        if packet.is_syn_ack() && own.isn().is_some_and(|isn| isn != packet.seq) {
            return if is_ack_right { Belonging::OtherServer } else { Belonging::Older };
        }
        let is_right = if packet.flags.contains(Flags::RST) {
            // A reset is judged by its sequence number. If it answers a segment, it has the number
            // that the segment acknowledges.
            match own.frontier() {
                None => is_ack_right,
                // A client that gives up resets its own SYN.
                Some(next) if own.is_only_syn() => next == packet.seq || own.isn() == Some(packet.seq),
                Some(_) => {
                    fits_seq(own, other, packet.seq) || has_ack && other.frontier() == Some(packet.ack)
                }
            }
        } else {
            is_ack_right && fits_seq(own, other, packet.seq)
        };
        let is_rival = self.is_rivals(side, packet);
        match () {
            () if is_rival && !(is_right && self.handshake.is_acknowledged()) => Belonging::OtherServer,
            () if is_right => Belonging::Own,
            () => Belonging::Older,
        }
    }

    /// Returns whether the connection knows enough of its handshake to claim this packet while
    /// another connection has the ports.
    pub(crate) fn claims(&self, packet: &Packet<'_>) -> bool {
        let side = self.side_of(packet);
        let is_known = |side: Side| self.half(side).isn().is_some();
        is_known(side.other())
            && (is_known(side) || packet.is_syn_ack())
            && self.belonging(packet) == Belonging::Own
    }

    /// Returns whether this packet and an earlier one belong to another connection whose SYN was
    /// not captured: both sides agree on the numbers, and a gap of the capture cannot explain them.
    pub(crate) fn is_replaced_by(&self, packet: &Packet<'_>) -> bool {
        let side = self.side_of(packet);
        if packet.flags.intersects(Flags::SYN | Flags::RST) || self.belonging(packet) == Belonging::Own {
            return false;
        }
        let Some(mut suspect) = self.suspect.filter(|suspect| suspect.ack.is_some()) else { return false };
        if !suspect.is_confirmed_by(side, packet) {
            return false;
        }
        let is_reached = |side: Side, number: SeqNum| {
            self.half(side)
                .frontier()
                .is_none_or(|next| number.since(next) <= GAP_MAX || is_near(next, number))
        };
        let (by, (from, _), ack) = suspect.numbers();
        !is_reached(by, from) && !ack.is_some_and(|ack| is_reached(by.other(), ack))
    }

    /// Returns the suspect packet if this packet confirms its numbers. Otherwise this packet may
    /// become the suspect.
    pub(super) fn confirms(&mut self, side: Side, packet: &Packet<'_>) -> Option<Suspect> {
        if packet.flags.intersects(Flags::SYN | Flags::RST) {
            return None;
        }
        let is_confirmed = self.suspect.as_mut().is_some_and(|suspect| suspect.is_confirmed_by(side, packet));
        if is_confirmed {
            return self.suspect.take();
        }
        if self.suspect.is_none_or(|suspect| suspect.followers == 0) {
            self.suspect = Some(Suspect {
                side,
                seq: packet.text_seq(),
                end: packet.end_seq(),
                ack: packet.flags.contains(Flags::ACK).then_some(packet.ack),
                followers: 0,
            });
        }
        None
    }
}

impl Suspect {
    fn is_confirmed_by(&mut self, side: Side, packet: &Packet<'_>) -> bool {
        let has_ack = packet.flags.contains(Flags::ACK);
        if side != self.side {
            return has_ack
                && is_near(packet.ack, self.end)
                && packet.ack.after_or_eq(self.seq)
                && self.ack.is_none_or(|ack| is_near(packet.seq, ack));
        }
        // Packets that an old connection repeats make no progress.
        let has_sent = packet.text_len > 0 && packet.seq.after_or_eq(self.end) && self.end != self.seq;
        let has_acknowledged =
            has_ack && self.ack.is_some_and(|ack| packet.ack.after(ack) && is_near(packet.ack, ack));
        if is_near(packet.seq, self.end) && (has_sent || has_acknowledged) {
            self.followers += 1;
            self.end = packet.end_seq();
            self.ack = has_ack.then_some(packet.ack);
        }
        self.followers >= FOLLOWERS
    }

    /// Returns where the two sides continue: the side and range of the suspect segment, and the
    /// other side's number.
    pub(super) fn numbers(&self) -> (Side, (SeqNum, SeqNum), Option<SeqNum>) {
        (self.side, (self.seq, self.end), self.ack)
    }
}

fn is_near(one: SeqNum, other: SeqNum) -> bool {
    one.since(other).min(other.since(one)) <= SLACK
}

/// Returns whether `own` may have sent this number, from the point of view of `other` (RFC 9293
/// section 3.10.7.4), with room for packets that the capture lacks.
fn fits_seq(own: &Half, other: &Half, seq: SeqNum) -> bool {
    let Some(next) = own.frontier() else { return true };
    if seq.before_or_eq(next) {
        return is_behind(own, next, seq);
    }
    if own.is_only_syn() && other.isn().is_none() {
        return false;
    }
    seq.since(next) <= reach(other, next).min(own.first_flight())
}

/// Returns whether `own` may acknowledge this number of `other`.
fn fits_ack(own: &Half, other: &Half, ack: SeqNum) -> bool {
    let Some(next) = other.frontier() else { return true };
    if ack.before_or_eq(next) {
        return other.isn() != Some(ack) && is_behind(other, next, ack);
    }
    // Before its own SYN-ACK, an end acknowledges no more than the SYN.
    let is_possible = own.isn().is_some() || !other.is_only_syn();
    is_possible && ack.since(next) <= reach(own, next).min(other.first_flight())
}

/// Returns whether a number is below `next` and not below the first number.
fn is_behind(half: &Half, next: SeqNum, number: SeqNum) -> bool {
    match half.isn().filter(|isn| next.since(*isn) <= COMPARED) {
        Some(isn) => number.after_or_eq(isn),
        None => next.since(number) <= BEHIND,
    }
}

/// Returns how far beyond `next` the windows of `receiver` reach.
fn reach(receiver: &Half, next: SeqNum) -> u32 {
    match receiver.advertised().edge() {
        Some(edge) => SLACK + if edge.after(next) { edge.since(next) } else { 0 },
        None => UNSCALED,
    }
}
