//! Formats a packet in one line, in tcpdump's style (`tcpdump -n -S`).
//!
//! Checksums are not verified, because a captured packet may have a partial one. Invalid parts are
//! described in brackets.
mod icmp;
mod tcp;

use crate::{Addr, IpError, IpHeader, protocol};
use core::fmt;

/// Formats any bytes as one packet in tcpdump's style. Never panics, and reports what is malformed.
pub struct Summary<'a>(pub &'a [u8]);

impl fmt::Display for Summary<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        packet(f, self.0, Depth::Outer)
    }
}

/// Whether this is a packet, or one quoted by an ICMP error: a quote inside a quote is not followed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Depth {
    Outer,
    Quoted,
}

fn packet(f: &mut fmt::Formatter<'_>, data: &[u8], depth: Depth) -> fmt::Result {
    let (ip, range) = match IpHeader::parse_quoted(data) {
        Ok(parsed) => parsed,
        Err(error) => return unreadable(f, data, error),
    };
    f.write_str(if ip.src.is_v4() { "IP " } else { "IP6 " })?;
    let declared_len = declared_payload_len(data, range.start);
    let payload = &data[range];
    let part = Part { ip: &ip, data: payload, declared_len: declared_len.unwrap_or(payload.len()), depth };
    match (ip.protocol, ip.src.is_v4()) {
        (protocol::TCP, _) => tcp::segment(f, &part),
        (protocol::UDP, _) => udp(f, &part),
        (protocol::ICMP, true) | (protocol::ICMPV6, false) => icmp::message(f, &part),
        (other, _) => write!(f, "{} > {}: ip-proto-{other} {}", ip.src, ip.dst, part.declared_len),
    }?;
    // A quote is cut short as a rule; a packet should not be.
    if depth == Depth::Outer && part.declared_len > payload.len() {
        write!(f, " [truncated: {} of {} bytes]", payload.len(), part.declared_len)?;
    }
    Ok(())
}

/// An upper-layer packet and where it comes from.
struct Part<'a> {
    ip: &'a IpHeader,
    data: &'a [u8],
    /// Bytes there should be.
    declared_len: usize,
    depth: Depth,
}

/// Payload bytes by the IP header's own length field; `None` if it is 0 or too small.
fn declared_payload_len(data: &[u8], payload_start: usize) -> Option<usize> {
    let field =
        |at: usize| data.get(at..at + 2).map(|bytes| usize::from(u16::from_be_bytes([bytes[0], bytes[1]])));
    let total_len = if data[0] >> 4 == 4 { field(2)? } else { 40 + field(4).filter(|len| *len != 0)? };
    total_len.checked_sub(payload_start)
}

fn udp(f: &mut fmt::Formatter<'_>, part: &Part<'_>) -> fmt::Result {
    let IpHeader { src, dst, .. } = part.ip;
    match part.data.first_chunk() {
        Some(&[s0, s1, d0, d1, _, _, _, _]) => {
            let (src_port, dst_port) = (u16::from_be_bytes([s0, s1]), u16::from_be_bytes([d0, d1]));
            write!(
                f,
                "{src}.{src_port} > {dst}.{dst_port}: UDP, length {}",
                part.declared_len.saturating_sub(8)
            )
        }
        None => write!(f, "{src} > {dst}: UDP [truncated: {} of 8 bytes]", part.data.len()),
    }
}

/// A packet whose IP header is refused: its addresses if they are there, and why.
fn unreadable(f: &mut fmt::Formatter<'_>, data: &[u8], error: IpError) -> fmt::Result {
    match data.first().map(|byte| byte >> 4) {
        Some(4) => f.write_str("IP")?,
        Some(6) => f.write_str("IP6")?,
        _ => return write!(f, "[{error}], length {}", data.len()),
    }
    if let Some((src, dst)) = addresses(data) {
        write!(f, " {src} > {dst}:")?;
    }
    write!(f, " [{error}], length {}", data.len())
}

fn addresses(data: &[u8]) -> Option<(Addr, Addr)> {
    if data.first()? >> 4 == 4 {
        let (src, dst) = data.get(12..20)?.split_first_chunk::<4>()?;
        let dst: &[u8; 4] = dst.first_chunk()?;
        Some((core::net::Ipv4Addr::from(*src).into(), core::net::Ipv4Addr::from(*dst).into()))
    } else {
        let (src, dst) = data.get(8..40)?.split_first_chunk::<16>()?;
        Some((Addr(*src), Addr(*dst.first_chunk()?)))
    }
}
