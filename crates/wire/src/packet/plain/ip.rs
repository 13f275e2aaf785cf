//! The IP header in front of a plain segment: read, and written with the pseudo-header's sum.

use super::{Layout, PlainSegment, put};
use crate::checksum::fold;
use crate::ip::{FRAGMENT, NO_OPTIONS, is_group, sum_is_right};
use crate::packet::TxPacket;
use crate::{Addr, Checksum, protocol};
use core::net::Ipv4Addr;

/// Of IPv4's header, bytes.
pub(in crate::packet) const V4_LEN: usize = 20;
/// Of IPv6's.
pub(in crate::packet) const V6_LEN: usize = 40;
const DONT_FRAGMENT: u32 = 0x4000;

/// What there is to know of an IP header.
pub(super) struct IpFields {
    /// Source and destination.
    pub(super) addresses: (Addr, Addr),
    /// DiffServ code point, and ECN.
    pub(super) traffic_class: u8,
    pub(super) hop_limit: u8,
}

impl PlainSegment {
    /// Parses a plain IPv4 packet. With `verify`, also verifies the TCP checksum. Returns `None` if
    /// the packet is not plain, is invalid, or is IPv6. Options in the layout are not parsed.
    #[inline(always)]
    pub fn read_v4(packet: &[u8], verify: bool) -> Option<(PlainSegment, Layout)> {
        let ip: &[u8; V4_LEN] = packet.first_chunk()?;
        let [version_ihl, _, l0, l1, _, _, f0, f1, _, protocol, ..] = *ip;
        let end = usize::from(u16::from_be_bytes([l0, l1]));
        let segment = packet.get(V4_LEN..end)?;
        let (words, _) = ip.as_chunks::<4>();
        let (src, dst) = (u32::from_ne_bytes(words[3]), u32::from_ne_bytes(words[4]));
        let plain_ip = version_ihl == NO_OPTIONS && u16::from_be_bytes([f0, f1]) & FRAGMENT == 0;
        if !plain_ip || protocol != protocol::TCP || !sum_is_right(ip) || is_group(u32::from_be(src)) {
            return None;
        }
        if verify && !Checksum::pseudo_header_v4(src, dst, segment.len() as u32).is_right_for(segment) {
            return None;
        }
        let addr = |word: u32| Addr::from(Ipv4Addr::from_bits(u32::from_be(word)));
        let [_, traffic_class, _, _, _, _, _, _, hop_limit, ..] = *ip;
        let fields = IpFields { addresses: (addr(src), addr(dst)), traffic_class, hop_limit };
        PlainSegment::read_tcp(fields, V4_LEN, segment)
    }

    /// Parses an IPv6 packet with a plain TCP segment. With `verify`, also verifies its checksum.
    /// Returns `None` for any other packet.
    #[inline(always)]
    pub fn read_v6(packet: &[u8], verify: bool) -> Option<(PlainSegment, Layout)> {
        let ip: &[u8; V6_LEN] = packet.first_chunk()?;
        let [c0, c1, _, _, l0, l1, protocol, hop_limit, ..] = *ip;
        let segment = packet.get(V6_LEN..V6_LEN + usize::from(u16::from_be_bytes([l0, l1])))?;
        let (src, dst) = (Addr(*ip[8..].first_chunk()?), Addr(*ip.last_chunk()?));
        if protocol != protocol::TCP || src.is_v4() || dst.is_v4() || src.is_multicast() {
            return None;
        }
        let pseudo = || Checksum::pseudo_header(src, dst, protocol::TCP, segment.len() as u32);
        if verify && !pseudo().is_right_for(segment) {
            return None;
        }
        let fields = IpFields { addresses: (src, dst), traffic_class: c0 << 4 | c1 >> 4, hop_limit };
        PlainSegment::read_tcp(fields, V6_LEN, segment)
    }

    #[inline(always)]
    pub(super) fn v4_addresses(&self) -> Option<(u32, u32)> {
        let (src, dst) = (self.addresses.0.v4_bytes()?, self.addresses.1.v4_bytes()?);
        Some((u32::from_be_bytes(src), u32::from_be_bytes(dst)))
    }

    fn traffic_class(&self) -> u32 {
        u32::from(self.dscp << 2 | self.ecn.bits())
    }
}

impl TxPacket {
    /// IPv4's header of a segment with a TCP header of `tcp_len` bytes; returns the pseudo-header's sum.
    #[inline(always)]
    pub(super) fn put_v4(&mut self, segment: &PlainSegment, (src, dst): (u32, u32), tcp_len: usize) -> u16 {
        let segment_len = tcp_len + segment.payload_len;
        let total_len = u16::try_from(V4_LEN + segment_len).unwrap_or(0);
        let version_to_len = 0x4500_0000 | segment.traffic_class() << 16 | u32::from(total_len);
        let hop_limit_protocol = u32::from(segment.hop_limit) << 24 | u32::from(protocol::TCP) << 16;
        let addresses = u64::from(src) + u64::from(dst);
        let ip_sum = fold(
            addresses + u64::from(version_to_len) + u64::from(DONT_FRAGMENT) + u64::from(hop_limit_protocol),
        );
        let words = [version_to_len, DONT_FRAGMENT, hop_limit_protocol | u32::from(!ip_sum), src, dst];
        put(&mut self.header, 0, words);
        fold(addresses + u64::from(protocol::TCP) + segment_len as u64)
    }

    /// IPv6's.
    #[inline(always)]
    pub(super) fn put_v6(&mut self, segment: &PlainSegment, tcp_len: usize) -> u16 {
        let (src, dst) = segment.addresses;
        let segment_len = tcp_len + segment.payload_len;
        let payload_len = u32::from(u16::try_from(segment_len).unwrap_or(0));
        let words = [
            6 << 28 | segment.traffic_class() << 20,
            payload_len << 16 | u32::from(protocol::TCP) << 8 | u32::from(segment.hop_limit),
        ];
        put(&mut self.header, 0, words);
        self.header[8..24].copy_from_slice(&src.0);
        self.header[24..V6_LEN].copy_from_slice(&dst.0);
        Checksum::pseudo_header(src, dst, protocol::TCP, segment_len as u32).folded()
    }
}
