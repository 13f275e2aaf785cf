//! The headers of one TCP segment in a capture, which may be cut short or lack a checksum.

use crate::tunnel::Tunnels;
use core::fmt;
use core::net::{IpAddr, SocketAddr};
use core::time::Duration;
use wire::{Flags, SeqNum, TcpOptions};

/// One segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet<'a> {
    /// Time of capture, since 1970.
    pub at: Duration,
    /// Source address and port.
    pub src: SocketAddr,
    /// Destination address and port.
    pub dst: SocketAddr,
    /// SEG.SEQ.
    pub seq: SeqNum,
    /// SEG.ACK. Only valid with the ACK bit.
    pub ack: SeqNum,
    /// Control bits.
    pub flags: Flags,
    /// SEG.WND, unscaled. The maximum if the capture cut it off, so that no limit is inferred from
    /// it.
    pub window: u16,
    /// Options, as far as they were captured.
    pub options: TcpOptions,
    /// True if the capture or a fragment cut the header. Options may be missing.
    pub is_header_cut: bool,
    /// Payload bytes on the network. The capture may have fewer.
    pub text_len: u32,
    /// Bytes of the IP packet.
    pub wire_len: u32,
    /// Identification field of IPv4. 0 for IPv6.
    pub ident: u16,
    /// Payload, as far as it was captured.
    pub text: &'a [u8],
    /// Tunnels around the segment.
    pub tunnels: Tunnels,
}

/// The reason why a frame contains no TCP segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NotTcp {
    /// Unsupported link type of the capture (`LINKTYPE_` of tcpdump.org).
    LinkType(u32),
    /// Not IP, or another protocol over IP.
    Protocol,
    /// The capture cut the frame too early.
    Short,
    /// A later fragment of an IP packet or frame.
    Fragment,
    /// Encrypted Wi-Fi, MACsec or CAPWAP.
    Encrypted,
    /// Malformed headers: their lengths contradict each other.
    Malformed,
}

impl fmt::Display for NotTcp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotTcp::LinkType(number) => write!(f, "unsupported link type {number}"),
            NotTcp::Protocol => f.write_str("not TCP"),
            NotTcp::Short => {
                f.write_str("cut before the end of its headers (capture with `tcpdump -s 128` or more)")
            }
            NotTcp::Fragment => f.write_str("a later fragment of an IP packet"),
            NotTcp::Encrypted => f.write_str("encrypted by Wi-Fi, MACsec or CAPWAP"),
            NotTcp::Malformed => f.write_str("malformed headers"),
        }
    }
}

/// The addresses and lengths of an IP packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IpHeader {
    pub(crate) src: IpAddr,
    pub(crate) dst: IpAddr,
    pub(crate) ident: u16,
    /// Bytes of the packet on the network.
    pub(crate) len: usize,
}

/// Bytes of a header without options, and the bytes that are required: ports, sequence numbers,
/// control bits.
const HEADER_LEN: usize = 20;
const NEEDED_LEN: usize = 14;

impl<'a> Packet<'a> {
    /// Parses a segment. `len` bytes were on the network, and `segment` was captured.
    pub(crate) fn parse(
        at: Duration,
        ip: IpHeader,
        segment: &'a [u8],
        len: usize,
        tunnels: Tunnels,
    ) -> Result<Packet<'a>, NotTcp> {
        let Some(needed) = segment.first_chunk::<NEEDED_LEN>() else {
            return Err(if len < NEEDED_LEN { NotTcp::Malformed } else { NotTcp::Short });
        };
        let [s0, s1, d0, d1, q0, q1, q2, q3, a0, a1, a2, a3, f0, f1] = *needed;
        let header_len = usize::from(f0 >> 4) * 4;
        if header_len < HEADER_LEN {
            return Err(NotTcp::Malformed);
        }
        let captured = &segment[..header_len.min(segment.len())];
        let window = captured.get(NEEDED_LEN..).and_then(<[u8]>::first_chunk).copied();
        Ok(Packet {
            at,
            src: SocketAddr::new(ip.src, u16::from_be_bytes([s0, s1])),
            dst: SocketAddr::new(ip.dst, u16::from_be_bytes([d0, d1])),
            seq: SeqNum(u32::from_be_bytes([q0, q1, q2, q3])),
            ack: SeqNum(u32::from_be_bytes([a0, a1, a2, a3])),
            flags: Flags::from_bits_truncate(u16::from_be_bytes([f0, f1])),
            window: window.map_or(u16::MAX, u16::from_be_bytes),
            options: TcpOptions::parse(captured.get(HEADER_LEN..).unwrap_or(&[])),
            is_header_cut: captured.len() < header_len,
            // IP may give the segment fewer bytes than its header has: in a first fragment, or by
            // mistake.
            text_len: u32::try_from(len.saturating_sub(header_len)).unwrap_or(u32::MAX),
            wire_len: u32::try_from(ip.len).unwrap_or(u32::MAX),
            ident: ip.ident,
            text: segment.get(header_len..).unwrap_or(&[]),
            tunnels,
        })
    }

    /// Returns true for a SYN without ACK.
    pub fn is_syn(&self) -> bool {
        self.flags & (Flags::SYN | Flags::ACK) == Flags::SYN
    }

    /// Returns true for a SYN with ACK.
    pub fn is_syn_ack(&self) -> bool {
        self.flags.contains(Flags::SYN | Flags::ACK)
    }

    /// Returns the sequence number of the first payload byte. A SYN takes the number before it.
    pub fn text_seq(&self) -> SeqNum {
        self.seq + u32::from(self.flags.contains(Flags::SYN))
    }

    /// Returns the sequence number after the last one that the segment takes.
    pub fn end_seq(&self) -> SeqNum {
        self.text_seq() + self.text_len + u32::from(self.flags.contains(Flags::FIN))
    }
}
