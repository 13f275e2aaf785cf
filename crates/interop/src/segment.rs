//! TCP segments as the harness sees them on the path.
//!
//! A decoder of its own, on purpose: what is counted here must not depend on the code whose packets
//! are counted. It reads well-formed packets of either IP version and leaves everything else to the
//! caller as "not TCP". It judges nothing: no checksum is verified, no state is kept.
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// FIN.
pub const FIN: u8 = 0x01;
/// SYN.
pub const SYN: u8 = 0x02;
/// RST.
pub const RST: u8 = 0x04;
/// PSH.
pub const PSH: u8 = 0x08;
/// ACK.
pub const ACK: u8 = 0x10;

/// A Fast Open option as found in a segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FastOpenOption {
    /// Kind 254 with ExID 0xF989 instead of kind 34.
    pub experimental: bool,
    /// The cookie; empty in a request.
    pub cookie: Vec<u8>,
}

/// One TCP segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Sender.
    pub src: SocketAddr,
    /// Receiver.
    pub dst: SocketAddr,
    /// The eight classic control bits.
    pub flags: u8,
    /// SEG.SEQ.
    pub seq: u32,
    /// SEG.ACK.
    pub ack: u32,
    /// SEG.WND, unscaled.
    pub window: u16,
    /// Maximum segment size option.
    pub mss: Option<u16>,
    /// Fast Open option.
    pub fast_open: Option<FastOpenOption>,
    /// Timestamps option: TSval, TSecr.
    pub timestamps: Option<(u32, u32)>,
    /// The payload.
    pub payload: Vec<u8>,
    /// Where the options lie in the packet.
    pub options: std::ops::Range<usize>,
}

impl Segment {
    /// Decodes a packet that starts with its IP header; `None` unless it holds a whole TCP segment.
    pub fn decode(packet: &[u8]) -> Option<Segment> {
        let (src, dst, start, end) = addresses(packet)?;
        let tcp = packet.get(start..end)?;
        let header_len = usize::from(*tcp.get(12)? >> 4) * 4;
        if header_len < 20 || header_len > tcp.len() {
            return None;
        }
        let mut segment = Segment {
            src: SocketAddr::new(src, be16(tcp, 0)),
            dst: SocketAddr::new(dst, be16(tcp, 2)),
            flags: tcp[13],
            seq: be32(tcp, 4),
            ack: be32(tcp, 8),
            window: be16(tcp, 14),
            mss: None,
            fast_open: None,
            timestamps: None,
            payload: tcp[header_len..].to_vec(),
            options: start + 20..start + header_len,
        };
        for (kind, range) in options(packet, segment.options.clone()) {
            segment.take_option(kind, &packet[range]);
        }
        Some(segment)
    }

    fn take_option(&mut self, kind: u8, option: &[u8]) {
        let body = option.get(2..).unwrap_or_default();
        match (kind, body) {
            (2, [a, b]) => self.mss = Some(u16::from_be_bytes([*a, *b])),
            (8, body) if body.len() == 8 => self.timestamps = Some((be32(body, 0), be32(body, 4))),
            (34, cookie) => {
                self.fast_open = Some(FastOpenOption { experimental: false, cookie: cookie.to_vec() })
            }
            (254, [0xf9, 0x89, cookie @ ..]) => {
                self.fast_open = Some(FastOpenOption { experimental: true, cookie: cookie.to_vec() });
            }
            _ => {}
        }
    }

    /// All of `bits` are set.
    pub fn has(&self, bits: u8) -> bool {
        self.flags & bits == bits
    }

    /// A SYN without ACK.
    pub fn is_syn(&self) -> bool {
        self.has(SYN) && !self.has(ACK)
    }

    /// A SYN with ACK.
    pub fn is_syn_ack(&self) -> bool {
        self.has(SYN | ACK)
    }

    /// The cookie it carries, if it carries one.
    pub fn cookie(&self) -> Option<&[u8]> {
        self.fast_open.as_ref().map(|option| option.cookie.as_slice()).filter(|cookie| !cookie.is_empty())
    }

    /// It carries a Fast Open option without a cookie.
    pub fn requests_cookie(&self) -> bool {
        self.fast_open.as_ref().is_some_and(|option| option.cookie.is_empty())
    }
}

/// The shape of a segment: control bits in the usual letters and the payload's length, `S(27)`,
/// `SA`, `PA(43)`.
impl fmt::Display for Segment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (bit, letter) in [(SYN, 'S'), (FIN, 'F'), (RST, 'R'), (PSH, 'P'), (ACK, 'A')] {
            if self.has(bit) {
                write!(f, "{letter}")?;
            }
        }
        if self.payload.is_empty() { Ok(()) } else { write!(f, "({})", self.payload.len()) }
    }
}

/// Kind and place of each option, NOPs left out, up to the end of the list or the first malformed
/// one.
pub fn options(packet: &[u8], range: std::ops::Range<usize>) -> Vec<(u8, std::ops::Range<usize>)> {
    let mut found = Vec::new();
    let mut at = range.start;
    while at < range.end {
        match packet[at] {
            0 => break,
            1 => at += 1,
            kind => {
                let len = if at + 1 < range.end { usize::from(packet[at + 1]) } else { 0 };
                if len < 2 || at + len > range.end {
                    break;
                }
                found.push((kind, at..at + len));
                at += len;
            }
        }
    }
    found
}

/// Source, destination, and where the TCP segment begins and ends.
fn addresses(packet: &[u8]) -> Option<(IpAddr, IpAddr, usize, usize)> {
    const TCP: u8 = 6;
    match packet.first()? >> 4 {
        4 if packet.len() >= 20 && packet[9] == TCP => {
            let address =
                |at: usize| IpAddr::from(<[u8; 4]>::try_from(&packet[at..at + 4]).unwrap_or_default());
            let header_len = usize::from(packet[0] & 0xf) * 4;
            Some((address(12), address(16), header_len, usize::from(be16(packet, 2))))
        }
        6 if packet.len() >= 40 && packet[6] == TCP => {
            let address =
                |at: usize| IpAddr::from(<[u8; 16]>::try_from(&packet[at..at + 16]).unwrap_or_default());
            Some((address(8), address(24), 40, 40 + usize::from(be16(packet, 4))))
        }
        _ => None,
    }
}

/// Sets the TCP checksum of a packet again after a change. Does nothing to other protocols.
pub fn refresh_checksum(packet: &mut [u8]) {
    let Some((src, dst, start, end)) = addresses(packet) else { return };
    let Some(tcp) = packet.get_mut(start..end).filter(|tcp| tcp.len() >= 20) else { return };
    tcp[16..18].fill(0);
    let mut pseudo = match (src, dst) {
        (IpAddr::V4(src), IpAddr::V4(dst)) => [Ipv4Addr::octets(&src), dst.octets()].concat(),
        (IpAddr::V6(src), IpAddr::V6(dst)) => [Ipv6Addr::octets(&src), dst.octets()].concat(),
        _ => return,
    };
    pseudo.extend([0, 6]);
    pseudo.extend(u16::try_from(tcp.len()).unwrap_or(u16::MAX).to_be_bytes());
    let sum = !internet_sum(&[&pseudo, tcp]);
    tcp[16..18].copy_from_slice(&sum.to_be_bytes());
}

/// The folded one's-complement sum (RFC 1071) of several parts, each but the last of even length.
pub(crate) fn internet_sum(parts: &[&[u8]]) -> u16 {
    let mut sum: u32 = 0;
    for part in parts {
        for pair in part.chunks(2) {
            sum += u32::from(u16::from_be_bytes([pair[0], *pair.get(1).unwrap_or(&0)]));
        }
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

fn be16(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

fn be32(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A SYN of 10.77.0.1:40000 → 10.77.0.2:80 with MSS 1460, a cookie request, and three bytes.
    fn syn() -> Vec<u8> {
        let mut packet = vec![0x45, 0, 0, 51, 0, 0, 0x40, 0, 64, 6, 0, 0, 10, 77, 0, 1, 10, 77, 0, 2];
        packet.extend([0x9c, 0x40, 0, 80, 0, 0, 0, 7, 0, 0, 0, 0, 0x70, 0x02, 0xff, 0xff, 0, 0, 0, 0]);
        packet.extend([2, 4, 0x05, 0xb4, 1, 1, 34, 2]);
        packet.extend(*b"abc");
        packet
    }

    #[test]
    fn decodes_a_syn_with_options_and_data() {
        let segment = Segment::decode(&syn()).unwrap();
        assert_eq!(segment.to_string(), "S(3)");
        assert_eq!((segment.mss, segment.requests_cookie(), segment.seq), (Some(1460), true, 7));
        assert_eq!(segment.src, "10.77.0.1:40000".parse().unwrap());
    }

    #[test]
    fn truncated_packets_are_not_segments() {
        let whole = syn();
        for len in 0..whole.len() {
            assert_eq!(Segment::decode(&whole[..len]), None, "{len} bytes");
        }
    }

    #[test]
    fn a_refreshed_checksum_sums_to_all_ones() {
        let mut packet = syn();
        refresh_checksum(&mut packet);
        let pseudo = [10, 77, 0, 1, 10, 77, 0, 2, 0, 6, 0, 31];
        assert_eq!(internet_sum(&[&pseudo, &packet[20..]]), 0xffff);
    }
}
