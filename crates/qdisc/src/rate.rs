//! The time that a packet takes at a rate: Linux's `psched_ratecfg` with its rounding, and tc's
//! link layers.
use core::num::NonZeroU64;

/// Encapsulation of the link below.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum LinkLayer {
    /// Nothing but the overhead.
    #[default]
    Ethernet,
    /// Cells of 53 bytes that carry 48 (AAL5): the last one is padded.
    Atm,
}

/// Bytes of an ATM cell on the wire, and of its payload.
const ATM_CELL: u64 = 53;
const ATM_CELL_PAYLOAD: u64 = 48;

impl LinkLayer {
    /// Returns the bytes that `len` bytes take on this link.
    pub fn wire_bytes(self, len: u64) -> u64 {
        match self {
            LinkLayer::Ethernet => len,
            LinkLayer::Atm => len.div_ceil(ATM_CELL_PAYLOAD) * ATM_CELL,
        }
    }

    /// tc's word.
    pub fn name(self) -> &'static str {
        match self {
            LinkLayer::Ethernet => "ethernet",
            LinkLayer::Atm => "atm",
        }
    }
}

/// A rate with the encapsulation of the link, as tc passes them to a discipline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct RateSpec {
    /// Bytes per second.
    pub bytes_per_second: u64,
    /// Bytes added to each packet.
    pub overhead: u16,
    /// Minimum size of a packet. tc passes it to the kernel, which ignores it since it computes
    /// exactly.
    pub mpu: u16,
    /// Cells or none.
    pub link_layer: LinkLayer,
}

/// Lengths to times by a multiplication and a shift, exactly as `psched_l2t_ns` rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rate {
    spec: RateSpec,
    mult: u32,
    shift: u8,
}

const NANOS_PER_SECOND: u64 = 1_000_000_000;

impl Rate {
    /// Linux's `psched_ratecfg_precompute`: the most precise 32-bit factor.
    pub(crate) fn new(spec: RateSpec) -> Rate {
        let (mut mult, mut shift) = (1, 0);
        if let Some(rate) = NonZeroU64::new(spec.bytes_per_second) {
            let mut factor = NANOS_PER_SECOND;
            loop {
                mult = (factor / rate) as u32;
                if mult >> 31 != 0 || factor >> 63 != 0 {
                    break;
                }
                factor <<= 1;
                shift += 1;
            }
        }
        Rate { spec, mult, shift }
    }

    /// How long `len` bytes take.
    pub(crate) fn nanos(&self, len: u32) -> i64 {
        let bytes = self.spec.link_layer.wire_bytes(u64::from(len) + u64::from(self.spec.overhead));
        let nanos = (u128::from(bytes) * u128::from(self.mult)) >> self.shift;
        i64::try_from(nanos).unwrap_or(i64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_packet_takes_32_cells() {
        assert_eq!(LinkLayer::Atm.wire_bytes(1500), 1696);
        assert_eq!(LinkLayer::Atm.wire_bytes(1536), 1696);
        assert_eq!(LinkLayer::Atm.wire_bytes(1537), 1749);
    }

    #[test]
    fn times_are_exact_to_a_nanosecond_in_a_thousand_million() {
        for bytes_per_second in [1, 125, 625_000, 12_500_000_000, u64::MAX] {
            let rate = Rate::new(RateSpec { bytes_per_second, ..RateSpec::default() });
            for len in [0, 40, 1500, 65_535] {
                let exact = u128::from(len) * 1_000_000_000 / u128::from(bytes_per_second);
                let off = (rate.nanos(len) as i128 - exact as i128).unsigned_abs();
                assert!(off <= 1 + exact / 1_000_000_000, "{bytes_per_second} {len}: {off}");
            }
        }
    }

    #[test]
    fn overhead_and_cells_count() {
        let spec = RateSpec { bytes_per_second: 1_000_000, overhead: 36, ..RateSpec::default() };
        assert_eq!(Rate::new(spec).nanos(1500), 1_536_000);
        let cells = Rate::new(RateSpec { link_layer: LinkLayer::Atm, ..spec });
        assert_eq!(cells.nanos(1500), 32 * 53 * 1000);
    }
}
