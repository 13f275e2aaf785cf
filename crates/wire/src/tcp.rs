//! TCP header (RFC 9293 §3.1) and options.
//!
//! This module has [`TcpHeader`]. `tcp/cookie.rs` has [`Cookie`] and the Fast Open option.
//! `tcp/options.rs` has [`TcpOptions`], based on the parser in `tcp/raw_options.rs`, which the
//! display also uses, with the values of `tcp/option_values.rs`. `tcp/signature.rs` has MD5
//! signatures, and `tcp/accurate_ecn.rs` counters of ECN marks.
mod accurate_ecn;
mod cookie;
mod option_values;
mod options;
pub(crate) mod raw_options;
mod signature;

pub use accurate_ecn::{AccurateEcnOption, AccurateEcnOrder, accurate_ecn_difference};
pub use cookie::{Cookie, FastOpenKind, FastOpenOption};
pub use option_values::{SackBlocks, UnknownOption, UnknownOptions};
pub(crate) use options::lone_timestamps;
pub use options::{TcpOptions, Timestamps, USUAL_COOKIE_LEN, USUAL_SYN_LEN, UsualSyn};
pub use signature::{SIGNATURE_LEN, SIGNATURE_OPTION_LEN, signature, signature_in};

use crate::{Addr, Checksum, SeqNum, protocol};
use core::fmt;
use core::ops::Range;

bitflags::bitflags! {
    /// TCP control bits.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
    pub struct Flags: u16 {
        /// No more data from the sender.
        const FIN = 0x01;
        /// Synchronise sequence numbers.
        const SYN = 0x02;
        /// Reset the connection.
        const RST = 0x04;
        /// Push.
        const PSH = 0x08;
        /// The acknowledgment field is meaningful.
        const ACK = 0x10;
        /// The urgent pointer is meaningful.
        const URG = 0x20;
        /// ECN echo (RFC 3168); of Accurate ECN the lowest bit of the ACE field (RFC 9768 §3.2.2).
        const ECE = 0x40;
        /// Congestion window reduced (RFC 3168); the middle bit of ACE.
        const CWR = 0x80;
        /// Accurate ECN (RFC 9768 §3.1), formerly NS: the highest bit of ACE.
        const AE = 0x100;
    }
}

/// Bytes of a header without options.
pub const TCP_HEADER_LEN: usize = 20;
/// Maximum bytes of options: the data offset allows 15 words of header.
pub const TCP_OPTIONS_MAX: usize = 40;
/// Offset of the checksum field in a TCP header.
pub const TCP_CHECKSUM_OFFSET: usize = 16;

/// A validated TCP header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TcpHeader {
    /// Source port.
    pub src_port: u16,
    /// Destination port.
    pub dst_port: u16,
    /// SEG.SEQ.
    pub seq: SeqNum,
    /// SEG.ACK. Only valid with the ACK bit.
    pub ack: SeqNum,
    /// Control bits.
    pub flags: Flags,
    /// SEG.WND, unscaled.
    pub window: u16,
    /// Urgent pointer.
    pub urgent: u16,
    /// Options.
    pub options: TcpOptions,
}

impl TcpHeader {
    /// Creates a header with these ports and zeros otherwise, for `..TcpHeader::new(…)`.
    pub fn new(src_port: u16, dst_port: u16) -> TcpHeader {
        TcpHeader {
            src_port,
            dst_port,
            seq: SeqNum(0),
            ack: SeqNum(0),
            flags: Flags::empty(),
            window: 0,
            urgent: 0,
            options: TcpOptions::default(),
        }
    }

    /// Parses a TCP segment (after IP). Verifies the checksum with the addresses (source,
    /// destination) if `verify` is given. Returns the header and the range of the payload in
    /// `segment`. Ignores the reserved bits.
    ///
    /// # Errors
    /// See [`TcpError`]. Invalid options are never an error: see [`TcpOptions`].
    #[inline(always)]
    pub fn parse(
        segment: &[u8],
        verify: Option<(Addr, Addr)>,
    ) -> Result<(TcpHeader, Range<usize>), TcpError> {
        let mut header = TcpHeader::new(0, 0);
        let text = header.read(segment, verify)?;
        Ok((header, text))
    }

    /// Parses a segment like [`parse`](Self::parse), in place. Overwrites everything unless there
    /// is an error.
    ///
    /// # Errors
    /// See [`parse`](Self::parse).
    #[inline(always)]
    pub fn read(&mut self, segment: &[u8], verify: Option<(Addr, Addr)>) -> Result<Range<usize>, TcpError> {
        let truncated = TcpError::Truncated { required: TCP_HEADER_LEN, available: segment.len() };
        let fixed: &[u8; TCP_HEADER_LEN] = segment.first_chunk().ok_or(truncated)?;
        let data_offset = fixed[12] >> 4;
        let header_len = usize::from(data_offset) * 4;
        let options = segment.get(TCP_HEADER_LEN..header_len).ok_or(TcpError::DataOffset(data_offset))?;
        if let Some((src, dst)) = verify
            && !Checksum::pseudo_header(src, dst, protocol::TCP, segment.len() as u32).is_right_for(segment)
        {
            return Err(TcpError::Checksum);
        }
        let [s0, s1, d0, d1, q0, q1, q2, q3, a0, a1, a2, a3, f0, f1, w0, w1, _, _, u0, u1] = *fixed;
        let (src_port, dst_port) = (u16::from_be_bytes([s0, s1]), u16::from_be_bytes([d0, d1]));
        if src_port == 0 || dst_port == 0 {
            return Err(TcpError::Port);
        }
        *self = TcpHeader {
            src_port,
            dst_port,
            seq: SeqNum(u32::from_be_bytes([q0, q1, q2, q3])),
            ack: SeqNum(u32::from_be_bytes([a0, a1, a2, a3])),
            flags: Flags::from_bits_truncate(u16::from_be_bytes([f0, f1])),
            window: u16::from_be_bytes([w0, w1]),
            urgent: u16::from_be_bytes([u0, u1]),
            options: TcpOptions::parse(options),
        };
        Ok(header_len..segment.len())
    }

    /// Returns the header length with options: a multiple of 4, 20..=60 unless there are too many
    /// options.
    pub fn emit_len(&self) -> usize {
        TCP_HEADER_LEN + self.options.emit_len()
    }

    /// Writes header and options, and returns their length. The checksum field is zero, for the
    /// caller to set (see [`set_checksum`](crate::set_checksum)).
    ///
    /// # Panics
    /// Panics if the options exceed [`TCP_OPTIONS_MAX`] bytes or `buf` is shorter than
    /// [`emit_len`](Self::emit_len).
    pub fn emit(&self, buf: &mut [u8]) -> usize {
        let (buf, rest) = buf.split_at_mut(TCP_HEADER_LEN);
        let header_len = TCP_HEADER_LEN + self.options.emit(rest);
        let data_offset = (header_len / 4) as u16;
        buf[0..2].copy_from_slice(&self.src_port.to_be_bytes());
        buf[2..4].copy_from_slice(&self.dst_port.to_be_bytes());
        buf[4..8].copy_from_slice(&self.seq.0.to_be_bytes());
        buf[8..12].copy_from_slice(&self.ack.0.to_be_bytes());
        buf[12..14].copy_from_slice(&(data_offset << 12 | self.flags.bits()).to_be_bytes());
        buf[14..16].copy_from_slice(&self.window.to_be_bytes());
        buf[16..18].fill(0);
        buf[18..20].copy_from_slice(&self.urgent.to_be_bytes());
        header_len
    }
}

/// The checksum of a whole segment; 0 when its checksum field is already right.
pub(crate) fn tcp_checksum(src: Addr, dst: Addr, segment: &[u8]) -> u16 {
    let mut sum = Checksum::pseudo_header(src, dst, protocol::TCP, segment.len() as u32);
    sum.add(segment);
    sum.finish()
}

/// The reason why a TCP segment is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TcpError {
    /// Shorter than its header.
    Truncated {
        /// Bytes needed.
        required: usize,
        /// Bytes available.
        available: usize,
    },
    /// The data offset is below 5 or beyond the segment.
    DataOffset(u8),
    /// Wrong checksum.
    Checksum,
    /// The source or destination port is 0.
    Port,
}

impl fmt::Display for TcpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TcpError::Truncated { required, available } => {
                write!(f, "truncated: {available} of {required} bytes")
            }
            TcpError::DataOffset(words) => write!(f, "bad data offset {words}"),
            TcpError::Checksum => f.write_str("bad checksum"),
            TcpError::Port => f.write_str("port 0"),
        }
    }
}

impl core::error::Error for TcpError {}
