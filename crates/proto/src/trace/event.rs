//! What a trace tells.

use crate::{CaState, Counters, DropReason, Instant, LimitedBy, State};
use alloc::string::String;
use core::net::{IpAddr, SocketAddr};
use core::time::Duration;
use wire::{Flags, SeqNum, TcpHeader};

bitflags::bitflags! {
    /// Which events are wanted.
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

/// Something that happened. `Display` writes it in one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceEvent {
    /// When.
    pub at: Instant,
    /// The connection's local end and peer; `None` for a packet that belongs to nobody.
    pub ends: Option<(SocketAddr, SocketAddr)>,
    /// What.
    pub what: Traced,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Traced {
    /// Another state.
    State {
        /** `None`: it is the first that the trace sees of this connection */
        from: Option<State>,
        /** now */
        to: State,
    },
    /// Another congestion window, in bytes, as recovery lets it be used.
    Cwnd {
        /** before */
        from: u32,
        /** now */
        to: u32,
    },
    /// Another slow-start threshold, bytes; `u32::MAX` = none.
    Ssthresh {
        /** before */
        from: u32,
        /** now */
        to: u32,
    },
    /// A sample of the round-trip time came in.
    Rtt {
        /** smoothed */
        srtt: Duration,
        /** its variation */
        rttvar: Duration,
        /** the time-out that follows */
        rto: Duration,
    },
    /// Something else keeps the sender from sending more; `Receiver` is what Wireshark calls a full window.
    Limited {
        /** before */
        from: LimitedBy,
        /** now */
        to: LimitedBy,
    },
    /// Loss recovery goes on to another state: by duplicates or RACK to `Recovery`, by a time-out to `Loss`, back to `Open` when all that was
    /// sent before is acknowledged.
    CaState {
        /** before */
        from: CaState,
        /** now */
        to: CaState,
    },
    /// Something was retransmitted.
    Retransmitted {
        /** first sequence number */
        seq: SeqNum,
        /** payload bytes */
        len: u32,
        /** why */
        why: RetransmitWhy,
    },
    /// A packet, or the text of a segment, went no further.
    Dropped(DropWhy),
    /// A segment came in.
    Received(SegmentSummary),
    /// A segment (perhaps a burst that the device cuts) went out.
    Sent(SegmentSummary),
    /// A packet came from where none can (`log_martians`).
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
    /// The bit of the mask that asks for it.
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

/// Why something was retransmitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RetransmitWhy {
    /// No answer to a SYN or SYN-ACK.
    Handshake,
    /// It is held to be lost: later segments arrived (SACK, RACK, duplicate acknowledgements).
    Lost,
    /// A tail loss probe.
    Probe,
    /// A time-out.
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

/// Why something went no further.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DropWhy {
    /// The packet meant nothing here.
    Packet(DropReason),
    /// Its connection refused it; the name is that of the counter.
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

/// A segment in few words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentSummary {
    /// Control bits.
    pub flags: Flags,
    /// Sequence number.
    pub seq: SeqNum,
    /// Acknowledgement, if ACK is set.
    pub ack: SeqNum,
    /// Payload bytes.
    pub len: u32,
    /// Window field, as it stands in the header.
    pub window: u16,
    /// What the field is shifted by; in a SYN, what it offers for later. `None`: no window scaling, or not known.
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
