//! Addresses of the servers of several runs in one file: each run has its own.
//!
//! Runs of one scenario use the same addresses, ports and initial sequence numbers, so that they
//! differ only in what the scenario changes. In one file an analyzer would treat the packets of the
//! second run as retransmissions of the first, if that ended while data was in flight. The file
//! therefore shows each server at another address. Everything else in the packets is unchanged.

use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};
use wire::{Addr, Checksum, IpHeader, protocol};

/// The addresses that earlier runs use in a file.
#[derive(Default)]
pub(super) struct Apart {
    taken: BTreeSet<Addr>,
}

/// The servers of one run: each address and its replacement in the file.
#[derive(Default)]
pub(super) struct Moved {
    servers: BTreeMap<Addr, Addr>,
}

impl Apart {
    /// Chooses addresses for the servers of a run: their own if no earlier run has them, otherwise
    /// the next free ones.
    pub(super) fn of_run<'a>(&mut self, packets: impl Iterator<Item = &'a Bytes>) -> Moved {
        let servers: BTreeSet<Addr> = packets.filter_map(|packet| called(packet)).collect();
        let is_free =
            |steps: &u32| servers.iter().all(|server| !self.taken.contains(&after(*server, *steps)));
        let steps = (0..=u32::MAX).find(is_free).unwrap_or_default();
        let servers: BTreeMap<Addr, Addr> =
            servers.iter().map(|server| (*server, after(*server, steps))).collect();
        self.taken.extend(servers.values());
        Moved { servers }
    }
}

impl Moved {
    /// Returns the packet as the file shows it.
    pub(super) fn packet(&self, packet: &Bytes) -> Bytes {
        if self.servers.iter().all(|(from, to)| from == to) {
            return packet.clone();
        }
        let mut shown = packet.to_vec();
        self.change(&mut shown);
        shown.into()
    }

    /// Changes the addresses in a packet, or in the packet that an ICMP error quotes, and keeps its
    /// checksums right.
    fn change(&self, packet: &mut [u8]) {
        let Ok((ip, payload)) = IpHeader::parse_quoted(packet) else { return };
        let [mut src, mut dst] = [ip.src, ip.dst];
        for address in [&mut src, &mut dst] {
            *address = self.servers.get(address).copied().unwrap_or(*address);
        }
        let (at, header_sum) = if ip.src.is_v4() { (12, Some(10)) } else { (8, None) };
        let text_sum = sum_of(ip.protocol).map(|place| payload.start + place);
        let text_sum = text_sum.filter(|at| packet.get(*at..*at + 2).is_some_and(|sum| sum != [0, 0]));
        let addresses = [src.native_bytes(), dst.native_bytes()].concat();
        let sums: Vec<usize> = header_sum.into_iter().chain(text_sum).collect();
        replace(packet, at, &addresses, &sums);
        if matches!(ip.protocol, protocol::ICMP | protocol::ICMPV6)
            && let Some(message) = packet.get_mut(payload).filter(|message| message.len() > ICMP_HEADER)
        {
            self.change(&mut message[ICMP_HEADER..]);
            message[2..4].fill(0);
            let len = message.len() as u32;
            let mut sum = match ip.src.is_v4() {
                true => Checksum::new(),
                false => Checksum::pseudo_header(src, dst, ip.protocol, len),
            };
            sum.add(message);
            let sum = sum.finish().to_be_bytes();
            message[2..4].copy_from_slice(&sum);
        }
    }
}

/// Offset and flags of a TCP header (RFC 9293 §3.1).
const FLAGS: usize = 13;
const SYN: u8 = 0x02;
const ACK: u8 = 0x10;
/// Bytes of an ICMP error before the quoted packet.
const ICMP_HEADER: usize = 8;

/// Returns the offset of a checksum that covers the addresses, in a transport header.
fn sum_of(protocol: u8) -> Option<usize> {
    match protocol {
        protocol::TCP => Some(16),
        protocol::UDP => Some(6),
        _ => None,
    }
}

/// Returns the destination of a SYN.
fn called(packet: &[u8]) -> Option<Addr> {
    let (ip, text) = IpHeader::parse(packet).ok()?;
    let flags = packet.get(text.start + FLAGS)?;
    (ip.protocol == protocol::TCP && flags & (SYN | ACK) == SYN).then_some(ip.dst)
}

/// Returns the address this many steps after another one.
fn after(address: Addr, steps: u32) -> Addr {
    let mut ip = address.to_ip();
    match &mut ip {
        core::net::IpAddr::V4(ip) => *ip = ip.to_bits().wrapping_add(steps).into(),
        core::net::IpAddr::V6(ip) => *ip = ip.to_bits().wrapping_add(steps.into()).into(),
    }
    ip.into()
}

/// Replaces the bytes at `at` and updates the checksums at `sums` by the difference (RFC 1624 §3).
fn replace(packet: &mut [u8], at: usize, bytes: &[u8], sums: &[usize]) {
    let words = |bytes: &[u8]| -> u32 {
        bytes.chunks_exact(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]]))).sum()
    };
    let Some(old) = packet.get_mut(at..at + bytes.len()) else { return };
    let complement = |word: u32| u32::from(!(word as u16));
    // The sum of the complements of the old words and of the new words.
    let less: u32 = old.chunks_exact(2).map(|word| complement(words(word))).sum();
    let change = less + words(bytes);
    old.copy_from_slice(bytes);
    for sum in sums {
        let Some(place) = packet.get_mut(*sum..*sum + 2) else { continue };
        let mut total = complement(words(place)) + change;
        while total > 0xffff {
            total = (total & 0xffff) + (total >> 16);
        }
        place.copy_from_slice(&(!(total as u16)).to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segment::Segment;
    use crate::testing::*;
    use wire::{Flags, Icmp, IcmpError};

    fn moved(packets: &[&Bytes]) -> [Moved; 2] {
        let mut apart = Apart::default();
        [(); 2].map(|()| apart.of_run(packets.iter().copied()))
    }

    #[test]
    fn the_second_run_has_a_server_of_its_own_and_all_checksums_are_right() {
        let packets = [from_client(Flags::SYN, 0, 0, 27), from_server(Flags::SYN | Flags::ACK, 0, 28, 43)];
        let bytes = packets.clone().map(|segment| segment.emit());
        let [first, second] = moved(&[&bytes[0], &bytes[1]]);
        for (segment, bytes) in packets.into_iter().zip(&bytes) {
            assert_eq!(first.packet(bytes), bytes);
            let shown = Segment::parse(&second.packet(bytes)).expect("its checksums are right");
            let other = |address: core::net::SocketAddr| match address {
                address if address == server_addr() => "198.51.100.2:80".parse().unwrap(),
                address => address,
            };
            assert_eq!((shown.src(), shown.dst()), (other(segment.src()), other(segment.dst())));
            assert_eq!((shown.tcp, shown.payload), (segment.tcp, segment.payload));
        }
    }

    #[test]
    fn an_icmp_error_quotes_what_the_file_shows() {
        let syn = from_client(Flags::SYN, 0, 0, 0).emit();
        let message = Icmp::Error { error: IcmpError::TimeExceeded, quote: &syn };
        let router = Addr::from(core::net::IpAddr::from([192, 0, 2, 254]));
        let ip = IpHeader::new(router, client_addr().ip().into(), protocol::ICMP);
        let mut error = vec![0; ip.emit_len() + message.emit_len()];
        ip.emit(message.emit_len(), &mut error);
        message.emit(ip.src, ip.dst, &mut error[ip.emit_len()..]);
        let [_, second] = moved(&[&syn]);
        let shown = second.packet(&error.into());
        let (ip, payload) = IpHeader::parse(&shown).unwrap();
        let message = Icmp::parse(ip.src, ip.dst, &shown[payload]).expect("its checksum is right");
        let quote = second.packet(&syn);
        assert_ne!(quote, syn);
        assert_eq!(message, Icmp::Error { error: IcmpError::TimeExceeded, quote: &quote });
    }

    #[test]
    fn runs_take_no_address_that_another_run_has() {
        let to = |address: &str| {
            let mut segment = from_client(Flags::SYN, 0, 0, 0);
            segment.set_dst(address.parse().unwrap());
            if segment.dst().is_ipv6() {
                segment.set_src("[2001:db8::99]:40000".parse().unwrap());
            }
            segment.emit()
        };
        let (one, next, six) = (to("198.51.100.1:80"), to("198.51.100.2:80"), to("[2001:db8::1]:80"));
        let mut apart = Apart::default();
        let mut given = |packets: &[&Bytes]| -> Vec<String> {
            let moved = apart.of_run(packets.iter().copied());
            moved.servers.values().map(|address| address.to_ip().to_string()).collect()
        };
        assert_eq!(given(&[&one, &next]), ["198.51.100.1", "198.51.100.2"]);
        assert_eq!(given(&[&one, &next]), ["198.51.100.3", "198.51.100.4"]);
        assert_eq!(given(&[&one]), ["198.51.100.5"]);
        assert_eq!(given(&[&six]), ["2001:db8::1"]);
        assert_eq!(given(&[&six]), ["2001:db8::2"]);
    }
}
