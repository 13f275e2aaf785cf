//! The headers of one TCP segment as a capture has it: cut short perhaps, with a checksum that was left to the device.

use core::fmt;
use core::net::SocketAddr;
use core::time::Duration;
use wire::{Flags, IpError, IpHeader, SeqNum, TcpError, TcpHeader, TcpOptions, protocol};

/// One segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet<'a> {
    /// When it was captured, since 1970.
    pub at: Duration,
    /// Source address and port.
    pub src: SocketAddr,
    /// Destination address and port.
    pub dst: SocketAddr,
    /// SEG.SEQ
    pub seq: SeqNum,
    /// SEG.ACK; meaningful with ACK.
    pub ack: SeqNum,
    /// Control bits.
    pub flags: Flags,
    /// SEG.WND, unscaled.
    pub window: u16,
    /// Options.
    pub options: TcpOptions,
    /// Bytes of text that the segment carried, also where the capture has fewer.
    pub text_len: u32,
    /// Bytes of the IP packet.
    pub wire_len: u32,
    /// IPv4's identification; 0 in IPv6.
    pub ident: u16,
    /// What the capture has of the text.
    pub text: &'a [u8],
}

/// Why a frame has no segment in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotTcp {
    /// The capture's link type is none of Ethernet, raw IP, Linux cooked, BSD loopback, PPP.
    LinkType(u32),
    /// It is no IP, or another protocol over IP.
    Protocol,
    /// The capture kept too little of it.
    Short,
    /// A fragment of an IP packet.
    Fragment,
    /// IP or TCP headers that contradict themselves.
    Malformed,
}

impl fmt::Display for NotTcp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotTcp::LinkType(number) => write!(f, "link type {number}, which is not read"),
            NotTcp::Protocol => f.write_str("another protocol than TCP"),
            NotTcp::Short => {
                f.write_str("cut before the end of its headers (capture with `tcpdump -s 128` or more)")
            }
            NotTcp::Fragment => f.write_str("a fragment of an IP packet"),
            NotTcp::Malformed => f.write_str("malformed headers"),
        }
    }
}

impl<'a> Packet<'a> {
    /// Reads an IP packet of which `ip` was captured and `original_len` bytes were on the network.
    pub(crate) fn parse(at: Duration, ip: &'a [u8], original_len: usize) -> Result<Packet<'a>, NotTcp> {
        let (header, range) = IpHeader::parse_quoted(ip).map_err(|error| match error {
            IpError::Truncated { .. } => NotTcp::Short,
            IpError::Fragment => NotTcp::Fragment,
            _ => NotTcp::Malformed,
        })?;
        if header.protocol != protocol::TCP {
            return Err(NotTcp::Protocol);
        }
        let segment = ip.get(range.clone()).ok_or(NotTcp::Malformed)?;
        let (tcp, text) = TcpHeader::parse(segment, None).map_err(|error| match error {
            TcpError::Truncated { .. } => NotTcp::Short,
            TcpError::DataOffset(words) if words >= 5 => NotTcp::Short,
            _ => NotTcp::Malformed,
        })?;
        let wire_len = declared_len(ip).filter(|len| *len >= range.start).unwrap_or(original_len);
        let text_len = wire_len.saturating_sub(range.start + text.start);
        Ok(Packet {
            at,
            src: SocketAddr::new(header.src.to_ip(), tcp.src_port),
            dst: SocketAddr::new(header.dst.to_ip(), tcp.dst_port),
            seq: tcp.seq,
            ack: tcp.ack,
            flags: tcp.flags,
            window: tcp.window,
            options: tcp.options,
            text_len: u32::try_from(text_len).unwrap_or(u32::MAX),
            wire_len: u32::try_from(wire_len).unwrap_or(u32::MAX),
            ident: header.ident,
            text: segment.get(text).unwrap_or(&[]),
        })
    }

    /// SYN without ACK.
    pub fn is_syn(&self) -> bool {
        self.flags & (Flags::SYN | Flags::ACK) == Flags::SYN
    }

    /// SYN with ACK.
    pub fn is_syn_ack(&self) -> bool {
        self.flags.contains(Flags::SYN | Flags::ACK)
    }

    /// Sequence number of the first byte of text: a SYN takes one number before it.
    pub fn text_seq(&self) -> SeqNum {
        self.seq + u32::from(self.flags.contains(Flags::SYN))
    }

    /// The number behind the last one that it takes.
    pub fn end_seq(&self) -> SeqNum {
        self.text_seq() + self.text_len + u32::from(self.flags.contains(Flags::FIN))
    }
}

/// The length that the IP header gives the packet; `None` where it gives none: Linux writes 0 for segments merged beyond 64 KiB.
fn declared_len(ip: &[u8]) -> Option<usize> {
    let at = |index: usize| Some(usize::from(u16::from_be_bytes([*ip.get(index)?, *ip.get(index + 1)?])));
    let len = match ip.first()? >> 4 {
        4 => at(2)?,
        _ => match at(4)? {
            0 => 0,
            len => len + 40,
        },
    };
    (len > 0).then_some(len)
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::build_tcp_packet;

    fn packet(text: &[u8]) -> Vec<u8> {
        let addr = |last| core::net::Ipv4Addr::new(10, 0, 0, last).into();
        let ip = IpHeader::new(addr(1), addr(2), protocol::TCP);
        let mut tcp =
            TcpHeader { seq: SeqNum(7), flags: Flags::SYN, window: 64240, ..TcpHeader::new(40000, 80) };
        tcp.options.mss = Some(1460);
        build_tcp_packet(&ip, &tcp, text).to_vec()
    }

    #[test]
    fn a_packet_that_was_cut_keeps_its_length() {
        let whole = packet(&[b'x'; 1000]);
        let cut = Packet::parse(Duration::ZERO, &whole[..54], whole.len()).unwrap();
        assert_eq!((cut.text_len, cut.text.len(), cut.wire_len), (1000, 10, 1044));
        assert_eq!(cut.end_seq(), SeqNum(1008));
        assert_eq!(
            Packet::parse(Duration::ZERO, &whole[..43], whole.len()),
            Err(NotTcp::Short),
            "within the options"
        );
        assert_eq!(Packet::parse(Duration::ZERO, &whole[..30], whole.len()), Err(NotTcp::Short));
    }

    #[test]
    fn a_checksum_left_to_the_device_is_no_fault() {
        let mut partial = packet(b"GET /");
        partial[36..38].copy_from_slice(&[0xde, 0xad]);
        assert_eq!(
            Packet::parse(Duration::ZERO, &partial, partial.len()).map(|packet| packet.text),
            Ok(&b"GET /"[..])
        );
    }

    #[test]
    fn padding_is_no_text() {
        let mut padded = packet(b"");
        padded.extend([0; 6]);
        assert_eq!(Packet::parse(Duration::ZERO, &padded, padded.len()).map(|packet| packet.text_len), Ok(0));
    }

    #[test]
    fn a_merged_segment_without_a_length_has_that_of_its_frame() {
        let mut merged = packet(&[b'x'; 3000]);
        merged[2..4].fill(0);
        assert_eq!(
            Packet::parse(Duration::ZERO, &merged, merged.len()).map(|packet| packet.text_len),
            Ok(3000)
        );
    }
}
