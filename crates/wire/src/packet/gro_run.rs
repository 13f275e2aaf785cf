//! GRO runs: consecutive packets of one connection, each starting where the previous one ended.
//! After the first packet, a stack need not parse the others.
//!
//! Their headers differ only in lengths, IPv4 identification, sequence number, PSH and checksums. A
//! sender that splits a large write makes such packets, and a kernel's GRO would merge them. Equal
//! options mean equal timestamps and no new SACK block. Equal ECN bits mean that no router marked
//! only some of them.

use super::MAX_HEADER;
use super::plain::{V4_LEN, V6_LEN};
use crate::{Addr, Checksum, Flags, SeqNum, TCP_HEADER_LEN, protocol};
use core::net::Ipv4Addr;

/// Headers are compared in words.
const WORD: usize = 4;
const WORDS: usize = MAX_HEADER / WORD;
/// As many bytes are compared at once where a packet has them: all of nearly every header.
const FRONT: usize = 64;
const FRONT_WORDS: usize = FRONT / WORD;
type Word = [u8; WORD];

/// What may not differ, bit by bit. IPv4 without options: all but total length, identification and checksum.
const V4_FIXED: [Word; V4_LEN / WORD] = [[!0, !0, 0, 0], [0, 0, !0, !0], [!0, !0, 0, 0], [!0; 4], [!0; 4]];
/// IPv6: all but the payload length.
const V6_FIXED: [Word; V6_LEN / WORD] = {
    let mut fixed = [[!0; WORD]; V6_LEN / WORD];
    fixed[1] = [0, 0, !0, !0];
    fixed
};
/// PSH, in the byte of flags that has it.
const PSH: u8 = Flags::PSH.bits() as u8;
/// TCP: all but sequence number, PSH and checksum. Options may not differ either.
const TCP_FIXED: [Word; 5] = [[!0; 4], [0; 4], [!0; 4], [!0, !PSH, !0, !0], [0, 0, !0, !0]];

/// The common headers of the packets of a run.
#[derive(Clone, Debug)]
pub struct GroRun {
    /// Source address and port of every packet.
    pub src: (Addr, u16),
    /// Destination address and port.
    pub dst: (Addr, u16),
    /// Bytes of the headers.
    pub header_len: usize,
    ip_len: usize,
    /// The headers' words, and which of their bits may not differ.
    words: [u32; WORDS],
    fixed: [u32; WORDS],
    /// Sum of the pseudo-header without its length.
    pseudo_header: Checksum,
    /// Sum of what may not differ of an IPv4 header.
    ip_fixed: Checksum,
}

impl GroRun {
    /// Returns the run that starts with `first` and continues with `second`, according to their
    /// headers. Neither is validated yet: `first` is parsed like any packet, and
    /// [`text`](Self::text) checks `second`.
    ///
    /// Only segments with payload and no flags except ACK and PSH form a run.
    #[inline(always)]
    pub fn between(first: &[u8], second: &[u8]) -> Option<GroRun> {
        let ip_len = ip_header_len(first)?;
        let (ours, theirs): (&Word, &Word) = (first_at(first, ip_len)?, first_at(second, ip_len)?);
        // Most that lie beside each other are of two connections.
        if ours == theirs { GroRun::of_one_connection(first, second, ip_len) } else { None }
    }

    /// As [`between`](Self::between), of two packets with the same ports.
    #[inline(never)]
    fn of_one_connection(first: &[u8], second: &[u8], ip_len: usize) -> Option<GroRun> {
        let tcp: &[u8; TCP_HEADER_LEN] = first_at(first, ip_len)?;
        let tcp_len = usize::from(tcp[12] >> 4) * WORD;
        let header_len = ip_len + tcp_len;
        let flags = u16::from_be_bytes([tcp[12], tcp[13]]) & 0xfff & !Flags::PSH.bits();
        let least = first.len().min(second.len());
        // An offset within the header names no text: `first` is malformed, and `second` is not compared as far as its own offset.
        if tcp_len < TCP_HEADER_LEN || is_fragment(first, ip_len) {
            return None;
        }
        if flags != Flags::ACK.bits() || header_len >= least {
            return None;
        }
        GroRun::of(first, ip_len, header_len).filter(|run| run.matches(second))
    }

    fn of(packet: &[u8], ip_len: usize, header_len: usize) -> Option<GroRun> {
        let (header, _) = packet.get(..header_len)?.as_chunks::<WORD>();
        let ip_fixed = if ip_len == V4_LEN { &V4_FIXED[..] } else { &V6_FIXED[..] };
        let every = ip_fixed.iter().chain(&TCP_FIXED).chain(core::iter::repeat(&[!0; WORD]));
        let (mut words, mut fixed) = ([0; WORDS], [0; WORDS]);
        for (((word, bits), header), every) in words.iter_mut().zip(&mut fixed).zip(header).zip(every) {
            (*word, *bits) = (u32::from_ne_bytes(*header), u32::from_ne_bytes(*every));
        }
        let (src, dst) = addresses(packet, ip_len)?;
        let pseudo_header = Checksum::pseudo_header(src, dst, protocol::TCP, 0);
        let (src, dst) = ((src, number_at(packet, ip_len)), (dst, number_at(packet, ip_len + 2)));
        let mut ip_fixed = Checksum::new();
        for (word, fixed) in words.iter().zip(&fixed).take(V4_LEN / WORD) {
            ip_fixed.add(&(word & fixed).to_ne_bytes());
        }
        Some(GroRun { src, dst, header_len, ip_len, words, fixed, pseudo_header, ip_fixed })
    }

    #[inline(always)]
    fn matches(&self, packet: &[u8]) -> bool {
        let Some(header) = packet.get(..self.header_len) else { return false };
        // What lies behind the headers differs in nothing that is fixed.
        let (front, compared) = match packet.first_chunk::<FRONT>() {
            Some(front) => (self.difference(0, front), FRONT_WORDS),
            None => (0, 0),
        };
        front == 0
            && (self.header_len <= compared * WORD
                || self.difference(compared, &header[compared * WORD..]) == 0)
    }

    /// The fixed bits in which `header` differs from the run's words, compared from the `first`th word on.
    #[inline]
    fn difference(&self, first: usize, header: &[u8]) -> u32 {
        let (header, _) = header.as_chunks::<WORD>();
        let ours = self.words[first..].iter().zip(&self.fixed[first..]);
        header
            .iter()
            .zip(ours)
            .fold(0, |all, (word, (ours, fixed))| all | ((u32::from_ne_bytes(*word) ^ ours) & fixed))
    }

    /// Returns the sequence number of the first payload byte in `data`, and whether PSH is set, if
    /// `data` is a valid packet of this run. With `verify`, also verifies its checksum. Returns
    /// `None` if it must be parsed like any other packet.
    #[inline]
    pub fn text(&self, data: &[u8], verify: bool) -> Option<(SeqNum, bool)> {
        if data.len() <= self.header_len || !self.matches(data) || !self.lengths_are_right(data) {
            return None;
        }
        let segment = &data[self.ip_len..];
        if verify {
            let mut sum = self.pseudo_header;
            sum.add_u32(segment.len() as u32);
            sum.add(segment);
            if !sum.is_right() {
                return None;
            }
        }
        let fixed: &[u8; TCP_HEADER_LEN] = segment.first_chunk()?;
        let seq = u32::from_be_bytes([fixed[4], fixed[5], fixed[6], fixed[7]]);
        Some((SeqNum(seq), fixed[13] & PSH != 0))
    }

    /// The packet ends where the IP header says; its checksum, where there is one, is right.
    #[inline]
    fn lengths_are_right(&self, packet: &[u8]) -> bool {
        let Some(ip) = packet.first_chunk::<V4_LEN>() else { return false };
        if self.ip_len == V4_LEN {
            let mut sum = self.ip_fixed;
            for varies in [2, 4, 10] {
                sum.add_u16(u16::from_be_bytes([ip[varies], ip[varies + 1]]));
            }
            sum.is_right() && usize::from(u16::from_be_bytes([ip[2], ip[3]])) == packet.len()
        } else {
            usize::from(u16::from_be_bytes([ip[4], ip[5]])) == packet.len() - V6_LEN
        }
    }
}

/// Returns source and destination of a likely TCP packet without IP options or extensions, without
/// any check. Finds the connection of a packet early.
#[inline]
pub fn ends_of(packet: &[u8]) -> Option<((Addr, u16), (Addr, u16))> {
    let ip_len = ip_header_len(packet)?;
    let ports: [u8; WORD] = *packet.get(ip_len..)?.first_chunk()?;
    let (src, dst) = addresses(packet, ip_len)?;
    let number = |at: usize| u16::from_be_bytes([ports[at], ports[at + 1]]);
    Some(((src, number(0)), (dst, number(2))))
}

#[inline(always)]
fn first_at<const N: usize>(packet: &[u8], at: usize) -> Option<&[u8; N]> {
    packet.get(at..)?.first_chunk()
}

fn number_at(packet: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([packet[at], packet[at + 1]])
}

/// Length of an IP header with nothing but TCP behind it, and neither options nor extensions. (Fragments look alike; that the first
/// packet is none is found out where it is taken.)
#[inline(always)]
fn ip_header_len(packet: &[u8]) -> Option<usize> {
    let fixed: &[u8; V4_LEN] = packet.first_chunk()?;
    match (fixed[0], fixed[9], fixed[6]) {
        (0x45, protocol::TCP, _) => Some(V4_LEN),
        (0x60..=0x6f, _, protocol::TCP) => Some(V6_LEN),
        _ => None,
    }
}

/// Of an IPv4 packet; in IPv6 another header says so.
fn is_fragment(packet: &[u8], ip_len: usize) -> bool {
    ip_len == V4_LEN && (packet[6] & 0x3f, packet[7]) != (0, 0)
}

fn addresses(packet: &[u8], ip_len: usize) -> Option<(Addr, Addr)> {
    if ip_len == V4_LEN {
        let [s0, s1, s2, s3, d0, d1, d2, d3] = *packet.get(12..)?.first_chunk()?;
        return Some((Ipv4Addr::new(s0, s1, s2, s3).into(), Ipv4Addr::new(d0, d1, d2, d3).into()));
    }
    Some((Addr(*packet.get(8..)?.first_chunk()?), Addr(*packet.get(24..)?.first_chunk()?)))
}
