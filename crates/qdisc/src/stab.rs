//! Size tables (tc's `stab`): the size of a packet on a link with cells, a minimum size or an
//! overhead.
use crate::LinkLayer;
use alloc::vec::Vec;

/// tc's `stab` options, with tc's defaults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SizeSpec {
    /// Bytes added to each packet; may be negative.
    pub overhead: i32,
    /// No packet counts as less.
    pub mpu: u32,
    /// The longest packet the table is made for; longer ones are put together from its rows.
    pub mtu: u32,
    /// Rows of the table.
    pub tsize: u32,
    /// Cells or none.
    pub link_layer: LinkLayer,
}

impl Default for SizeSpec {
    fn default() -> SizeSpec {
        SizeSpec { overhead: 0, mpu: 0, mtu: 2047, tsize: 512, link_layer: LinkLayer::Ethernet }
    }
}

/// A size table as tc computes it and Linux's `__qdisc_calculate_pkt_len` reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SizeTable {
    spec: SizeSpec,
    rows: Vec<u16>,
    cell_log: u32,
    size_log: u32,
}

impl SizeTable {
    /// The table; without cells and mpu none is needed. `tsize` is bounded by 65536 rows.
    pub fn new(spec: SizeSpec) -> SizeTable {
        let mut table = SizeTable { spec, rows: Vec::new(), cell_log: 0, size_log: 0 };
        if spec.link_layer == LinkLayer::Ethernet && spec.mpu == 0 {
            return table;
        }
        let rows = spec.tsize.clamp(2, 1 << 16);
        while spec.mtu >> table.cell_log > rows - 1 {
            table.cell_log += 1;
        }
        let size = |row: u32| {
            let end = (u64::from(row) + 1) << table.cell_log;
            spec.link_layer.wire_bytes(end.max(spec.mpu.into()))
        };
        while size(rows - 1) >> table.size_log > u64::from(u16::MAX) {
            table.size_log += 1;
        }
        table.rows = (0..rows).map(|row| (size(row) >> table.size_log).min(u16::MAX.into()) as u16).collect();
        table
    }

    /// Returns the options.
    pub fn spec(&self) -> SizeSpec {
        self.spec
    }

    /// Returns the size that a packet of `len` bytes counts as.
    pub fn len_of(&self, len: u32) -> u32 {
        let len = i64::from(len) + i64::from(self.spec.overhead);
        let counted = if self.rows.is_empty() { len } else { self.look_up(len) };
        counted.clamp(1, u32::MAX.into()) as u32
    }

    fn look_up(&self, len: i64) -> i64 {
        // A row stands for the lengths up to its end, the end included.
        let slot = (len - 1).max(0) as usize >> self.cell_log;
        let row = |n: usize| i64::from(self.rows.get(n).copied().unwrap_or(0));
        let rows = self.rows.len();
        let size =
            if slot < rows { row(slot) } else { row(rows - 1) * (slot / rows) as i64 + row(slot % rows) };
        size << self.size_log
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_of_1500_bytes_counts_as_32_cells() {
        let table = SizeTable::new(SizeSpec { link_layer: LinkLayer::Atm, ..SizeSpec::default() });
        assert_eq!(table.len_of(1500), 1696);
        assert_eq!(table.len_of(1), 53);
        assert_eq!(table.len_of(40), 53);
        assert_eq!(table.len_of(52), 106, "52 bytes, the end of their row, take two cells");
    }

    #[test]
    fn pppoe_over_atm_takes_one_cell_more() {
        // 1492 bytes of IP with PPPoE over LLC and AAL5: 1492 + 40 ≤ 32 × 48; 1500 + 40 needs a 33rd cell.
        let spec = SizeSpec { link_layer: LinkLayer::Atm, overhead: 40, ..SizeSpec::default() };
        let table = SizeTable::new(spec);
        assert_eq!((table.len_of(1492), table.len_of(1500)), (1696, 1749));
    }

    #[test]
    fn the_least_size_and_a_negative_overhead() {
        let table = SizeTable::new(SizeSpec { mpu: 64, overhead: -14, ..SizeSpec::default() });
        assert_eq!((table.len_of(40), table.len_of(78), table.len_of(1514)), (64, 64, 1500));
        let bare = SizeTable::new(SizeSpec { overhead: -14, ..SizeSpec::default() });
        assert_eq!((bare.len_of(1514), bare.len_of(3)), (1500, 1));
    }

    #[test]
    fn longer_packets_are_put_together_from_rows() {
        let table = SizeTable::new(SizeSpec { link_layer: LinkLayer::Atm, ..SizeSpec::default() });
        // Rows are 4 bytes wide: 65536 bytes are row 511 eight times less one byte's row: 7 × row 511 + row 511.
        assert_eq!(table.len_of(16_384), 43 * 53 * 8);
    }
}
