//! What a router does with a packet that is for others (RFC 1812 §5.2.1.2, §5.3.1); of IPv4.

use super::queue::put_checksum;
use bytes::Bytes;
use core::net::IpAddr;
use wire::IpHeader;

/// Is it for somebody else than who has these addresses?
pub(super) fn is_for_others(packet: &[u8], own: &[IpAddr]) -> bool {
    IpHeader::parse(packet).is_ok_and(|(ip, _)| ip.src.is_v4() && !own.contains(&ip.dst.to_ip()))
}

/// The packet as it goes on, with a time to live that is one less. `None`: that has run out.
pub(super) fn passed_on(packet: &[u8]) -> Option<Bytes> {
    let mut bytes = packet.to_vec();
    let header_len = usize::from(bytes.first()? & 15) * 4;
    let header = bytes.get_mut(..header_len).filter(|header| header.len() >= 20)?;
    header[TIME_TO_LIVE] = header[TIME_TO_LIVE].checked_sub(1).filter(|left| *left > 0)?;
    put_checksum(header);
    Some(bytes.into())
}

/// Where it stands in the header.
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
        assert_eq!(passed_on(&packet[..10]), None, "of no packet");
    }
}
