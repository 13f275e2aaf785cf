//! The IP packet in a frame.

use pcap_file::DataLink;

/// Why there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoIp {
    /// A link type this crate does not read.
    LinkType(u32),
    /// Another protocol than IP.
    Protocol,
    /// The frame ends in its own header.
    Short,
}

/// Tags of 802.1Q and 802.1ad that are skipped; more than two are not seen in practice.
const TAGS_MAX: usize = 4;

pub(crate) fn ip(link: DataLink, frame: &[u8]) -> Result<&[u8], NoIp> {
    match link {
        DataLink::ETHERNET => ethernet(frame),
        // 12 and 14 are what BSD systems write for raw IP.
        DataLink::RAW | DataLink::IPV4 | DataLink::IPV6 | DataLink::Unknown(12 | 14) => Ok(frame),
        DataLink::LINUX_SLL => cooked(frame, 14, 16),
        DataLink::LINUX_SLL2 => cooked(frame, 0, 20),
        DataLink::NULL | DataLink::LOOP => loopback(frame),
        DataLink::PPP => ppp(frame),
        other => Err(NoIp::LinkType(other.into())),
    }
}

fn ethernet(frame: &[u8]) -> Result<&[u8], NoIp> {
    by_ether_type(frame, 12)
}

/// The EtherType at `at`, the packet behind it, tags in between.
fn by_ether_type(frame: &[u8], mut at: usize) -> Result<&[u8], NoIp> {
    for _ in 0..=TAGS_MAX {
        let ether_type = frame.get(at..at + 2).ok_or(NoIp::Short)?;
        match ether_type {
            [0x08, 0x00] | [0x86, 0xdd] => return frame.get(at + 2..).ok_or(NoIp::Short),
            [0x81, 0x00] | [0x88, 0xa8] | [0x91, 0x00] => at += 4,
            // PPPoE session: a header of 6 bytes, then PPP's protocol.
            [0x88, 0x64] => return ppp_protocol(frame.get(at + 8..).ok_or(NoIp::Short)?),
            _ => return Err(NoIp::Protocol),
        }
    }
    Err(NoIp::Protocol)
}

/// Linux cooked: the protocol in the header, which may name a tag.
fn cooked(frame: &[u8], protocol_at: usize, header_len: usize) -> Result<&[u8], NoIp> {
    let protocol = frame.get(protocol_at..protocol_at + 2).ok_or(NoIp::Short)?;
    match protocol {
        [0x08, 0x00] | [0x86, 0xdd] => frame.get(header_len..).ok_or(NoIp::Short),
        [0x81, 0x00] | [0x88, 0xa8] => by_ether_type(frame, header_len + 2),
        _ => Err(NoIp::Protocol),
    }
}

/// Four bytes of an address family, in the order of bytes of whoever captured.
fn loopback(frame: &[u8]) -> Result<&[u8], NoIp> {
    let packet = frame.get(4..).ok_or(NoIp::Short)?;
    match packet.first().map(|byte| byte >> 4) {
        Some(4 | 6) => Ok(packet),
        Some(_) => Err(NoIp::Protocol),
        None => Err(NoIp::Short),
    }
}

fn ppp(frame: &[u8]) -> Result<&[u8], NoIp> {
    // Address and control may be left out (RFC 1661 §6.6).
    ppp_protocol(frame.strip_prefix(&[0xff, 0x03]).unwrap_or(frame))
}

fn ppp_protocol(frame: &[u8]) -> Result<&[u8], NoIp> {
    match frame {
        [0x00, 0x21 | 0x57, packet @ ..] | [0x21 | 0x57, packet @ ..] => Ok(packet),
        [_, _, ..] => Err(NoIp::Protocol),
        _ => Err(NoIp::Short),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn framed(head: &[u8]) -> Vec<u8> {
        [head, &[0x45, 1, 2, 3]].concat()
    }

    fn is_found(link: DataLink, head: &[u8]) {
        let frame = framed(head);
        assert_eq!(ip(link, &frame), Ok(&[0x45_u8, 1, 2, 3][..]), "{link:?} {head:02x?}");
    }

    #[test]
    fn ip_is_found_behind_each_kind_of_header() {
        let macs = [0; 12];
        let ethernet = |rest: &[u8]| [&macs[..], rest].concat();
        is_found(DataLink::ETHERNET, &ethernet(&[8, 0]));
        is_found(DataLink::ETHERNET, &ethernet(&[0x86, 0xdd]));
        is_found(DataLink::ETHERNET, &ethernet(&[0x81, 0, 0, 5, 8, 0]));
        is_found(DataLink::ETHERNET, &ethernet(&[0x88, 0xa8, 0, 5, 0x81, 0, 0, 6, 8, 0]));
        is_found(DataLink::ETHERNET, &ethernet(&[0x88, 0x64, 0x11, 0, 0, 1, 0, 6, 0, 0x21]));
        is_found(DataLink::RAW, &[]);
        is_found(DataLink::Unknown(12), &[]);
        is_found(DataLink::IPV4, &[]);
        is_found(DataLink::LINUX_SLL, &[0, 0, 0, 1, 0, 6, 1, 2, 3, 4, 5, 6, 0, 0, 8, 0]);
        is_found(DataLink::LINUX_SLL2, &[8, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0, 6, 1, 2, 3, 4, 5, 6, 0, 0]);
        is_found(DataLink::NULL, &[2, 0, 0, 0]);
        is_found(DataLink::LOOP, &[0, 0, 0, 2]);
        is_found(DataLink::PPP, &[0xff, 3, 0, 0x21]);
    }

    #[test]
    fn what_is_no_ip_is_said_to_be_none() {
        assert_eq!(ip(DataLink::ETHERNET, &[0; 13]), Err(NoIp::Short));
        assert_eq!(
            ip(DataLink::ETHERNET, &framed(&[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 8, 6])),
            Err(NoIp::Protocol)
        );
        let tags = [[0x81, 0, 0, 1]; 8].concat();
        assert_eq!(ip(DataLink::ETHERNET, &[&[0; 12][..], &tags].concat()), Err(NoIp::Protocol));
        assert_eq!(ip(DataLink::IEEE802_11, &[0; 40]), Err(NoIp::LinkType(105)));
    }
}
