//! Cookie keys and cookies, bit for bit as on Linux, so that one fleet can mix both.
//!
//! A cookie is SipHash-2-4 over the client's address followed by the server's, each with the width
//! of its IP version (4 + 4 or 16 + 16 bytes), in little-endian order: 8 bytes. It proves that its
//! holder once received packets at that address (RFC 7413 §4.1.2). It does not authenticate the
//! data that comes with it.
//!
//! Rotation: [`KeyRing::rotate`] makes the old primary the backup. A cookie of the backup is still
//! accepted, and the SYN-ACK grants one of the primary.

use crate::errors::sentences;
use alloc::vec::Vec;
use core::fmt;
use core::hash::Hasher;
use core::str::FromStr;
use siphasher::sip::SipHasher24;
use wire::{Addr, Cookie};

/// Bytes of a key.
const KEY_LEN: usize = 16;
/// Bytes of a cookie of ours. RFC 7413 allows 4 to 16; Linux makes and accepts 8 only.
const COOKIE_LEN: usize = 8;

/// A 128-bit cookie key. `Debug` does not show it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Key([u8; KEY_LEN]);

impl Key {
    /// Creates a key from the bytes of `TCP_FASTOPEN_KEY`.
    pub const fn from_bytes(bytes: [u8; KEY_LEN]) -> Key {
        Key(bytes)
    }

    /// Returns the bytes of `TCP_FASTOPEN_KEY`.
    pub const fn to_bytes(self) -> [u8; KEY_LEN] {
        self.0
    }

    fn cookie_bytes(&self, client: Addr, server: Addr) -> [u8; COOKIE_LEN] {
        let mut hasher = SipHasher24::new_with_key(&self.0);
        let (Some(client_v4), Some(server_v4)) = (client.v4_bytes(), server.v4_bytes()) else {
            return hasher.hash([client.0, server.0].as_flattened()).to_le_bytes();
        };
        // By words: that is straight code.
        hasher.write_u32(u32::from_le_bytes(client_v4));
        hasher.write_u32(u32::from_le_bytes(server_v4));
        hasher.finish().to_le_bytes()
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(..)")
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (words, _) = self.0.as_chunks::<4>();
        for (i, word) in words.iter().enumerate() {
            let dash = if i == 0 { "" } else { "-" };
            write!(f, "{dash}{:08x}", u32::from_le_bytes(*word))?;
        }
        Ok(())
    }
}

impl FromStr for Key {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Key, KeyError> {
        let mut bytes = [0; KEY_LEN];
        let mut words = text.trim().split('-');
        for chunk in bytes.as_chunks_mut::<4>().0 {
            *chunk = words.next().and_then(parse_word).ok_or(KeyError::Text)?.to_le_bytes();
        }
        if words.next().is_some() {
            return Err(KeyError::Text);
        }
        Ok(Key(bytes))
    }
}

/// One to eight hexadecimal digits; `u32::from_str_radix` alone would also take a sign.
fn parse_word(word: &str) -> Option<u32> {
    let digits = word.bytes().all(|b| b.is_ascii_hexdigit());
    if digits && word.len() <= 8 { u32::from_str_radix(word, 16).ok() } else { None }
}

/// Cookie keys: a primary that makes and checks cookies, and an optional backup that only checks
/// them.
///
/// The text form is that of `net.ipv4.tcp_fastopen_key`: four 32-bit words in hexadecimal, each
/// little-endian in the key's bytes, and the backup after a comma. `Debug` does not show the keys,
/// `Display` does.
/// ```
/// use firstbyte_proto::fast_open::KeyRing;
/// let ring: KeyRing = "00010203-04050607-08090a0b-0c0d0e0f".parse().unwrap();
/// assert_eq!(ring.to_bytes()[..4], [3, 2, 1, 0]);
/// assert_eq!(ring.to_string(), "00010203-04050607-08090a0b-0c0d0e0f");
/// assert_eq!(format!("{ring:?}"), "KeyRing(..)");
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct KeyRing {
    primary: Key,
    backup: Option<Key>,
}

/// The result of checking a client's cookie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CookieCheck {
    /// Made with the primary key: accepted.
    Primary,
    /// Made with the backup key: accepted, with a new cookie.
    Backup,
    /// Invalid: the data is rejected, with a new cookie.
    Invalid,
}

/// The reason why a key was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum KeyError {
    /// Wrong number of bytes; a ring has 16 (primary) or 32 (primary and backup).
    Length(usize),
    /// The text is not `aaaaaaaa-bbbbbbbb-cccccccc-dddddddd`, once or twice with a comma in
    /// between.
    Text,
}

sentences! {
    KeyError {
        KeyError::Length(len) => format_args!("a Fast Open key has 16 bytes, or 32 with a backup, not {len}"),
        KeyError::Text => "a Fast Open key is four hexadecimal words, aaaaaaaa-bbbbbbbb-cccccccc-dddddddd, and a backup follows a comma",
    }
}

impl KeyRing {
    /// Creates a ring of one key.
    pub fn new(primary: Key) -> KeyRing {
        KeyRing { primary, backup: None }
    }

    /// Creates a ring of two keys.
    pub fn with_backup(primary: Key, backup: Key) -> KeyRing {
        KeyRing { primary, backup: Some(backup) }
    }

    /// Creates a ring from the bytes of `TCP_FASTOPEN_KEY`: 16, or 32 with a backup.
    ///
    /// # Errors
    /// [`KeyError::Length`] for any other number of bytes.
    pub fn from_bytes(bytes: &[u8]) -> Result<KeyRing, KeyError> {
        match bytes.as_chunks::<KEY_LEN>() {
            ([primary], []) => Ok(KeyRing::new(Key(*primary))),
            ([primary, backup], []) => Ok(KeyRing::with_backup(Key(*primary), Key(*backup))),
            _ => Err(KeyError::Length(bytes.len())),
        }
    }

    /// Returns the bytes of `TCP_FASTOPEN_KEY`: 16, or 32 with a backup.
    pub fn to_bytes(&self) -> Vec<u8> {
        let backup = self.backup.iter().flat_map(|key| key.0);
        self.primary.0.into_iter().chain(backup).collect()
    }

    /// Returns the key that makes cookies.
    pub fn primary(&self) -> Key {
        self.primary
    }

    /// Returns the key that only checks cookies.
    pub fn backup(&self) -> Option<Key> {
        self.backup
    }

    /// Returns whether one of the keys is all zeros. Linux shows such a key while none is set, and
    /// everybody can compute its cookies.
    pub fn has_zero_key(&self) -> bool {
        [Some(self.primary), self.backup].into_iter().flatten().any(|key| key.0 == [0; KEY_LEN])
    }

    /// Makes `new` the primary and the old primary the backup. The old backup is dropped.
    pub fn rotate(&mut self, new: Key) {
        self.backup = Some(core::mem::replace(&mut self.primary, new));
    }

    /// Returns the cookie for the client at `src` of the server at `dst`: source and destination of
    /// the SYN.
    pub fn cookie(&self, src: Addr, dst: Addr) -> Cookie {
        let bytes = self.primary.cookie_bytes(src, dst);
        Cookie::new(&bytes).expect("eight bytes are a cookie")
    }

    /// Checks the cookie of a SYN from `src` to `dst`, in constant time.
    pub fn check(&self, src: Addr, dst: Addr, cookie: &Cookie) -> CookieCheck {
        match <[u8; COOKIE_LEN]>::try_from(cookie.as_bytes()) {
            Ok(given) => self.check_bytes(src, dst, given),
            Err(_) => CookieCheck::Invalid,
        }
    }

    /// Checks a cookie of our cookies' length, in constant time.
    #[inline]
    pub(crate) fn check_bytes(&self, src: Addr, dst: Addr, given: [u8; COOKIE_LEN]) -> CookieCheck {
        let matches =
            |key: &Key| u64::from_ne_bytes(key.cookie_bytes(src, dst)) ^ u64::from_ne_bytes(given) == 0;
        let primary = matches(&self.primary);
        let backup = self.backup.as_ref().is_some_and(matches);
        match (primary, backup) {
            (true, _) => CookieCheck::Primary,
            (false, true) => CookieCheck::Backup,
            (false, false) => CookieCheck::Invalid,
        }
    }
}

impl fmt::Debug for KeyRing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyRing(..)")
    }
}

impl fmt::Display for KeyRing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.primary)?;
        self.backup.map_or(Ok(()), |backup| write!(f, ",{backup}"))
    }
}

impl FromStr for KeyRing {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<KeyRing, KeyError> {
        match text.split_once(',') {
            Some((primary, backup)) => Ok(KeyRing::with_backup(primary.parse()?, backup.parse()?)),
            None => Ok(KeyRing::new(text.parse()?)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;
    use core::net::IpAddr;

    const FIRST: &str = "00010203-04050607-08090a0b-0c0d0e0f";
    const SECOND: &str = "deadbeef-00000001-00000002-00000003";

    fn addr(text: &str) -> Addr {
        text.parse::<IpAddr>().unwrap().into()
    }

    fn ring(text: &str) -> KeyRing {
        text.parse().unwrap()
    }

    fn cookie(key: &str, client: &str, server: &str) -> Vec<u8> {
        ring(key).cookie(addr(client), addr(server)).as_bytes().to_vec()
    }

    /// Cookies that Linux 6.18 made with these keys for these addresses.
    #[test]
    fn cookies_are_those_of_linux() {
        let v4 = cookie(FIRST, "10.77.0.1", "10.77.0.2");
        assert_eq!(v4, 0x1d0a_a246_d060_bffa_u64.to_be_bytes());
        let other_key = cookie(SECOND, "10.77.0.1", "10.77.0.2");
        assert_eq!(other_key, 0x200d_a054_5bae_4387_u64.to_be_bytes());
        let v6 = cookie(FIRST, "fd77::1", "fd77::2");
        assert_eq!(v6, 0x4403_40d4_fa43_d746_u64.to_be_bytes());
    }

    #[test]
    fn check_tells_primary_backup_and_neither() {
        let (client, server) = (addr("10.77.0.1"), addr("10.77.0.2"));
        let mut keys = ring(FIRST);
        let old = keys.cookie(client, server);
        assert_eq!(keys.check(client, server, &old), CookieCheck::Primary);
        assert_eq!(keys.check(addr("10.77.0.3"), server, &old), CookieCheck::Invalid);
        assert_eq!(keys.check(client, addr("10.77.0.3"), &old), CookieCheck::Invalid);

        keys.rotate(ring(SECOND).primary());
        assert_eq!(keys.check(client, server, &old), CookieCheck::Backup);
        assert_eq!(keys.check(client, server, &keys.cookie(client, server)), CookieCheck::Primary);

        keys.rotate(Key::from_bytes([7; 16]));
        assert_eq!(keys.check(client, server, &old), CookieCheck::Invalid);
    }

    #[test]
    fn only_whole_cookies_of_eight_bytes_match() {
        let (client, server) = (addr("fd77::1"), addr("fd77::2"));
        let keys = ring(FIRST);
        let right = keys.cookie(client, server);
        let mut longer = right.as_bytes().to_vec();
        longer.extend([0, 0]);
        for bytes in [&right.as_bytes()[..6], &longer[..]] {
            assert_eq!(keys.check(client, server, &Cookie::new(bytes).unwrap()), CookieCheck::Invalid);
        }
        for bit in 0..64 {
            let mut bytes = right.as_bytes().to_vec();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(keys.check(client, server, &Cookie::new(&bytes).unwrap()), CookieCheck::Invalid);
        }
    }

    #[test]
    fn text_and_bytes_are_those_of_linux() {
        let both = ring(&format!("{FIRST},{SECOND}\n"));
        assert_eq!(both.to_string(), format!("{FIRST},{SECOND}"));
        let bytes = both.to_bytes();
        assert_eq!(bytes[..16], [3, 2, 1, 0, 7, 6, 5, 4, 0xb, 0xa, 9, 8, 0xf, 0xe, 0xd, 0xc]);
        assert_eq!(bytes[16..20], [0xef, 0xbe, 0xad, 0xde]);
        assert_eq!(KeyRing::from_bytes(&bytes), Ok(both));
        assert_eq!(KeyRing::from_bytes(&bytes[..16]), Ok(ring(FIRST)));
        assert_eq!(ring("1-2-3-A").to_string(), "00000001-00000002-00000003-0000000a");
    }

    #[test]
    fn wrong_keys_are_refused() {
        for len in [0, 15, 17, 31, 33, 48] {
            assert_eq!(KeyRing::from_bytes(&vec![0; len]), Err(KeyError::Length(len)));
        }
        for text in [
            "",
            "1-2-3",
            "1-2-3-4-5",
            "1-2-3-4,",
            "1-2-3-4,5",
            "1-2-3-+4",
            "1-2-3-g",
            "1-2-3-123456789",
            "1-2--4",
        ] {
            assert_eq!(text.parse::<KeyRing>(), Err(KeyError::Text), "{text}");
        }
    }

    #[test]
    fn debug_shows_no_key() {
        let keys = ring(FIRST);
        assert_eq!(format!("{keys:?} {:?}", keys.primary()), "KeyRing(..) Key(..)");
    }
}
