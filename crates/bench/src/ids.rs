//! A map from connections to what an application knows of them.

use core::hash::{BuildHasherDefault, Hasher};
use proto::ConnId;
use std::collections::HashMap;

/// Connections to values. Handles come from our own stack, so the hash need not resist an attacker.
pub type ConnMap<V> = HashMap<ConnId, V, BuildHasherDefault<IdHasher>>;

/// Mixes the integers of a handle by multiplication.
#[derive(Default)]
pub struct IdHasher(u64);

/// 2⁶⁴ divided by the golden ratio.
const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

impl Hasher for IdHasher {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u32((*byte).into()));
    }

    fn write_u32(&mut self, value: u32) {
        self.0 = (self.0.rotate_left(32) ^ u64::from(value)).wrapping_mul(MULTIPLIER);
    }

    fn finish(&self) -> u64 {
        self.0.rotate_left(32)
    }
}
