//! ICMP for IPv4 (RFC 792) and IPv6 (RFC 4443): echo, and errors about sent packets.
//!
//! Both versions use the same types. `icmp/codes.rs` translates types and codes. [`QuotedTcp`]
//! reads the segment that an error quotes.
mod codes;
mod quote;

pub use quote::QuotedTcp;

use crate::{Addr, Checksum, protocol};
use codes::{ECHO_REPLY_V4, ECHO_REPLY_V6, ECHO_REQUEST_V4, ECHO_REQUEST_V6};
use core::fmt;

/// An ICMP message of either version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Icmp<'a> {
    /// Echo request.
    EchoRequest {
        /// Identifier.
        ident: u16,
        /// Sequence number.
        seq: u16,
        /// Payload.
        data: &'a [u8],
    },
    /// Echo reply.
    EchoReply {
        /// Identifier.
        ident: u16,
        /// Sequence number.
        seq: u16,
        /// Payload.
        data: &'a [u8],
    },
    /// An error about a sent packet. `quote` starts at that packet's IP header (see
    /// [`QuotedTcp::parse`]).
    Error {
        /// The error.
        error: IcmpError,
        /// The quoted packet.
        quote: &'a [u8],
    },
    /// Any other message.
    Other {
        /// Type.
        kind: u8,
        /// Code.
        code: u8,
    },
}

/// ICMP errors that concern TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IcmpError {
    /// Network, host or route unreachable.
    HostUnreachable,
    /// Administratively prohibited.
    Prohibited,
    /// Protocol unreachable (IPv6: next header not recognised).
    ProtocolUnreachable,
    /// Port unreachable.
    PortUnreachable,
    /// Fragmentation needed, or packet too big, with the next-hop MTU. Old IPv4 routers report 0.
    PacketTooBig {
        /// Bytes.
        mtu: u32,
    },
    /// Hop limit exceeded, or reassembly time exceeded.
    TimeExceeded,
    /// Header problem.
    ParameterProblem,
}

/// Bytes before the data or the quote.
const HEADER_LEN: usize = 8;

impl<'a> Icmp<'a> {
    /// Parses an ICMP payload (after the IP header). The addresses choose the version and verify
    /// the ICMPv6 checksum. RFC 4884 extensions after a quote are cut off.
    ///
    /// # Errors
    /// Returns an [`IcmpParseError`].
    pub fn parse(src: Addr, dst: Addr, data: &'a [u8]) -> Result<Icmp<'a>, IcmpParseError> {
        let message = Icmp::parse_unchecked(src.is_v4(), data)?;
        if checksum(src, dst, data) != 0 {
            return Err(IcmpParseError::Checksum);
        }
        Ok(message)
    }

    /// The message, whatever its checksum is.
    pub(crate) fn parse_unchecked(is_v4: bool, data: &'a [u8]) -> Result<Icmp<'a>, IcmpParseError> {
        let &[kind, code, _, _, w0, w1, w2, w3] = data.first_chunk().ok_or(IcmpParseError::Truncated)?;
        let word = u32::from_be_bytes([w0, w1, w2, w3]);
        let body = &data[HEADER_LEN..];
        let (ident, seq) = ((word >> 16) as u16, word as u16);
        Ok(match (is_v4, kind) {
            (true, ECHO_REQUEST_V4) | (false, ECHO_REQUEST_V6) => {
                Icmp::EchoRequest { ident, seq, data: body }
            }
            (true, ECHO_REPLY_V4) | (false, ECHO_REPLY_V6) => Icmp::EchoReply { ident, seq, data: body },
            _ => match codes::error_of(is_v4, kind, code, word) {
                Some(error) => {
                    Icmp::Error { error, quote: codes::without_extensions(is_v4, kind, word, body) }
                }
                None => Icmp::Other { kind, code },
            },
        })
    }

    /// Returns the length when emitted. 0 for `Other`, which cannot be emitted.
    pub fn emit_len(&self) -> usize {
        match self {
            Icmp::EchoRequest { data: body, .. }
            | Icmp::EchoReply { data: body, .. }
            | Icmp::Error { quote: body, .. } => HEADER_LEN + body.len(),
            Icmp::Other { .. } => 0,
        }
    }

    /// Writes the message with its checksum into the first `emit_len()` bytes. The addresses choose
    /// the version.
    ///
    /// # Panics
    /// Panics if `buf` is shorter than [`emit_len`](Self::emit_len).
    pub fn emit(&self, src: Addr, dst: Addr, buf: &mut [u8]) {
        let is_v4 = src.is_v4();
        let (kind, code, word, body) = match *self {
            Icmp::EchoRequest { ident, seq, data } => {
                (if is_v4 { ECHO_REQUEST_V4 } else { ECHO_REQUEST_V6 }, 0, echo_word(ident, seq), data)
            }
            Icmp::EchoReply { ident, seq, data } => {
                (if is_v4 { ECHO_REPLY_V4 } else { ECHO_REPLY_V6 }, 0, echo_word(ident, seq), data)
            }
            Icmp::Error { error, quote } => {
                let (kind, code, word) = codes::of_error(is_v4, error);
                (kind, code, word, quote)
            }
            Icmp::Other { .. } => return,
        };
        let buf = &mut buf[..HEADER_LEN + body.len()];
        buf[..4].copy_from_slice(&[kind, code, 0, 0]);
        buf[4..8].copy_from_slice(&word.to_be_bytes());
        buf[8..].copy_from_slice(body);
        let checksum = checksum(src, dst, buf);
        buf[2..4].copy_from_slice(&checksum.to_be_bytes());
    }
}

fn echo_word(ident: u16, seq: u16) -> u32 {
    u32::from(ident) << 16 | u32::from(seq)
}

/// 0 when the checksum field is already right. Only ICMPv6 covers a pseudo-header (RFC 4443 §2.3).
fn checksum(src: Addr, dst: Addr, message: &[u8]) -> u16 {
    let mut sum = if src.is_v4() {
        Checksum::new()
    } else {
        Checksum::pseudo_header(src, dst, protocol::ICMPV6, message.len() as u32)
    };
    sum.add(message);
    sum.finish()
}

/// The reason why an ICMP message is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum IcmpParseError {
    /// Too short.
    Truncated,
    /// Wrong checksum.
    Checksum,
}

impl fmt::Display for IcmpParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            IcmpParseError::Truncated => "truncated",
            IcmpParseError::Checksum => "bad checksum",
        })
    }
}

impl core::error::Error for IcmpParseError {}
