//! Addresses: sixteen bytes inside, IPv4 mapped into ::ffff:0:0/96 (RFC 4291 §2.5.5.2).
//!
//! The mapping lives in memory only: a mapped address in an IPv6 header is refused by [`IpHeader::parse`](crate::IpHeader::parse).
use core::fmt;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// An IP address of either version, as sixteen bytes (IPv4 is mapped).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Addr(pub [u8; 16]);

/// What stands before the four bytes.
const MAPPED: u128 = 0xffff;
const MAPPED_PREFIX: [u8; 12] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff];

impl Addr {
    /// Is this an IPv4 address (mapped)?
    #[inline]
    pub fn is_v4(&self) -> bool {
        self.0.starts_with(&MAPPED_PREFIX)
    }

    /// As the standard library's type (IPv4 unmapped).
    pub fn to_ip(&self) -> IpAddr {
        match self.v4_bytes() {
            Some(bytes) => Ipv4Addr::from(bytes).into(),
            None => Ipv6Addr::from(self.0).into(),
        }
    }

    /// The four IPv4 bytes; `None` for IPv6.
    pub fn v4_bytes(&self) -> Option<[u8; 4]> {
        let [.., a, b, c, d] = self.0;
        self.is_v4().then_some([a, b, c, d])
    }

    /// The address as it stands in its own IP header: 4 or 16 bytes.
    pub fn native_bytes(&self) -> &[u8] {
        if self.is_v4() { &self.0[MAPPED_PREFIX.len()..] } else { &self.0 }
    }

    /// 0.0.0.0 or ::.
    pub fn is_unspecified(&self) -> bool {
        self.0 == [0; 16] || self.v4_bytes() == Some([0; 4])
    }

    /// Multicast, or the limited IPv4 broadcast.
    pub fn is_multicast(&self) -> bool {
        match self.v4_bytes() {
            Some(bytes) => bytes[0] >> 4 == 0xe || bytes == [0xff; 4],
            None => self.0[0] == 0xff,
        }
    }

    /// 127/8 or ::1.
    pub fn is_loopback(&self) -> bool {
        match self.v4_bytes() {
            Some(bytes) => bytes[0] == 127,
            None => u128::from_be_bytes(self.0) == 1,
        }
    }
}

impl From<IpAddr> for Addr {
    fn from(ip: IpAddr) -> Addr {
        match ip {
            IpAddr::V4(v4) => v4.into(),
            IpAddr::V6(v6) => v6.into(),
        }
    }
}

impl From<Ipv4Addr> for Addr {
    /// As one number: written in parts and read as a whole, as hashes do, it would have to wait for its way through memory.
    #[inline]
    fn from(v4: Ipv4Addr) -> Addr {
        Addr((MAPPED << 32 | u128::from(v4.to_bits())).to_be_bytes())
    }
}

/// A mapped address (::ffff:a.b.c.d) becomes the IPv4 address it stands for.
impl From<Ipv6Addr> for Addr {
    fn from(v6: Ipv6Addr) -> Addr {
        Addr(v6.octets())
    }
}

impl fmt::Debug for Addr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Prints like [`IpAddr`].
impl fmt::Display for Addr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.to_ip().fmt(f)
    }
}
