//! Reads packets from the blocks of a pcapng file (draft-ietf-opsawg-pcapng).
//!
//! Blocks without packets are skipped: names, statistics, secrets, and private blocks. Only options
//! that define the time stamps are read.

use super::input::{Input, OpenError};
use super::oddity::{Oddities, Oddity};
use super::time::Unit;
use super::{End, Head};
use core::ops::Range;

/// The blocks of a pcapng file.
pub(super) struct PcapNg<'a> {
    source: Input<'a>,
    order: Order,
    /// The interfaces of the current section.
    interfaces: Vec<Interface>,
    /// True if the last block ended with another length than it started with. If another block
    /// follows, only that length was wrong.
    is_trailer_wrong: bool,
}

/// An interface description.
#[derive(Clone, Copy, Debug)]
struct Interface {
    link_type: u32,
    snaplen: u32,
    unit: Unit,
}

/// Byte order of a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    Big,
    Little,
}

impl Order {
    fn u32(self, bytes: &[u8], at: usize) -> u32 {
        let bytes = [0, 1, 2, 3].map(|index| bytes.get(at + index).copied().unwrap_or(0));
        match self {
            Order::Big => u32::from_be_bytes(bytes),
            Order::Little => u32::from_le_bytes(bytes),
        }
    }

    fn u16(self, bytes: &[u8], at: usize) -> u16 {
        let bytes = [0, 1].map(|index| bytes.get(at + index).copied().unwrap_or(0));
        match self {
            Order::Big => u16::from_be_bytes(bytes),
            Order::Little => u16::from_le_bytes(bytes),
        }
    }

    fn u64(self, bytes: &[u8], at: usize) -> u64 {
        let (first, second) = (self.u32(bytes, at).into(), self.u32(bytes, at + 4).into());
        let (high, low): (u64, u64) = match self {
            Order::Big => (first, second),
            Order::Little => (second, first),
        };
        high << 32 | low
    }
}

/// Kinds of blocks.
const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
const PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const ENHANCED_PACKET: u32 = 6;

/// Codes of options.
const END_OF_OPTIONS: u16 = 0;
const COMMENT: u16 = 1;
const IF_TSRESOL: u16 = 9;
const IF_TSOFFSET: u16 = 14;

/// Length of kind and length before a block's body. The length is repeated after the body.
const BLOCK_HEADER_LEN: u32 = 8;
const BLOCK_TRAILER_LEN: u32 = 4;

/// Longest block held in memory.
const BLOCK_MAX: u32 = 8_000_000;

/// Most interfaces stored per section. Real captures have a few.
const INTERFACES_MAX: usize = 1 << 16;

impl<'a> PcapNg<'a> {
    pub(super) const MAGIC: [u8; 4] = SECTION_HEADER.to_be_bytes();

    pub(super) fn open(mut source: Input<'a>) -> Result<PcapNg<'a>, OpenError> {
        let mut head = [0; 12];
        source.fill_header(&mut head)?;
        let mut file =
            PcapNg { source, order: Order::Little, interfaces: Vec::new(), is_trailer_wrong: false };
        let invalid = |end| match end {
            End::Damaged(what) => OpenError::Header(what),
            End::Whole | End::Truncated => OpenError::Header("the file ends within it".to_owned()),
        };
        let [.., m0, m1, m2, m3] = head;
        file.begin_section([m0, m1, m2, m3]).map_err(invalid)?;
        let len = file.order.u32(&head, 4);
        file.source.skip(body_len(len).map_err(invalid)?.saturating_sub(4).into()).map_err(invalid)?;
        file.source.skip(BLOCK_TRAILER_LEN.into()).map_err(invalid)?;
        file.source.pass(u64::from(len).saturating_sub(head.len() as u64));
        Ok(file)
    }

    pub(super) fn passed(&self) -> u64 {
        self.source.passed()
    }

    /// Returns the next packet. Its bytes are a range of `data`.
    pub(super) fn next(&mut self, data: &mut Vec<u8>, oddities: &mut Oddities) -> Result<Head, End> {
        loop {
            let kind = self.next_block(data, oddities)?;
            let head = match kind {
                INTERFACE_DESCRIPTION => {
                    self.describe_interface(data, oddities);
                    continue;
                }
                ENHANCED_PACKET => self.packet(data, self.order.u32(data, 0), oddities),
                PACKET => self.packet(data, self.order.u16(data, 0).into(), oddities),
                SIMPLE_PACKET => self.simple_packet(data, oddities),
                _ => continue,
            };
            if let Some(head) = head {
                return Ok(head);
            }
        }
    }

    /// Reads one block, and its body into `data` if it is needed. Returns its kind.
    fn next_block(&mut self, data: &mut Vec<u8>, oddities: &mut Oddities) -> Result<u32, End> {
        if self.source.is_at_end()? {
            return Err(match self.is_trailer_wrong {
                true => End::Damaged("its last block does not end with its length".to_owned()),
                false => End::Whole,
            });
        }
        let mut head = [0; BLOCK_HEADER_LEN as usize];
        self.source.fill(&mut head)?;
        let mut kind = self.order.u32(&head, 0);
        data.clear();
        let mut body_read = 0;
        if kind == SECTION_HEADER {
            let mut magic = [0; 4];
            self.source.fill(&mut magic)?;
            self.begin_section(magic)?;
            body_read = 4;
        }
        let len = self.order.u32(&head, 4);
        let body = body_len(len)?.saturating_sub(body_read);
        let is_used = [INTERFACE_DESCRIPTION, ENHANCED_PACKET, PACKET, SIMPLE_PACKET].contains(&kind);
        match is_used {
            true if body > BLOCK_MAX => return Err(End::Damaged(format!("a block claims {len} bytes"))),
            true => {
                data.resize(body as usize, 0);
                self.source.fill(data)?;
            }
            false => self.source.skip(body.into())?,
        }
        let mut trailer = [0; BLOCK_TRAILER_LEN as usize];
        self.source.fill(&mut trailer)?;
        self.is_trailer_wrong = self.order.u32(&trailer, 0) != len;
        oddities.note_if(Oddity::BlockLength, self.is_trailer_wrong || !len.is_multiple_of(4));
        self.source.pass(u64::from(BLOCK_HEADER_LEN + body_read + BLOCK_TRAILER_LEN) + u64::from(body));
        if is_used && data.len() < 4 {
            oddities.note(Oddity::ShortBlock);
            kind = 0;
        }
        Ok(kind)
    }

    /// Starts a section, which resets byte order and interfaces.
    fn begin_section(&mut self, magic: [u8; 4]) -> Result<(), End> {
        self.order = match magic {
            [0x1a, 0x2b, 0x3c, 0x4d] => Order::Big,
            [0x4d, 0x3c, 0x2b, 0x1a] => Order::Little,
            _ => return Err(End::Damaged("a section header without a byte-order magic".to_owned())),
        };
        self.interfaces.clear();
        Ok(())
    }

    fn describe_interface(&mut self, body: &[u8], oddities: &mut Oddities) {
        if self.interfaces.len() == INTERFACES_MAX {
            return;
        }
        let mut unit = Unit::default();
        let order = self.order;
        walk_options(order, body.get(8..).unwrap_or(&[]), oddities, |code, value, oddities| {
            match (code, value) {
                (IF_TSRESOL, &[resolution]) => unit.resolution = resolution,
                (IF_TSOFFSET, offset) if offset.len() == 8 => {
                    unit.offset = order.u64(offset, 0).cast_signed()
                }
                (IF_TSRESOL | IF_TSOFFSET, _) => oddities.note(Oddity::OptionLength),
                _ => {}
            }
        });
        self.interfaces.push(Interface {
            link_type: order.u16(body, 0).into(),
            snaplen: order.u32(body, 4),
            unit,
        });
    }

    /// Parses an enhanced packet block, or the older packet block, whose fields have the same
    /// positions.
    fn packet(&self, body: &[u8], interface: u32, oddities: &mut Oddities) -> Option<Head> {
        const FIXED_LEN: usize = 20;
        if body.len() < FIXED_LEN {
            oddities.note(Oddity::ShortBlock);
            return None;
        }
        let Some(described) = self.interfaces.get(interface as usize) else {
            oddities.note(Oddity::Interface);
            return None;
        };
        let word = |at| self.order.u32(body, at);
        let ticks = u64::from(word(4)) << 32 | u64::from(word(8));
        let data = captured(FIXED_LEN, word(12), body, oddities);
        let options = data.end.next_multiple_of(4);
        walk_options(self.order, body.get(options..).unwrap_or(&[]), oddities, |_, _, _| {});
        let (at, is_in_range) = described.unit.time(ticks);
        oddities.note_if(Oddity::Time, !is_in_range);
        let (link_type, original_len) = (described.link_type, word(16).max(data.len() as u32));
        Some(Head { at: Some(at), interface, original_len, link_type, data })
    }

    /// Parses a simple packet block. It belongs to the section's first interface and has no time.
    /// The snap length determines how much was captured.
    fn simple_packet(&self, body: &[u8], oddities: &mut Oddities) -> Option<Head> {
        const FIXED_LEN: usize = 4;
        let Some(interface) = self.interfaces.first() else {
            oddities.note(Oddity::Interface);
            return None;
        };
        let original_len = self.order.u32(body, 0);
        let snaplen = if interface.snaplen == 0 { u32::MAX } else { interface.snaplen };
        let data = captured(FIXED_LEN, original_len.min(snaplen), body, oddities);
        let original_len = original_len.max(data.len() as u32);
        Some(Head { at: None, interface: 0, original_len, link_type: interface.link_type, data })
    }
}

/// Returns the position of a packet's bytes in its block.
fn captured(from: usize, len: u32, body: &[u8], oddities: &mut Oddities) -> Range<usize> {
    let end = from + len as usize;
    oddities.note_if(Oddity::PacketLength, end > body.len());
    from..end.min(body.len())
}

/// Returns the bytes of a block's body, given the block's length.
fn body_len(len: u32) -> Result<u32, End> {
    let body = len.checked_sub(BLOCK_HEADER_LEN + BLOCK_TRAILER_LEN);
    // Blocks are padded to 4 bytes, whether or not the writer counts the padding.
    body.and_then(|body| body.checked_next_multiple_of(4))
        .ok_or_else(|| End::Damaged(format!("a block claims {len} bytes")))
}

/// Passes each option to `take`, up to the end of options or an option that does not fit.
fn walk_options(
    order: Order,
    mut bytes: &[u8],
    oddities: &mut Oddities,
    mut take: impl FnMut(u16, &[u8], &mut Oddities),
) {
    while bytes.len() >= 4 {
        let (code, len) = (order.u16(bytes, 0), usize::from(order.u16(bytes, 2)));
        if code == END_OF_OPTIONS {
            return;
        }
        let Some(value) = bytes.get(4..4 + len) else {
            oddities.note(Oddity::OptionLength);
            return;
        };
        oddities.note_if(Oddity::Comment, code == COMMENT && core::str::from_utf8(value).is_err());
        take(code, value, oddities);
        bytes = bytes.get(4 + len.next_multiple_of(4)..).unwrap_or(&[]);
    }
}
