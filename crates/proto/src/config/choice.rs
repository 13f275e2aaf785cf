//! Settings whose value is one of a few words.

/// Bytes of option space that a Fast Open SYN reserves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SynDataRoom {
    /// Only the options that are sent.
    Exact,
    /// All 40 bytes, as `tcp_send_syn_data` does.
    Reserve40,
}

/// Timing of the acknowledgment of a single segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckHabit {
    /// Waits for the answer unless the segment is full-sized: fewest packets. The wait is short if
    /// no answer has followed yet, or once none did.
    Merge,
    /// Acknowledges the first segments at once (`quickack` phase), and delays once the exchange is
    /// interactive (`pingpong`).
    QuickStart,
}

/// Accounting of the receive buffer, and computation of its window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReceiveAccounting {
    /// By payload. The right edge of the window moves in steps of useful size (RFC 9293
    /// §3.8.6.2.2), independent of the packets' memory, which is limited separately.
    Payload,
    /// By packet, with the memory of each in a kernel (`sk_rmem_alloc`). The window is the payload
    /// that fits the free memory, and grows with arriving data (`__tcp_select_window`,
    /// `tcp_grow_window`). Packets that do not fit are refused.
    Packets,
}

/// Computation of the retransmission timeout from the variation of round trips.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RttVariation {
    /// RFC 6298 §2: SRTT + 4 RTTVAR, at least the minimum timeout.
    Rfc6298,
    /// SRTT + the maximum mean deviation of the last windows, which is at least the minimum timeout
    /// (`tcp_rtt_estimator`).
    Windowed,
}

/// Congestion control algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CongestionControl {
    /// RFC 5681 with byte counting (RFC 3465).
    Reno,
    /// RFC 9438, with HyStart++ (RFC 9406).
    Cubic,
    /// Delay-based: keeps the queue of the bottleneck short.
    Vegas,
    /// Restarts from one segment at every loss (Jacobson 1988), for teaching.
    Tahoe,
    /// BBR version 3 (draft-ietf-ccwg-bbr): models bandwidth and round-trip time of the path;
    /// paces.
    Bbr,
}
