//! A TCP packet as values, for whoever reads or rewrites packets on the path: middleboxes, measurements, ladders.
//!
//! Not a second parser: `wire` parses and emits; this joins the three parts a packet has.

use bytes::Bytes;
use core::net::SocketAddr;
use wire::{Addr, Flags, IpHeader, SeqNum, TcpHeader};

/// An IP packet with a TCP segment in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// IP header of either version.
    pub ip: IpHeader,
    /// TCP header with its options.
    pub tcp: TcpHeader,
    /// Text of the segment.
    pub payload: Bytes,
}

impl Segment {
    /// The TCP packet in these bytes; `None` for anything else, and for packets whose checksums are wrong.
    pub fn parse(packet: &Bytes) -> Option<Segment> {
        let (ip, tcp, text) = wire::parse_tcp_packet(packet).ok()?;
        Some(Segment { ip, tcp, payload: packet.slice(text) })
    }

    /// The packet, with its checksums right.
    pub fn emit(&self) -> Bytes {
        wire::build_tcp_packet(&self.ip, &self.tcp, &self.payload)
    }

    /// Source address and port.
    pub fn src(&self) -> SocketAddr {
        SocketAddr::new(self.ip.src.to_ip(), self.tcp.src_port)
    }

    /// Destination address and port.
    pub fn dst(&self) -> SocketAddr {
        SocketAddr::new(self.ip.dst.to_ip(), self.tcp.dst_port)
    }

    /// Gives the packet another source.
    pub fn set_src(&mut self, src: SocketAddr) {
        self.ip.src = Addr::from(src.ip());
        self.tcp.src_port = src.port();
    }

    /// Gives the packet another destination.
    pub fn set_dst(&mut self, dst: SocketAddr) {
        self.ip.dst = Addr::from(dst.ip());
        self.tcp.dst_port = dst.port();
    }

    /// SYN without ACK.
    pub fn is_syn(&self) -> bool {
        self.tcp.flags & (Flags::SYN | Flags::ACK) == Flags::SYN
    }

    /// SYN with ACK.
    pub fn is_syn_ack(&self) -> bool {
        self.tcp.flags.contains(Flags::SYN | Flags::ACK)
    }

    /// RST.
    pub fn is_reset(&self) -> bool {
        self.tcp.flags.contains(Flags::RST)
    }

    /// Sequence number of the first byte of text: a SYN takes one number before it.
    pub fn text_seq(&self) -> SeqNum {
        self.tcp.seq + u32::from(self.tcp.flags.contains(Flags::SYN))
    }

    /// Length of the text.
    pub fn text_len(&self) -> u32 {
        u32::try_from(self.payload.len()).unwrap_or(u32::MAX)
    }
}
