//! The IPv4 header (RFC 791 §3.1).
use super::{Ecn, Extent, IpError, IpHeader, array_at, end_of_packet};
use crate::{Addr, Checksum};
use core::net::Ipv4Addr;
use core::ops::Range;

pub(super) const HEADER_LEN: usize = 20;
const DONT_FRAGMENT: u16 = 0x4000;
/// More-fragments bit and fragment offset: any of them makes a fragment.
pub(crate) const FRAGMENT: u16 = 0x3fff;
const FRAGMENT_OFFSET: u16 = 0x1fff;

const OPTION_END: u8 = 0;
const OPTION_NOP: u8 = 1;
const OPTION_LOOSE_SOURCE_ROUTE: u8 = 131;
const OPTION_STRICT_SOURCE_ROUTE: u8 = 137;

/// Version and header length of a header without options.
pub(crate) const NO_OPTIONS: u8 = 0x45;

/// Nearly every packet: no options, no fragment, and nothing wrong with it. `None` says only that [`parse`] has to look at it.
///
/// Inlined, so that nothing is made of what the caller does not ask for.
#[inline(always)]
pub(super) fn parse_usual(packet: &[u8]) -> Option<(IpHeader, Range<usize>)> {
    let fixed: &[u8; HEADER_LEN] = packet.first_chunk()?;
    let [
        version_ihl,
        traffic_class,
        l0,
        l1,
        i0,
        i1,
        f0,
        f1,
        hop_limit,
        protocol,
        _,
        _,
        s @ ..,
        d0,
        d1,
        d2,
        d3,
    ] = *fixed;
    let end = usize::from(u16::from_be_bytes([l0, l1]));
    let fragment = u16::from_be_bytes([f0, f1]);
    let fits = HEADER_LEN <= end && end <= packet.len();
    if version_ihl != NO_OPTIONS
        || !fits
        || fragment & FRAGMENT != 0
        || !sum_is_right(fixed)
        || is_group(u32::from_be_bytes(s))
    {
        return None;
    }
    let ip = IpHeader {
        src: Ipv4Addr::from(s).into(),
        dst: Ipv4Addr::new(d0, d1, d2, d3).into(),
        protocol,
        hop_limit,
        dscp: traffic_class >> 2,
        ecn: Ecn::from_bits(traffic_class),
        dont_fragment: fragment & DONT_FRAGMENT != 0,
        ident: u16::from_be_bytes([i0, i1]),
        flow_label: 0,
    };
    Some((ip, HEADER_LEN..end))
}

/// Multicast, or the limited broadcast.
#[inline(always)]
pub(crate) fn is_group(address: u32) -> bool {
    address >> 28 == 0xe || address == u32::MAX
}

pub(super) fn parse(packet: &[u8], extent: Extent) -> Result<(IpHeader, Range<usize>), IpError> {
    let fixed: &[u8; HEADER_LEN] = array_at(packet, 0)?;
    let [version_ihl, traffic_class, l0, l1, i0, i1, f0, f1, hop_limit, protocol, _, _, addresses @ ..] =
        *fixed;
    let header_len = usize::from(version_ihl & 0x0f) * 4;
    let total_len = usize::from(u16::from_be_bytes([l0, l1]));
    if header_len < HEADER_LEN || (total_len != 0 && total_len < header_len) {
        return Err(IpError::Length);
    }
    let truncated = IpError::Truncated { required: header_len, available: packet.len() };
    let options = packet.get(HEADER_LEN..header_len).ok_or(truncated)?;
    if extent == Extent::Whole && !checksum_is_right(fixed, options) {
        return Err(IpError::Checksum);
    }
    let end = match total_len {
        0 => packet.len(),
        declared => end_of_packet(declared, packet.len(), extent)?,
    };
    let fragment = u16::from_be_bytes([f0, f1]);
    let refused = if extent == Extent::FirstFragment { FRAGMENT_OFFSET } else { FRAGMENT };
    if fragment & refused != 0 {
        return Err(IpError::Fragment);
    }
    check_options(options)?;
    let [s0, s1, s2, s3, d0, d1, d2, d3] = addresses;
    if is_group(u32::from_be_bytes([s0, s1, s2, s3])) {
        return Err(IpError::Address);
    }
    let src = Addr::from(Ipv4Addr::new(s0, s1, s2, s3));
    let ip = IpHeader {
        src,
        dst: Ipv4Addr::new(d0, d1, d2, d3).into(),
        protocol,
        hop_limit,
        dscp: traffic_class >> 2,
        ecn: Ecn::from_bits(traffic_class),
        dont_fragment: fragment & DONT_FRAGMENT != 0,
        ident: u16::from_be_bytes([i0, i1]),
        flow_label: 0,
    };
    Ok((ip, header_len..end))
}

/// Of a header without options.
#[inline(always)]
pub(crate) fn sum_is_right(header: &[u8; HEADER_LEN]) -> bool {
    let words: u64 = header.as_chunks::<4>().0.iter().map(|word| u64::from(u32::from_ne_bytes(*word))).sum();
    // All ones in one's complement, however it is folded, is a multiple of 0xffff (RFC 1071 §2); all zero it cannot be.
    words.is_multiple_of(0xffff)
}

fn checksum_is_right(fixed: &[u8; HEADER_LEN], options: &[u8]) -> bool {
    if options.is_empty() {
        return sum_is_right(fixed);
    }
    let mut sum = Checksum::new();
    sum.add(fixed);
    sum.add(options);
    sum.finish() == 0
}

/// Options are skipped, except source routes; an option that does not fit makes the length wrong.
fn check_options(mut options: &[u8]) -> Result<(), IpError> {
    while let [kind, rest @ ..] = options {
        match *kind {
            OPTION_END => return Ok(()),
            OPTION_NOP => options = rest,
            OPTION_LOOSE_SOURCE_ROUTE | OPTION_STRICT_SOURCE_ROUTE => return Err(IpError::SourceRoute),
            _ => {
                let len = rest.first().map_or(0, |len| usize::from(*len));
                options = options.get(len..).filter(|_| len >= 2).ok_or(IpError::Length)?;
            }
        }
    }
    Ok(())
}

pub(super) fn emit(ip: &IpHeader, payload_len: usize, buf: &mut [u8]) {
    let buf: &mut [u8; HEADER_LEN] = buf.first_chunk_mut().expect("room for an IPv4 header");
    let flags = if ip.dont_fragment { DONT_FRAGMENT } else { 0 };
    buf[0] = 0x45;
    buf[1] = ip.dscp << 2 | ip.ecn.bits();
    buf[2..4].copy_from_slice(&total_len(payload_len).to_be_bytes());
    buf[4..6].copy_from_slice(&ip.ident.to_be_bytes());
    buf[6..8].copy_from_slice(&flags.to_be_bytes());
    buf[8] = ip.hop_limit;
    buf[9] = ip.protocol;
    buf[10..12].fill(0);
    buf[12..16].copy_from_slice(&ip.src.0[12..]);
    buf[16..20].copy_from_slice(&ip.dst.0[12..]);
    write_checksum(buf);
}

/// The total-length field of a packet without options; 0 if it does not fit.
fn total_len(payload_len: usize) -> u16 {
    u16::try_from(HEADER_LEN + payload_len).unwrap_or(0)
}

fn write_checksum(header: &mut [u8; HEADER_LEN]) {
    let mut sum = Checksum::new();
    sum.add(header);
    header[10..12].copy_from_slice(&sum.finish().to_be_bytes());
}
