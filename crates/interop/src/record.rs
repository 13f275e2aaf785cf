//! Packets that crossed a path, one by one, and read as conversations.
use crate::direction::Direction;
use crate::segment::{FIN, RST, SYN, Segment};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

/// The fate of a packet that entered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It travelled on as it was.
    Passed,
    /// A middlebox dropped it.
    Dropped,
    /// A middlebox let something else travel on.
    Changed,
    /// The test itself sent it.
    Injected,
}

/// One packet as it entered the path.
#[derive(Clone, Debug)]
pub struct Packet {
    /// Since the path began.
    pub at: Duration,
    /// Which way.
    pub direction: Direction,
    /// Decoded.
    pub segment: Segment,
    /// The fate of the packet.
    pub fate: Fate,
    /// From the IP header on, as it entered.
    pub bytes: Vec<u8>,
}

/// Every TCP packet of a path, in the order of entering. Other protocols (ICMPv6 of the kernel) are
/// left out.
#[derive(Clone, Debug, Default)]
pub struct Record {
    /// The packets.
    pub packets: Vec<Packet>,
    /// Packets the receiving end refused (device down, buffer full).
    pub undelivered: usize,
}

impl Record {
    /// When the last packet entered.
    pub fn last_at(&self) -> Option<Duration> {
        self.packets.last().map(|packet| packet.at)
    }

    /// The conversations in order of their first packet: all packets between one client socket and
    /// one server socket. A new SYN after a FIN or RST of the same pair begins another one.
    pub fn conversations(&self) -> Vec<Conversation> {
        let mut conversations: Vec<Conversation> = Vec::new();
        let mut current: BTreeMap<(SocketAddr, SocketAddr), usize> = BTreeMap::new();
        for packet in &self.packets {
            let segment = &packet.segment;
            let pair = match packet.direction {
                Direction::ToServer => (segment.src, segment.dst),
                Direction::ToClient => (segment.dst, segment.src),
            };
            let known = current.get(&pair).copied();
            let number =
                known.filter(|number| !conversations[*number].is_followed_by(segment)).unwrap_or_else(|| {
                    conversations.push(Conversation::default());
                    conversations.len() - 1
                });
            current.insert(pair, number);
            conversations[number].packets.push(packet.clone());
        }
        conversations
    }

    /// The only conversation that began here; what is left over from earlier ones does not count.
    ///
    /// # Panics
    /// If there is none or more than one; shows them.
    pub fn only_opened(&self) -> Conversation {
        let mut opened = self.conversations();
        opened.retain(|conversation| conversation.packets[0].segment.is_syn());
        assert_eq!(opened.len(), 1, "one conversation should begin here:\n{self}");
        opened.remove(0)
    }

    /// The only conversation.
    ///
    /// # Panics
    /// If there is none or more than one; shows them.
    pub fn only(&self) -> Conversation {
        let conversations = self.conversations();
        assert_eq!(conversations.len(), 1, "one conversation expected:\n{self}");
        conversations.into_iter().next().unwrap_or_default()
    }
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, conversation) in self.conversations().iter().enumerate() {
            writeln!(f, "conversation {number}:\n{conversation}")?;
        }
        match self.undelivered {
            0 => Ok(()),
            refused => writeln!(f, "({refused} packets were refused by the receiving end)"),
        }
    }
}

/// The packets of one connection.
#[derive(Clone, Debug, Default)]
pub struct Conversation {
    /// In the order of entering the path.
    pub packets: Vec<Packet>,
}

impl Conversation {
    /// Returns the number of packets the two ends sent (lost ones count, injected ones do not).
    pub fn len(&self) -> usize {
        self.packets.iter().filter(|packet| packet.fate != Fate::Injected).count()
    }

    /// Counts like [`len`](Self::len), without repetitions of the sender: text, SYN or FIN again
    /// because a busy machine was late, and acknowledgements that acknowledge nothing more.
    pub fn told(&self) -> usize {
        let sent = self.packets.iter().filter(|packet| packet.fate != Fate::Injected);
        let mut said = BTreeSet::new();
        sent.filter(|packet| {
            let segment = &packet.segment;
            let to_server = packet.direction == Direction::ToServer;
            let text = segment.payload.len() + usize::from(segment.has(SYN) || segment.has(FIN));
            let number = if text > 0 { segment.seq } else { segment.ack };
            said.insert((to_server, segment.has(RST), text, number))
        })
        .count()
    }

    /// Nothing was sent.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The shapes in order, `>` towards the server and `<` towards the client: `>S(27)`, `<SA`,
    /// `<PA(43)`, `<FA`, …
    pub fn shapes(&self) -> Vec<String> {
        self.packets.iter().map(Packet::shape).collect()
    }

    /// The shapes of one direction, with their mark.
    pub fn shapes_of(&self, direction: Direction) -> Vec<String> {
        self.packets.iter().filter(|packet| packet.direction == direction).map(Packet::shape).collect()
    }

    /// The `number`-th SYN without ACK.
    pub fn syn(&self, number: usize) -> &Packet {
        self.nth(number, "SYN", Segment::is_syn)
    }

    /// The `number`-th SYN-ACK.
    pub fn syn_ack(&self, number: usize) -> &Packet {
        self.nth(number, "SYN-ACK", Segment::is_syn_ack)
    }

    fn nth(&self, number: usize, what: &str, is: impl Fn(&Segment) -> bool) -> &Packet {
        let found = self.packets.iter().filter(|packet| is(&packet.segment)).nth(number);
        found.unwrap_or_else(|| panic!("no {what} number {number} in:\n{self}"))
    }

    /// Bytes of the first SYN's data that the first SYN-ACK acknowledges.
    pub fn syn_data_acked(&self) -> u32 {
        self.syn_ack(0).segment.ack.wrapping_sub(self.syn(0).segment.seq).wrapping_sub(1)
    }

    /// Round trips until the client has the server's first payload byte, on a path of this delay:
    /// counted from which packet could answer which, so that a busy machine changes nothing. `None`
    /// if the server sent no payload.
    pub fn round_trips_to_first_byte(&self, one_way: Duration) -> Option<usize> {
        let mut trips: Vec<usize> = Vec::new();
        for packet in &self.packets {
            let seen =
                |earlier: &Packet| earlier.direction != packet.direction && earlier.at + one_way <= packet.at;
            let answered =
                self.packets.iter().zip(&trips).filter(|(earlier, _)| seen(earlier)).map(|(_, trips)| *trips);
            trips.push(answered.max().unwrap_or(0) + 1);
            if packet.direction == Direction::ToClient && !packet.segment.payload.is_empty() {
                return trips.last().map(|trips| trips / 2);
            }
        }
        None
    }

    /// Payload bytes sent in one direction after the SYN, retransmissions counted each time.
    pub fn payload_bytes(&self, direction: Direction) -> usize {
        self.packets
            .iter()
            .filter(|packet| packet.direction == direction)
            .map(|packet| packet.segment.payload.len())
            .sum()
    }

    /// A new connection of the same sockets begins with `segment`.
    fn is_followed_by(&self, segment: &Segment) -> bool {
        use crate::segment::{FIN, RST};
        let ended = self.packets.iter().any(|packet| packet.segment.flags & (FIN | RST) != 0);
        ended && segment.is_syn() && self.packets.iter().all(|packet| packet.segment.seq != segment.seq)
    }
}

impl Packet {
    fn shape(&self) -> String {
        let mark = match self.direction {
            Direction::ToServer => '>',
            Direction::ToClient => '<',
        };
        format!("{mark}{}", self.segment)
    }
}

/// A ladder: time in ms, direction, the packet in tcpdump's words, its fate unless it simply
/// passed.
impl fmt::Display for Conversation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(first) = self.packets.first() else { return writeln!(f, "  (nothing)") };
        for packet in &self.packets {
            let ms = (packet.at - first.at).as_secs_f64() * 1000.0;
            write!(f, "  {ms:9.3} {:10} {}", packet.shape(), ::wire::Summary(&packet.bytes))?;
            writeln!(
                f,
                "{}",
                if packet.fate == Fate::Passed { String::new() } else { format!("  [{:?}]", packet.fate) }
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segment::{ACK, PSH};
    use wire::{Flags, IpHeader, SeqNum, TcpHeader, protocol};

    fn packet(direction: Direction, flags: u8, seq: u32, ack: u32, payload: &[u8]) -> Packet {
        let [client, server] = [1, 2].map(|last| std::net::Ipv4Addr::new(10, 0, 0, last).into());
        let (from, to) = match direction {
            Direction::ToServer => ((client, 40_000), (server, 80)),
            Direction::ToClient => ((server, 80), (client, 40_000)),
        };
        let flags = Flags::from_bits_truncate(u16::from(flags));
        let tcp = TcpHeader { seq: SeqNum(seq), ack: SeqNum(ack), flags, ..TcpHeader::new(from.1, to.1) };
        let bytes =
            wire::build_tcp_packet(&IpHeader::new(from.0, to.0, protocol::TCP), &tcp, payload).to_vec();
        let segment = Segment::decode(&bytes).expect("a segment");
        Packet { at: Duration::ZERO, direction, segment, fate: Fate::Passed, bytes }
    }

    #[test]
    fn what_is_said_again_is_not_told() {
        use Direction::{ToClient, ToServer};
        let mut packets = vec![
            packet(ToServer, SYN, 0, 0, b""),
            packet(ToClient, SYN | ACK, 100, 1, b""),
            packet(ToServer, ACK, 1, 101, b""),
            packet(ToServer, PSH | ACK, 1, 101, b"request"),
            packet(ToClient, FIN | ACK, 101, 8, b"reply"),
            packet(ToServer, FIN | ACK, 8, 107, b""),
            packet(ToClient, ACK, 107, 9, b""),
        ];
        assert_eq!(Conversation { packets: packets.clone() }.told(), 7);
        packets.insert(5, packet(ToClient, FIN | ACK, 101, 8, b"reply"));
        packets.push(packet(ToClient, ACK, 107, 9, b""));
        packets.insert(2, packet(ToServer, SYN, 0, 0, b""));
        let conversation = Conversation { packets };
        assert_eq!((conversation.told(), conversation.len()), (7, 10));
    }
}
