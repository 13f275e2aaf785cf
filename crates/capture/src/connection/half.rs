//! One direction of a connection: everything that one side sent, and the acknowledgements of the
//! other.

use super::advertised::{Advertised, Last, Probe};
use super::copies::{Again, Recent};
use super::holes::{Filled, Holes};
use super::order::{self, Order};
use crate::event::{Event, Events};
use crate::limits::{Paths, Sender, Sent};
use crate::packet::Packet;
use core::time::Duration;
use wire::{Flags, SeqNum};

/// One direction of a connection.
#[derive(Clone, Debug, Default)]
pub struct Half {
    offer: Option<Offer>,
    isn: Option<SeqNum>,
    /// Sequence number after the last one seen.
    next: Option<SeqNum>,
    /// The highest acknowledgement of the other side.
    una: Option<SeqNum>,
    /// The other side's first acknowledgement.
    first_una: Option<SeqNum>,
    /// The lowest sequence number seen, and the time of the first packet. The capture may start
    /// later than the connection.
    floor: Option<(SeqNum, Duration)>,
    holes: Holes,
    /// Sequence number after a byte that probed the other side's closed window, until it is known
    /// to be accepted.
    probed: Option<SeqNum>,
    /// Its last packet, if it was a probe.
    probe: Option<Probe>,
    /// Size of the last segment with new data.
    last_text_len: u32,
    segments: u64,
    /// Segments without SYN and RST.
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
    /// The data whose acknowledgement gives the next sample of the round trip: its end and its
    /// time.
    timed: Option<(SeqNum, Duration)>,
    least_rtt: Option<Duration>,
    recent: Recent,
    order: order::Sent,
    advertised: Advertised,
    sender: Sender,
}

/// The options of a SYN.
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
    /// Returns the options, or `None` if the capture cut them.
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

/// State outside the direction that is needed to judge a packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Context<'c> {
    /// Maximum payload of a segment.
    pub(super) mss: u32,
    pub(super) paths: &'c Paths,
    /// The last acknowledgement of the other side.
    pub(super) advertised: Option<Last>,
    /// Number of times that the other side repeated its last acknowledgement.
    pub(super) repeated: u32,
}

/// Time within which a gap of the network is filled if no round trip is known, as in
/// Wireshark.
const LATE_UNKNOWN: Duration = Duration::from_millis(3);
/// Time within which a gap of the network is filled on any path.
const LATE_LEAST: Duration = Duration::from_millis(1);
/// Data recorded later than this after its acknowledgement was retransmitted: it is Linux's minimum
/// retransmission time-out.
const RECORDED_WITHIN: Duration = Duration::from_millis(200);
/// Time, besides the path's, within which duplicate acknowledgements cause a fast retransmission,
/// as in Wireshark.
const FAST_WITHIN: Duration = Duration::from_millis(20);
/// Duplicates that the capture must have before a fast retransmission. One of the three (RFC 5681
/// section 3.2) may be missing.
const FAST_AFTER: u32 = 2;

/// Most data of a first flight: an unscaled window. Initial windows are smaller (RFC 6928).
const FIRST_FLIGHT: u32 = 1 << 16;
/// Longest gap of a capture whose bytes are counted. Larger distances may be another connection.
pub(super) const GAP_MAX: u32 = 1 << 28;

impl Half {
    /// Creates the half of a connection that starts with this SYN.
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

    /// Returns how the capture or the receiver already had this packet, if it did.
    pub(super) fn again(&mut self, packet: &Packet<'_>) -> Option<Again> {
        self.recent.again(packet, self.next)
    }

    /// Handles a packet that the network delivered a second time.
    pub(super) fn on_duplicate(&mut self) -> Events {
        self.segments += 1;
        self.duplicates += 1;
        Events::of(Event::Duplicate)
    }

    /// Returns whether this packet only probes the other side.
    ///
    /// A byte below the next number is a probe only if it was acknowledged. Otherwise it is a
    /// retransmission of a segment of one byte.
    pub(super) fn probe_of(&self, packet: &Packet<'_>, is_closed: bool) -> Option<Probe> {
        let next = self.frontier()?;
        if packet.text_len > 1 || packet.flags.intersects(Flags::SYN | Flags::FIN | Flags::RST) {
            return None;
        }
        let kind = if is_closed { Probe::Window } else { Probe::KeepAlive };
        if packet.seq + 1 == next {
            // If nothing was acknowledged, and the capture starts with such a byte, it was the
            // first probe.
            let is_unlike_text = self.last_text_len != 1 || self.text_bytes == 1;
            let is_acked = self.una.map_or(is_unlike_text, |una| una.after_or_eq(next));
            return (packet.text_len == 0 || is_acked).then_some(kind);
        }
        // Linux probes one below SND.UNA, even while data is in flight.
        let is_below_una = packet.text_len == 0 && self.una == Some(packet.seq + 1);
        let is_new_byte = packet.text_len == 1 && packet.seq == next;
        (is_closed && (is_below_una || is_new_byte)).then_some(Probe::Window)
    }

    /// Handles a packet that the side sent.
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
        // A reset's numbers and window do not belong to the stream.
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

    /// Returns the sequence number after the last one before this packet.
    fn begin(&mut self, packet: &Packet<'_>) -> SeqNum {
        let first = packet.text_seq();
        if let Some(next) = self.next {
            return next;
        }
        // Data may be recorded after its acknowledgement.
        let next = self.una.map_or(first, |una| una.latest(first));
        self.next = Some(next);
        self.floor = Some((next, packet.at));
        next
    }

    fn on_syn(&mut self, packet: &Packet<'_>, order: Order, events: &mut Events) {
        self.offer = self.offer.or(Offer::of(packet));
        let is_again = self.isn.is_some();
        self.isn.get_or_insert(packet.seq);
        // A packet with data is judged by its data.
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
        let edge = context.advertised.and_then(|advertised| advertised.edge);
        if edge == Some(packet.text_seq() + packet.text_len)
            && !packet.flags.intersects(Flags::SYN | Flags::FIN)
        {
            events.add(Event::WindowFull);
        }
    }

    /// Handles a packet that ends beyond everything seen so far.
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
            // Neither it nor later data was seen, only its acknowledgement.
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

    /// Handles a packet below numbers seen before: retransmitted, late, or duplicated by the
    /// network.
    fn on_old(
        &mut self,
        packet: &Packet<'_>,
        order: Order,
        next: SeqNum,
        context: &Context<'_>,
        events: &mut Events,
    ) {
        let (start, end) = (packet.text_seq(), packet.end_seq());
        // A retransmission makes the sample ambiguous (Karn's algorithm, RFC 6298 section 3).
        if self.timed.is_some_and(|(timed, _)| start.before(timed)) {
            self.timed = None;
        }
        let filled = self.fill(start, end);
        self.text_bytes += u64::from(filled.map_or(0, |filled| filled.len.min(packet.text_len)));
        let is_first = end == next
            && match filled {
                Some(filled) => filled.len == end.since(start),
                // A FIN's number leaves no hole.
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

    /// Fills the missing part between these numbers: a hole, or numbers below all captured ones.
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

    /// Judges a segment that repeats numbers.
    ///
    /// `filled`: the missing part that it fills. `end`: the number after the repeated ones.
    /// `is_first`: only the acknowledgement of the segment was captured before.
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
        // A retransmission cannot come sooner.
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

    /// Handles an acknowledgement of the other side. `edge`: the right edge of its window, if its
    /// scale is known. `is_probe`: its byte of data, if any, belongs to a probe.
    pub(super) fn on_ack(&mut self, packet: &Packet<'_>, edge: Option<SeqNum>, is_probe: bool) -> Events {
        let mut events = Events::default();
        let una = self.una.map_or(packet.ack, |una| una.latest(packet.ack));
        self.una = Some(una);
        self.first_una.get_or_insert(una);
        if let Some(probed) = self.probed.take_if(|probed| packet.ack.after_or_eq(*probed)) {
            // The receiver accepted the byte of a probe.
            self.next = Some(self.next.map_or(probed, |next| next.latest(probed)));
            self.text_bytes += 1;
        }
        // It acknowledges data that was not seen: the capture lost packets, or has them later.
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

    /// Continues at `to`: the capture has a gap, and both sides agree on what follows. A segment up
    /// to `end` was already seen.
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

    /// Returns the number after the last known one.
    pub(super) fn frontier(&self) -> Option<SeqNum> {
        self.next.or(self.una)
    }

    /// Returns the lowest number seen.
    pub(super) fn floor(&self) -> Option<SeqNum> {
        self.floor.map(|(floor, _)| floor)
    }

    /// Returns whether the other side's acknowledgements advanced.
    pub(crate) fn has_moved(&self) -> bool {
        self.una != self.first_una
    }

    /// Returns whether the other side acknowledged anything.
    pub(crate) fn is_acknowledged(&self) -> bool {
        self.una.is_some()
    }

    /// Returns whether the side sent anything except SYNs and resets.
    pub fn has_packets_after_syn(&self) -> bool {
        self.later_segments > 0
    }

    /// Returns how far beyond its SYN the side can have sent while the capture has no other packet
    /// of it.
    pub(super) fn first_flight(&self) -> u32 {
        if self.is_only_syn() { FIRST_FLIGHT } else { u32::MAX }
    }

    /// Returns whether only its SYN was seen.
    pub(super) fn is_only_syn(&self) -> bool {
        self.isn.is_some() && self.later_segments == 0
    }

    /// Returns the acknowledgements and windows that the side advertised.
    pub(super) fn advertised(&self) -> &Advertised {
        &self.advertised
    }

    pub(super) fn advertised_mut(&mut self) -> &mut Advertised {
        &mut self.advertised
    }

    /// Returns its last packet, if it was a probe.
    pub(super) fn last_probe(&self) -> Option<Probe> {
        self.probe
    }

    /// Frees the state that only further packets need.
    pub(super) fn end(&mut self) {
        self.holes.sum_up(self.una);
        self.recent = Recent::default();
        self.sender.end();
    }

    /// Returns the bytes of heap memory that it takes.
    pub(super) fn footprint(&self) -> usize {
        self.holes.footprint() + self.recent.footprint() + self.sender.footprint()
    }

    /// Returns the options of its SYN, or `None` if the SYN or its options were not captured.
    pub fn offer(&self) -> Option<Offer> {
        self.offer
    }

    /// Returns its initial sequence number, or `None` if its SYN was not seen.
    pub fn isn(&self) -> Option<SeqNum> {
        self.isn
    }

    /// Returns the number of packets.
    pub fn segments(&self) -> u64 {
        self.segments
    }

    /// Returns the bytes of data, each counted once.
    pub fn text_bytes(&self) -> u64 {
        self.text_bytes
    }

    /// Returns the bytes that the other side acknowledged and that the capture does not have. A
    /// missing FIN counts as one.
    pub fn unseen_bytes(&self) -> u64 {
        self.holes.acknowledged(self.una)
    }

    /// Returns the number of retransmissions: SYNs, FINs and segments whose data was sent before,
    /// or that fill a gap too late to be only out of order. Probes do not count.
    pub fn retransmitted_segments(&self) -> u64 {
        self.retransmitted_segments
    }

    /// Returns the bytes of retransmitted data.
    pub fn retransmitted_bytes(&self) -> u64 {
        self.retransmitted_bytes
    }

    /// Returns the number of segments that the network delivered out of order.
    pub fn out_of_order(&self) -> u64 {
        self.out_of_order
    }

    /// Returns the number of segments that the network delivered twice.
    pub fn duplicates(&self) -> u64 {
        self.duplicates
    }

    /// Returns the number of segments with which this side closed its receive window.
    pub fn zero_windows(&self) -> u64 {
        self.advertised.zero_windows()
    }

    /// Returns the number of acknowledgements that repeated the previous one.
    pub fn duplicate_acks(&self) -> u64 {
        self.advertised.duplicate_acks()
    }

    /// Returns the number of probes of an idle peer or a closed window.
    pub fn probes(&self) -> u64 {
        self.probes
    }

    /// Returns whether it sent a FIN.
    pub fn is_finished(&self) -> bool {
        self.is_finished
    }

    /// Returns the time of its first data.
    pub fn first_text_at(&self) -> Option<Duration> {
        self.first_text_at
    }

    /// Returns the time of its last data.
    pub fn last_text_at(&self) -> Option<Duration> {
        self.last_text_at
    }

    /// Returns whether the other side acknowledged any of its data.
    pub fn is_text_acked(&self) -> bool {
        match (self.una, self.isn) {
            (Some(una), Some(isn)) => una.after(isn + 1),
            _ => self.least_rtt.is_some(),
        }
    }

    /// Returns the side as a sender, with the causes that its data waited for.
    pub fn sender(&self) -> &Sender {
        &self.sender
    }

    /// Returns the smallest round trip between the place of capture and the other side, measured
    /// with this side's data.
    pub(super) fn least_rtt(&self) -> Option<Duration> {
        self.least_rtt
    }
}

/// Returns whether duplicate acknowledgements caused this retransmission.
fn is_fast(packet: &Packet<'_>, context: &Context<'_>) -> bool {
    let Some(advertised) = context.advertised.filter(|_| context.repeated >= FAST_AFTER) else {
        return false;
    };
    let own = context.paths.own.unwrap_or(Duration::ZERO);
    packet.text_len > 0
        && packet.seq.after_or_eq(advertised.ack)
        && packet.at.saturating_sub(advertised.at) <= FAST_WITHIN.saturating_add(own).saturating_add(own / 4)
}
