//! A small seeded generator, and probabilities that are identical on every machine.
//!
//! The generator is SplitMix64 (Steele, Lea, Flood: "Fast Splittable Pseudorandom Number
//! Generators", 2014). It is our own because lab results depend on the numbers drawn. A new version
//! of another crate could change its sequence, and with it every recorded experiment. It is not
//! cryptographically secure.

/// SplitMix64: 64 bits of state, period 2^64.
#[derive(Clone, Debug)]
pub struct Rng {
    state: u64,
}

impl Rng {
    /// A generator whose sequence is fixed by `seed`.
    pub const fn new(seed: u64) -> Rng {
        Rng { state: seed }
    }

    /// The next 64 bits.
    pub const fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.state)
    }

    /// The next 32 bits.
    pub(crate) const fn next_u32(&mut self) -> u32 {
        (self.next_u64() >> 32) as u32
    }

    /// A number in `0..bound`, every one as likely (to within 2^-64); 0 for a bound of 0.
    pub const fn below(&mut self, bound: u64) -> u64 {
        ((self.next_u64() as u128 * bound as u128) >> 64) as u64
    }

    /// Returns true with probability `p`. Draws no number if `p` is 0 or 1, so a disabled
    /// impairment does not change the others.
    pub const fn chance(&mut self, p: Probability) -> bool {
        match p.0 {
            0 => false,
            Probability::SCALE => true,
            threshold => (self.next_u64() >> 32) < threshold,
        }
    }
}

/// Spreads every bit over all: the generator's finalizer, also a hash.
pub(crate) const fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A probability as a multiple of 2^-32.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Probability(u64);

impl Probability {
    const SCALE: u64 = 1 << 32;
    /// Never.
    pub const ZERO: Probability = Probability(0);
    /// Always.
    pub const ONE: Probability = Probability(Probability::SCALE);

    /// From a fraction; below 0 and not-a-number become 0, above 1 becomes 1.
    pub fn new(fraction: f64) -> Probability {
        // `as` saturates: negative and NaN give 0.
        Probability((libm::round(fraction * Probability::SCALE as f64) as u64).min(Probability::SCALE))
    }

    /// From a percentage.
    pub fn percent(percent: f64) -> Probability {
        Probability::new(percent / 100.0)
    }

    /// What 32 random bits must be below.
    pub(crate) const fn threshold(self) -> u64 {
        self.0
    }

    /// Returns a fraction, 0.0 to 1.0.
    pub fn fraction(self) -> f64 {
        self.0 as f64 / Probability::SCALE as f64
    }

    /// Returns whether this is [`Probability::ZERO`].
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sequence_is_the_published_one() {
        // First outputs of SplitMix64 for the seed 1234567, as in the reference implementation's test vector.
        let mut rng = Rng::new(1_234_567);
        assert_eq!(rng.next_u64(), 6_457_827_717_110_365_317);
        assert_eq!(rng.next_u64(), 3_203_168_211_198_807_973);
    }

    #[test]
    fn chance_is_about_right_and_free_at_the_ends() {
        let mut rng = Rng::new(7);
        let hits = (0..100_000).filter(|_| rng.chance(Probability::percent(1.0))).count();
        assert!((900..1100).contains(&hits), "{hits} of 100000 at 1 %");
        let before = rng.state;
        assert!(rng.chance(Probability::ONE) && !rng.chance(Probability::ZERO));
        assert_eq!(rng.state, before);
    }

    #[test]
    fn probability_clamps() {
        assert_eq!(Probability::new(-1.0), Probability::ZERO);
        assert_eq!(Probability::new(f64::NAN), Probability::ZERO);
        assert_eq!(Probability::new(7.0), Probability::ONE);
        assert_eq!(Probability::percent(50.0).fraction(), 0.5);
    }

    #[test]
    fn below_stays_below() {
        let mut rng = Rng::new(3);
        let mut seen = [0u32; 5];
        for _ in 0..5000 {
            seen[rng.below(5) as usize] += 1;
        }
        assert!(seen.iter().all(|n| (850..1150).contains(n)), "{seen:?}");
        assert_eq!(rng.below(0), 0);
    }
}
