//! Completes checksums that were left to a device.
use wire::{Checksum, IpHeader, protocol};

/// Offset of the checksum field in a UDP header.
const UDP_CHECKSUM_OFFSET: usize = 6;

/// Returns a copy of a whole IP packet with its TCP or UDP checksum computed.
///
/// Returns `None` if there is nothing to do: the packet is neither TCP nor UDP, is a fragment or
/// malformed, or its checksum is correct.
pub fn complete_checksum(packet: &[u8]) -> Option<Vec<u8>> {
    let (ip, transport) = IpHeader::parse(packet).ok()?;
    let field = match ip.protocol {
        protocol::TCP => wire::TCP_CHECKSUM_OFFSET,
        protocol::UDP => UDP_CHECKSUM_OFFSET,
        _ => return None,
    };
    let segment = &packet[transport.clone()];
    let found = u16::from_be_bytes([*segment.get(field)?, *segment.get(field + 1)?]);
    let mut sum = Checksum::pseudo_header(ip.src, ip.dst, ip.protocol, segment.len() as u32);
    sum.add(&segment[..field]);
    sum.add(&[0, 0]);
    sum.add(&segment[field + 2..]);
    let right = match sum.finish() {
        0 if ip.protocol == protocol::UDP => 0xffff,
        sum => sum,
    };
    (right != found).then(|| {
        let mut completed = packet.to_vec();
        completed[transport.start + field..][..2].copy_from_slice(&right.to_be_bytes());
        completed
    })
}
