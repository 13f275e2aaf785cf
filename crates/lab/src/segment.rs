//! TCP packets as values, for middleboxes, measurements and ladders.
//!
//! This is not a second parser: `wire` parses and emits; this module joins the three parts of a
//! packet.

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
    /// Payload of the segment.
    pub payload: Bytes,
}

impl Segment {
    /// Parses a TCP packet. Returns `None` for anything else, and for packets with wrong checksums.
    pub fn parse(packet: &Bytes) -> Option<Segment> {
        let (ip, tcp, text) = wire::parse_tcp_packet(packet).ok()?;
        Some(Segment { ip, tcp, payload: packet.slice(text) })
    }

    /// Emits the packet with correct checksums.
    pub fn emit(&self) -> Bytes {
        wire::build_tcp_packet(&self.ip, &self.tcp, &self.payload)
    }

    /// Returns source address and port.
    pub fn src(&self) -> SocketAddr {
        SocketAddr::new(self.ip.src.to_ip(), self.tcp.src_port)
    }

    /// Returns destination address and port.
    pub fn dst(&self) -> SocketAddr {
        SocketAddr::new(self.ip.dst.to_ip(), self.tcp.dst_port)
    }

    /// Replaces the source.
    pub fn set_src(&mut self, src: SocketAddr) {
        self.ip.src = Addr::from(src.ip());
        self.tcp.src_port = src.port();
    }

    /// Replaces the destination.
    pub fn set_dst(&mut self, dst: SocketAddr) {
        self.ip.dst = Addr::from(dst.ip());
        self.tcp.dst_port = dst.port();
    }

    /// Returns whether it is a SYN without ACK.
    pub fn is_syn(&self) -> bool {
        self.tcp.flags & (Flags::SYN | Flags::ACK) == Flags::SYN
    }

    /// Returns whether it is a SYN-ACK.
    pub fn is_syn_ack(&self) -> bool {
        self.tcp.flags.contains(Flags::SYN | Flags::ACK)
    }

    /// Returns whether it is a RST.
    pub fn is_reset(&self) -> bool {
        self.tcp.flags.contains(Flags::RST)
    }

    /// Returns the sequence number of the first byte of payload; a SYN occupies one number before
    /// it.
    pub fn text_seq(&self) -> SeqNum {
        self.tcp.seq + u32::from(self.tcp.flags.contains(Flags::SYN))
    }

    /// Returns the length of the payload.
    pub fn text_len(&self) -> u32 {
        u32::try_from(self.payload.len()).unwrap_or(u32::MAX)
    }
}
