//! Builds and parses whole packets in one call: for tests, the lab, stateless replies and captures.
//! The data path uses [`TxPacket`](crate::TxPacket).
use crate::tcp::tcp_checksum;
use crate::{Icmp, IpError, IpHeader, TCP_CHECKSUM_OFFSET, TcpError, TcpHeader, protocol};
use bytes::Bytes;
use core::fmt;
use core::ops::Range;

/// Builds an IP packet with this TCP header and payload, with all checksums. Sets `ip.protocol` to
/// TCP.
///
/// # Panics
/// Panics if the options exceed 40 bytes.
pub fn build_tcp_packet(ip: &IpHeader, tcp: &TcpHeader, payload: &[u8]) -> Bytes {
    let ip = IpHeader { protocol: protocol::TCP, ..ip.clone() };
    let (ip_len, tcp_len) = (ip.emit_len(), tcp.emit_len());
    let mut packet = vec![0; ip_len + tcp_len + payload.len()];
    let segment_len = packet.len() - ip_len;
    ip.emit(segment_len, &mut packet);
    let segment = &mut packet[ip_len..];
    tcp.emit(segment);
    segment[tcp_len..].copy_from_slice(payload);
    set_checksum(&ip, segment);
    packet.into()
}

/// Writes the TCP checksum of a whole segment (TCP header and payload) in an `ip` packet.
///
/// # Panics
/// Panics if `segment` is shorter than a TCP header.
pub fn set_checksum(ip: &IpHeader, segment: &mut [u8]) {
    let field = TCP_CHECKSUM_OFFSET..TCP_CHECKSUM_OFFSET + 2;
    segment[field.clone()].fill(0);
    let checksum = tcp_checksum(ip.src, ip.dst, segment);
    segment[field].copy_from_slice(&checksum.to_be_bytes());
}

/// Parses a whole packet and verifies its checksums. Returns both headers, and the range of the TCP
/// payload in `packet`.
///
/// # Errors
/// Returns a [`PacketError`] that names the layer and its error.
pub fn parse_tcp_packet(packet: &[u8]) -> Result<(IpHeader, TcpHeader, Range<usize>), PacketError> {
    let (ip, segment) = IpHeader::parse(packet).map_err(PacketError::Ip)?;
    if ip.protocol != protocol::TCP {
        return Err(PacketError::NotTcp(ip.protocol));
    }
    let verify = Some((ip.src, ip.dst));
    let (tcp, payload) = TcpHeader::parse(&packet[segment.clone()], verify).map_err(PacketError::Tcp)?;
    Ok((ip, tcp, segment.start + payload.start..segment.start + payload.end))
}

/// Builds an IP packet with this ICMP message. The addresses choose the protocol. [`Icmp::Other`]
/// gives an empty IP payload.
pub fn build_icmp_packet(ip: &IpHeader, icmp: &Icmp<'_>) -> Bytes {
    let protocol = if ip.src.is_v4() { protocol::ICMP } else { protocol::ICMPV6 };
    let ip = IpHeader { protocol, ..ip.clone() };
    let mut packet = vec![0; ip.emit_len() + icmp.emit_len()];
    ip.emit(icmp.emit_len(), &mut packet);
    icmp.emit(ip.src, ip.dst, &mut packet[ip.emit_len()..]);
    packet.into()
}

/// The reason why a packet is not a valid TCP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PacketError {
    /// Invalid IP header.
    Ip(IpError),
    /// Another protocol, with its number.
    NotTcp(u8),
    /// Invalid TCP header or checksum.
    Tcp(TcpError),
}

impl fmt::Display for PacketError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PacketError::Ip(error) => write!(f, "IP: {error}"),
            PacketError::NotTcp(protocol) => write!(f, "protocol {protocol} is not TCP"),
            PacketError::Tcp(error) => write!(f, "TCP: {error}"),
        }
    }
}

impl core::error::Error for PacketError {}
