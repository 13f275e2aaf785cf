//! The IPv6 header (RFC 8200 §3).
use super::{Ecn, Extent, IpError, IpHeader, array_at, end_of_packet, extension};
use crate::Addr;
use core::ops::Range;

pub(super) const HEADER_LEN: usize = 40;
const FLOW_LABEL: u32 = 0x000f_ffff;

pub(super) fn parse(packet: &[u8], extent: Extent) -> Result<(IpHeader, Range<usize>), IpError> {
    let fixed: &[u8; HEADER_LEN] = array_at(packet, 0)?;
    let [w0, w1, w2, w3, l0, l1, next_header, hop_limit, ..] = *fixed;
    let word = u32::from_be_bytes([w0, w1, w2, w3]);
    let payload_len = usize::from(u16::from_be_bytes([l0, l1]));
    let src = Addr(*array_at(packet, 8)?);
    let dst = Addr(*array_at(packet, 24)?);
    if src.is_v4() || dst.is_v4() || src.is_multicast() {
        return Err(IpError::Address);
    }
    let available = packet.len();
    let end = if payload_len == 0 && available - HEADER_LEN > usize::from(u16::MAX) {
        available
    } else {
        end_of_packet(HEADER_LEN + payload_len, available, extent)?
    };
    let (protocol, start) = extension::skip(&packet[..end], next_header, HEADER_LEN)?;
    let traffic_class = (word >> 20) as u8;
    let ip = IpHeader {
        src,
        dst,
        protocol,
        hop_limit,
        dscp: traffic_class >> 2,
        ecn: Ecn::from_bits(traffic_class),
        dont_fragment: true,
        ident: 0,
        flow_label: word & FLOW_LABEL,
    };
    Ok((ip, start..end))
}

pub(super) fn emit(ip: &IpHeader, payload_len: usize, buf: &mut [u8]) {
    let buf = &mut buf[..HEADER_LEN];
    let traffic_class = u32::from(ip.dscp << 2 | ip.ecn.bits());
    let word = 6 << 28 | traffic_class << 20 | ip.flow_label & FLOW_LABEL;
    buf[0..4].copy_from_slice(&word.to_be_bytes());
    buf[4..6].copy_from_slice(&u16::try_from(payload_len).unwrap_or(0).to_be_bytes());
    buf[6] = ip.protocol;
    buf[7] = ip.hop_limit;
    buf[8..24].copy_from_slice(&ip.src.0);
    buf[24..40].copy_from_slice(&ip.dst.0);
}
