//! The headers of one TCP segment as a capture has it: cut short perhaps, with a checksum that was left to the device.

use crate::tunnel::Tunnels;
use core::fmt;
use core::net::{IpAddr, SocketAddr};
use core::time::Duration;
use wire::{Flags, SeqNum, TcpOptions};

/// One segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet<'a> {
    /// When it was captured, since 1970.
    pub at: Duration,
    /// Source address and port.
    pub src: SocketAddr,
    /// Destination address and port.
    pub dst: SocketAddr,
    /// SEG.SEQ
    pub seq: SeqNum,
    /// SEG.ACK; meaningful with ACK.
    pub ack: SeqNum,
    /// Control bits.
    pub flags: Flags,
    /// SEG.WND, unscaled. The greatest number if the capture cut it off, so that no limit is inferred from it.
    pub window: u16,
    /// Options, as many as were captured.
    pub options: TcpOptions,
    /// True if the header is not whole, as the capture or a fragment cut it: options may be missing.
    pub is_header_cut: bool,
    /// Bytes of text that the segment carried, also where the capture has fewer.
    pub text_len: u32,
    /// Bytes of the IP packet.
    pub wire_len: u32,
    /// IPv4's identification; 0 in IPv6.
    pub ident: u16,
    /// The part of the text that the capture has.
    pub text: &'a [u8],
    /// Tunnels that the segment was found in.
    pub tunnels: Tunnels,
}

/// Why a frame has no segment in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NotTcp {
    /// The capture's link type (`LINKTYPE_` of tcpdump.org) is none that is read.
    LinkType(u32),
    /// It is no IP, or another protocol over IP.
    Protocol,
    /// The capture kept too little of it.
    Short,
    /// A fragment of an IP packet, or of a frame, that does not begin it.
    Fragment,
    /// Encrypted Wi-Fi, MACsec or CAPWAP.
    Encrypted,
    /// Headers whose lengths contradict one another.
    Malformed,
}

impl fmt::Display for NotTcp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotTcp::LinkType(number) => write!(f, "link type {number}, which is not read"),
            NotTcp::Protocol => f.write_str("another protocol than TCP"),
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

/// Bytes of a header without options, and those that cannot be done without: ports, numbers, control bits.
const HEADER_LEN: usize = 20;
const NEEDED_LEN: usize = 14;

impl<'a> Packet<'a> {
    /// Reads a segment, of which `len` bytes were on the network and `segment` was captured.
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
            // IP may give the segment fewer bytes than its header has: in a first fragment, or by mistake.
            text_len: u32::try_from(len.saturating_sub(header_len)).unwrap_or(u32::MAX),
            wire_len: u32::try_from(ip.len).unwrap_or(u32::MAX),
            ident: ip.ident,
            text: segment.get(header_len..).unwrap_or(&[]),
            tunnels,
        })
    }

    /// SYN without ACK.
    pub fn is_syn(&self) -> bool {
        self.flags & (Flags::SYN | Flags::ACK) == Flags::SYN
    }

    /// SYN with ACK.
    pub fn is_syn_ack(&self) -> bool {
        self.flags.contains(Flags::SYN | Flags::ACK)
    }

    /// Sequence number of the first byte of text: a SYN takes one number before it.
    pub fn text_seq(&self) -> SeqNum {
        self.seq + u32::from(self.flags.contains(Flags::SYN))
    }

    /// The number behind the last one that it takes.
    pub fn end_seq(&self) -> SeqNum {
        self.text_seq() + self.text_len + u32::from(self.flags.contains(Flags::FIN))
    }
}
