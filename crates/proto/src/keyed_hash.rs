//! The hash of internal tables: keyed, with a few multiplications.
//!
//! Peers choose the hashed values (addresses, ports), so a secret key per table prevents chosen
//! collisions. Each step multiplies two words, both mixed with secret words, to 128 bits and folds
//! the halves. Without the key neither factor is known, so no difference between two inputs makes
//! equal products more likely. Unlike with a linear hash, one collision found by luck or timing
//! does not reveal others. The hash never leaves the stack. SipHash is used for values that do
//! (initial sequence numbers, ports, cookies), or that identify without a comparison (a tuple in
//! the replay guard).

use core::hash::Hasher;

/// The key of one table.
#[derive(Clone, Copy)]
pub(crate) struct HashKey([u64; 4]);

impl HashKey {
    /// Expands a random, secret key.
    pub(crate) fn new((a, b): (u64, u64)) -> HashKey {
        // Odd constants of SplitMix64: each word depends on all of the key.
        let c = fold(a ^ 0x9e37_79b9_7f4a_7c15, b | 1);
        let d = fold(b ^ 0xbf58_476d_1ce4_e5b9, a | 1);
        HashKey([a, b, c, d])
    }

    /// Of two values of sixteen bytes and a word.
    #[inline]
    pub(crate) fn hash(&self, first: &[u8; 16], second: &[u8; 16], word: u64) -> u64 {
        let [k0, k1, k2, k3] = self.0;
        let (a, b) = halves(first);
        let (c, d) = halves(second);
        let (first, second) = (fold(a ^ k0, b ^ k1), fold(c ^ k2, d ^ k3));
        fold(first ^ word ^ k2, second ^ k1)
    }

    /// Of two words.
    #[inline]
    pub(crate) fn mix(&self, first: u64, second: u64) -> u64 {
        let [k0, k1, ..] = self.0;
        fold(first ^ k0, second ^ k1)
    }

    /// For `derive(Hash)`.
    pub(crate) fn hasher(&self) -> KeyedHasher {
        KeyedHasher { key: *self, state: self.0[0] }
    }
}

#[inline]
fn halves(bytes: &[u8; 16]) -> (u64, u64) {
    let whole = u128::from_ne_bytes(*bytes);
    (whole as u64, (whole >> 64) as u64)
}

#[inline]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

/// Hashes what is written word by word.
pub(crate) struct KeyedHasher {
    key: HashKey,
    state: u64,
}

impl KeyedHasher {
    fn add(&mut self, a: u64, b: u64) {
        let [_, k1, k2, k3] = self.key.0;
        self.state = fold(self.state ^ a ^ k1, b ^ k2) ^ k3;
    }
}

impl Hasher for KeyedHasher {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(16) {
            let mut padded = [0; 16];
            padded[..chunk.len()].copy_from_slice(chunk);
            let (a, b) = halves(&padded);
            self.add(a, b);
        }
    }

    fn write_u16(&mut self, word: u16) {
        self.add(word.into(), 2);
    }

    fn write_u8(&mut self, word: u8) {
        self.add(word.into(), 1);
    }

    fn write_usize(&mut self, word: usize) {
        self.add(word as u64, 8);
    }

    fn finish(&self) -> u64 {
        fold(self.state ^ self.key.0[1], self.key.0[3])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use core::net::Ipv4Addr;
    use wire::Addr;

    fn v4(last: u32) -> [u8; 16] {
        Addr::from(Ipv4Addr::from(0x0a00_0000 + last)).0
    }

    /// The tables take their place from the low bits and seven check bits from the top: neighbours must differ in both.
    #[test]
    fn addresses_and_ports_in_a_row_spread_over_low_and_high_bits() {
        let key = HashKey::new((0x0123_4567_89ab_cdef, 0xfedc_ba98_7654_3210));
        let hashes: Vec<u64> = (0..64)
            .flat_map(|host| (0..1024).map(move |port| key.hash(&v4(1), &v4(host), port << 16 | 443)))
            .collect();
        for bits in [|hash: u64| hash & 0xfff, |hash: u64| hash >> 52] {
            let mut counts = vec![0u32; 4096];
            hashes.iter().for_each(|hash| counts[bits(*hash) as usize] += 1);
            // 65 536 in 4096 bins: 16 each, deviation 4.
            let (least, most) = (counts.iter().min().unwrap(), counts.iter().max().unwrap());
            assert!(*least >= 1 && *most <= 40, "{least}..{most}");
        }
        let mut distinct = hashes.clone();
        distinct.sort_unstable();
        distinct.dedup();
        assert_eq!(distinct.len(), hashes.len());
    }

    #[test]
    fn every_part_and_every_key_counts() {
        let key = HashKey::new((1, 2));
        let base = key.hash(&v4(1), &v4(2), 3);
        let others = [
            key.hash(&v4(2), &v4(1), 3),
            key.hash(&v4(1), &v4(2), 4),
            key.hash(&v4(1), &v4(3), 3),
            HashKey::new((1, 3)).hash(&v4(1), &v4(2), 3),
            HashKey::new((2, 2)).hash(&v4(1), &v4(2), 3),
        ];
        assert!(others.iter().all(|other| *other != base));
    }
}
