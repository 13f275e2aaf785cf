//! Random numbers from a seed: SipHash in counter mode, so that drawn secrets do not reveal the
//! state.

use core::hash::Hasher;
use siphasher::sip::SipHasher24;

/// A deterministic stream of unpredictable words for whoever does not know the seed.
pub(crate) struct Rng {
    keys: [(u64, u64); 2],
    counter: u64,
}

impl Rng {
    pub(crate) fn new(seed: [u8; 32]) -> Rng {
        let word = |i: usize| {
            let mut bytes = [0; 8];
            bytes.copy_from_slice(&seed[i * 8..i * 8 + 8]);
            u64::from_le_bytes(bytes)
        };
        Rng { keys: [(word(0), word(1)), (word(2), word(3))], counter: 0 }
    }

    pub(crate) fn next_u64(&mut self) -> u64 {
        self.counter += 1;
        self.keys.iter().zip(0..).fold(0, |mixed, (key, half)| {
            let mut hasher = SipHasher24::new_with_keys(key.0, key.1);
            hasher.write_u64(self.counter);
            // Or a seed of two equal halves would give nothing but zeros.
            hasher.write_u8(half);
            mixed ^ hasher.finish()
        })
    }

    pub(crate) fn next_key(&mut self) -> (u64, u64) {
        (self.next_u64(), self.next_u64())
    }

    pub(crate) fn next_bytes16(&mut self) -> [u8; 16] {
        let (a, b) = self.next_key();
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&a.to_le_bytes());
        bytes[8..].copy_from_slice(&b.to_le_bytes());
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn a_seed_of_equal_halves_is_as_good_as_any() {
        let mut words: Vec<u64> = (0..4)
            .flat_map(|seed| [(); 100].map(move |()| seed))
            .map(|seed| Rng::new([seed; 32]))
            .enumerate()
            .map(|(step, mut rng)| (0..=step % 100).map(|_| rng.next_u64()).last().unwrap_or(0))
            .collect();
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), 400);
    }
}
