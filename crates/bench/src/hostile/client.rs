//! One hostile peer: its packets, in the order of its numbers.

use super::arena::Arena;
use super::victim::{HOST, PORT};
use crate::report::Failure;
use bytes::Bytes;
use core::net::Ipv4Addr;
use core::time::Duration;
use wire::{Flags, IpHeader, SeqNum, TcpHeader, TcpOptions, build_tcp_packet, protocol};

/// To a peer and back, in virtual time. Nearer ones are given small buffers.
pub const ROUND_TRIP: Duration = Duration::from_millis(10);

/// A peer and its connection.
#[derive(Clone, Debug)]
pub struct Client {
    /// Its address.
    pub from: Ipv4Addr,
    /// Its port.
    pub port: u16,
    /// The number of its next byte.
    pub seq: SeqNum,
    /// The number it expects next.
    pub ack: SeqNum,
    /// The window it tells.
    pub window: u16,
}

/// The peer with this number: another address, and mostly another port, for each.
pub fn client(number: u32) -> Client {
    let address = u32::from(Ipv4Addr::new(10, 16, 0, 0)) + number;
    // A step without a common factor with the ports.
    let port = 1024 + number.wrapping_mul(7919) % 60_000;
    Client {
        from: address.into(),
        port: port as u16,
        seq: SeqNum(number.wrapping_mul(0x9e37_79b9)),
        ack: SeqNum(0),
        window: 65_535,
    }
}

/// The options of nearly all SYNs, with this MSS.
pub fn usual(mss: u16) -> TcpOptions {
    TcpOptions { mss: Some(mss), window_scale: Some(10), sack_permitted: true, ..TcpOptions::default() }
}

/// A packet of this header.
pub fn packet(from: Ipv4Addr, tcp: &TcpHeader, payload: &[u8]) -> Bytes {
    build_tcp_packet(&IpHeader::new(from.into(), HOST.into(), protocol::TCP), tcp, payload)
}

impl Client {
    /// A header with what it would tell.
    pub fn header(&self, flags: Flags) -> TcpHeader {
        let (seq, ack, window) = (self.seq, self.ack, self.window);
        TcpHeader { seq, ack, flags, window, ..TcpHeader::new(self.port, PORT) }
    }

    /// A segment as the header says.
    pub fn segment(&self, header: &TcpHeader, payload: &[u8]) -> Bytes {
        packet(self.from, header, payload)
    }

    /// Its SYN.
    pub fn syn(&self, options: TcpOptions) -> Bytes {
        self.segment(&TcpHeader { ack: SeqNum(0), options, ..self.header(Flags::SYN) }, &[])
    }

    /// An acknowledgement of all.
    pub fn acknowledge(&self) -> Bytes {
        self.segment(&self.header(Flags::ACK), &[])
    }

    /// An acknowledgement up to here, with these blocks.
    pub fn report(&self, ack: SeqNum, blocks: &[(SeqNum, SeqNum)]) -> Bytes {
        let mut options = TcpOptions::default();
        blocks.iter().for_each(|block| options.sack.push(*block));
        self.segment(&TcpHeader { ack, options, ..self.header(Flags::ACK) }, &[])
    }

    /// Takes the SYN-ACK among these answers.
    ///
    /// # Errors
    /// There is none.
    pub fn take_syn_ack(&mut self, answers: &[Bytes]) -> Result<TcpHeader, Failure> {
        let to_it = |packet: &&Bytes| {
            wire::parse_tcp_packet(packet).is_ok_and(|(ip, tcp, _)| {
                ip.dst == self.from.into()
                    && tcp.dst_port == self.port
                    && tcp.flags.contains(Flags::SYN | Flags::ACK)
            })
        };
        let answer = answers.iter().find(to_it).ok_or("no SYN-ACK came")?;
        let (_, header, _) = wire::parse_tcp_packet(answer).map_err(|error| format!("{error:?}"))?;
        (self.seq, self.ack) = (header.ack, header.seq + 1);
        Ok(header)
    }

    /// Opens a connection, which the victim accepts: its number there.
    ///
    /// # Errors
    /// The victim's.
    pub fn open(&mut self, arena: &mut Arena, options: TcpOptions) -> Result<usize, Failure> {
        let answers = arena.prepare(&[self.syn(options)])?;
        self.take_syn_ack(&answers)?;
        arena.victim.wait(ROUND_TRIP);
        arena.prepare(&[self.acknowledge()])?;
        arena.victim.accept()
    }
}

/// The last number of a stream that these packets carry.
pub fn end_of_text(packets: &[Bytes]) -> Option<SeqNum> {
    let end = |packet: &Bytes| {
        let (_, tcp, text) = wire::parse_tcp_packet(packet).ok()?;
        (!text.is_empty()).then(|| tcp.seq + text.len() as u32)
    };
    packets.iter().filter_map(end).reduce(SeqNum::latest)
}
