//! Reads the records of a pcap file, in every variant that Wireshark recognizes by the first four
//! bytes.
//!
//! | magic | variant |
//! |---|---|
//! | `a1b2c3d4` | microseconds |
//! | `a1b23c4d` | nanoseconds |
//! | `a1b2cd34` | Alexey Kuznetzov's: 8 more bytes in the header of each record |
//! | `1c0001ac`, `1c0001ab` | Ixia's hardware and software: nanoseconds, 4 more bytes in the file header |
//!
//! Each is read in either byte order.

use super::input::{Input, OpenError, end_of};
use super::oddity::{Oddities, Oddity};
use super::{End, Head};
use core::time::Duration;

/// The records of a pcap file.
pub(super) struct Pcap<'a> {
    source: Input<'a>,
    variant: Variant,
    snaplen: u32,
    link_type: u32,
    lengths: Lengths,
}

/// Properties that follow from the magic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Variant {
    is_big_endian: bool,
    nanos_per_unit: u64,
    /// Bytes of the file header beyond 24.
    file_header_more: usize,
    /// Bytes of a record header beyond 16.
    record_header_more: usize,
}

/// Order of the two lengths of a record. libpcap before 2.3 wrote the original length first, and
/// 2.3 wrote either order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lengths {
    CapturedFirst,
    OriginalFirst,
    SmallerIsCaptured,
}

/// Bytes of the file header, and of a record header.
const HEADER_LEN: usize = 24;
const RECORD_HEADER_LEN: usize = 16;

/// Longest record that is read. It bounds the memory that a file can request.
const RECORD_MAX: u32 = 8_000_000;

/// Longest record that tcpdump and Wireshark write (`MAXIMUM_SNAPLEN`), unless the file header
/// announces longer ones.
const RECORD_USUAL_MAX: u32 = 262_144;

/// Bits of the link type field that hold the link type. Higher bits describe the frame check
/// sequence (draft-ietf-opsawg-pcap section 4), which an IP packet's own length leaves out.
const LINK_TYPE_BITS: u32 = 0xffff;

impl Variant {
    /// Returns the variant of a file that starts with this magic, if it is pcap.
    fn of(magic: [u8; 4]) -> Option<Variant> {
        let variant = |is_big_endian, magic: u32| {
            let (nanos_per_unit, file_header_more, record_header_more) = match magic {
                0xa1b2_c3d4 => (1000, 0, 0),
                0xa1b2_3c4d => (1, 0, 0),
                0xa1b2_cd34 => (1000, 0, 8),
                0x1c00_01ac | 0x1c00_01ab => (1, 4, 0),
                _ => return None,
            };
            Some(Variant { is_big_endian, nanos_per_unit, file_header_more, record_header_more })
        };
        variant(true, u32::from_be_bytes(magic)).or_else(|| variant(false, u32::from_le_bytes(magic)))
    }

    fn u32(self, bytes: &[u8], at: usize) -> u32 {
        let bytes = [0, 1, 2, 3].map(|index| bytes.get(at + index).copied().unwrap_or(0));
        if self.is_big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) }
    }

    fn u16(self, bytes: &[u8], at: usize) -> u16 {
        let bytes = [0, 1].map(|index| bytes.get(at + index).copied().unwrap_or(0));
        if self.is_big_endian { u16::from_be_bytes(bytes) } else { u16::from_le_bytes(bytes) }
    }
}

impl<'a> Pcap<'a> {
    /// Returns whether a file that starts with this magic is pcap.
    pub(super) fn is_magic(magic: [u8; 4]) -> bool {
        Variant::of(magic).is_some()
    }

    pub(super) fn open(mut source: Input<'a>) -> Result<Pcap<'a>, OpenError> {
        let mut header = [0; HEADER_LEN];
        source.fill_header(&mut header)?;
        let [m0, m1, m2, m3, ..] = header;
        let variant = Variant::of([m0, m1, m2, m3]).ok_or(OpenError::NoCapture)?;
        source.fill_header(&mut [0; 4][..variant.file_header_more])?;
        let lengths = match (variant.u16(&header, 4), variant.u16(&header, 6)) {
            (..2, _) | (2, ..3) => Lengths::OriginalFirst,
            (2, 3) => Lengths::SmallerIsCaptured,
            _ => Lengths::CapturedFirst,
        };
        Ok(Pcap {
            source,
            variant,
            snaplen: variant.u32(&header, 16),
            link_type: variant.u32(&header, 20) & LINK_TYPE_BITS,
            lengths,
        })
    }

    pub(super) fn passed(&self) -> u64 {
        self.source.passed()
    }

    /// Reads the next record. Its length is accepted even above the file's snaplen, which writers
    /// get wrong for merged segments.
    pub(super) fn next(&mut self, data: &mut Vec<u8>, oddities: &mut Oddities) -> Result<Head, End> {
        if self.source.is_at_end()? {
            return Err(End::Whole);
        }
        let variant = self.variant;
        let mut head = [0; RECORD_HEADER_LEN + 8];
        let head = &mut head[..RECORD_HEADER_LEN + variant.record_header_more];
        self.source.fill(head)?;
        let [seconds, fraction, first, second] = [0, 4, 8, 12].map(|at| variant.u32(head, at));
        let (len, original_len) = match self.lengths {
            Lengths::CapturedFirst => (first, second),
            Lengths::OriginalFirst => (second, first),
            Lengths::SmallerIsCaptured => (first.min(second), first.max(second)),
        };
        let unlikely = || End::Damaged(format!("a record claims {len} bytes"));
        if len > RECORD_MAX {
            return Err(unlikely());
        }
        data.resize(len as usize, 0);
        self.source.fill_raw(data).map_err(|error| match end_of(&error) {
            End::Truncated if len > self.snaplen.max(RECORD_USUAL_MAX) => unlikely(),
            end => end,
        })?;
        self.source.pass(head.len() as u64 + u64::from(len));
        let nanos = u64::from(fraction) * variant.nanos_per_unit;
        oddities.note_if(Oddity::Fraction, nanos >= 1_000_000_000);
        let at = Duration::from_secs(seconds.into()) + Duration::from_nanos(nanos);
        Ok(Head {
            at: Some(at),
            interface: 0,
            original_len: original_len.max(len),
            link_type: self.link_type,
            data: 0..len as usize,
        })
    }
}
