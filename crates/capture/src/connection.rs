//! One connection as it was seen at one place: its handshake, and what each side sent.

mod copies;
mod half;
mod handshake;

pub use half::{Half, Offer};
pub use handshake::{CookieOption, Handshake};

use crate::limits::{Limit, Paths};
use crate::packet::Packet;
use crate::tunnel::Tunnels;
use core::net::SocketAddr;
use core::time::Duration;
use wire::Flags;

/// An end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// Who opened it.
    Client,
    /// Who was called.
    Server,
}

/// Where no SYN was seen: what is left of Ethernet's 1500 bytes by IPv4 and TCP.
const MSS_UNKNOWN: u16 = 1460;

impl Side {
    /// Both.
    pub const BOTH: [Side; 2] = [Side::Client, Side::Server];

    /// The other end.
    pub fn other(self) -> Side {
        match self {
            Side::Client => Side::Server,
            Side::Server => Side::Client,
        }
    }
}

/// What there is at each end.
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
    reset_by: Option<Side>,
    tunnels: Tunnels,
    handshake: Handshake,
    halves: [Half; 2],
}

impl Connection {
    /// The `number`th of its capture, which begins with this packet. Without a SYN it is a guess who is the client: the higher port.
    pub(crate) fn new(number: u64, packet: &Packet<'_>) -> Connection {
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
            reset_by: None,
            tunnels: packet.tunnels,
            handshake: Handshake::default(),
            halves: [Half::default(), Half::default()],
        }
    }

    /// Its place among the connections of the capture, from 1, in the order of their first packets.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The client's address and port.
    pub fn client(&self) -> Endpoint {
        self.client
    }

    /// The server's.
    pub fn server(&self) -> Endpoint {
        self.server
    }

    /// When its first packet was seen, since 1970.
    pub fn first_at(&self) -> Duration {
        self.first_at
    }

    /// From its first packet to its last.
    pub fn duration(&self) -> Duration {
        self.last_at.saturating_sub(self.first_at)
    }

    pub(crate) fn last_at(&self) -> Duration {
        self.last_at
    }

    /// Packets of both sides, but for copies.
    pub fn packets(&self) -> u64 {
        self.packets
    }

    /// Bytes of these packets, from the IP header on.
    pub fn wire_bytes(&self) -> u64 {
        self.wire_bytes
    }

    /// Packets that the capture has twice, as one on several interfaces has.
    pub fn copies(&self) -> u64 {
        self.copies
    }

    /// Who reset it.
    pub fn reset_by(&self) -> Option<Side> {
        self.reset_by
    }

    /// Tunnels that its first packet was found in.
    pub fn tunnels(&self) -> Tunnels {
        self.tunnels
    }

    /// How it was opened.
    pub fn handshake(&self) -> &Handshake {
        &self.handshake
    }

    /// What a side sent.
    pub fn half(&self, side: Side) -> &Half {
        &self.halves[side as usize]
    }

    /// The round trip between the place of capture and a side: the least seen. `None`: nothing of it was answered.
    pub fn path(&self, side: Side) -> Option<Duration> {
        let by_handshake = match side {
            Side::Server => self.handshake.to_server(),
            Side::Client => self.handshake.to_client(),
        };
        // What the other side sent was answered by this one.
        [by_handshake, self.half(side.other()).least_rtt()].into_iter().flatten().min()
    }

    /// The round trip between the two ends; `None` where one of its parts was not seen.
    pub fn rtt(&self) -> Option<Duration> {
        Some(self.path(Side::Client)? + self.path(Side::Server)?)
    }

    /// From the first SYN to the first byte of the server's text, at the place of capture.
    pub fn time_to_first_byte(&self) -> Option<Duration> {
        let first_byte = self.half(Side::Server).first_text_at()?;
        first_byte.checked_sub(self.handshake.first_syn_at()?)
    }

    /// Who sent the packet.
    pub(crate) fn side_of(&self, packet: &Packet<'_>) -> Side {
        if packet.src == self.client { Side::Client } else { Side::Server }
    }

    /// Does this SYN open another connection between the same ports?
    pub(crate) fn is_followed_by(&self, packet: &Packet<'_>) -> bool {
        let is_over = self.reset_by.is_some() || Side::BOTH.iter().all(|side| self.half(*side).is_finished());
        // Of runs with one seed that are in a file one behind the other, each begins at the same time, with the same numbers.
        let is_earlier = packet.at + copies::COPY_WITHIN < self.last_at;
        packet.is_syn()
            && (is_over || is_earlier || self.half(self.side_of(packet)).isn() != Some(packet.seq))
    }

    /// The next packet of this connection.
    pub(crate) fn handle(&mut self, packet: &Packet<'_>) {
        self.last_at = self.last_at.max(packet.at);
        let side = self.side_of(packet);
        if self.halves[side as usize].is_copy(packet) {
            self.copies += 1;
            return;
        }
        self.packets += 1;
        self.wire_bytes += u64::from(packet.wire_len);
        self.handshake.handle(side, packet);
        if packet.flags.contains(Flags::RST) && self.reset_by.is_none() {
            self.reset_by = Some(side);
        }
        let paths = Paths { own: self.path(side), other: self.path(side.other()) };
        let mss = self.mss();
        let scales = self.scales();
        let [client, server] = &mut self.halves;
        let (own, other) = match side {
            Side::Client => (client, server),
            Side::Server => (server, client),
        };
        if packet.flags.contains(Flags::ACK) {
            other.on_ack(packet, scales.map(|scales| scales[side as usize]));
        }
        own.on_sent(packet, mss, &paths);
    }

    /// By how many bits each side's windows are shifted; `None` where it cannot be known: a SYN was not seen.
    fn scales(&self) -> Option<[u8; 2]> {
        let [client, server] = [Side::Client, Side::Server].map(|side| self.half(side).offer());
        match (client?.window_scale, server?.window_scale) {
            (Some(client), Some(server)) => Some([client.min(14), server.min(14)]),
            // RFC 7323 §2.2: only if both SYNs have the option.
            _ => Some([0, 0]),
        }
    }

    /// The most text of a segment, by the smaller of the two offers and what timestamps take of it.
    fn mss(&self) -> u32 {
        let offers = Side::BOTH.map(|side| self.half(side).offer());
        let has_timestamps = offers.iter().all(|offer| offer.is_some_and(|offer| offer.timestamps));
        let offered = offers.into_iter().flatten().filter_map(|offer| offer.mss).min();
        u32::from(offered.unwrap_or(MSS_UNKNOWN)).saturating_sub(if has_timestamps { 12 } else { 0 }).max(1)
    }

    /// Was the capture made close to this side: at no more than an eighth of the round trip? `None`: it cannot be known.
    pub fn is_seen_from(&self, side: Side) -> Option<bool> {
        Some(self.path(side)? * 8 <= self.rtt()?)
    }
}

impl Limit {
    /// Is this more than a guess for what `side` waited for? From the sender's own side of the network the order of acknowledgements and
    /// text is the sender's; from elsewhere it is inferred.
    pub fn is_certain(self, connection: &Connection, side: Side) -> bool {
        let is_seen_from_sender = connection.is_seen_from(side) == Some(true);
        match self {
            Limit::Loss => true,
            Limit::ReceiveWindow | Limit::Application | Limit::Peer | Limit::Nagle => is_seen_from_sender,
            Limit::Congestion => false,
        }
    }
}
