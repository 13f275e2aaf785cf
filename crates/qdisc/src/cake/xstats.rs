//! What a cake counts besides.
use crate::Nanos;
use alloc::vec::Vec;

/// Additional counters of cake and of each tin (Linux's `TCA_CAKE_STATS_…`).
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct CakeXstats {
    /// The most memory that waiting packets took, bytes.
    pub memory_used: u64,
    /// Memory limit of the queues.
    pub memory_limit: u32,
    /// Assumed rate of the link, in bytes per second.
    pub capacity_estimate: u64,
    /// The shortest packet as the network layer knows it; 65,535 before the first.
    pub min_netlen: u16,
    /// The longest.
    pub max_netlen: u16,
    /// The least that a packet took on the wire.
    pub min_adjlen: u16,
    /// The most.
    pub max_adjlen: u16,
    /// Bytes before the IP header, on average.
    pub average_network_offset: u32,
    /// The tins, bulk first where there is one.
    pub tins: Vec<CakeTinXstats>,
}

/// Counters of a tin (Linux's `TCA_CAKE_TIN_STATS_…`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct CakeTinXstats {
    /// The rate up to which it has priority, bytes per second.
    pub threshold: u64,
    /// CoDel's target at this rate.
    pub target: Nanos,
    /// CoDel's interval at this rate.
    pub interval: Nanos,
    /// The average of delays that rises fast.
    pub peak_delay: Nanos,
    /// The average delay.
    pub average_delay: Nanos,
    /// The average of delays that falls fast: of sparse flows.
    pub base_delay: Nanos,
    /// Bytes that wait.
    pub backlog: u64,
    /// Packets that came.
    pub packets: u64,
    /// Bytes that came.
    pub bytes: u64,
    /// Number of times that a flow was found outside the place that its hash names.
    pub way_indirect_hits: u32,
    /// Number of times that a flow got a queue.
    pub way_misses: u32,
    /// Number of times that a flow had to share a queue.
    pub way_collisions: u32,
    /// Packets dropped, acknowledgments that could be spared excepted.
    pub drops: u32,
    /// Packets marked.
    pub ecn_marks: u32,
    /// Acknowledgments dropped because a later one said as much.
    pub ack_drops: u32,
    /// Flows that keep below their share, those included that were so lately.
    pub sparse_flows: u32,
    /// Flows that use up their share.
    pub bulk_flows: u32,
    /// Flows that do not answer to CoDel, so that BLUE drops from them.
    pub unresponsive_flows: u32,
    /// The longest packet that came.
    pub max_len: u32,
    /// Bytes that a flow may send in one round.
    pub quantum: u16,
}
