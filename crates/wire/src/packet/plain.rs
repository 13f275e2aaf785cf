//! The header of nearly every packet of a connection: IPv4, no options or timestamps alone, or those that a SYN mostly has. Written, and
//! read, in one pass, every offset constant. Reading leaves other options of TCP than timestamps to [`TcpOptions::parse`].
//!
//! The same bytes as [`TxPacket::write_tcp`] writes for such a header, and the same values as [`IpHeader::parse`](crate::IpHeader::parse) and
//! [`TcpHeader::parse`](crate::TcpHeader::parse) find in it; anything else is left to them.
use super::{TxChecksum, TxPacket};
use crate::checksum::fold;
use crate::ip::{FRAGMENT, NO_OPTIONS, is_group, sum_is_right};
use crate::{
    Addr, Checksum, Ecn, Flags, SeqNum, TCP_CHECKSUM_OFFSET, TCP_HEADER_LEN, TcpHeader, TcpOptions,
    Timestamps, lone_timestamps, protocol,
};
use core::net::Ipv4Addr;
use core::ops::Range;

/// Of the IP header alone, bytes.
pub(super) const IP_LEN: usize = 20;
const TIMESTAMPS_LEN: usize = 12;
/// Of both headers, with timestamps.
pub(super) const LEN: usize = IP_LEN + TCP_HEADER_LEN + TIMESTAMPS_LEN;
/// NOP NOP, kind 8, length 10 (RFC 7323 appendix A).
const TIMESTAMPS_PREFIX: u32 = 0x0101_080a;
const DONT_FRAGMENT: u32 = 0x4000;
/// Words of the two headers without options.
const FIXED_WORDS: usize = (IP_LEN + TCP_HEADER_LEN) / 4;
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
    /// Of the IP header.
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
    /// Takes a packet apart. `verify`: the TCP checksum, too. `None` says only that the packet is not plain, or not right. Where the layout
    /// tells of options, they are not looked at.
    #[inline(always)]
    pub fn read(packet: &[u8], verify: bool) -> Option<(PlainSegment, Layout)> {
        let ip: &[u8; IP_LEN] = packet.first_chunk()?;
        let [version_ihl, traffic_class, l0, l1, _, _, f0, f1, hop_limit, protocol, ..] = *ip;
        let end = usize::from(u16::from_be_bytes([l0, l1]));
        let segment = packet.get(IP_LEN..end)?;
        let tcp: &[u8; TCP_HEADER_LEN] = segment.first_chunk()?;
        let (words, _) = ip.as_chunks::<4>();
        let (src, dst) = (u32::from_ne_bytes(words[3]), u32::from_ne_bytes(words[4]));
        let plain_ip = version_ihl == NO_OPTIONS && u16::from_be_bytes([f0, f1]) & FRAGMENT == 0;
        if !plain_ip || protocol != protocol::TCP || !sum_is_right(ip) || is_group(src.to_ne_bytes()) {
            return None;
        }
        if verify && !Checksum::pseudo_header_v4(src, dst, segment.len() as u32).is_right_for(segment) {
            return None;
        }
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
        let addr = |word: u32| Addr::from(Ipv4Addr::from(word.to_ne_bytes()));
        let plain = PlainSegment {
            addresses: (addr(src), addr(dst)),
            ports,
            seq: SeqNum(u32::from_be_bytes([q0, q1, q2, q3])),
            ack: SeqNum(u32::from_be_bytes([a0, a1, a2, a3])),
            flags,
            window: u16::from_be_bytes([w0, w1]),
            timestamps,
            ecn: Ecn::from_bits(traffic_class),
            dscp: traffic_class >> 2,
            hop_limit,
            payload_len: segment.len() - header_len,
        };
        let text = IP_LEN + header_len..end;
        Some((plain, Layout { options: IP_LEN + first_option..text.start, text }))
    }

    #[inline(always)]
    fn v4_addresses(&self) -> Option<(u32, u32)> {
        let (src, dst) = (self.addresses.0.v4_bytes()?, self.addresses.1.v4_bytes()?);
        Some((u32::from_be_bytes(src), u32::from_be_bytes(dst)))
    }

    /// The TCP header alone.
    #[inline(always)]
    pub fn header(&self) -> TcpHeader {
        TcpHeader {
            src_port: self.ports.0,
            dst_port: self.ports.1,
            seq: self.seq,
            ack: self.ack,
            flags: self.flags,
            window: self.window,
            urgent: 0,
            options: TcpOptions { timestamps: self.timestamps, ..TcpOptions::default() },
        }
    }
}

impl TxPacket {
    /// Writes the headers over whatever was there; the payload is there already. Don't fragment. False, and nothing is written, for
    /// IPv6.
    #[inline(always)]
    pub fn write_plain(&mut self, segment: &PlainSegment, gso_size: u16, partial: bool) -> bool {
        let Some(addresses) = segment.v4_addresses() else { return false };
        let options_len = segment.timestamps.map_or(0, |_| TIMESTAMPS_LEN);
        self.put_fixed(segment, addresses, options_len);
        if let Some(Timestamps { tsval, tsecr }) = segment.timestamps {
            put(&mut self.header, FIXED_WORDS, [TIMESTAMPS_PREFIX, tsval, tsecr]);
        }
        self.end_plain(options_len, gso_size, partial);
        true
    }

    /// The same of a SYN with these options, if they are what nearly all have: MSS, window scale, SACK permitted, timestamps, and perhaps
    /// Fast Open. The segment's timestamps are not looked at.
    pub fn write_syn(&mut self, segment: &PlainSegment, options: &TcpOptions, partial: bool) -> bool {
        let Some(addresses) = segment.v4_addresses() else { return false };
        let Some((Timestamps { tsval, tsecr }, mss, shift)) = options.usual_syn() else { return false };
        let usual = [
            MSS_PREFIX | u32::from(mss),
            SACK_TIMESTAMPS_PREFIX,
            tsval,
            tsecr,
            SCALE_PREFIX | u32::from(shift),
        ];
        let behind = FIXED_WORDS + usual.len();
        let options_len = 4 * usual.len() + options.emit_behind_usual(&mut self.header[4 * behind..]);
        self.put_fixed(segment, addresses, options_len);
        put(&mut self.header, FIXED_WORDS, usual);
        self.end_plain(options_len, 0, partial);
        true
    }

    /// Both headers but for `options_len` bytes of options; of the checksum the pseudo-header's part.
    #[inline(always)]
    fn put_fixed(&mut self, segment: &PlainSegment, (src, dst): (u32, u32), options_len: usize) {
        let tcp_len = TCP_HEADER_LEN + options_len;
        debug_assert_eq!(self.payload_len(), segment.payload_len);
        let segment_len = tcp_len + segment.payload_len;
        let total_len = u16::try_from(IP_LEN + segment_len).unwrap_or(0);
        let traffic_class = u32::from(segment.dscp << 2 | segment.ecn.bits());
        let version_to_len = 0x4500_0000 | traffic_class << 16 | u32::from(total_len);
        let hop_limit_protocol = u32::from(segment.hop_limit) << 24 | u32::from(protocol::TCP) << 16;
        let addresses = u64::from(src) + u64::from(dst);
        let ip_sum = fold(
            addresses + u64::from(version_to_len) + u64::from(DONT_FRAGMENT) + u64::from(hop_limit_protocol),
        );
        let pseudo_sum = fold(addresses + u64::from(protocol::TCP) + segment_len as u64);
        let data_offset = (tcp_len / 4) as u32;
        let fixed: [u32; FIXED_WORDS] = [
            version_to_len,
            DONT_FRAGMENT,
            hop_limit_protocol | u32::from(!ip_sum),
            src,
            dst,
            u32::from(segment.ports.0) << 16 | u32::from(segment.ports.1),
            segment.seq.0,
            segment.ack.0,
            data_offset << 28 | u32::from(segment.flags.bits()) << 16 | u32::from(segment.window),
            u32::from(pseudo_sum) << 16,
        ];
        put(&mut self.header, 0, fixed);
    }

    #[inline(always)]
    fn end_plain(&mut self, options_len: usize, gso_size: u16, partial: bool) {
        self.header_len = (IP_LEN + TCP_HEADER_LEN + options_len) as u8;
        self.gso_size = gso_size;
        self.checksum = TxChecksum::Partial { start: IP_LEN as u16, offset: TCP_CHECKSUM_OFFSET as u16 };
        if !partial {
            self.complete_checksum();
        }
    }

    /// The field holds the pseudo-header's sum; now that of everything.
    #[inline(never)]
    fn complete_checksum(&mut self) {
        let mut sum = Checksum::new();
        sum.add(&self.header[IP_LEN..usize::from(self.header_len)]);
        self.slices().for_each(|slice| sum.add(slice));
        let field = IP_LEN + TCP_CHECKSUM_OFFSET;
        self.header[field..field + 2].copy_from_slice(&sum.finish().to_be_bytes());
        self.checksum = TxChecksum::Complete;
    }
}

/// Writes 32-bit words from the `first`th on.
#[inline(always)]
fn put<const N: usize>(header: &mut [u8], first: usize, words: [u32; N]) {
    let (fields, _) = header.as_chunks_mut::<4>();
    for (field, word) in fields[first..first + N].iter_mut().zip(words) {
        *field = word.to_be_bytes();
    }
}
