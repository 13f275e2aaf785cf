//! What a packet takes on the wire (Linux's `cake_overhead` and `cake_calc_overhead`).
use super::{CakeCoding, CakeFraming};
use crate::{LinkLayer, Packet, Skb};

/// Lengths that were seen, before and after.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lengths {
    pub(super) max_netlen: u16,
    pub(super) min_netlen: u16,
    pub(super) max_adjlen: u16,
    pub(super) min_adjlen: u16,
    /// The moving average of the bytes before the IP header, in units of 2^-16.
    avg_netoff: u32,
}

impl Lengths {
    /// None yet.
    pub(super) const NONE: Lengths =
        Lengths { max_netlen: 0, min_netlen: u16::MAX, max_adjlen: 0, min_adjlen: u16::MAX, avg_netoff: 0 };

    /// Forgets lengths, which another overhead makes meaningless.
    pub(super) fn forget(&mut self) {
        *self = Lengths { avg_netoff: self.avg_netoff, ..Lengths::NONE };
    }

    /// The average number of bytes before the IP header, rounded.
    pub(super) fn network_offset(&self) -> u32 {
        self.avg_netoff.saturating_add(0x8000) >> 16
    }

    /// What a packet takes on the wire, and notes its length. Of one that a card would cut, each frame counts for itself.
    pub(super) fn on_wire<P: Packet>(&mut self, framing: &CakeFraming, skb: &Skb<P>) -> u32 {
        let offset = skb.packet.network_offset();
        self.avg_netoff -= self.avg_netoff >> OFFSET_SHIFT;
        self.avg_netoff += offset.min(0xffff) << 16 >> OFFSET_SHIFT;
        match skb.packet.segments() {
            None => self.frame(framing, skb.len, offset),
            Some(segments) => {
                let each = match segments.count {
                    0 | 1 => 0,
                    _ => self.frame(framing, segments.len, offset),
                };
                let others = each.saturating_mul(segments.count.saturating_sub(1));
                others.saturating_add(self.frame(framing, segments.last_len, offset))
            }
        }
    }

    fn frame(&mut self, framing: &CakeFraming, len: u32, offset: u32) -> u32 {
        let netlen = if framing.raw { len } else { len.saturating_sub(offset) };
        let adjlen = framing.wire_len(netlen);
        let narrow = |len: u32| len.min(u16::MAX.into()) as u16;
        self.max_netlen = self.max_netlen.max(narrow(netlen));
        self.min_netlen = self.min_netlen.min(narrow(netlen));
        self.max_adjlen = self.max_adjlen.max(narrow(adjlen));
        self.min_adjlen = self.min_adjlen.min(narrow(adjlen));
        adjlen
    }
}

/// A new offset counts for 1/256 of the average.
const OFFSET_SHIFT: u32 = 8;
/// Bytes for which PTM adds one, or for part of which: never less than the 64/65 coding takes.
const PTM_BLOCK: u64 = 64;

impl CakeFraming {
    /// What a frame whose basis is `len` bytes takes on the wire.
    fn wire_len(&self, len: u32) -> u32 {
        let len = (i64::from(len) + i64::from(self.overhead)).max(self.mpu.into());
        let len = u64::try_from(len).unwrap_or(0);
        let len = match self.coding {
            CakeCoding::None => len,
            CakeCoding::Atm => LinkLayer::Atm.wire_bytes(len),
            CakeCoding::Ptm => len + len.div_ceil(PTM_BLOCK),
        };
        u32::try_from(len).unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn framing(overhead: i16, mpu: u16, coding: CakeCoding) -> CakeFraming {
        CakeFraming { raw: false, overhead, mpu, coding }
    }

    #[test]
    fn overhead_comes_first_then_the_least_size_then_cells() {
        let ethernet = framing(38, 84, CakeCoding::None);
        assert_eq!([1500, 46, 40].map(|len| ethernet.wire_len(len)), [1538, 84, 84]);
        let pppoe = framing(32, 0, CakeCoding::Atm);
        // 1500 + 32 bytes are 31.9 cells; 16 bytes + 32 are one, 17 are two.
        assert_eq!([1500, 16, 17].map(|len| pppoe.wire_len(len)), [32 * 53, 53, 106]);
        assert_eq!(framing(0, 49, CakeCoding::Atm).wire_len(1), 106, "cells are of the least size");
    }

    #[test]
    fn ptm_adds_a_byte_for_each_64_or_part() {
        let ptm = framing(0, 0, CakeCoding::Ptm);
        assert_eq!([64, 65, 1500].map(|len| ptm.wire_len(len)), [65, 67, 1524]);
    }

    #[test]
    fn a_negative_overhead_takes_no_more_than_there_is() {
        assert_eq!([10, 100].map(|len| framing(-64, 0, CakeCoding::None).wire_len(len)), [0, 36]);
    }
}
