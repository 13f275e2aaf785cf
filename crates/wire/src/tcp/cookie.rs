//! The Fast Open cookie and option (RFC 7413 §4.1.1, errata 4238 and 4239).
use super::USUAL_COOKIE_LEN;
use core::fmt;

/// A Fast Open cookie: 4 to 16 bytes, even (RFC 7413 §4.1.1, errata 4238).
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Cookie {
    len: u8,
    bytes: [u8; 16],
}

impl Cookie {
    /// Shortest cookie, bytes.
    pub const LEN_MIN: usize = 4;
    /// Longest cookie, bytes.
    pub const LEN_MAX: usize = 16;

    /// `None` unless 4..=16 bytes and even.
    pub fn new(bytes: &[u8]) -> Option<Cookie> {
        if !(Cookie::LEN_MIN..=Cookie::LEN_MAX).contains(&bytes.len()) || !bytes.len().is_multiple_of(2) {
            return None;
        }
        let mut cookie = Cookie { len: bytes.len() as u8, bytes: [0; Cookie::LEN_MAX] };
        cookie.bytes[..bytes.len()].copy_from_slice(bytes);
        Some(cookie)
    }

    /// The bytes of one that has as many as nearly all servers make.
    #[inline(always)]
    pub(crate) fn usual_bytes(&self) -> Option<[u8; USUAL_COOKIE_LEN]> {
        let bytes = self.bytes.first_chunk().copied();
        bytes.filter(|_| usize::from(self.len) == USUAL_COOKIE_LEN)
    }

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

/// Lower-case hexadecimal, as `ip tcp_metrics` prints it.
impl fmt::Display for Cookie {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_bytes().iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Cookie {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Cookie({self})")
    }
}

/// Which of the two formats a Fast Open option has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum FastOpenKind {
    /// kind 34
    #[default]
    Standard,
    /// kind 254, ExID 0xF989 (RFC 6994)
    Experimental,
}

/// The Fast Open option: a cookie request when `cookie` is `None`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FastOpenOption {
    /// format
    pub kind: FastOpenKind,
    /// the cookie
    pub cookie: Option<Cookie>,
}

impl FastOpenOption {
    /// From what follows the kind and length (and the ExID): empty is a request. `None` when no cookie can have that length.
    pub(crate) fn from_body(kind: FastOpenKind, body: &[u8]) -> Option<FastOpenOption> {
        if body.is_empty() {
            return Some(FastOpenOption { kind, cookie: None });
        }
        Cookie::new(body).map(|cookie| FastOpenOption { kind, cookie: Some(cookie) })
    }

    /// Bytes on the wire, without padding: 2..=20.
    pub fn emit_len(&self) -> usize {
        let overhead = match self.kind {
            FastOpenKind::Standard => 2,
            FastOpenKind::Experimental => 4,
        };
        overhead + self.cookie.map_or(0, |cookie| usize::from(cookie.len))
    }
}
