//! A frame of the kernel: a virtio header, then a packet that may be merged and have an incomplete
//! checksum.
use super::virtio::{GsoType, HEADER_LEN, VirtioNetHeader};
use crate::is_ip;
use wire::RxChecksum;

/// A valid frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// From the IP header on.
    pub packet: &'a [u8],
    /// State of its transport checksum.
    pub checksum: RxChecksum,
    /// Payload bytes of each segment it was merged from; 0 if it was not merged.
    pub gso_size: u16,
}

impl<'a> Frame<'a> {
    /// Parses a frame. Returns `None` if it has no IP packet, or is merged in a way that was not
    /// enabled.
    #[must_use]
    pub fn parse(frame: &'a [u8]) -> Option<Frame<'a>> {
        let (header, packet) = frame.split_first_chunk::<HEADER_LEN>()?;
        let header = VirtioNetHeader::parse(header)?;
        let checksum = if header.is_checksum_known() { RxChecksum::Trusted } else { RxChecksum::Verify };
        let gso_size = if header.gso_type == GsoType::None { 0 } else { header.gso_size };
        is_ip(packet).then_some(Frame { packet, checksum, gso_size })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_a_header_and_a_packet() {
        let mut frame = [0; HEADER_LEN + 40];
        frame[HEADER_LEN] = 0x60;
        let plain = Frame { packet: &frame[HEADER_LEN..], checksum: RxChecksum::Verify, gso_size: 0 };
        assert_eq!(Frame::parse(&frame), Some(plain));
        for cut in [0, HEADER_LEN - 1, HEADER_LEN, HEADER_LEN + 39] {
            assert_eq!(Frame::parse(&frame[..cut]), None, "{cut}");
        }
        // Merged from segments over IPv6, with a partial checksum.
        frame[..2].copy_from_slice(&[1, 4]);
        frame[4..6].copy_from_slice(&1440_u16.to_ne_bytes());
        let merged = Frame { packet: &frame[HEADER_LEN..], checksum: RxChecksum::Trusted, gso_size: 1440 };
        assert_eq!(Frame::parse(&frame), Some(merged));
    }
}
