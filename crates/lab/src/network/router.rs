//! Forwarding at an IPv4 router (RFC 1812 §5.2.1.2, §5.3.1).

use super::headers::put_checksum;
use bytes::Bytes;
use core::net::IpAddr;
use wire::{Addr, Icmp, IcmpError, IpHeader, protocol};

/// Returns whether the packet is for none of these addresses.
pub(super) fn is_for_others(packet: &[u8], own: &[IpAddr]) -> bool {
    IpHeader::parse(packet).is_ok_and(|(ip, _)| ip.src.is_v4() && !own.contains(&ip.dst.to_ip()))
}

/// Returns the forwarded packet with its time to live decremented; `None` if that has run out.
pub(super) fn passed_on(packet: &[u8]) -> Option<Bytes> {
    let mut bytes = packet.to_vec();
    let header_len = usize::from(bytes.first()? & 15) * 4;
    let header = bytes.get_mut(..header_len).filter(|header| header.len() >= 20)?;
    header[TIME_TO_LIVE] = header[TIME_TO_LIVE].checked_sub(1).filter(|left| *left > 0)?;
    put_checksum(header);
    Some(bytes.into())
}

/// Builds the ICMP error for a packet whose time to live exceeded, with as much of the packet as
/// fits 576 bytes (RFC 1812 §4.3.2.3). Returns `None` for invalid packets and ICMP errors
/// (§4.3.2.7).
pub(super) fn time_exceeded(packet: &[u8], router: IpAddr) -> Option<Bytes> {
    let (ip, text) = IpHeader::parse(packet).ok()?;
    let is_error = ip.protocol == protocol::ICMP
        && !matches!(
            Icmp::parse(ip.src, ip.dst, packet.get(text)?),
            Ok(Icmp::EchoRequest { .. } | Icmp::EchoReply { .. })
        );
    if is_error {
        return None;
    }
    let answer = IpHeader::new(Addr::from(router), ip.src, protocol::ICMP);
    let room = ANSWER_MAX - answer.emit_len() - ICMP_HEADER;
    let quote = packet.get(..room).unwrap_or(packet);
    let message = Icmp::Error { error: IcmpError::TimeExceeded, quote };
    let mut bytes = vec![0; answer.emit_len() + message.emit_len()];
    answer.emit(message.emit_len(), &mut bytes);
    message.emit(answer.src, answer.dst, &mut bytes[answer.emit_len()..]);
    Some(bytes.into())
}

/// Maximum length of an ICMP error.
const ANSWER_MAX: usize = 576;
/// Bytes of the ICMP header before the quoted packet.
const ICMP_HEADER: usize = 8;
/// Offset of the field in the header.
const TIME_TO_LIVE: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::from_client;
    use wire::Flags;

    #[test]
    fn a_packet_goes_on_until_its_time_to_live_has_run_out() {
        let mut packet = from_client(Flags::SYN, 0, 0, 0).emit();
        let first = packet[TIME_TO_LIVE];
        for hop in 1..first {
            packet = passed_on(&packet).unwrap();
            assert_eq!(packet[TIME_TO_LIVE], first - hop);
            assert!(IpHeader::parse(&packet).is_ok(), "the checksum is right");
        }
        assert_eq!(passed_on(&packet), None);
        let told = time_exceeded(&packet, [192, 0, 2, 254].into()).unwrap();
        let (ip, text) = IpHeader::parse(&told).unwrap();
        let message = Icmp::parse(ip.src, ip.dst, &told[text]).unwrap();
        let expected = Icmp::Error { error: IcmpError::TimeExceeded, quote: &packet };
        assert_eq!((message, ip.src.to_ip()), (expected, [192, 0, 2, 254].into()));
        assert_eq!(time_exceeded(&told, [192, 0, 2, 254].into()), None, "nothing is told about an error");
        assert_eq!(passed_on(&packet[..10]), None, "of no packet");
    }
}
