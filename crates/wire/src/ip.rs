//! IPv4 (RFC 791) and IPv6 (RFC 8200) in one header type.
//!
//! Parsing checks version, lengths, the IPv4 header checksum, addresses that can never be valid,
//! fragments, source routes and extension headers. It checks neither the destination nor the
//! upper-layer checksum.
mod extension;
mod v4;
mod v6;

pub(crate) use v4::{FRAGMENT, NO_OPTIONS, is_group, sum_is_right};

use crate::Addr;
use core::fmt;
use core::ops::Range;

/// Protocol numbers used here.
pub mod protocol {
    /// ICMP for IPv4.
    pub const ICMP: u8 = 1;
    /// TCP.
    pub const TCP: u8 = 6;
    /// UDP.
    pub const UDP: u8 = 17;
    /// ICMP for IPv6.
    pub const ICMPV6: u8 = 58;
}

/// The two ECN bits (RFC 3168 §5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Ecn {
    /// 00: not ECN-capable.
    #[default]
    NotEct,
    /// 01.
    Ect1,
    /// 10.
    Ect0,
    /// 11: congestion experienced.
    Ce,
}

impl Ecn {
    /// Converts the low two bits of a traffic-class byte.
    #[inline]
    pub fn from_bits(bits: u8) -> Ecn {
        match bits & 0b11 {
            0b00 => Ecn::NotEct,
            0b01 => Ecn::Ect1,
            0b10 => Ecn::Ect0,
            _ => Ecn::Ce,
        }
    }

    /// Returns the two bits.
    pub fn bits(self) -> u8 {
        match self {
            Ecn::NotEct => 0b00,
            Ecn::Ect1 => 0b01,
            Ecn::Ect0 => 0b10,
            Ecn::Ce => 0b11,
        }
    }
}

/// A validated IP header of either version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IpHeader {
    /// Source address. It determines the version when emitting.
    pub src: Addr,
    /// Destination address, of the same version.
    pub dst: Addr,
    /// Upper-layer protocol (after IPv6 extension headers).
    pub protocol: u8,
    /// TTL or hop limit.
    pub hop_limit: u8,
    /// DSCP (6 bits).
    pub dscp: u8,
    /// ECN bits.
    pub ecn: Ecn,
    /// Don't-fragment flag of IPv4. Always true for IPv6.
    pub dont_fragment: bool,
    /// Identification of IPv4. 0 for IPv6.
    pub ident: u16,
    /// Flow label of IPv6 (20 bits). 0 for IPv4.
    pub flow_label: u32,
}

impl IpHeader {
    /// Creates a header with usual values: hop limit 64, DF, no DSCP.
    pub fn new(src: Addr, dst: Addr, protocol: u8) -> IpHeader {
        IpHeader {
            src,
            dst,
            protocol,
            hop_limit: 64,
            dscp: 0,
            ecn: Ecn::NotEct,
            dont_fragment: true,
            ident: 0,
            flow_label: 0,
        }
    }

    /// Returns the length when emitted: 20 or 40. Options and extension headers are never emitted.
    pub fn emit_len(&self) -> usize {
        if self.src.is_v4() { v4::HEADER_LEN } else { v6::HEADER_LEN }
    }

    /// Writes the header (for IPv4 with its checksum) for a payload of `payload_len` bytes. Writes
    /// a length that exceeds 16 bits as 0, like Linux for GSO.
    ///
    /// # Panics
    /// Panics if `buf` is shorter than [`emit_len`](Self::emit_len).
    pub fn emit(&self, payload_len: usize, buf: &mut [u8]) {
        if self.src.is_v4() { v4::emit(self, payload_len, buf) } else { v6::emit(self, payload_len, buf) }
    }

    /// Checks a packet. Returns its header and the range of the upper-layer payload, without
    /// padding.
    ///
    /// A length field of 0 means the whole buffer for IPv4, and for IPv6 if more than 65535 bytes
    /// follow. Linux marks packets merged beyond 64 KiB in this way.
    ///
    /// # Errors
    /// See [`IpError`].
    #[inline(always)]
    pub fn parse(packet: &[u8]) -> Result<(IpHeader, Range<usize>), IpError> {
        match v4::parse_usual(packet) {
            Some(parsed) => Ok(parsed),
            None => parse_as(packet, Extent::Whole),
        }
    }

    /// Parses the start of a packet that an ICMP error quotes, like [`parse`](Self::parse). The end
    /// may be missing. The IPv4 checksum is not verified, because routers change the header. The
    /// range ends at the end of the quote.
    ///
    /// # Errors
    /// See [`IpError`]; never [`IpError::Checksum`].
    pub fn parse_quoted(quote: &[u8]) -> Result<(IpHeader, Range<usize>), IpError> {
        parse_as(quote, Extent::Quoted)
    }

    /// As [`parse_quoted`](Self::parse_quoted), of the first fragment, too: it has the headers, and a router that cut the packet quotes it.
    pub(crate) fn parse_quoted_fragment(quote: &[u8]) -> Result<(IpHeader, Range<usize>), IpError> {
        parse_as(quote, Extent::FirstFragment)
    }
}

/// How much of a packet there must be.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Extent {
    Whole,
    Quoted,
    /// Quoted, and perhaps of a packet that was cut on its way.
    FirstFragment,
}

/// Not inlined: what is usual does not come here.
#[inline(never)]
fn parse_as(packet: &[u8], extent: Extent) -> Result<(IpHeader, Range<usize>), IpError> {
    match packet.first().map(|byte| byte >> 4) {
        Some(4) => v4::parse(packet, extent),
        Some(6) => v6::parse(packet, extent),
        Some(version) => Err(IpError::Version(version)),
        None => Err(IpError::Truncated { required: v4::HEADER_LEN, available: 0 }),
    }
}

/// The first `N` bytes from `start`, or how much is missing.
fn array_at<const N: usize>(packet: &[u8], start: usize) -> Result<&[u8; N], IpError> {
    let truncated = IpError::Truncated { required: start + N, available: packet.len() };
    packet.get(start..).and_then(|rest| rest.first_chunk()).ok_or(truncated)
}

/// Where the packet ends: `declared` bytes, which must be there unless it is only quoted.
fn end_of_packet(declared: usize, available: usize, extent: Extent) -> Result<usize, IpError> {
    if declared > available && extent == Extent::Whole {
        return Err(IpError::Truncated { required: declared, available });
    }
    Ok(declared.min(available))
}

/// The reason why an IP packet is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum IpError {
    /// Shorter than its header or its length field.
    Truncated {
        /// Bytes needed.
        required: usize,
        /// Bytes available.
        available: usize,
    },
    /// The version is neither 4 nor 6.
    Version(u8),
    /// IHL below 5, total length below the header, or an option or extension header that exceeds
    /// its end.
    Length,
    /// Wrong IPv4 header checksum.
    Checksum,
    /// A fragment of either version. Atomic IPv6 fragments are accepted.
    Fragment,
    /// A multicast or broadcast source, or a mapped IPv4 address in a header.
    Address,
    /// An IPv6 extension header that must not be skipped: routing with segments left or of type 0,
    /// options that say "discard", AH, ESP, too many, or out of order.
    ExtensionHeader(u8),
    /// An IPv4 source route option (RFC 7126 §4.3, §4.4).
    SourceRoute,
}

impl fmt::Display for IpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            IpError::Truncated { required, available } => {
                write!(f, "truncated: {available} of {required} bytes")
            }
            IpError::Version(version) => write!(f, "IP version {version}"),
            IpError::Length => f.write_str("bad length"),
            IpError::Checksum => f.write_str("bad header checksum"),
            IpError::Fragment => f.write_str("fragment"),
            IpError::Address => f.write_str("address not allowed here"),
            IpError::ExtensionHeader(kind) => write!(f, "extension header {kind} refused"),
            IpError::SourceRoute => f.write_str("source route refused"),
        }
    }
}

impl core::error::Error for IpError {}
