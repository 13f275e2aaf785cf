//! Header fields that queueing disciplines read and change.

use super::queue::Traveller;
use qdisc::{Ecn, Packet, TcpFields};
use wire::{Flags, IpHeader, TcpHeader, TcpOptions, protocol};

/// Returns the version of an IPv4 or IPv6 header, if its ECN field is present.
fn version(bytes: &[u8]) -> Option<u8> {
    (bytes.len() >= 40).then(|| bytes[0] >> 4)
}

/// Returns the type of service of IPv4 or the traffic class of IPv6: codepoint and ECN field.
fn traffic_class(bytes: &[u8]) -> u8 {
    match version(bytes) {
        Some(4) => bytes[1],
        Some(6) => bytes[0] << 4 | bytes[1] >> 4,
        _ => 0,
    }
}

/// Hashes bytes of a header.
fn hash(bytes: &[u8]) -> u32 {
    let mut hash: u32 = 0x811c_9dc5;
    for byte in bytes {
        hash = (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193);
    }
    // Also spread over the high bits, which disciplines scale down to their buckets.
    hash ^= hash >> 15;
    hash.wrapping_mul(0x2c1b_3c6d)
}

/// Hashes the addresses, and the ports that follow them in a packet without extension headers.
pub(crate) fn flow_hash(packet: &[u8]) -> u32 {
    let place = match version(packet) {
        Some(4) => 12..24,
        Some(6) => 8..44,
        _ => return 0,
    };
    hash(packet.get(place).unwrap_or_default())
}

impl Packet for Traveller {
    fn flow_hash(&self) -> u32 {
        flow_hash(&self.bytes)
    }

    fn ecn(&self) -> Ecn {
        [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce][usize::from(traffic_class(&self.bytes) & 3)]
    }

    fn set_ce(&mut self) {
        let mut bytes = self.bytes.to_vec();
        match version(&bytes) {
            Some(4) => {
                bytes[1] |= 3;
                put_header_checksum(&mut bytes);
            }
            Some(6) => bytes[1] |= 0x30,
            _ => return,
        }
        self.bytes = bytes.into();
    }

    fn dscp(&self) -> u8 {
        traffic_class(&self.bytes) >> 2
    }

    fn clear_dscp(&mut self) {
        let mut bytes = self.bytes.to_vec();
        match version(&bytes) {
            Some(4) => {
                bytes[1] &= 3;
                put_header_checksum(&mut bytes);
            }
            Some(6) => {
                bytes[0] &= 0xf0;
                bytes[1] &= 0x3f;
            }
            _ => return,
        }
        self.bytes = bytes.into();
    }

    fn source_hash(&self) -> u32 {
        match version(&self.bytes) {
            Some(4) => hash(&self.bytes[12..16]),
            Some(6) => hash(&self.bytes[8..24]),
            _ => 0,
        }
    }

    fn destination_hash(&self) -> u32 {
        match version(&self.bytes) {
            Some(4) => hash(&self.bytes[16..20]),
            Some(6) => hash(&self.bytes[24..40]),
            _ => 0,
        }
    }

    fn tcp(&self) -> Option<TcpFields> {
        let (ip, payload) = IpHeader::parse(&self.bytes).ok()?;
        let segment = self.bytes.get(payload).filter(|_| ip.protocol == protocol::TCP)?;
        let (tcp, text) = TcpHeader::parse(segment, None).ok()?;
        Some(tcp_fields(segment, &tcp, text.len()))
    }

    fn flip_bit(&mut self, bit: u64) {
        let mut bytes = self.bytes.to_vec();
        if let Some(byte) = usize::try_from(bit / 8).ok().and_then(|index| bytes.get_mut(index)) {
            *byte ^= 0x80 >> (bit % 8);
        }
        *self = Traveller::altered(self.packet, bytes.into());
    }
}

/// The kind of TCP's MD5 option (RFC 2385).
const MD5: u8 = 19;
/// The bits of the header's 13th and 14th byte that are not the data offset.
const CONTROL_BITS: u16 = 0xfff;

fn tcp_fields(segment: &[u8], tcp: &TcpHeader, payload_len: usize) -> TcpFields {
    let TcpOptions { mss, window_scale, sack_permitted, fast_open, accurate_ecn, ao, .. } = &tcp.options;
    let of_a_syn = mss.is_some() || window_scale.is_some() || *sack_permitted || fast_open.is_some();
    let unknown = tcp.options.unknown.iter().any(|(kind, _)| *kind != MD5);
    let mut sack = [None; 4];
    for (place, (left, right)) in sack.iter_mut().zip(tcp.options.sack.iter()) {
        *place = Some((left.0, right.0));
    }
    // Includes reserved bits, which a parsed header does not have.
    let bits = segment.get(12..14).map_or(tcp.flags.bits(), |bits| u16::from_be_bytes([bits[0], bits[1]]));
    TcpFields {
        flags: bits & CONTROL_BITS,
        ack: if tcp.flags.contains(Flags::ACK) { tcp.ack.0 } else { 0 },
        payload_len: payload_len as u32,
        timestamps: tcp.options.timestamps.map(|timestamps| (timestamps.tsval, timestamps.tsecr)),
        sack,
        other_options: of_a_syn || accurate_ecn.is_some() || *ao || unknown,
    }
}

/// Corrects the header checksum of an IPv4 packet.
fn put_header_checksum(packet: &mut [u8]) {
    let header = usize::from(packet[0] & 15) * 4;
    if let Some(header) = packet.get_mut(..header) {
        put_checksum(header);
    }
}

/// Corrects the checksum of an IPv4 header.
pub(super) fn put_checksum(header: &mut [u8]) {
    header[10..12].fill(0);
    let mut sum = wire::Checksum::new();
    sum.add(header);
    let sum = sum.finish();
    header[10..12].copy_from_slice(&sum.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capture::PacketId;
    use core::net::IpAddr;
    use wire::{Addr, SeqNum};

    const V4: [&str; 2] = ["192.0.2.1", "198.51.100.2"];
    const V6: [&str; 2] = ["2001:db8::1", "2001:db8::2"];

    fn packet(
        ends: [&str; 2],
        ports: (u16, u16),
        change: impl Fn(&mut TcpHeader),
        traffic_class: u8,
    ) -> Traveller {
        let [from, to] = ends.map(|text| Addr::from(text.parse::<IpAddr>().unwrap()));
        let mut tcp = TcpHeader::new(ports.0, ports.1);
        change(&mut tcp);
        let ip = IpHeader::new(from, to, protocol::TCP);
        let mut bytes = wire::build_tcp_packet(&ip, &tcp, b"text").to_vec();
        if from.is_v4() {
            bytes[1] = traffic_class;
            put_header_checksum(&mut bytes);
        } else {
            bytes[0] |= traffic_class >> 4;
            bytes[1] |= traffic_class << 4;
        }
        Traveller::new(PacketId(1), bytes.into())
    }

    #[test]
    fn washing_and_marking_change_their_own_bits_and_leave_the_header_right() {
        for ends in [V4, V6] {
            // EF and ECT(0).
            let mut packet = packet(ends, (80, 5000), |_| {}, 46 << 2 | 2);
            assert_eq!((packet.dscp(), packet.ecn()), (46, Ecn::Ect0));
            packet.set_ce();
            assert_eq!((packet.dscp(), packet.ecn()), (46, Ecn::Ce));
            packet.clear_dscp();
            assert_eq!((packet.dscp(), packet.ecn()), (0, Ecn::Ce));
            assert!(IpHeader::parse(&packet.bytes).is_ok(), "{ends:?}");
        }
    }

    #[test]
    fn hosts_are_known_by_their_addresses_and_flows_by_their_ports_too() {
        for ends in [V4, V6] {
            let there = packet(ends, (80, 5000), |_| {}, 0);
            let other = packet(ends, (80, 5001), |_| {}, 0);
            let back = packet([ends[1], ends[0]], (5000, 80), |_| {}, 0);
            assert_ne!(there.flow_hash(), other.flow_hash());
            assert_eq!(there.source_hash(), other.source_hash());
            assert_eq!(
                (there.source_hash(), there.destination_hash()),
                (back.destination_hash(), back.source_hash())
            );
            assert_ne!(there.source_hash(), there.destination_hash());
        }
    }

    #[test]
    fn a_segment_says_what_it_acknowledges() {
        let change = |tcp: &mut TcpHeader| {
            (tcp.flags, tcp.ack) = (Flags::ACK | Flags::ECE, SeqNum(77));
            tcp.options.sack.push((SeqNum(100), SeqNum(200)));
        };
        let expected = TcpFields {
            flags: 0x50,
            ack: 77,
            payload_len: 4,
            sack: [Some((100, 200)), None, None, None],
            ..TcpFields::default()
        };
        assert_eq!(packet(V4, (80, 5000), change, 0).tcp(), Some(expected));
        let syn = packet(V6, (80, 5000), |tcp| (tcp.flags, tcp.options.mss) = (Flags::SYN, Some(1460)), 0);
        assert!(syn.tcp().is_some_and(|tcp| tcp.flags == 2 && tcp.other_options));
    }
}
