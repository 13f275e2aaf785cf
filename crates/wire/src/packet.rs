//! Packets of a device: received packets, packets to send, and the capabilities of the device.
//!
//! `packet/arrival.rs` has batches of received packets. `packet/segments.rs` is the software GSO
//! behind [`TxPacket::segments`]. `packet/gro_run.rs` recognizes such segments on the other side.
//! `packet/plain.rs` writes the usual headers.
mod arrival;
mod gro_run;
mod plain;
mod segments;

use alloc::vec::Vec;
pub use arrival::{Arrival, RxBatch, RxData};
pub use gro_run::{GroRun, ends_of};
pub use plain::{Layout, PlainSegment};
pub use segments::Segments;

use crate::{Checksum, IpHeader, TCP_CHECKSUM_OFFSET, TCP_HEADER_LEN, TCP_OPTIONS_MAX, TcpHeader, protocol};
use bytes::Bytes;
use smallvec::SmallVec;

/// Work that a device does for the stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// Largest IP packet in bytes (68..=65535).
    pub mtu: usize,
    /// Largest TCP payload of one `TxPacket` in bytes. 0 if the device does not segment.
    pub gso_max_size: usize,
    /// True if the device completes TCP checksums. A `TxPacket` may then be `Partial`.
    pub tx_checksum: bool,
}

/// Validity of the transport checksum of a received packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum RxChecksum {
    /// Unknown: the stack verifies it.
    #[default]
    Verify,
    /// Verified by the device, or the packet never left the machine (virtio NEEDS_CSUM). The stack
    /// does not verify it.
    Trusted,
}

/// A received IP packet.
#[derive(Clone, Debug, Default)]
pub struct RxPacket {
    /// Bytes, starting with the IP header. Payloads are kept as slices of it.
    pub data: Bytes,
    /// Memory that this packet occupies, in bytes (≥ data.len()).
    pub truesize: usize,
    /// Checksum state.
    pub checksum: RxChecksum,
    /// Payload size of the segments that were merged into it (GRO). 0 for a single segment.
    pub gso_size: u16,
}

impl RxPacket {
    /// Creates a packet of one segment whose checksum must be verified.
    pub fn new(data: Bytes) -> RxPacket {
        let truesize = data.len();
        RxPacket { data, truesize, checksum: RxChecksum::Verify, gso_size: 0 }
    }
}

/// State of the TCP checksum in a `TxPacket`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum TxChecksum {
    /// The field is complete.
    #[default]
    Complete,
    /// The field contains the folded pseudo-header sum, and the device adds the rest. The TCP
    /// header starts at `start`, the field is at `start + offset`.
    Partial {
        /// Offset of the TCP header in the packet, in bytes.
        start: u16,
        /// Offset of the field in the TCP header: 16.
        offset: u16,
    },
}

/// Longest header that a stack writes: IPv6 40 + TCP 60.
pub const MAX_HEADER: usize = 40 + TCP_HEADER_LEN + TCP_OPTIONS_MAX;

/// Longest payload stored inline in a packet, in bytes. Up to this length a copy is cheaper than a
/// reference count.
pub const TEXT_MOST: usize = 192;
// Its length is kept in a byte.
const _: () = assert!(TEXT_MOST <= u8::MAX as usize);

/// A packet to send: header inline, payload inline if it is short, or as shared slices.
#[derive(Clone, Debug)]
pub struct TxPacket {
    header: [u8; MAX_HEADER],
    header_len: u8,
    text_len: u8,
    text: [u8; TEXT_MOST],
    /// Payload after the inline part, as slices that may be shared.
    pub shared: SmallVec<[Bytes; 2]>,
    /// Payload bytes per segment if the device must split the packet. 0 for one packet.
    pub gso_size: u16,
    /// Checksum state.
    pub checksum: TxChecksum,
    /// True if every segment after a split keeps the packet's CWR bit, which is then part of a
    /// counter (RFC 9768 §3.2.2). Otherwise only the first segment keeps it (RFC 3168 §6.1.2), as
    /// devices do.
    pub repeats_cwr: bool,
}

/// An empty packet, for a stack to write into.
impl Default for TxPacket {
    fn default() -> TxPacket {
        TxPacket {
            header: [0; MAX_HEADER],
            header_len: 0,
            text_len: 0,
            text: [0; TEXT_MOST],
            shared: SmallVec::new(),
            gso_size: 0,
            checksum: TxChecksum::Complete,
            repeats_cwr: false,
        }
    }
}

impl TxPacket {
    /// Creates a packet from a header and payload slices, with a complete checksum.
    ///
    /// # Panics
    /// Panics if the header is longer than [`MAX_HEADER`].
    pub fn new(header: &[u8], payload: SmallVec<[Bytes; 2]>) -> TxPacket {
        assert!(header.len() <= MAX_HEADER, "header of {} bytes", header.len());
        let mut inline = [0; MAX_HEADER];
        inline[..header.len()].copy_from_slice(header);
        TxPacket { header: inline, header_len: header.len() as u8, shared: payload, ..TxPacket::default() }
    }

    /// Creates a whole TCP packet. With `partial` the device completes the checksum
    /// ([`Capabilities::tx_checksum`]), which is required if `gso_size` is not 0. Otherwise it is
    /// computed here.
    ///
    /// # Panics
    /// Panics if the options exceed 40 bytes.
    pub fn tcp(
        ip: &IpHeader,
        tcp: &TcpHeader,
        payload: SmallVec<[Bytes; 2]>,
        gso_size: u16,
        partial: bool,
    ) -> TxPacket {
        let mut packet = TxPacket { shared: payload, ..TxPacket::default() };
        packet.write_tcp(ip, tcp, gso_size, partial);
        packet
    }

    /// Writes a TCP packet like [`tcp`](Self::tcp), in place: the payload is already there, and
    /// everything else is overwritten.
    ///
    /// # Panics
    /// Panics if the options exceed 40 bytes.
    pub fn write_tcp(&mut self, ip: &IpHeader, tcp: &TcpHeader, gso_size: u16, partial: bool) {
        let start = ip.emit_len();
        let tcp_len = tcp.emit(&mut self.header[start..]);
        let segment_len = tcp_len + self.payload_len();
        ip.emit(segment_len, &mut self.header);
        self.header_len = (start + tcp_len) as u8;
        self.gso_size = gso_size;
        let mut sum = Checksum::pseudo_header(ip.src, ip.dst, protocol::TCP, segment_len as u32);
        let field = if partial {
            self.checksum = TxChecksum::Partial { start: start as u16, offset: TCP_CHECKSUM_OFFSET as u16 };
            sum.folded()
        } else {
            self.checksum = TxChecksum::Complete;
            sum.add(&self.header[start..start + tcp_len]);
            self.slices().for_each(|slice| sum.add(slice));
            sum.finish()
        };
        let at = start + TCP_CHECKSUM_OFFSET;
        self.header[at..at + 2].copy_from_slice(&field.to_be_bytes());
    }

    /// Returns the bytes of the header.
    pub fn header(&self) -> &[u8] {
        &self.header[..usize::from(self.header_len)]
    }

    /// Returns the inline payload: usually all of it, or nothing.
    #[inline]
    pub fn text(&self) -> &[u8] {
        &self.text[..usize::from(self.text_len)]
    }

    /// Replaces the inline payload by a copy of `text`. Returns false and changes nothing if it is
    /// too long ([`TEXT_MOST`]).
    #[inline]
    pub fn set_text(&mut self, text: &[u8]) -> bool {
        let Some(place) = self.text.get_mut(..text.len()) else { return false };
        place.copy_from_slice(text);
        self.text_len = text.len() as u8;
        true
    }

    /// Iterates over the payload in order.
    pub fn slices(&self) -> impl Iterator<Item = &[u8]> + Clone {
        let inline = (self.text_len > 0).then(|| self.text());
        inline.into_iter().chain(self.shared.iter().map(Bytes::as_ref))
    }

    /// Removes the payload.
    #[inline]
    pub fn clear_payload(&mut self) {
        self.text_len = 0;
        if !self.shared.is_empty() {
            self.shared.clear();
        }
    }

    /// Moves the contents of `other` here. `other` must be overwritten before its next use.
    #[inline]
    pub fn take_from(&mut self, other: &mut TxPacket) {
        (self.header, self.header_len) = (other.header, other.header_len);
        self.text_len = 0;
        if other.text_len > 0 {
            self.set_text(other.text());
        }
        if !(self.shared.is_empty() && other.shared.is_empty()) {
            self.shared.clear();
            core::mem::swap(&mut self.shared, &mut other.shared);
        }
        (self.gso_size, self.checksum, self.repeats_cwr) =
            (other.gso_size, other.checksum, other.repeats_cwr);
    }

    /// Returns the bytes of payload.
    pub fn payload_len(&self) -> usize {
        usize::from(self.text_len) + self.shared.iter().map(Bytes::len).sum::<usize>()
    }

    /// Returns the length of the packet.
    pub fn len(&self) -> usize {
        usize::from(self.header_len) + self.payload_len()
    }

    /// Returns whether the packet is empty. Never true for a packet of a stack.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Copies the packet into the first `len()` bytes of `buf`, and completes a partial checksum.
    /// Returns the length. A GSO packet is copied without splitting it.
    ///
    /// # Panics
    /// Panics if `buf` is shorter than `len()`.
    #[inline]
    pub fn copy_into(&self, buf: &mut [u8]) -> usize {
        let header_len = usize::from(self.header_len);
        let Some((start, field)) = self.partial_field() else {
            let len = self.len();
            let (header, payload) = buf[..len].split_at_mut(header_len);
            header.copy_from_slice(self.header());
            self.copy_payload(payload, <[u8]>::copy_from_slice);
            return len;
        };
        let (header, payload) = buf.split_at_mut(header_len);
        let mut sum = self.copy_header(header, start);
        let mut len = header_len;
        self.copy_payload(payload, |to, from| {
            sum.copy_and_add(to, from);
            len += from.len();
        });
        header[field..field + 2].copy_from_slice(&sum.finish().to_be_bytes());
        len
    }

    /// Copies the header, and sums it from `start` on.
    #[inline]
    fn copy_header(&self, to: &mut [u8], start: usize) -> Checksum {
        let usual = match start {
            plain::V4_LEN => self.copy_usual::<{ plain::V4_LEN + plain::TCP_LEN }>(to),
            plain::V6_LEN => self.copy_usual::<{ plain::V6_LEN + plain::TCP_LEN }>(to),
            _ => None,
        };
        usual.unwrap_or_else(|| {
            to.copy_from_slice(self.header());
            let mut sum = Checksum::new();
            sum.add(&to[start..]);
            sum
        })
    }

    /// Copies a header of `LEN` bytes, known at compile time, and sums what the checksum covers of it. `None`: it has another length.
    #[inline(always)]
    fn copy_usual<const LEN: usize>(&self, to: &mut [u8]) -> Option<Checksum> {
        let to: &mut [u8; LEN] = to.try_into().ok()?;
        let from: &[u8; LEN] = self.header.first_chunk()?;
        *to = *from;
        let mut sum = Checksum::new();
        sum.add_header(from.last_chunk::<{ plain::TCP_LEN }>()?);
        Some(sum)
    }

    #[inline(always)]
    fn copy_payload(&self, mut out: &mut [u8], mut copy: impl FnMut(&mut [u8], &[u8])) {
        if self.text_len > 0 {
            let (to, rest) = out.split_at_mut(self.text_len.into());
            copy(to, self.text());
            out = rest;
        }
        for slice in &self.shared {
            let (to, rest) = out.split_at_mut(slice.len());
            copy(to, slice);
            out = rest;
        }
    }

    /// Returns the packet as owned bytes, with a complete checksum.
    pub fn to_bytes(&self) -> Bytes {
        if self.partial_field().is_none() {
            let mut packet = Vec::with_capacity(self.len());
            packet.extend_from_slice(self.header());
            self.slices().for_each(|slice| packet.extend_from_slice(slice));
            return packet.into();
        }
        let mut packet = vec![0; self.len()];
        self.copy_into(&mut packet);
        packet.into()
    }

    /// Splits a GSO packet into the packets for the wire, like Linux's software GSO. Each gets its
    /// TCP sequence number, IP length, IPv4 identification and checksum. CWR is only on the first,
    /// or follows `repeats_cwr`. PSH and FIN are only on the last.
    ///
    /// Returns `None` if `gso_size` is 0, if the payload fits into one segment, or if the header is
    /// not TCP over IP.
    pub fn cut(&self) -> Option<Segments<'_>> {
        Segments::new(self)
    }

    /// Returns the packets of [`cut`](Self::cut) as owned bytes, or the packet itself if there is
    /// nothing to split.
    pub fn segments(&self) -> Vec<Bytes> {
        let Some(mut segments) = self.cut() else { return vec![self.to_bytes()] };
        let mut packets = Vec::new();
        while let Some(len) = segments.next_len() {
            let mut packet = vec![0; len];
            segments.write_next(&mut packet);
            packets.push(packet.into());
        }
        packets
    }

    /// Where a partial checksum starts and where its field is; `None` when complete, or when the field is outside the header.
    fn partial_field(&self) -> Option<(usize, usize)> {
        let TxChecksum::Partial { start, offset } = self.checksum else { return None };
        let start = usize::from(start);
        let field = start + usize::from(offset);
        (field + 2 <= usize::from(self.header_len)).then_some((start, field))
    }
}
