//! Keys of signed segments (RFC 2385, Linux's `TCP_MD5SIG`), by peer.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::net::IpAddr;

/// Maximum length of a key, bytes (Linux's `TCP_MD5SIG_MAXKEYLEN`).
pub const MD5_KEY_MAX: usize = 80;

/// A key that signs every segment to and from its peers.
#[derive(Clone, PartialEq, Eq)]
pub struct Md5Key {
    /// The peer, or its network's address.
    pub address: IpAddr,
    /// Significant bits of the address; all bits mean a single peer.
    pub prefix_len: u8,
    /// True for a key of a routing domain (`TCP_MD5SIG_FLAG_IFINDEX`). There is one domain; the key
    /// differs from one without the flag for the same peers.
    pub of_domain: bool,
    /// The secret, 1 to [`MD5_KEY_MAX`] bytes.
    pub secret: Box<[u8]>,
}

/// A secret is not shown.
impl fmt::Debug for Md5Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Md5Key({}/{})", self.address, self.prefix_len)
    }
}

impl Md5Key {
    fn is_for(&self, peer: IpAddr) -> bool {
        let differing = match (self.address, peer) {
            (IpAddr::V4(own), IpAddr::V4(peer)) => (own.to_bits() ^ peer.to_bits()).leading_zeros(),
            (IpAddr::V6(own), IpAddr::V6(peer)) => (own.to_bits() ^ peer.to_bits()).leading_zeros(),
            _ => return false,
        };
        differing >= self.prefix_len.into()
    }
}

/// The keys of one socket. Each accepted connection keeps the key of its peer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Md5Keys(Option<Arc<Vec<Md5Key>>>);

impl Md5Keys {
    /// No keys; takes no memory.
    pub const NONE: Md5Keys = Md5Keys(None);

    /// Returns whether nothing is signed.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Returns the key for a peer: that of the longest prefix; of equal ones, the newer.
    pub fn for_peer(&self, peer: IpAddr) -> Option<&Md5Key> {
        let keys = self.0.as_deref().into_iter().flatten();
        keys.filter(|key| key.is_for(peer)).max_by_key(|key| key.prefix_len)
    }

    /// Adds a key, or replaces the key of the same peers.
    pub fn insert(&mut self, key: Md5Key) {
        let keys = Arc::make_mut(self.0.get_or_insert_default());
        match keys.iter_mut().find(|known| same(known, &key)) {
            Some(known) => *known = key,
            None => keys.push(key),
        }
    }

    /// Removes the key of the same peers, whatever its secret. Returns false if there is none.
    pub fn remove(&mut self, key: &Md5Key) -> bool {
        let Some(keys) = self.0.as_mut().map(Arc::make_mut) else { return false };
        let before = keys.len();
        keys.retain(|known| !same(known, key));
        let removed = keys.len() < before;
        if keys.is_empty() {
            self.0 = None;
        }
        removed
    }

    /// Returns the keys that a connection to this peer inherits from its listener: only its own key
    /// (Linux's `tcp_v4_syn_recv_sock`).
    #[must_use]
    pub fn narrowed(&self, peer: IpAddr) -> Md5Keys {
        let mut own = Md5Keys::NONE;
        if let Some(key) = self.for_peer(peer) {
            let prefix_len = if peer.is_ipv4() { 32 } else { 128 };
            own.insert(Md5Key { address: peer, prefix_len, ..key.clone() });
        }
        own
    }
}

fn same(one: &Md5Key, other: &Md5Key) -> bool {
    (one.address, one.prefix_len, one.of_domain) == (other.address, other.prefix_len, other.of_domain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(address: &str, prefix_len: u8, secret: &str) -> Md5Key {
        let address = address.parse().unwrap();
        Md5Key { address, prefix_len, of_domain: false, secret: secret.as_bytes().into() }
    }

    #[test]
    fn the_longest_prefix_decides() {
        let mut keys = Md5Keys::default();
        for (address, prefix_len, secret) in
            [("10.0.0.0", 8, "wide"), ("10.1.0.0", 16, "near"), ("10.1.2.3", 32, "own"), ("fd00::", 8, "six")]
        {
            keys.insert(key(address, prefix_len, secret));
        }
        let secret = |peer: &str| keys.for_peer(peer.parse().unwrap()).map(|key| &*key.secret);
        assert_eq!(secret("10.1.2.3"), Some(&b"own"[..]));
        assert_eq!(secret("10.1.2.4"), Some(&b"near"[..]));
        assert_eq!(secret("10.2.2.4"), Some(&b"wide"[..]));
        assert_eq!((secret("11.2.2.4"), secret("fd01::1")), (None, Some(&b"six"[..])));
        let mut changed = keys.clone();
        changed.insert(key("10.1.0.0", 16, "new"));
        assert!(changed.remove(&key("10.1.2.3", 32, "")));
        assert!(!changed.remove(&key("10.1.2.3", 32, "")));
        assert_eq!(changed.for_peer("10.1.2.3".parse().unwrap()).map(|key| &*key.secret), Some(&b"new"[..]));
        let own = keys.narrowed("10.1.9.9".parse().unwrap());
        assert_eq!(own.for_peer("10.1.9.9".parse().unwrap()).map(|key| &*key.secret), Some(&b"near"[..]));
        assert!(own.for_peer("10.1.9.8".parse().unwrap()).is_none());
        assert_eq!(format!("{own:?}"), "Md5Keys(Some([Md5Key(10.1.9.9/32)]))", "no secret is shown");
    }
}
