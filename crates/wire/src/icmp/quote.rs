//! The packet an ICMP error quotes.
use crate::{Addr, IpHeader, SeqNum, protocol};

/// The TCP segment that an ICMP error quotes. It suffices to find the connection, and to check that
/// the segment could have been sent (RFC 5927 §4.1). The source is the sender of the segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuotedTcp {
    /// Source of the quoted segment.
    pub src: Addr,
    /// Destination of the quoted segment.
    pub dst: Addr,
    /// Source port.
    pub src_port: u16,
    /// Destination port.
    pub dst_port: u16,
    /// SEG.SEQ.
    pub seq: SeqNum,
}

impl QuotedTcp {
    /// Parses a quote. Eight bytes of TCP are enough (RFC 792). Returns `None` if it is not the
    /// start of a TCP segment.
    pub fn parse(quote: &[u8]) -> Option<QuotedTcp> {
        let (IpHeader { src, dst, protocol, .. }, range) = IpHeader::parse_quoted_fragment(quote).ok()?;
        let &[s0, s1, d0, d1, q0, q1, q2, q3] =
            quote[range].first_chunk().filter(|_| protocol == protocol::TCP)?;
        Some(QuotedTcp {
            src,
            dst,
            src_port: u16::from_be_bytes([s0, s1]),
            dst_port: u16::from_be_bytes([d0, d1]),
            seq: SeqNum(u32::from_be_bytes([q0, q1, q2, q3])),
        })
    }
}
