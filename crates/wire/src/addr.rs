//! IP addresses as sixteen bytes, with IPv4 mapped into ::ffff:0:0/96 (RFC 4291 §2.5.5.2).
//!
//! The mapping exists only in memory. [`IpHeader::parse`](crate::IpHeader::parse) rejects a mapped
//! address in an IPv6 header.
use core::fmt;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// An IP address of either version, as sixteen bytes (IPv4 is mapped).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Addr(pub [u8; 16]);

/// What stands before the four bytes.
const MAPPED: u128 = 0xffff;
const MAPPED_PREFIX: [u8; 12] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff];

impl Addr {
    /// Returns whether this is a (mapped) IPv4 address.
    #[inline]
    pub fn is_v4(&self) -> bool {
        self.0.starts_with(&MAPPED_PREFIX)
    }

    /// Returns the standard library's type, with IPv4 unmapped.
    pub fn to_ip(&self) -> IpAddr {
        match self.v4_bytes() {
            Some(bytes) => Ipv4Addr::from(bytes).into(),
            None => Ipv6Addr::from(self.0).into(),
        }
    }

    /// Returns the four IPv4 bytes, or `None` for IPv6.
    pub fn v4_bytes(&self) -> Option<[u8; 4]> {
        let [.., a, b, c, d] = self.0;
        self.is_v4().then_some([a, b, c, d])
    }

    /// Returns the address as it is in its own IP header: 4 or 16 bytes.
    pub fn native_bytes(&self) -> &[u8] {
        if self.is_v4() { &self.0[MAPPED_PREFIX.len()..] } else { &self.0 }
    }

    /// Returns whether this is 0.0.0.0 or ::.
    pub fn is_unspecified(&self) -> bool {
        self.0 == [0; 16] || self.v4_bytes() == Some([0; 4])
    }

    /// Returns whether this is a multicast address or the limited IPv4 broadcast.
    pub fn is_multicast(&self) -> bool {
        match self.v4_bytes() {
            Some(bytes) => bytes[0] >> 4 == 0xe || bytes == [0xff; 4],
            None => self.0[0] == 0xff,
        }
    }

    /// Returns whether this is in 127/8 or ::1.
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
    /// Hashes the address as one number. Hashing bytes that were written in parts would wait for a
    /// store to load.
    #[inline]
    fn from(v4: Ipv4Addr) -> Addr {
        Addr((MAPPED << 32 | u128::from(v4.to_bits())).to_be_bytes())
    }
}

/// Converts a mapped address (::ffff:a.b.c.d) to the IPv4 address.
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
