//! What tc gives a cake.
use crate::Nanos;

/// Options of a cake (tc-cake(8)), with Linux's defaults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CakeConfig {
    /// The shaper's rate, bytes per second; 0: unlimited.
    pub bandwidth: u64,
    /// Sorting of packets into tins.
    pub tins: CakeTins,
    /// Definition of flows, and fairness between them.
    pub isolation: CakeIsolation,
    /// True if the DSCP is cleared after the tin is chosen.
    pub wash: bool,
    /// True if dropped packets count as sent, because they already passed the bottleneck.
    pub ingress: bool,
    /// Which acknowledgments are dropped because a later one waits.
    pub ack_filter: CakeAckFilter,
    /// True if large segments are split into frames.
    pub split_gso: bool,
    /// Time in which a congestion signal should take effect: CoDel's interval.
    pub interval: Nanos,
    /// Acceptable standing delay: CoDel's target. tc sets it to 1/20 of the interval.
    pub target: Nanos,
    /// Size of a packet on the wire.
    pub framing: CakeFraming,
    /// Memory limit of waiting packets in bytes. 0: derived from bandwidth and interval.
    pub memory_limit: u32,
    /// The bits of a packet's mark that name its tin, counted from 1; 0: none do.
    pub fwmark: u32,
}

impl Default for CakeConfig {
    fn default() -> CakeConfig {
        CakeConfig {
            bandwidth: 0,
            tins: CakeTins::Diffserv3,
            isolation: CakeIsolation::TripleIsolate,
            wash: false,
            ingress: false,
            ack_filter: CakeAckFilter::Off,
            split_gso: true,
            interval: 100_000_000,
            target: 5_000_000,
            framing: CakeFraming::RAW,
            memory_limit: 0,
            fwmark: 0,
        }
    }
}

/// Sorting of packets into tins, which have rate thresholds and priorities.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum CakeTins {
    /// One tin.
    BestEffort,
    /// Eight, by the three bits that were called precedence.
    Precedence,
    /// Bulk, best effort and voice.
    #[default]
    Diffserv3,
    /// Bulk, best effort, video and voice.
    Diffserv4,
    /// Eight, from background traffic to network control.
    Diffserv8,
}

/// Definition of flows, and fairness between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum CakeIsolation {
    /// All packets of a tin are one flow.
    Flowblind,
    /// A flow is all that one host sends.
    SrcHost,
    /// A flow is all that one host receives.
    DstHost,
    /// A flow is all that one host sends to another.
    Hosts,
    /// Each flow for itself.
    Flows,
    /// Hosts that send share equally, and then the flows of each.
    DualSrcHost,
    /// Hosts that receive share equally, and then the flows of each.
    DualDstHost,
    /// Neither a host that sends nor one that receives gets more by having more flows.
    #[default]
    TripleIsolate,
}

impl CakeIsolation {
    /// Is the sending host part of it?
    pub(super) fn by_source(self) -> bool {
        use CakeIsolation::{DualSrcHost, Hosts, SrcHost, TripleIsolate};
        matches!(self, SrcHost | Hosts | DualSrcHost | TripleIsolate)
    }

    /// Is the receiving host part of it?
    pub(super) fn by_destination(self) -> bool {
        use CakeIsolation::{DstHost, DualDstHost, Hosts, TripleIsolate};
        matches!(self, DstHost | Hosts | DualDstHost | TripleIsolate)
    }

    /// Are connections told apart?
    pub(super) fn by_flow(self) -> bool {
        use CakeIsolation::{DualDstHost, DualSrcHost, Flows, TripleIsolate};
        matches!(self, Flows | DualSrcHost | DualDstHost | TripleIsolate)
    }

    /// Do hosts that send share equally?
    pub(super) fn shares_by_source(self) -> bool {
        self.by_flow() && self.by_source()
    }

    /// Do hosts that receive share equally?
    pub(super) fn shares_by_destination(self) -> bool {
        self.by_flow() && self.by_destination()
    }
}

/// Which acknowledgments are dropped because a later one waits in the same queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum CakeAckFilter {
    /// None.
    #[default]
    Off,
    /// Drops all redundant ACKs except one.
    Conservative,
    /// Drops all redundant ACKs.
    Aggressive,
}

/// Size of a packet on the wire, in addition to or instead of its own length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CakeFraming {
    /// True if the device's length with the link header is the basis, not the length of the IP
    /// packet.
    pub raw: bool,
    /// Bytes added to each packet.
    pub overhead: i16,
    /// No packet counts as less.
    pub mpu: u16,
    /// Cells, code blocks or neither.
    pub coding: CakeCoding,
}

impl CakeFraming {
    /// The length that the device knows.
    pub const RAW: CakeFraming = CakeFraming { raw: true, overhead: 0, mpu: 0, coding: CakeCoding::None };
}

/// Encapsulation of packets on a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum CakeCoding {
    /// None.
    #[default]
    None,
    /// In cells of 53 bytes that carry 48 (ADSL).
    Atm,
    /// With a byte for every 64 (VDSL2).
    Ptm,
}
