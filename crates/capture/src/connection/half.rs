//! What one side of a connection sent, and what the other acknowledged of it.

use super::copies::Recent;
use crate::limits::{Paths, Sender, Sent};
use crate::packet::Packet;
use core::time::Duration;
use wire::{Flags, SeqNum};

/// One direction.
#[derive(Clone, Debug, Default)]
pub struct Half {
    offer: Option<Offer>,
    isn: Option<SeqNum>,
    /// Behind the last number that was seen.
    next: Option<SeqNum>,
    /// What the other side has acknowledged.
    una: Option<SeqNum>,
    holes: Vec<Hole>,
    /// Acknowledged bytes of holes that are remembered no more.
    unseen: u64,
    segments: u64,
    text_bytes: u64,
    retransmitted_segments: u64,
    retransmitted_bytes: u64,
    out_of_order: u64,
    duplicates: u64,
    is_finished: bool,
    first_text_at: Option<Duration>,
    last_text_at: Option<Duration>,
    zero_windows: u64,
    /// The text whose acknowledgement is waited for, as a sample of the round trip: its end, and when it was seen.
    timed: Option<(SeqNum, Duration)>,
    least_rtt: Option<Duration>,
    recent: Recent,
    /// The latest of its timestamps.
    tsval: Option<u32>,
    sender: Sender,
}

/// What a SYN offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer {
    /// The MSS option.
    pub mss: Option<u16>,
    /// The window scale option.
    pub window_scale: Option<u8>,
    /// SACK permitted.
    pub sack: bool,
    /// Timestamps.
    pub timestamps: bool,
}

/// Numbers that were skipped, and when.
#[derive(Clone, Copy, Debug)]
struct Hole {
    start: SeqNum,
    end: SeqNum,
    at: Duration,
}

/// Holes that are remembered: a hostile capture has any number.
const HOLES_MAX: usize = 64;
/// So far behind the acknowledgements a hole is filled no more; farther, its numbers would be those of later text.
const HOLE_KEPT: u32 = 1 << 30;

impl Hole {
    /// How much of it lies before `una`.
    fn acknowledged(&self, una: SeqNum) -> u64 {
        if self.start.before(una) { self.end.earliest(una).since(self.start).into() } else { 0 }
    }
}

impl Half {
    /// Has the capture had this packet already, on another interface?
    pub(super) fn is_copy(&mut self, packet: &Packet<'_>) -> bool {
        self.recent.is_copy(packet)
    }

    /// The side sent this.
    pub(super) fn on_sent(&mut self, packet: &Packet<'_>, mss: u32, paths: &Paths) {
        self.segments += 1;
        if packet.flags.contains(Flags::SYN) {
            self.on_syn(packet);
        }
        let is_older = self.note_tsval(packet);
        // A reset's numbers and window say nothing of the stream.
        if packet.flags.contains(Flags::RST) {
            return;
        }
        if packet.window == 0 && !packet.flags.contains(Flags::SYN) {
            self.zero_windows += 1;
        }
        self.is_finished |= packet.flags.contains(Flags::FIN);
        let next = *self.next.get_or_insert(packet.text_seq());
        if packet.text_len > 0 {
            self.first_text_at.get_or_insert(packet.at);
            self.last_text_at = Some(packet.at);
        }
        if packet.end_seq().after(next) {
            self.on_new(packet, next, mss, paths);
        } else if packet.end_seq() != packet.text_seq() {
            self.on_old(packet, is_older, next, mss, paths);
        }
    }

    /// Was it sent before another that was seen already? Whatever is sent anew, a retransmission too, has the timestamp of its own time (RFC 7323
    /// section 3.2).
    fn note_tsval(&mut self, packet: &Packet<'_>) -> bool {
        let Some(now) = packet.options.timestamps.map(|timestamps| timestamps.tsval) else { return false };
        // "Older" as PAWS has it (section 5.2): by signed difference.
        let is_older = self.tsval.is_some_and(|latest| now.wrapping_sub(latest).cast_signed() < 0);
        if !is_older {
            self.tsval = Some(now);
        }
        is_older
    }

    fn on_syn(&mut self, packet: &Packet<'_>) {
        let options = &packet.options;
        self.isn.get_or_insert(packet.seq);
        if packet.is_header_cut {
            return;
        }
        self.offer.get_or_insert(Offer {
            mss: options.mss,
            window_scale: options.window_scale,
            sack: options.sack_permitted,
            timestamps: options.timestamps.is_some(),
        });
    }

    /// It ends beyond all that was seen.
    fn on_new(&mut self, packet: &Packet<'_>, next: SeqNum, mss: u32, paths: &Paths) {
        let start = packet.text_seq();
        if start.after(next) {
            self.note_hole(Hole { start: next, end: start, at: packet.at });
        }
        let repeated = if start.before(next) { next.since(start).min(packet.text_len) } else { 0 };
        if repeated > 0 {
            self.retransmitted_segments += 1;
            self.retransmitted_bytes += u64::from(repeated);
        }
        let end = packet.end_seq();
        self.next = Some(end);
        if packet.text_len > 0 {
            self.text_bytes += u64::from(packet.text_len - repeated);
            let is_retransmitted = repeated > 0;
            self.sender.on_text(&Sent { packet, next, end, mss, is_retransmitted }, paths);
            if !is_retransmitted && self.timed.is_none() {
                self.timed = Some((end, packet.at));
            }
        }
    }

    /// Its numbers lie before others that were seen: retransmitted, late, or duplicated by the network.
    fn on_old(&mut self, packet: &Packet<'_>, is_older: bool, next: SeqNum, mss: u32, paths: &Paths) {
        let (start, end) = (packet.text_seq(), packet.end_seq());
        // A sample that a retransmission may have answered says nothing (Karn's algorithm, RFC 6298 section 3).
        if self.timed.is_some_and(|(timed, _)| start.before(timed)) {
            self.timed = None;
        }
        let filled = self.holes.iter().position(|hole| start.before(hole.end) && hole.start.before(end));
        if let Some(hole) = filled.map(|index| self.holes.swap_remove(index)) {
            self.text_bytes += u64::from(packet.text_len);
            for rest in [Hole { end: start, ..hole }, Hole { start: end, ..hole }] {
                if rest.start.before(rest.end) {
                    self.note_hole(rest);
                }
            }
            // Within half a round trip nobody can have asked for it: the network has changed the order.
            let half = paths.rtt().unwrap_or(Duration::ZERO) / 2;
            if is_older || packet.at.saturating_sub(hole.at) <= half.max(Duration::from_millis(1)) {
                self.out_of_order += 1;
                return;
            }
        } else if is_older {
            self.duplicates += 1;
            return;
        }
        self.retransmitted_segments += 1;
        self.retransmitted_bytes += u64::from(packet.text_len);
        if packet.text_len > 0 {
            self.sender.on_text(&Sent { packet, next, end: next, mss, is_retransmitted: true }, paths);
        }
    }

    fn note_hole(&mut self, hole: Hole) {
        if self.holes.len() == HOLES_MAX {
            self.forget_hole(0);
        }
        self.holes.push(hole);
    }

    fn forget_hole(&mut self, index: usize) {
        let hole = self.holes.swap_remove(index);
        self.unseen += self.una.map_or(0, |una| hole.acknowledged(una));
    }

    /// The other side acknowledged something, and offers a window: shifted by `scale`, if that is known.
    pub(super) fn on_ack(&mut self, packet: &Packet<'_>, scale: Option<u8>) {
        let una = self.una.map_or(packet.ack, |una| una.latest(packet.ack));
        self.una = Some(una);
        // An acknowledgement of what was not seen: the capture has lost packets, or has them later.
        if let Some(next) = self.next.filter(|next| packet.ack.after(*next)) {
            self.next = Some(packet.ack);
            // A single number may be that of a FIN.
            if packet.ack.since(next) > 1 || self.is_finished {
                self.note_hole(Hole { start: next, end: packet.ack, at: packet.at });
            }
        }
        while let Some(old) =
            self.holes.iter().position(|hole| hole.end.before(una) && una.since(hole.end) > HOLE_KEPT)
        {
            self.forget_hole(old);
        }
        if let Some((end, at)) = self.timed
            && packet.ack.after_or_eq(end)
        {
            let sample = packet.at.saturating_sub(at);
            self.least_rtt = Some(self.least_rtt.map_or(sample, |least| least.min(sample)));
            self.timed = None;
        }
        // RFC 7323 section 2.2: the window of a SYN is never scaled.
        let shift = if packet.flags.contains(Flags::SYN) { Some(0) } else { scale };
        let edge = shift.map(|shift| packet.ack + (u32::from(packet.window) << shift));
        self.sender.on_ack(packet, edge);
    }

    /// What its SYN offered; `None`: the SYN was not seen, or the capture cut its options.
    pub fn offer(&self) -> Option<Offer> {
        self.offer
    }

    /// Its first sequence number; `None`: its SYN was not seen.
    pub fn isn(&self) -> Option<SeqNum> {
        self.isn
    }

    /// Packets.
    pub fn segments(&self) -> u64 {
        self.segments
    }

    /// Bytes of text, each counted once.
    pub fn text_bytes(&self) -> u64 {
        self.text_bytes
    }

    /// Bytes that the other side has acknowledged and that the capture does not have; a FIN that it does not have is one of them.
    pub fn unseen_bytes(&self) -> u64 {
        let una = self.una;
        let acknowledged = |hole: &Hole| una.map_or(0, |una| hole.acknowledged(una));
        self.unseen + self.holes.iter().map(acknowledged).sum::<u64>()
    }

    /// Segments whose text had been seen before, or that fill a gap too late to be only out of order.
    pub fn retransmitted_segments(&self) -> u64 {
        self.retransmitted_segments
    }

    /// Bytes of the retransmitted text.
    pub fn retransmitted_bytes(&self) -> u64 {
        self.retransmitted_bytes
    }

    /// Segments that the network delivered out of order.
    pub fn out_of_order(&self) -> u64 {
        self.out_of_order
    }

    /// Segments that the network delivered twice.
    pub fn duplicates(&self) -> u64 {
        self.duplicates
    }

    /// Segments by which this side closed its own receive window.
    pub fn zero_windows(&self) -> u64 {
        self.zero_windows
    }

    /// Has it sent a FIN?
    pub fn is_finished(&self) -> bool {
        self.is_finished
    }

    /// When its first text was seen.
    pub fn first_text_at(&self) -> Option<Duration> {
        self.first_text_at
    }

    /// When its last text was seen.
    pub fn last_text_at(&self) -> Option<Duration> {
        self.last_text_at
    }

    /// Has the other side acknowledged any of its text?
    pub fn is_text_acked(&self) -> bool {
        match (self.una, self.isn) {
            (Some(una), Some(isn)) => una.after(isn + 1),
            _ => self.least_rtt.is_some(),
        }
    }

    /// What its text waited for.
    pub fn sender(&self) -> &Sender {
        &self.sender
    }

    /// The least round trip between the place of capture and the other side, by what this side sent.
    pub(super) fn least_rtt(&self) -> Option<Duration> {
        self.least_rtt
    }
}
