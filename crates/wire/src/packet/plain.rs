//! The header of nearly every packet of a connection: IP without options or extension headers, and of TCP no options or timestamps alone,
//! or those that a SYN mostly has. Written, and read, in one pass, every offset constant. Reading leaves other options of TCP than
//! timestamps to [`TcpOptions::parse`]. `plain/ip.rs` has the IP headers.
//!
//! What is written are the bytes that [`TxPacket::write_tcp`] writes for such a header, and what is read are the values that [`IpHeader::parse`](crate::IpHeader::parse) and
//! [`TcpHeader::parse`](crate::TcpHeader::parse) find in it; anything else is left to them.
mod ip;

use super::{TxChecksum, TxPacket};
use crate::{
    Addr, Checksum, Ecn, FastOpenOption, Flags, SeqNum, TCP_CHECKSUM_OFFSET, TCP_HEADER_LEN, TcpHeader,
    TcpOptions, Timestamps, USUAL_SYN_LEN, UsualSyn, lone_timestamps,
};
use core::ops::Range;
use ip::IpFields;
pub(super) use ip::{V4_LEN, V6_LEN};

const TIMESTAMPS_LEN: usize = 12;
/// Of TCP's header, with timestamps.
pub(super) const TCP_LEN: usize = TCP_HEADER_LEN + TIMESTAMPS_LEN;
/// NOP NOP, kind 8, length 10 (RFC 7323 appendix A).
const TIMESTAMPS_PREFIX: u32 = 0x0101_080a;
/// Kind 2, length 4: the MSS follows.
const MSS_PREFIX: u32 = 0x0204_0000;
/// Kind 4, length 2, and kind 8, length 10: SACK permitted, and the timestamps follow.
const SACK_TIMESTAMPS_PREFIX: u32 = 0x0402_080a;
/// NOP, kind 3, length 3: the shift follows.
const SCALE_PREFIX: u32 = 0x0103_0300;

/// A segment without other options than timestamps, and without an urgent pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlainSegment {
    /// Source and destination.
    pub addresses: (Addr, Addr),
    /// Source and destination.
    pub ports: (u16, u16),
    /// SEG.SEQ
    pub seq: SeqNum,
    /// SEG.ACK
    pub ack: SeqNum,
    /// Control bits.
    pub flags: Flags,
    /// SEG.WND, unscaled.
    pub window: u16,
    /// The timestamps option.
    pub timestamps: Option<Timestamps>,
    /// ECN bits of the IP header.
    pub ecn: Ecn,
    /// DiffServ code point, 6 bits.
    pub dscp: u8,
    /// TTL.
    pub hop_limit: u8,
    /// Bytes of the payload.
    pub payload_len: usize,
}

/// Where things lie in a packet that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// TCP's options, unless there are none or timestamps alone: then it is empty.
    pub options: Range<usize>,
    /// The payload.
    pub text: Range<usize>,
}

impl PlainSegment {
    /// What follows an IP header of `start` bytes, in a packet that ends where `segment` does.
    #[inline(always)]
    fn read_tcp(ip: IpFields, start: usize, segment: &[u8]) -> Option<(PlainSegment, Layout)> {
        let tcp: &[u8; TCP_HEADER_LEN] = segment.first_chunk()?;
        let [s0, s1, d0, d1, q0, q1, q2, q3, a0, a1, a2, a3, o, flags, w0, w1, _, _, u0, u1] = *tcp;
        let ports = (u16::from_be_bytes([s0, s1]), u16::from_be_bytes([d0, d1]));
        let flags = Flags::from_bits_truncate(u16::from_be_bytes([o, flags]));
        if ports.0 == 0 || ports.1 == 0 || [u0, u1] != [0, 0] {
            return None;
        }
        let header_len = usize::from(o >> 4) * 4;
        let options = segment.get(TCP_HEADER_LEN..header_len)?;
        let timestamps = lone_timestamps(options);
        let first_option = if timestamps.is_some() { header_len } else { TCP_HEADER_LEN };
        let plain = PlainSegment {
            addresses: ip.addresses,
            ports,
            seq: SeqNum(u32::from_be_bytes([q0, q1, q2, q3])),
            ack: SeqNum(u32::from_be_bytes([a0, a1, a2, a3])),
            flags,
            window: u16::from_be_bytes([w0, w1]),
            timestamps,
            ecn: Ecn::from_bits(ip.traffic_class),
            dscp: ip.traffic_class >> 2,
            hop_limit: ip.hop_limit,
            payload_len: segment.len() - header_len,
        };
        let text = start + header_len..start + segment.len();
        Some((plain, Layout { options: start + first_option..text.start, text }))
    }

    #[inline(always)]
    fn options_len(&self) -> usize {
        self.timestamps.map_or(0, |_| TIMESTAMPS_LEN)
    }

    /// Writes the TCP header fields in place. The header is large, so moving it would cost more.
    #[inline(always)]
    pub fn fill(&self, header: &mut TcpHeader) {
        (header.src_port, header.dst_port) = self.ports;
        (header.seq, header.ack) = (self.seq, self.ack);
        (header.flags, header.window) = (self.flags, self.window);
        header.options.timestamps = self.timestamps;
    }
}

impl TxPacket {
    /// Writes the IPv4 and TCP headers over the previous ones, before a payload that is already
    /// there. Sets don't fragment.
    ///
    /// The addresses are parameters, source and destination as
    /// [`Ipv4Addr::to_bits`](core::net::Ipv4Addr::to_bits). Those of the segment are ignored, so
    /// the caller need not load them.
    #[inline(always)]
    pub fn write_v4(&mut self, segment: &PlainSegment, addresses: (u32, u32), gso_size: u16, partial: bool) {
        let options_len = segment.options_len();
        let pseudo_sum = self.put_v4(segment, addresses, TCP_HEADER_LEN + options_len);
        self.put_plain::<V4_LEN>(segment, pseudo_sum);
        self.end_plain::<V4_LEN>(options_len, gso_size, partial);
    }

    /// Writes IPv6 headers like [`write_v4`](Self::write_v4), with the segment's addresses and
    /// without a flow label.
    #[inline(never)]
    pub fn write_v6(&mut self, segment: &PlainSegment, gso_size: u16, partial: bool) {
        let options_len = segment.options_len();
        let pseudo_sum = self.put_v6(segment, TCP_HEADER_LEN + options_len);
        self.put_plain::<V6_LEN>(segment, pseudo_sum);
        self.end_plain::<V6_LEN>(options_len, gso_size, partial);
    }

    /// Writes a SYN or SYN-ACK with these options if they are the usual ones: MSS, window scale,
    /// SACK permitted, timestamps, and optionally Fast Open. Ignores the segment's timestamps.
    /// Returns false and writes nothing for other options.
    pub fn write_syn(&mut self, segment: &PlainSegment, options: &TcpOptions, partial: bool) -> bool {
        let Some(usual) = options.usual_syn() else { return false };
        let options = (&usual, options.fast_open.as_ref());
        if !self.write_usual_syn(segment, options, partial) {
            self.write_usual_syn_v6(segment, options, partial);
        }
        true
    }

    /// Writes an IPv4 SYN like [`write_syn`](Self::write_syn), with exactly these options. Ignores
    /// the segment's timestamps. Returns false and writes nothing for IPv6.
    #[inline(always)]
    pub fn write_usual_syn(
        &mut self,
        segment: &PlainSegment,
        options: (&UsualSyn, Option<&FastOpenOption>),
        partial: bool,
    ) -> bool {
        let Some(addresses) = segment.v4_addresses() else { return false };
        let options_len = self.put_syn_options::<V4_LEN>(options);
        let pseudo_sum = self.put_v4(segment, addresses, TCP_HEADER_LEN + options_len);
        self.put_tcp::<V4_LEN>(segment, options_len, pseudo_sum);
        self.end_plain::<V4_LEN>(options_len, 0, partial);
        true
    }

    #[inline(never)]
    fn write_usual_syn_v6(
        &mut self,
        segment: &PlainSegment,
        options: (&UsualSyn, Option<&FastOpenOption>),
        partial: bool,
    ) {
        let options_len = self.put_syn_options::<V6_LEN>(options);
        let pseudo_sum = self.put_v6(segment, TCP_HEADER_LEN + options_len);
        self.put_tcp::<V6_LEN>(segment, options_len, pseudo_sum);
        self.end_plain::<V6_LEN>(options_len, 0, partial);
    }

    /// Writes the options where they belong behind an IP header of `IP_LEN` bytes, and returns their length.
    #[inline(always)]
    fn put_syn_options<const IP_LEN: usize>(
        &mut self,
        (usual, fast_open): (&UsualSyn, Option<&FastOpenOption>),
    ) -> usize {
        let at = IP_LEN + TCP_HEADER_LEN;
        put(&mut self.header, at, usual_syn(usual));
        let behind = &mut self.header[at + USUAL_SYN_LEN..];
        USUAL_SYN_LEN + fast_open.map_or(0, |option| option.emit_last(behind))
    }

    /// TCP's header, and its timestamps if it has them.
    #[inline(always)]
    fn put_plain<const IP_LEN: usize>(&mut self, segment: &PlainSegment, pseudo_sum: u16) {
        self.put_tcp::<IP_LEN>(segment, segment.options_len(), pseudo_sum);
        if let Some(Timestamps { tsval, tsecr }) = segment.timestamps {
            put(&mut self.header, IP_LEN + TCP_HEADER_LEN, [TIMESTAMPS_PREFIX, tsval, tsecr]);
        }
    }

    /// TCP's header but for `options_len` bytes of options; of the checksum the pseudo-header's part.
    #[inline(always)]
    fn put_tcp<const IP_LEN: usize>(&mut self, segment: &PlainSegment, options_len: usize, pseudo_sum: u16) {
        debug_assert_eq!(self.payload_len(), segment.payload_len);
        let data_offset = ((TCP_HEADER_LEN + options_len) / 4) as u32;
        let fixed: [u32; TCP_HEADER_LEN / 4] = [
            u32::from(segment.ports.0) << 16 | u32::from(segment.ports.1),
            segment.seq.0,
            segment.ack.0,
            data_offset << 28 | u32::from(segment.flags.bits()) << 16 | u32::from(segment.window),
            u32::from(pseudo_sum) << 16,
        ];
        put(&mut self.header, IP_LEN, fixed);
    }

    #[inline(always)]
    fn end_plain<const IP_LEN: usize>(&mut self, options_len: usize, gso_size: u16, partial: bool) {
        self.header_len = (IP_LEN + TCP_HEADER_LEN + options_len) as u8;
        self.gso_size = gso_size;
        self.checksum = TxChecksum::Partial { start: IP_LEN as u16, offset: TCP_CHECKSUM_OFFSET as u16 };
        if !partial {
            self.complete_checksum(IP_LEN);
        }
    }

    /// The field holds the pseudo-header's sum; now that of everything. TCP begins at `start`.
    #[inline(never)]
    fn complete_checksum(&mut self, start: usize) {
        let mut sum = Checksum::new();
        sum.add(&self.header[start..usize::from(self.header_len)]);
        self.slices().for_each(|slice| sum.add(slice));
        let field = start + TCP_CHECKSUM_OFFSET;
        self.header[field..field + 2].copy_from_slice(&sum.finish().to_be_bytes());
        self.checksum = TxChecksum::Complete;
    }
}

/// The options that nearly every SYN has.
#[inline(always)]
fn usual_syn(usual: &UsualSyn) -> [u32; USUAL_SYN_LEN / 4] {
    let UsualSyn { mss, window_scale, timestamps: Timestamps { tsval, tsecr } } = *usual;
    [
        MSS_PREFIX | u32::from(mss),
        SACK_TIMESTAMPS_PREFIX,
        tsval,
        tsecr,
        SCALE_PREFIX | u32::from(window_scale),
    ]
}

/// Writes 32-bit words from byte `start` on.
#[inline(always)]
fn put<const N: usize>(header: &mut [u8], start: usize, words: [u32; N]) {
    let (fields, _) = header[start..start + 4 * N].as_chunks_mut::<4>();
    for (field, word) in fields.iter_mut().zip(words) {
        *field = word.to_be_bytes();
    }
}
