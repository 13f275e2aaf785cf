//! One connection, as seen at the place of capture: its handshake, and the data of each side.

mod advertised;
mod belonging;
mod copies;
mod half;
mod handshake;
mod holes;
mod order;
mod rival;

pub use half::{Half, Offer};
pub use handshake::{CookieOption, Handshake};

use crate::event::{Event, Events};
use crate::icmp::IcmpError;
use crate::limits::{Limit, Paths};
use crate::packet::Packet;
use crate::tunnel::Tunnels;
pub(crate) use belonging::Belonging;
use belonging::Suspect;
use copies::Again;
use core::net::SocketAddr;
use core::time::Duration;
use half::Context;
use rival::Rival;
use wire::Flags;

/// An end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// The end that opened the connection.
    Client,
    /// The end that accepted the connection, or should have.
    Server,
}

/// MSS if no SYN was seen: 1500 bytes of Ethernet minus the headers of IPv4 and TCP.
const MSS_UNKNOWN: u16 = 1460;

impl Side {
    /// Both ends.
    pub const BOTH: [Side; 2] = [Side::Client, Side::Server];

    /// Returns the other end.
    pub fn other(self) -> Side {
        match self {
            Side::Client => Side::Server,
            Side::Server => Side::Client,
        }
    }
}

/// Time without packets after which an answer to a SYN is no longer expected. The first three
/// retransmissions of a SYN-ACK come sooner.
const QUIET: Duration = Duration::from_secs(60);

/// Address and port of one end.
pub type Endpoint = SocketAddr;

/// One connection.
#[derive(Clone, Debug)]
pub struct Connection {
    number: u64,
    client: Endpoint,
    server: Endpoint,
    first_at: Duration,
    last_at: Duration,
    packets: u64,
    wire_bytes: u64,
    copies: u64,
    older_packets: u64,
    is_answered_by_older: bool,
    other_answers: u64,
    is_port_reused: bool,
    is_last_copy: bool,
    last_events: Events,
    reset_by: Option<Side>,
    tunnels: Tunnels,
    handshake: Handshake,
    halves: [Half; 2],
    suspect: Option<Suspect>,
    rivals: Vec<Rival>,
}

impl Connection {
    /// Creates the connection number `number` of its capture, starting with this packet. Without a
    /// SYN the end with the higher port is assumed to be the client. `is_port_reused`: the capture
    /// had another connection between the same ports.
    pub(crate) fn new(number: u64, packet: &Packet<'_>, is_port_reused: bool) -> Connection {
        let sent_by_client = match (packet.is_syn(), packet.is_syn_ack()) {
            (true, _) => true,
            (_, true) => false,
            _ => packet.src.port() >= packet.dst.port(),
        };
        let (client, server) =
            if sent_by_client { (packet.src, packet.dst) } else { (packet.dst, packet.src) };
        Connection {
            number,
            client,
            server,
            first_at: packet.at,
            last_at: packet.at,
            packets: 0,
            wire_bytes: 0,
            copies: 0,
            older_packets: 0,
            is_answered_by_older: false,
            other_answers: 0,
            is_port_reused,
            is_last_copy: false,
            last_events: Events::default(),
            reset_by: None,
            tunnels: packet.tunnels,
            handshake: Handshake::default(),
            halves: [Half::default(), Half::default()],
            suspect: None,
            rivals: Vec::new(),
        }
    }

    /// Returns its number among the connections of the capture, starting at 1, ordered by first
    /// packet.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Returns the client's address and port.
    pub fn client(&self) -> Endpoint {
        self.client
    }

    /// Returns the server's address and port.
    pub fn server(&self) -> Endpoint {
        self.server
    }

    /// Returns the time of its first packet, since 1970.
    pub fn first_at(&self) -> Duration {
        self.first_at
    }

    /// Returns the time from its first packet to its last.
    pub fn duration(&self) -> Duration {
        self.last_at.saturating_sub(self.first_at)
    }

    pub(crate) fn last_at(&self) -> Duration {
        self.last_at
    }

    /// Returns the number of packets of both sides, without copies. Includes packets of other
    /// connections between the same ports.
    pub fn packets(&self) -> u64 {
        self.packets
    }

    /// Returns the bytes of these packets, starting at the IP header.
    pub fn wire_bytes(&self) -> u64 {
        self.wire_bytes
    }

    /// Returns the number of packets that the capture has twice, as a capture on several interfaces
    /// may.
    pub fn copies(&self) -> u64 {
        self.copies
    }

    /// Returns the number of packets between its ports with sequence numbers of an older
    /// connection: challenge ACKs, answers from TIME-WAIT, late segments.
    pub fn older_packets(&self) -> u64 {
        self.older_packets
    }

    /// Returns whether some packets of an older connection came from the server.
    pub fn is_answered_by_older(&self) -> bool {
        self.is_answered_by_older
    }

    /// Returns the number of packets of another server that answered the same SYN, or of the same
    /// server with other sequence numbers.
    pub fn other_answers(&self) -> u64 {
        self.other_answers
    }

    /// Returns the events of the last packet.
    pub fn last_events(&self) -> Events {
        self.last_events
    }

    /// Returns whether the last packet was a copy of an earlier one.
    pub fn is_last_copy(&self) -> bool {
        self.is_last_copy
    }

    /// Returns the side that reset the connection.
    pub fn reset_by(&self) -> Option<Side> {
        self.reset_by
    }

    /// Returns the tunnels around its first packet.
    pub fn tunnels(&self) -> Tunnels {
        self.tunnels
    }

    /// Returns the handshake.
    pub fn handshake(&self) -> &Handshake {
        &self.handshake
    }

    /// Returns the direction of one side: everything that it sent.
    pub fn half(&self, side: Side) -> &Half {
        &self.halves[side as usize]
    }

    /// Returns the smallest round trip between the place of capture and a side, or `None` if that
    /// side answered nothing.
    pub fn path(&self, side: Side) -> Option<Duration> {
        let by_handshake = match side {
            Side::Server => self.handshake.to_server(),
            Side::Client => self.handshake.to_client(),
        };
        // Packets of the other side that this side answered.
        [by_handshake, self.half(side.other()).least_rtt()].into_iter().flatten().min()
    }

    /// Returns the round trip between the two ends, or `None` if one of its parts is unknown.
    pub fn rtt(&self) -> Option<Duration> {
        Some(self.path(Side::Client)?.saturating_add(self.path(Side::Server)?))
    }

    /// Returns the time from the first SYN to the first byte of the server's data, at the place of
    /// capture.
    pub fn time_to_first_byte(&self) -> Option<Duration> {
        let first_byte = self.half(Side::Server).first_text_at()?;
        first_byte.checked_sub(self.handshake.first_syn_at()?)
    }

    /// Returns the side that sent the packet.
    pub(crate) fn side_of(&self, packet: &Packet<'_>) -> Side {
        if packet.src == self.client { Side::Client } else { Side::Server }
    }

    /// Returns whether this SYN or SYN-ACK opens another connection between the same ports.
    pub(crate) fn is_followed_by(&self, packet: &Packet<'_>) -> bool {
        let side = self.side_of(packet);
        let own = self.half(side);
        let is_finished = Side::BOTH.iter().all(|side| self.half(*side).is_finished());
        if packet.is_syn_ack() {
            // Its SYN was not captured, or another server answers the same SYN.
            let is_quiet = packet.at.saturating_sub(self.last_at) >= QUIET;
            let is_closing = Side::BOTH.iter().any(|side| self.half(*side).is_finished());
            let is_over = is_closing || is_quiet || self.reset_by.is_some();
            let is_answer =
                self.half(side.other()).isn().is_some() && self.belonging(packet) != Belonging::Older;
            return is_over && !is_answer && own.isn().is_some_and(|isn| isn != packet.seq);
        }
        // A client may repeat a refused attempt with the same sequence number, as Windows does.
        let is_refused = self.handshake.is_refused();
        let is_over = is_finished || self.reset_by.is_some() && !is_refused;
        // A file may contain several simulated runs with one seed, one after the other. Each starts
        // at the same time, with the same sequence numbers.
        let is_earlier =
            self.handshake.is_answered() && packet.at.saturating_add(copies::COPY_WITHIN) < self.last_at;
        let is_same = match own.isn() {
            Some(isn) => isn == packet.seq && !is_earlier,
            None => self.is_opened_by(side, packet),
        };
        packet.is_syn() && (is_over || !is_same)
    }

    /// Returns whether a SYN that comes after other packets can be the one that opened the
    /// connection: either it was recorded late, or two SYNs cross (RFC 9293 section 3.5).
    fn is_opened_by(&self, side: Side, packet: &Packet<'_>) -> bool {
        let (own, other) = (self.half(side), self.half(side.other()));
        if other.is_only_syn() && !self.handshake.is_answered() && own.segments() == 0 {
            return true;
        }
        let first = own.floor().or(own.frontier());
        first.is_some_and(|first| {
            first.after(packet.seq) && first.since(packet.seq) <= packet.text_len.saturating_add(1)
        })
    }

    /// Handles the next packet of this connection.
    pub(crate) fn handle(&mut self, packet: &Packet<'_>) {
        self.first_at = self.first_at.min(packet.at);
        self.last_at = self.last_at.max(packet.at);
        let side = self.side_of(packet);
        let again = self.halves[side as usize].again(packet);
        self.is_last_copy = again == Some(Again::Copy);
        self.last_events = Events::default();
        if self.is_last_copy {
            self.copies += 1;
            return;
        }
        self.packets += 1;
        self.wire_bytes += u64::from(packet.wire_len);
        if again == Some(Again::Duplicate) {
            self.last_events = self.halves[side as usize].on_duplicate();
            return;
        }
        if self.prefers_rival(side, packet) || self.is_own(side, packet) {
            self.last_events = self.take(side, packet);
        }
    }

    /// Returns whether the sequence numbers belong to this connection. Counts and describes other
    /// packets.
    fn is_own(&mut self, side: Side, packet: &Packet<'_>) -> bool {
        let belonging = match packet.is_syn() {
            true => Belonging::Own,
            false => self.belonging(packet),
        };
        let event = match belonging {
            Belonging::Own => {
                self.suspect = None;
                return true;
            }
            Belonging::Older => Event::OlderConnection,
            Belonging::OtherServer => Event::OtherServer,
        };
        if let Some(suspect) = self.confirms(side, packet) {
            self.jump(&suspect, packet);
            return true;
        }
        match belonging {
            Belonging::OtherServer => {
                self.note_rival(packet);
                self.other_answers += 1;
            }
            _ => {
                self.older_packets += 1;
                self.is_answered_by_older |= side == Side::Server;
            }
        }
        self.last_events = Events::of(event);
        false
    }

    /// Continues with the other sequence numbers of both sides: the capture has a gap.
    fn jump(&mut self, suspect: &Suspect, packet: &Packet<'_>) {
        let (side, (start, end), ack) = suspect.numbers();
        self.older_packets = self.older_packets.saturating_sub(1);
        self.halves[side as usize].jump(start, end, packet.at);
        if let Some(ack) = ack {
            self.halves[side.other() as usize].jump(ack, ack, packet.at);
        }
    }

    /// Handles an ICMP error that quotes a segment between its ports.
    pub(crate) fn on_icmp(&mut self, error: &IcmpError) {
        if error.src == self.client {
            self.handshake.on_icmp(error);
        }
    }

    /// Counts a packet of an older connection that the client met while it opened this one: a
    /// server's answer, or the reset that it gets.
    pub(crate) fn note_older(&mut self, packet: &Packet<'_>) {
        let is_answer = self.side_of(packet) == Side::Server && packet.text_len == 0;
        if !self.handshake.is_answered() && (is_answer || packet.flags.contains(Flags::RST)) {
            self.older_packets += 1;
            self.is_answered_by_older |= is_answer;
        }
    }

    /// Handles a packet with sequence numbers of this connection.
    fn take(&mut self, side: Side, packet: &Packet<'_>) -> Events {
        self.handshake.handle(side, packet);
        let is_reset = packet.flags.contains(Flags::RST);
        if is_reset && self.reset_by.is_none() {
            self.reset_by = Some(side);
        }
        let paths = Paths { own: self.path(side), other: self.path(side.other()) };
        let mss = self.mss();
        // RFC 7323 section 2.2: the window of a SYN is never scaled.
        let scale = if packet.flags.contains(Flags::SYN) { Some(0) } else { self.window_scale(side) };
        let [client, server] = &mut self.halves;
        let (own, other) = match side {
            Side::Client => (client, server),
            Side::Server => (server, client),
        };
        let mut events = Events::default();
        if self.is_port_reused && packet.is_syn() && own.segments() == 0 {
            events.add(Event::PortReused);
        }
        let context = Context {
            mss,
            paths: &paths,
            advertised: other.advertised().last(),
            repeated: other.advertised().repeated(),
        };
        let probe = own.probe_of(packet, other.advertised().is_closed());
        if packet.flags.contains(Flags::ACK) && !is_reset {
            let edge = scale.map(|scale| packet.ack + (u32::from(packet.window) << scale));
            let is_next = own.frontier().is_none_or(|next| next == packet.seq);
            let advertised = own.advertised_mut().judge(packet, is_next, edge, other.last_probe());
            events = events | advertised | other.on_ack(packet, edge, probe.is_some());
        }
        events | own.on_sent(packet, probe, &context)
    }

    /// Returns the window scale of a side, or `None` if it is unknown because a SYN was not
    /// captured.
    pub fn window_scale(&self, side: Side) -> Option<u8> {
        let offered = |side: Side| self.half(side).offer().map(|offer| offer.window_scale);
        match (offered(side), offered(side.other())) {
            // RFC 7323 section 2.2: only if both SYNs have the option.
            (Some(None), _) | (_, Some(None)) => Some(0),
            (Some(Some(own)), Some(Some(_))) => Some(own.min(14)),
            // A SYN-ACK has it only if the SYN had.
            (Some(Some(own)), None) if side == Side::Server => Some(own.min(14)),
            _ => None,
        }
    }

    /// Frees the state that only further packets need.
    pub(crate) fn ended(mut self) -> Connection {
        self.rivals = Vec::new();
        self.halves.iter_mut().for_each(Half::end);
        self
    }

    /// Returns the bytes of memory that it takes.
    pub(crate) fn footprint(&self) -> usize {
        let rivals = self.rivals.capacity() * size_of::<Rival>();
        size_of::<Connection>() + rivals + self.halves.iter().map(Half::footprint).sum::<usize>()
    }

    /// Returns the maximum payload of a segment: the smaller of the two MSS options, minus
    /// timestamps.
    fn mss(&self) -> u32 {
        let offers = Side::BOTH.map(|side| self.half(side).offer());
        let has_timestamps = offers.iter().all(|offer| offer.is_some_and(|offer| offer.timestamps));
        let offered = offers.into_iter().flatten().filter_map(|offer| offer.mss).min();
        u32::from(offered.unwrap_or(MSS_UNKNOWN)).saturating_sub(if has_timestamps { 12 } else { 0 }).max(1)
    }

    /// Returns whether the capture was made close to this side, at no more than an eighth of the
    /// round trip, or `None` if unknown.
    pub fn is_seen_from(&self, side: Side) -> Option<bool> {
        Some(self.path(side)? <= self.rtt()? / 8)
    }
}

impl Limit {
    /// Returns whether this is more than a guess about the limit of `side`. Near the sender the
    /// capture shows acknowledgements and data in the sender's order. Elsewhere the order is
    /// inferred.
    pub fn is_certain(self, connection: &Connection, side: Side) -> bool {
        let is_seen_from_sender = connection.is_seen_from(side) == Some(true);
        match self {
            Limit::Loss => true,
            Limit::ReceiveWindow | Limit::Application | Limit::Peer | Limit::Nagle => is_seen_from_sender,
            Limit::Congestion => false,
        }
    }
}
