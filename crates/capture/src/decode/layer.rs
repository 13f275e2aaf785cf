//! A layer that is not decoded yet, and its bytes.

use crate::packet::{IpHeader, NotTcp};

/// A layer, named by the start of its bytes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Layer<'a> {
    /// A frame of this link type (`LINKTYPE_` of tcpdump.org).
    Link(u32, Bytes<'a>),
    /// The destination address of an Ethernet frame.
    Ethernet(Bytes<'a>),
    /// The payload of this EtherType.
    EtherType(u16, Bytes<'a>),
    /// DSAP, SSAP and control (IEEE 802.2).
    Llc(Bytes<'a>),
    /// MPLS labels.
    Mpls(Bytes<'a>),
    /// A network service header.
    Nsh(Bytes<'a>),
    /// An IEEE 802.11 header.
    Wifi(Dot11<'a>),
    /// A PPP protocol, possibly after address and control.
    Ppp(Bytes<'a>),
    /// An IP header.
    Ip(Bytes<'a>),
    /// A protocol over IP.
    Over(IpHeader, u8, Bytes<'a>),
    /// A GRE header.
    Gre(Bytes<'a>),
    /// A UDP header.
    Udp(Bytes<'a>),
    /// A TCP header.
    Tcp(IpHeader, Bytes<'a>),
    /// An ICMP or ICMPv6 header.
    Icmp(IpHeader, Bytes<'a>),
}

/// A frame that starts with frame control.
#[derive(Clone, Copy, Debug)]
pub(super) struct Dot11<'a> {
    pub(super) frame: Bytes<'a>,
    /// True if the header is padded to 4 bytes.
    pub(super) is_padded: bool,
}

/// The bytes of a layer and of all layers above it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bytes<'a> {
    /// The captured bytes.
    pub(crate) data: &'a [u8],
    /// Number of bytes on the network.
    pub(crate) len: usize,
}

impl<'a> Bytes<'a> {
    pub(super) fn new(data: &'a [u8], original_len: usize) -> Bytes<'a> {
        Bytes { data, len: original_len.max(data.len()) }
    }

    /// Returns the reason why the byte before `end` cannot be read.
    fn lack(&self, end: usize) -> NotTcp {
        if end <= self.len { NotTcp::Short } else { NotTcp::Malformed }
    }

    /// Returns bytes starting at `at`.
    pub(super) fn array<const N: usize>(&self, at: usize) -> Result<[u8; N], NotTcp> {
        let bytes = self.data.get(at..).and_then(|rest| rest.first_chunk());
        bytes.copied().ok_or_else(|| self.lack(at + N))
    }

    pub(super) fn u8(&self, at: usize) -> Result<u8, NotTcp> {
        self.data.get(at).copied().ok_or_else(|| self.lack(at + 1))
    }

    pub(super) fn u16(&self, at: usize) -> Result<u16, NotTcp> {
        self.array(at).map(u16::from_be_bytes)
    }

    /// Returns the bytes after the first `count`.
    pub(super) fn after(&self, count: usize) -> Result<Bytes<'a>, NotTcp> {
        let data = self.data.get(count..).ok_or_else(|| self.lack(count))?;
        Ok(Bytes { data, len: self.len.saturating_sub(count) })
    }

    /// Returns the first `count` bytes, as a header defines them. There may be fewer if the frame
    /// was cut before it was captured.
    pub(super) fn first(&self, count: usize) -> Bytes<'a> {
        Bytes { data: &self.data[..count.min(self.data.len())], len: count }
    }

    /// Returns whether the version says that this is an IP packet.
    pub(super) fn is_ip(&self) -> bool {
        self.data.first().is_some_and(|byte| matches!(byte >> 4, 4 | 6))
    }
}
