//! One direction of a connection: all that one side sent, and the acknowledgements of the other
//! side.

use super::copies::{Again, Recent};
use super::holes::{Filled, Holes};
use super::order::{self, Order};
use super::told::{Last, Probe, Told};
use crate::event::{Event, Events};
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
    /// The highest acknowledgement of the other side.
    una: Option<SeqNum>,
    /// The other side's first acknowledgement.
    first_una: Option<SeqNum>,
    /// The lowest number that was seen, and since when numbers are seen: the capture may begin later than the connection.
    floor: Option<(SeqNum, Duration)>,
    holes: Holes,
    /// The number behind a byte that probed the other side's closed window, while it is not known to be accepted.
    probed: Option<SeqNum>,
    /// Its last packet, if that was a probe.
    probe: Option<Probe>,
    /// The size of the last segment with new text.
    last_text_len: u32,
    segments: u64,
    /// Segments that are neither SYN nor RST.
    later_segments: u64,
    text_bytes: u64,
    retransmitted_segments: u64,
    retransmitted_bytes: u64,
    out_of_order: u64,
    duplicates: u64,
    probes: u64,
    is_finished: bool,
    first_text_at: Option<Duration>,
    last_text_at: Option<Duration>,
    /// The text whose acknowledgement is waited for, as a sample of the round trip: its end, and when it was seen.
    timed: Option<(SeqNum, Duration)>,
    least_rtt: Option<Duration>,
    recent: Recent,
    order: order::Sent,
    told: Told,
    sender: Sender,
}

/// The options that a SYN offered.
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

impl Offer {
    /// `None`: the capture cut the options.
    pub(super) fn of(packet: &Packet<'_>) -> Option<Offer> {
        let options = &packet.options;
        (!packet.is_header_cut).then_some(Offer {
            mss: options.mss,
            window_scale: options.window_scale,
            sack: options.sack_permitted,
            timestamps: options.timestamps.is_some(),
        })
    }
}

/// Facts from outside the direction that a packet is judged by.
#[derive(Clone, Copy, Debug)]
pub(super) struct Context<'c> {
    /// The most text of a segment.
    pub(super) mss: u32,
    pub(super) paths: &'c Paths,
    /// The last acknowledgement of the other side.
    pub(super) told: Option<Last>,
    /// Times that the other side repeated its last acknowledgement.
    pub(super) repeated: u32,
}

/// Where no round trip is known, a gap that is filled within this time is the network's, as in Wireshark.
const LATE_UNKNOWN: Duration = Duration::from_millis(3);
/// A gap that is filled within this time is the network's on any path.
const LATE_LEAST: Duration = Duration::from_millis(1);
/// Text that is recorded later than this after its acknowledgement was sent again: Linux's least
/// time-out of retransmission.
const RECORDED_WITHIN: Duration = Duration::from_millis(200);
/// Duplicate acknowledgements cause a fast retransmission within this time and that of the path, as in Wireshark.
const FAST_WITHIN: Duration = Duration::from_millis(20);
/// Duplicates before a fast retransmission that the capture must have: one of the three (RFC 5681 section 3.2) may be missing.
const FAST_AFTER: u32 = 2;

/// The most that anybody sends at first: a window that is not scaled. Initial windows are smaller (RFC 6928).
const FIRST_FLIGHT: u32 = 1 << 16;
/// The longest gap of a capture whose bytes are counted; farther numbers may be another connection's.
pub(super) const GAP_MAX: u32 = 1 << 28;

impl Half {
    /// Half of a connection that begins with this SYN.
    pub(super) fn begun(isn: SeqNum, offer: Option<Offer>, at: Duration) -> Half {
        let first = Some(isn + 1);
        Half {
            isn: Some(isn),
            offer,
            next: first,
            floor: first.map(|first| (first, at)),
            segments: 1,
            ..Half::default()
        }
    }

    /// Whether the capture or the receiver has had this packet already.
    pub(super) fn again(&mut self, packet: &Packet<'_>) -> Option<Again> {
        self.recent.again(packet, self.next)
    }

    /// The network delivered this packet a second time.
    pub(super) fn on_duplicate(&mut self) -> Events {
        self.segments += 1;
        self.duplicates += 1;
        Events::of(Event::Duplicate)
    }

    /// Whether this packet only probes the other side.
    ///
    /// A byte below the next number is a probe only if it was acknowledged; otherwise it is a retransmission of a segment of one byte.
    pub(super) fn probe_of(&self, packet: &Packet<'_>, is_closed: bool) -> Option<Probe> {
        let next = self.frontier()?;
        if packet.text_len > 1 || packet.flags.intersects(Flags::SYN | Flags::FIN | Flags::RST) {
            return None;
        }
        let kind = if is_closed { Probe::Window } else { Probe::KeepAlive };
        if packet.seq + 1 == next {
            // Where nothing was acknowledged, and the capture begins with such a byte, that was the first probe.
            let is_unlike_text = self.last_text_len != 1 || self.text_bytes == 1;
            let is_acked = self.una.map_or(is_unlike_text, |una| una.after_or_eq(next));
            return (packet.text_len == 0 || is_acked).then_some(kind);
        }
        // Linux probes one below SND.UNA, also while data is in flight.
        let is_below_una = packet.text_len == 0 && self.una == Some(packet.seq + 1);
        let is_new_byte = packet.text_len == 1 && packet.seq == next;
        (is_closed && (is_below_una || is_new_byte)).then_some(Probe::Window)
    }

    /// The side sent this.
    pub(super) fn on_sent(
        &mut self,
        packet: &Packet<'_>,
        probe: Option<Probe>,
        context: &Context<'_>,
    ) -> Events {
        self.segments += 1;
        self.probe = probe;
        let order = self.order.note(packet);
        let mut events = Events::default();
        if packet.flags.contains(Flags::SYN) {
            self.on_syn(packet, order, &mut events);
        } else if !packet.flags.contains(Flags::RST) {
            self.later_segments += 1;
        }
        // A reset's numbers and window say nothing of the stream.
        if packet.flags.contains(Flags::RST) {
            return events;
        }
        if let Some(probe) = probe {
            self.probes += 1;
            if self.next == Some(packet.seq) {
                self.probed = Some(packet.end_seq());
            }
            events.add(probe.event());
            return events;
        }
        let next = self.begin(packet);
        if packet.text_len > 0 {
            self.first_text_at = Some(self.first_text_at.map_or(packet.at, |first| first.min(packet.at)));
            self.last_text_at = Some(self.last_text_at.map_or(packet.at, |last| last.max(packet.at)));
            self.note_full_window(packet, context, &mut events);
        }
        if packet.end_seq().after(next) {
            self.on_new(packet, order, next, context, &mut events);
        } else if packet.end_seq() != packet.text_seq() {
            self.on_old(packet, order, next, context, &mut events);
        }
        self.is_finished |= packet.flags.contains(Flags::FIN);
        events
    }

    /// The number behind the last one before this packet.
    fn begin(&mut self, packet: &Packet<'_>) -> SeqNum {
        let first = packet.text_seq();
        if let Some(next) = self.next {
            return next;
        }
        // Text may be recorded behind its acknowledgement.
        let next = self.una.map_or(first, |una| una.latest(first));
        self.next = Some(next);
        self.floor = Some((next, packet.at));
        next
    }

    fn on_syn(&mut self, packet: &Packet<'_>, order: Order, events: &mut Events) {
        self.offer = self.offer.or(Offer::of(packet));
        let is_again = self.isn.is_some();
        self.isn.get_or_insert(packet.seq);
        // One with text is judged by its text.
        if is_again && packet.text_len == 0 {
            if order == Order::Older {
                self.duplicates += 1;
                events.add(Event::Duplicate);
            } else {
                self.retransmitted_segments += 1;
                events.add(Event::Retransmission);
            }
        }
    }

    fn note_full_window(&self, packet: &Packet<'_>, context: &Context<'_>, events: &mut Events) {
        let edge = context.told.and_then(|told| told.edge);
        if edge == Some(packet.text_seq() + packet.text_len)
            && !packet.flags.intersects(Flags::SYN | Flags::FIN)
        {
            events.add(Event::WindowFull);
        }
    }

    /// It ends beyond all that was seen.
    fn on_new(
        &mut self,
        packet: &Packet<'_>,
        order: Order,
        next: SeqNum,
        context: &Context<'_>,
        events: &mut Events,
    ) {
        let (start, end) = (packet.text_seq(), packet.end_seq());
        if start.after(next) {
            self.holes.note(next, start, packet.at, self.una);
            events.add(Event::PreviousNotCaptured);
        }
        let overlap = if start.before(next) { next.since(start).min(packet.text_len) } else { 0 };
        let filled = if overlap > 0 { self.fill(start, next) } else { None };
        let repeated = overlap - filled.map_or(0, |filled| filled.len.min(overlap));
        if overlap > 0 {
            let again = if repeated > 0 { None } else { filled };
            // Nothing of it was seen, nor anything behind it: only its acknowledgement.
            let is_first = again.is_some();
            let event = self.judge(packet, again, order, start, is_first, context);
            events.add(event);
            match event {
                Event::OutOfOrder | Event::Duplicate => self.out_of_order += 1,
                _ => {
                    self.retransmitted_segments += 1;
                    self.retransmitted_bytes += u64::from(overlap);
                }
            }
        }
        self.next = Some(end);
        self.probed = None;
        if packet.text_len > 0 {
            self.last_text_len = packet.text_len;
            self.text_bytes += u64::from(packet.text_len - repeated);
            let is_retransmitted = events.is_retransmission();
            self.sender
                .on_text(&Sent { packet, next, end, mss: context.mss, is_retransmitted }, context.paths);
            if overlap == 0 && self.timed.is_none() {
                self.timed = Some((end, packet.at));
            }
        }
    }

    /// Its numbers lie before others that were seen: retransmitted, late, or duplicated by the network.
    fn on_old(
        &mut self,
        packet: &Packet<'_>,
        order: Order,
        next: SeqNum,
        context: &Context<'_>,
        events: &mut Events,
    ) {
        let (start, end) = (packet.text_seq(), packet.end_seq());
        // A sample that a retransmission may have answered says nothing (Karn's algorithm, RFC 6298 section 3).
        if self.timed.is_some_and(|(timed, _)| start.before(timed)) {
            self.timed = None;
        }
        let filled = self.fill(start, end);
        self.text_bytes += u64::from(filled.map_or(0, |filled| filled.len.min(packet.text_len)));
        let is_first = end == next
            && match filled {
                Some(filled) => filled.len == end.since(start),
                // No hole is noted for the number of a FIN.
                None => packet.text_len == 0 && !self.is_finished,
            };
        let event = self.judge(packet, filled, order, end, is_first, context);
        events.add(event);
        match event {
            Event::OutOfOrder => self.out_of_order += 1,
            Event::Duplicate => self.duplicates += 1,
            _ => {
                self.retransmitted_segments += 1;
                self.retransmitted_bytes += u64::from(packet.text_len);
                if packet.text_len > 0 {
                    let mss = context.mss;
                    let sent = Sent { packet, next, end: next, mss, is_retransmitted: true };
                    self.sender.on_text(&sent, context.paths);
                }
            }
        }
    }

    /// Closes what was missing between these numbers: a hole, or numbers below all captured ones.
    fn fill(&mut self, start: SeqNum, end: SeqNum) -> Option<Filled> {
        let filled = self.holes.fill(start, end, self.una);
        let Some((floor, since)) = self.floor.filter(|(floor, _)| start.before(*floor)) else {
            return filled;
        };
        self.floor = Some((start, since));
        let below = Filled { len: end.earliest(floor).since(start), since };
        Some(filled.map_or(below, |filled| Filled {
            len: filled.len.saturating_add(below.len),
            since: filled.since.min(since),
        }))
    }

    /// Judges a segment that repeats numbers. `filled`: the missing part that it fills. `end`: the
    /// number behind the repeated ones. `is_first`: only the acknowledgement of the segment was
    /// captured before.
    fn judge(
        &self,
        packet: &Packet<'_>,
        filled: Option<Filled>,
        order: Order,
        end: SeqNum,
        is_first: bool,
        context: &Context<'_>,
    ) -> Event {
        if is_first && filled.is_none_or(|hole| packet.at.saturating_sub(hole.since) <= RECORDED_WITHIN) {
            return Event::OutOfOrder;
        }
        // Sooner nobody can have asked for it.
        let rtt = context.paths.rtt();
        let late = rtt.map_or(LATE_UNKNOWN, |rtt| rtt - rtt / 8).max(LATE_LEAST);
        let is_fast = is_fast(packet, context);
        match (filled, order) {
            (Some(_), Order::Older) => return Event::OutOfOrder,
            (None, Order::Older) => return Event::Duplicate,
            (Some(filled), Order::Unknown)
                if packet.at.saturating_sub(filled.since) <= late && (rtt.is_some() || !is_fast) =>
            {
                return Event::OutOfOrder;
            }
            _ => {}
        }
        let is_acked = self.una.is_some_and(|una| una.after_or_eq(end));
        match () {
            () if is_acked && packet.text_len > 0 => Event::SpuriousRetransmission,
            () if is_fast => Event::FastRetransmission,
            () => Event::Retransmission,
        }
    }

    /// The other side acknowledged something, and offers a window up to `edge`, if its scale is known. `is_probe`: its byte of text, if any, is
    /// a probe's.
    pub(super) fn on_ack(&mut self, packet: &Packet<'_>, edge: Option<SeqNum>, is_probe: bool) -> Events {
        let mut events = Events::default();
        let una = self.una.map_or(packet.ack, |una| una.latest(packet.ack));
        self.una = Some(una);
        self.first_una.get_or_insert(una);
        if let Some(probed) = self.probed.take_if(|probed| packet.ack.after_or_eq(*probed)) {
            // The receiver had room for the byte of a probe.
            self.next = Some(self.next.map_or(probed, |next| next.latest(probed)));
            self.text_bytes += 1;
        }
        // An acknowledgement of what was not seen: the capture has lost packets, or has them later.
        if let Some(next) = self.next.filter(|next| packet.ack.after(*next)) {
            self.next = Some(packet.ack);
            // A single number may be that of a FIN.
            if packet.ack.since(next) > 1 || self.is_finished {
                self.holes.note(next, packet.ack, packet.at, self.una);
                events.add(Event::AckedUnseen);
            }
        }
        self.holes.forget_old(una);
        if let Some((end, at)) = self.timed
            && packet.ack.after_or_eq(end)
        {
            let sample = packet.at.saturating_sub(at);
            self.least_rtt = Some(self.least_rtt.map_or(sample, |least| least.min(sample)));
            self.timed = None;
        }
        self.sender.on_ack(packet, edge, packet.text_len > 0 && !is_probe);
        events
    }

    /// Goes on at `to`: the capture has a gap, and both sides agree on what follows. A segment up to `end` was seen already.
    pub(super) fn jump(&mut self, to: SeqNum, end: SeqNum, at: Duration) {
        match self.next {
            None => {
                self.una = Some(to);
                return;
            }
            Some(next) if to.after(next) && to.since(next) <= GAP_MAX => {
                self.holes.note(next, to, at, self.una);
            }
            Some(_) => self.una = None,
        }
        self.next = Some(end);
        self.floor = Some((to, at));
        self.text_bytes += u64::from(end.since(to));
        self.timed = None;
    }

    /// Behind the last number that is known of it.
    pub(super) fn frontier(&self) -> Option<SeqNum> {
        self.next.or(self.una)
    }

    /// The lowest number that was seen.
    pub(super) fn floor(&self) -> Option<SeqNum> {
        self.floor.map(|(floor, _)| floor)
    }

    /// Whether the other side acknowledged more than at first.
    pub(crate) fn has_moved(&self) -> bool {
        self.una != self.first_una
    }

    /// Whether the other side acknowledged anything.
    pub(crate) fn is_acknowledged(&self) -> bool {
        self.una.is_some()
    }

    /// Tells whether the side sent anything but SYNs and resets.
    pub fn has_packets_after_syn(&self) -> bool {
        self.later_segments > 0
    }

    /// Returns how far beyond its SYN the side can have sent while the capture has no other packet
    /// of it.
    pub(super) fn first_flight(&self) -> u32 {
        if self.is_only_syn() { FIRST_FLIGHT } else { u32::MAX }
    }

    /// Whether nothing but its SYN was seen.
    pub(super) fn is_only_syn(&self) -> bool {
        self.isn.is_some() && self.later_segments == 0
    }

    /// Returns the acknowledgements and windows that the side told.
    pub(super) fn told(&self) -> &Told {
        &self.told
    }

    pub(super) fn told_mut(&mut self) -> &mut Told {
        &mut self.told
    }

    /// Its last packet, if that was a probe.
    pub(super) fn last_probe(&self) -> Option<Probe> {
        self.probe
    }

    /// Lets go of what only the judging of further packets needs.
    pub(super) fn end(&mut self) {
        self.holes.sum_up(self.una);
        self.recent = Recent::default();
        self.sender.end();
    }

    /// Bytes of memory that it takes beside itself.
    pub(super) fn footprint(&self) -> usize {
        self.holes.footprint() + self.recent.footprint() + self.sender.footprint()
    }

    /// Returns the offer of its SYN; `None`: the SYN was not captured, or the capture cut its
    /// options.
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
        self.holes.acknowledged(self.una)
    }

    /// SYNs, FINs and segments whose text had been sent before, or that fill a gap too late to be only out of order. Probes are not among them.
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
        self.told.zero_windows()
    }

    /// Acknowledgements that repeated the one before.
    pub fn duplicate_acks(&self) -> u64 {
        self.told.duplicate_acks()
    }

    /// Segments that only asked whether the other side is there, or whether its window has opened.
    pub fn probes(&self) -> u64 {
        self.probes
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

    /// Returns the side as a sender: the causes that its text waited for.
    pub fn sender(&self) -> &Sender {
        &self.sender
    }

    /// The least round trip between the place of capture and the other side, by what this side sent.
    pub(super) fn least_rtt(&self) -> Option<Duration> {
        self.least_rtt
    }
}

/// Whether duplicate acknowledgements caused this retransmission.
fn is_fast(packet: &Packet<'_>, context: &Context<'_>) -> bool {
    let Some(told) = context.told.filter(|_| context.repeated >= FAST_AFTER) else { return false };
    let own = context.paths.own.unwrap_or(Duration::ZERO);
    packet.text_len > 0
        && packet.seq.after_or_eq(told.ack)
        && packet.at.saturating_sub(told.at) <= FAST_WITHIN.saturating_add(own).saturating_add(own / 4)
}
