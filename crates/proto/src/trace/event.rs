//! Events of a trace.

use crate::{CaState, Counters, DropReason, Instant, LimitedBy, State};
use alloc::string::String;
use core::net::{IpAddr, SocketAddr};
use core::time::Duration;
use wire::{Flags, SeqNum, TcpHeader};

bitflags::bitflags! {
    /// Requested events.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
    pub struct TraceMask: u16 {
        /// [`Traced::State`].
        const STATE = 0x001;
        /// [`Traced::Cwnd`].
        const CWND = 0x002;
        /// [`Traced::Ssthresh`].
        const SSTHRESH = 0x004;
        /// [`Traced::Rtt`].
        const RTT = 0x008;
        /// [`Traced::Limited`].
        const LIMITED = 0x010;
        /// [`Traced::CaState`].
        const CA_STATE = 0x020;
        /// [`Traced::Retransmitted`].
        const RETRANSMITTED = 0x040;
        /// [`Traced::Dropped`].
        const DROPPED = 0x080;
        /// [`Traced::Received`].
        const RECEIVED = 0x100;
        /// [`Traced::Sent`].
        const SENT = 0x200;
        /// [`Traced::Martian`].
        const MARTIAN = 0x400;
    }
}

/// An event. `Display` writes it in one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceEvent {
    /// Time of the event.
    pub at: Instant,
    /// The connection's local and peer address; `None` for a packet without a connection.
    pub ends: Option<(SocketAddr, SocketAddr)>,
    /// The event itself.
    pub what: Traced,
}

/// Kinds of events.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Traced {
    /// The state changed.
    State {
        /** `None`: it is the first that the trace sees of this connection */
        from: Option<State>,
        /** now */
        to: State,
    },
    /// The congestion window changed, in bytes, as recovery allows it.
    Cwnd {
        /** before */
        from: u32,
        /** now */
        to: u32,
    },
    /// The slow-start threshold changed, bytes; `u32::MAX` for none.
    Ssthresh {
        /** before */
        from: u32,
        /** now */
        to: u32,
    },
    /// A sample of the round-trip time was taken.
    Rtt {
        /** smoothed */
        srtt: Duration,
        /** its variation */
        rttvar: Duration,
        /** the time-out that follows */
        rto: Duration,
    },
    /// The limit of the sender changed. `Receiver` is Wireshark's full window.
    Limited {
        /** before */
        from: LimitedBy,
        /** now */
        to: LimitedBy,
    },
    /// The state of loss recovery changed: to `Recovery` by duplicates or RACK, to `Loss` by a
    /// timeout, to `Open` when all data sent before is acknowledged.
    CaState {
        /** before */
        from: CaState,
        /** now */
        to: CaState,
    },
    /// A segment was retransmitted.
    Retransmitted {
        /** first sequence number */
        seq: SeqNum,
        /** payload bytes */
        len: u32,
        /** why */
        why: RetransmitWhy,
    },
    /// A packet, or the data of a segment, was dropped.
    Dropped(DropWhy),
    /// A segment was received.
    Received(SegmentSummary),
    /// A segment was sent, or a burst that the device cuts.
    Sent(SegmentSummary),
    /// A packet came from an impossible source (`log_martians`).
    Martian {
        /** where it says that it is from */
        source: IpAddr,
        /** where it went */
        to: IpAddr,
        /** the device it came by; empty if that has no name */
        device: String,
    },
}

impl Traced {
    /// Returns the bit of the mask that requests it.
    pub fn kind(&self) -> TraceMask {
        match self {
            Traced::State { .. } => TraceMask::STATE,
            Traced::Cwnd { .. } => TraceMask::CWND,
            Traced::Ssthresh { .. } => TraceMask::SSTHRESH,
            Traced::Rtt { .. } => TraceMask::RTT,
            Traced::Limited { .. } => TraceMask::LIMITED,
            Traced::CaState { .. } => TraceMask::CA_STATE,
            Traced::Retransmitted { .. } => TraceMask::RETRANSMITTED,
            Traced::Dropped(_) => TraceMask::DROPPED,
            Traced::Received(_) => TraceMask::RECEIVED,
            Traced::Sent(_) => TraceMask::SENT,
            Traced::Martian { .. } => TraceMask::MARTIAN,
        }
    }
}

/// The reason of a retransmission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RetransmitWhy {
    /// No answer to a SYN or SYN-ACK.
    Handshake,
    /// It is marked lost: later segments arrived (SACK, RACK, duplicate ACKs).
    Lost,
    /// A tail loss probe.
    Probe,
    /// A timeout.
    Timeout,
}

impl RetransmitWhy {
    /// What the counters say, that were `before` and are `after`; `None` if nothing was retransmitted.
    pub(crate) fn of(before: &Counters, after: &Counters) -> Option<RetransmitWhy> {
        let grew = |counter: Count| counter(after) > counter(before);
        match () {
            () if !grew(|c| c.retrans_segs) => None,
            () if grew(|c| c.syn_retrans) => Some(RetransmitWhy::Handshake),
            () if grew(|c| c.loss_probes) => Some(RetransmitWhy::Probe),
            () if grew(|c| c.fast_retrans) => Some(RetransmitWhy::Lost),
            () => Some(RetransmitWhy::Timeout),
        }
    }
}

/// The reason of a drop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DropWhy {
    /// The stack dropped the packet.
    Packet(DropReason),
    /// Its connection dropped the segment; the value is the counter's name.
    Segment(&'static str),
}

/// One counter of all.
type Count = fn(&Counters) -> u64;

impl DropWhy {
    /// Refusals that the counters tell.
    pub(crate) fn of(before: &Counters, after: &Counters) -> impl Iterator<Item = DropWhy> {
        let refusals: [(&str, Count); 5] = [
            ("PAWSEstab", |c| c.paws_estab_rejected),
            ("PAWSActive", |c| c.paws_active_rejected),
            ("PAWSTimewait", |c| c.paws_time_wait),
            ("BeyondWindow", |c| c.beyond_window),
            ("TCPZeroWindowDrop", |c| c.zero_window_drop),
        ];
        let grown = refusals
            .map(|(name, counter)| (counter(after) > counter(before)).then_some(DropWhy::Segment(name)));
        grown.into_iter().flatten()
    }
}

/// A summary of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentSummary {
    /// Control bits.
    pub flags: Flags,
    /// Sequence number.
    pub seq: SeqNum,
    /// Acknowledgment number, if ACK is set.
    pub ack: SeqNum,
    /// Payload bytes.
    pub len: u32,
    /// Window field of the header.
    pub window: u16,
    /// Scale of the window field; in a SYN, the offered one. `None` without scaling or if unknown.
    pub shift: Option<u8>,
}

impl SegmentSummary {
    pub(crate) fn new(header: &TcpHeader, len: usize, agreed: Option<u8>) -> SegmentSummary {
        let syn = header.flags.contains(Flags::SYN);
        SegmentSummary {
            flags: header.flags,
            seq: header.seq,
            ack: header.ack,
            len: len as u32,
            window: header.window,
            shift: if syn { header.options.window_scale } else { agreed },
        }
    }
}
