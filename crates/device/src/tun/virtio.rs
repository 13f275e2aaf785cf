//! The virtio network header (virtio 1.2 §5.1.6, legacy 10-byte layout) in front of each frame of
//! `/dev/net/tun`.
//!
//! Numbers are in the machine's byte order.

/// Length of the header, bytes.
pub(super) const HEADER_LEN: usize = 10;

/// The checksum is partial: store the sum from `csum_start` on at `csum_start + csum_offset`.
const F_NEEDS_CSUM: u8 = 1;
/// The checksum was verified.
const F_DATA_VALID: u8 = 2;

const GSO_NONE: u8 = 0;
const GSO_TCPV4: u8 = 1;
const GSO_TCPV6: u8 = 4;
/// Flag of the type if CWR is set: only the first segment carries it.
const GSO_ECN: u8 = 0x80;

/// Offset of the byte of TCP flags with CWR in the header.
pub(super) const TCP_FLAGS_OFFSET: usize = 13;
pub(super) const TCP_CWR: u8 = 0x80;

/// Kind of merged frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(super) enum GsoType {
    /// Not merged: a single packet.
    #[default]
    None,
    /// TCP over IPv4.
    TcpV4,
    /// TCP over IPv6.
    TcpV6,
}

/// The header's fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(super) struct VirtioNetHeader {
    pub(super) needs_checksum: bool,
    pub(super) is_checksum_valid: bool,
    pub(super) gso_type: GsoType,
    /// True if CWR is only on the first segment.
    pub(super) ecn: bool,
    /// Bytes of headers to repeat on each segment.
    pub(super) header_len: u16,
    /// Payload bytes per segment.
    pub(super) gso_size: u16,
    pub(super) checksum_start: u16,
    pub(super) checksum_offset: u16,
}

impl VirtioNetHeader {
    /// Returns the header for a packet with a partial TCP checksum; `is_cut`: to be segmented into
    /// payloads of `gso_size`.
    pub(super) fn for_partial(
        packet_header: &[u8],
        start: u16,
        offset: u16,
        gso_size: u16,
        is_cut: bool,
    ) -> VirtioNetHeader {
        let checksum = VirtioNetHeader {
            needs_checksum: true,
            checksum_start: start,
            checksum_offset: offset,
            ..VirtioNetHeader::default()
        };
        if !is_cut {
            return checksum;
        }
        let is_v4 = packet_header.first().is_some_and(|byte| byte >> 4 == 4);
        let flags = packet_header.get(usize::from(start) + TCP_FLAGS_OFFSET).copied().unwrap_or(0);
        VirtioNetHeader {
            gso_type: if is_v4 { GsoType::TcpV4 } else { GsoType::TcpV6 },
            ecn: flags & TCP_CWR != 0,
            header_len: packet_header.len() as u16,
            gso_size,
            ..checksum
        }
    }

    /// Parses the header. Returns `None` for a kind of merge that was not enabled (UDP), or a merge
    /// without a size.
    pub(super) fn parse(bytes: &[u8; HEADER_LEN]) -> Option<VirtioNetHeader> {
        let [flags, gso_type, numbers @ ..] = bytes;
        let number = |at: usize| u16::from_ne_bytes([numbers[at], numbers[at + 1]]);
        let gso_size = number(2);
        let parsed = match gso_type & !GSO_ECN {
            GSO_NONE => GsoType::None,
            GSO_TCPV4 if gso_size != 0 => GsoType::TcpV4,
            GSO_TCPV6 if gso_size != 0 => GsoType::TcpV6,
            _ => return None,
        };
        Some(VirtioNetHeader {
            needs_checksum: flags & F_NEEDS_CSUM != 0,
            is_checksum_valid: flags & F_DATA_VALID != 0,
            gso_type: parsed,
            ecn: gso_type & GSO_ECN != 0,
            header_len: number(0),
            gso_size,
            checksum_start: number(4),
            checksum_offset: number(6),
        })
    }

    pub(super) fn emit(self) -> [u8; HEADER_LEN] {
        let flags = if self.needs_checksum { F_NEEDS_CSUM } else { 0 }
            | if self.is_checksum_valid { F_DATA_VALID } else { 0 };
        let gso_type = match self.gso_type {
            GsoType::None => GSO_NONE,
            GsoType::TcpV4 => GSO_TCPV4,
            GsoType::TcpV6 => GSO_TCPV6,
        } | if self.ecn { GSO_ECN } else { 0 };
        let [h0, h1] = self.header_len.to_ne_bytes();
        let [g0, g1] = self.gso_size.to_ne_bytes();
        let [s0, s1] = self.checksum_start.to_ne_bytes();
        let [o0, o1] = self.checksum_offset.to_ne_bytes();
        [flags, gso_type, h0, h1, g0, g1, s0, s1, o0, o1]
    }

    /// True if the transport checksum needs no verification: verified, or never left this machine.
    pub(super) fn is_checksum_known(&self) -> bool {
        self.needs_checksum || self.is_checksum_valid
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn parse_undoes_emit(
            (needs_checksum, is_checksum_valid, ecn) in any::<(bool, bool, bool)>(),
            gso_type in prop_oneof![Just(GsoType::None), Just(GsoType::TcpV4), Just(GsoType::TcpV6)],
            gso_size in 1u16..,
            (header_len, checksum_start, checksum_offset) in any::<(u16, u16, u16)>(),
        ) {
            let header = VirtioNetHeader {
                needs_checksum, is_checksum_valid, gso_type, ecn, header_len, gso_size, checksum_start, checksum_offset,
            };
            prop_assert_eq!(VirtioNetHeader::parse(&header.emit()), Some(header));
        }

        #[test]
        fn parse_never_panics(bytes: [u8; HEADER_LEN]) {
            let _ = VirtioNetHeader::parse(&bytes);
        }
    }

    #[test]
    fn a_gso_packet_with_cwr() {
        let mut packet = [0; 60];
        packet[0] = 0x60;
        packet[40 + 13] = 0x90; // CWR, ACK
        let header = VirtioNetHeader::for_partial(&packet, 40, 16, 1440, true);
        let expected = VirtioNetHeader {
            needs_checksum: true,
            is_checksum_valid: false,
            gso_type: GsoType::TcpV6,
            ecn: true,
            header_len: 60,
            gso_size: 1440,
            checksum_start: 40,
            checksum_offset: 16,
        };
        assert_eq!(header, expected);
        let whole = VirtioNetHeader::for_partial(&packet, 40, 16, 1440, false);
        assert_eq!((whole.gso_type, whole.gso_size, whole.needs_checksum), (GsoType::None, 0, true));
    }

    #[test]
    fn a_merge_of_udp_or_without_a_size_is_refused() {
        assert_eq!(VirtioNetHeader::parse(&[0, 3, 0, 0, 1, 1, 0, 0, 0, 0]), None);
        assert_eq!(VirtioNetHeader::parse(&[0, 1, 0, 0, 0, 0, 0, 0, 0, 0]), None);
    }
}
