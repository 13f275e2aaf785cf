//! Settings that are one of a few words.

/// How many bytes of option space a Fast Open SYN keeps free of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SynDataRoom {
    /// The options really sent.
    Exact,
    /// All 40 bytes of option space, as `tcp_send_syn_data` reserves them.
    Reserve40,
}

/// When the acknowledgement of a lone segment is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckHabit {
    /// Wait for the answer unless the segment is full-sized: fewest packets. Where none has followed yet, or none did once, not for long.
    Merge,
    /// Acknowledge the first segments at once (`quickack` phase), then delay once the exchange goes back and forth (`pingpong`).
    QuickStart,
}

/// How the receive buffer is counted, and its window is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReceiveAccounting {
    /// By payload. The right edge of the window moves by what is worth a segment (RFC 9293 §3.8.6.2.2), whatever packets take; memory is
    /// bounded apart from it.
    Payload,
    /// Packet by packet, with what each takes in a kernel (`sk_rmem_alloc`). The window is what the memory that is left holds of payload, and
    /// grows with what arrives (`__tcp_select_window`, `tcp_grow_window`); what fits no more is refused.
    Packets,
}

/// How the variation of round trips becomes the retransmission time-out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RttVariation {
    /// RFC 6298 §2: SRTT + 4 RTTVAR, but not less than the least time-out.
    Rfc6298,
    /// SRTT + the greatest mean deviation of the last windows, which is not less than the least time-out (`tcp_rtt_estimator`).
    Windowed,
}

/// Which algorithm decides how much may be in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CongestionControl {
    /// RFC 5681, counting bytes (RFC 3465).
    Reno,
    /// RFC 9438, with HyStart++ (RFC 9406).
    Cubic,
    /// Delay-based: keeps the bottleneck's queue short.
    Vegas,
    /// Every loss starts over from one segment (Jacobson 1988): for teaching.
    Tahoe,
    /// BBR version 3 (draft-ietf-ccwg-bbr): a model of the path's bandwidth and round-trip time; paces.
    Bbr,
}
