//! Trains: packets of one connection, each of which only goes on where the one before it ended. A stack that has understood the
//! first need not take the others apart.
//!
//! Of such packets' headers nothing differs but lengths, IPv4 identification, sequence number, PSH and checksums: what a sender that
//! cuts a large write makes, and what GRO in a kernel would merge. The same options mean the same timestamps and nothing newly
//! selectively acknowledged, the same ECN bits that no router marked one and not the other.

use super::{MAX_HEADER, RxChecksum, RxPacket};
use crate::{Addr, Checksum, Flags, SeqNum, TCP_HEADER_LEN, protocol};
use core::net::Ipv4Addr;

/// Headers are compared in words.
const WORD: usize = 4;
const WORDS: usize = MAX_HEADER / WORD;
type Word = [u8; WORD];
const V4_LEN: usize = 20;
const V6_LEN: usize = 40;

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

/// The headers of a train.
#[derive(Clone, Debug)]
pub struct Train {
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
}

impl Train {
    /// `second` seems to go on where `first` ends, as to addresses, ports and lengths of the headers. Whether both are valid is to be
    /// found out: of `first` in the ordinary way, of `second` by [`text`](Self::text).
    ///
    /// Only segments with text and no flag but ACK and PSH make a train.
    pub fn between(first: &RxPacket, second: &RxPacket) -> Option<Train> {
        let (first, second) = (&first.data[..], &second.data[..]);
        let ip_len = ip_header_len(first)?;
        let tcp: &[u8; TCP_HEADER_LEN] = first.get(ip_len..)?.first_chunk()?;
        let ports = second.get(ip_len..ip_len + WORD)?;
        let header_len = ip_len + usize::from(tcp[12] >> 4) * WORD;
        let flags = u16::from_be_bytes([tcp[12], tcp[13]]) & 0xfff & !Flags::PSH.bits();
        let least = first.len().min(second.len());
        if ports != &tcp[..WORD] || flags != Flags::ACK.bits() || header_len >= least {
            return None;
        }
        Train::of(first, ip_len, header_len).filter(|train| train.matches(second))
    }

    fn of(packet: &[u8], ip_len: usize, header_len: usize) -> Option<Train> {
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
        Some(Train { src, dst, header_len, ip_len, words, fixed, pseudo_header })
    }

    fn matches(&self, packet: &[u8]) -> bool {
        let Some(header) = packet.get(..self.header_len) else { return false };
        let (header, _) = header.as_chunks::<WORD>();
        let mut differs = 0;
        for ((header, word), fixed) in header.iter().zip(&self.words).zip(&self.fixed) {
            differs |= (u32::from_ne_bytes(*header) ^ word) & fixed;
        }
        differs == 0
    }

    /// `packet` is one of the train, as to its headers, and valid: the number of its first byte of text, and whether it has PSH. `None`
    /// says only that it has to be looked at in the ordinary way.
    pub fn text(&self, packet: &RxPacket) -> Option<(SeqNum, bool)> {
        let data = &packet.data[..];
        if data.len() <= self.header_len || !self.matches(data) || !self.lengths_are_right(data) {
            return None;
        }
        let segment = &data[self.ip_len..];
        if packet.checksum == RxChecksum::Verify {
            let mut sum = self.pseudo_header;
            sum.add_u32(segment.len() as u32);
            sum.add(segment);
            if sum.finish() != 0 {
                return None;
            }
        }
        let fixed: &[u8; TCP_HEADER_LEN] = segment.first_chunk()?;
        let seq = u32::from_be_bytes([fixed[4], fixed[5], fixed[6], fixed[7]]);
        Some((SeqNum(seq), fixed[13] & PSH != 0))
    }

    /// The packet ends where the IP header says; its checksum, where there is one, is right.
    fn lengths_are_right(&self, packet: &[u8]) -> bool {
        if self.ip_len == V4_LEN {
            let mut sum = Checksum::new();
            sum.add(&packet[..V4_LEN]);
            sum.finish() == 0 && usize::from(number_at(packet, 2)) == packet.len()
        } else {
            usize::from(number_at(packet, 4)) == packet.len() - V6_LEN
        }
    }
}

fn number_at(packet: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([packet[at], packet[at + 1]])
}

/// Length of an IP header with nothing but TCP behind it, and neither options nor extensions. (Fragments look alike; that the first
/// packet is none is found out where it is taken.)
fn ip_header_len(packet: &[u8]) -> Option<usize> {
    let fixed: &[u8; V4_LEN] = packet.first_chunk()?;
    match (fixed[0], fixed[9], fixed[6]) {
        (0x45, protocol::TCP, _) => Some(V4_LEN),
        (0x60..=0x6f, _, protocol::TCP) => Some(V6_LEN),
        _ => None,
    }
}

fn addresses(packet: &[u8], ip_len: usize) -> Option<(Addr, Addr)> {
    if ip_len == V4_LEN {
        let [s0, s1, s2, s3, d0, d1, d2, d3] = *packet.get(12..)?.first_chunk()?;
        return Some((Ipv4Addr::new(s0, s1, s2, s3).into(), Ipv4Addr::new(d0, d1, d2, d3).into()));
    }
    Some((Addr(*packet.get(8..)?.first_chunk()?), Addr(*packet.get(24..)?.first_chunk()?)))
}
