//! What tc gives a netem.
use super::{Correlated, Distribution, NetemLoss};
use crate::{Nanos, Probability};

/// A network. [`NetemConfig::default`] is a perfect one, which holds 1000 packets.
#[derive(Clone, Debug, PartialEq)]
pub struct NetemConfig {
    /// Limit of packets in flight.
    pub limit: usize,
    /// Delay of a packet, nanoseconds.
    pub latency: Nanos,
    /// Variation of the delay in nanoseconds: uniform in both directions, or the standard deviation
    /// of a distribution.
    pub jitter: Nanos,
    /// Correlation of a packet's delay with the previous one.
    pub delay_correlation: Probability,
    /// Distribution of the delay.
    pub distribution: Distribution,
    /// Which packets are lost.
    pub loss: NetemLoss,
    /// True if ECN-capable packets are marked instead of lost.
    pub ecn: bool,
    /// A copy is made of the packet.
    pub duplicate: Correlated,
    /// One bit of the packet is flipped.
    pub corrupt: Correlated,
    /// The packet skips the delay.
    pub reorder: Correlated,
    /// Every so-manieth packet may skip the delay; 0: none.
    pub gap: u64,
    /// A rate after the delay.
    pub rate: Option<NetemRate>,
    /// Releases packets in bursts.
    pub slot: Option<NetemSlot>,
}

impl Default for NetemConfig {
    fn default() -> NetemConfig {
        NetemConfig {
            limit: 1000,
            latency: 0,
            jitter: 0,
            delay_correlation: Probability::ZERO,
            distribution: Distribution::Uniform,
            loss: NetemLoss::None,
            ecn: false,
            duplicate: Correlated::NEVER,
            corrupt: Correlated::NEVER,
            reorder: Correlated::NEVER,
            gap: 0,
            rate: None,
            slot: None,
        }
    }
}

/// A rate, and the size of a packet on the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NetemRate {
    /// Bytes per second; not 0.
    pub bytes_per_second: u64,
    /// Bytes added to each packet; may be negative.
    pub packet_overhead: i32,
    /// Bytes of a packet that a cell carries; 0: no cells.
    pub cell_size: u32,
    /// Bytes that a cell has besides; may be negative.
    pub cell_overhead: i32,
}

impl NetemRate {
    /// How long a packet of `len` bytes takes (`packet_time_ns`).
    pub(super) fn nanos(&self, len: u32) -> Nanos {
        let mut bytes = (i64::from(len) + i64::from(self.packet_overhead)).max(0) as u64;
        if self.cell_size > 0 {
            let cell = i64::from(self.cell_size) + i64::from(self.cell_overhead);
            bytes = bytes.div_ceil(self.cell_size.into()).saturating_mul(cell.max(0) as u64);
        }
        let nanos = u128::from(bytes) * 1_000_000_000 / u128::from(self.bytes_per_second.max(1));
        u64::try_from(nanos).unwrap_or(u64::MAX)
    }
}

/// Timing and size of bursts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NetemSlot {
    /// From one slot to the next.
    pub delay: SlotDelay,
    /// Packets of a slot; 0: any number.
    pub max_packets: u32,
    /// Bytes of a slot; 0: any number.
    pub max_bytes: u32,
}

/// The time from one slot to the next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SlotDelay {
    /// Evenly between these.
    Between(Nanos, Nanos),
    /// Drawn like a delay.
    Drawn {
        /// The distribution.
        distribution: Distribution,
        /// Its middle.
        delay: Nanos,
        /// Its spread.
        jitter: Nanos,
    },
}

impl NetemSlot {
    pub(super) fn packets(&self) -> u64 {
        if self.max_packets == 0 { u64::MAX } else { self.max_packets.into() }
    }

    pub(super) fn bytes(&self) -> u64 {
        if self.max_bytes == 0 { u64::MAX } else { self.max_bytes.into() }
    }
}
