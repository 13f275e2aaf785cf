//! What one side of a connection sent, and what the other acknowledged of it.

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
    segments: u64,
    text_bytes: u64,
    retransmitted_segments: u64,
    retransmitted_bytes: u64,
    out_of_order: u64,
    is_finished: bool,
    first_text_at: Option<Duration>,
    last_text_at: Option<Duration>,
    zero_windows: u64,
    /// The text whose acknowledgement is waited for, as a sample of the round trip: its end, and when it was seen.
    timed: Option<(SeqNum, Duration)>,
    least_rtt: Option<Duration>,
    last: Option<Seen>,
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

/// By what a copy of the last packet is known.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Seen {
    at: Duration,
    seq: SeqNum,
    ack: SeqNum,
    flags: Flags,
    window: u16,
    text_len: u32,
    ident: u16,
    tsval: Option<u32>,
}

impl Seen {
    fn of(packet: &Packet<'_>) -> Seen {
        Seen {
            at: packet.at,
            seq: packet.seq,
            ack: packet.ack,
            flags: packet.flags,
            window: packet.window,
            text_len: packet.text_len,
            ident: packet.ident,
            tsval: packet.options.timestamps.map(|timestamps| timestamps.tsval),
        }
    }
}

/// Holes that are remembered: a hostile capture has any number.
const HOLES_MAX: usize = 64;

/// A capture on several interfaces sees a packet again within this time; no sender repeats an IPv4 identification so soon.
pub(super) const COPY_WITHIN: Duration = Duration::from_millis(2);

impl Half {
    /// Is it the packet before once more?
    pub(super) fn is_copy(&mut self, packet: &Packet<'_>) -> bool {
        let seen = Seen::of(packet);
        let is_copy = self.last.as_ref().is_some_and(|last| {
            let is_same = Seen { at: last.at, ..seen.clone() } == *last;
            // Without an identification and without text it may be a duplicate acknowledgement.
            let is_known = packet.ident != 0 || packet.text_len > 0;
            is_same && is_known && packet.at.abs_diff(last.at) <= COPY_WITHIN
        });
        self.last = Some(seen);
        is_copy
    }

    /// The side sent this.
    pub(super) fn on_sent(&mut self, packet: &Packet<'_>, mss: u32, paths: &Paths) {
        self.segments += 1;
        if packet.flags.contains(Flags::SYN) {
            self.on_syn(packet);
        }
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
            self.on_old(packet, next, mss, paths);
        }
    }

    fn on_syn(&mut self, packet: &Packet<'_>) {
        let options = &packet.options;
        self.isn.get_or_insert(packet.seq);
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

    /// Its numbers lie before others that were seen: retransmitted, or late.
    fn on_old(&mut self, packet: &Packet<'_>, next: SeqNum, mss: u32, paths: &Paths) {
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
            if packet.at.saturating_sub(hole.at) <= half.max(Duration::from_millis(1)) {
                self.out_of_order += 1;
                return;
            }
        }
        self.retransmitted_segments += 1;
        self.retransmitted_bytes += u64::from(packet.text_len);
        if packet.text_len > 0 {
            self.sender.on_text(&Sent { packet, next, end: next, mss, is_retransmitted: true }, paths);
        }
    }

    fn note_hole(&mut self, hole: Hole) {
        if self.holes.len() == HOLES_MAX {
            self.holes.swap_remove(0);
        }
        self.holes.push(hole);
    }

    /// The other side acknowledged something, and offers a window: shifted by `scale`, if that is known.
    pub(super) fn on_ack(&mut self, packet: &Packet<'_>, scale: Option<u8>) {
        self.una = Some(self.una.map_or(packet.ack, |una| una.latest(packet.ack)));
        // An acknowledgement of what was not seen: the capture has lost packets.
        if self.next.is_some_and(|next| packet.ack.after(next)) {
            self.next = Some(packet.ack);
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

    /// What its SYN offered; `None`: it was not seen.
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
