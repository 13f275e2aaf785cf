//! The error queue of a socket (`recvmsg` with `MSG_ERRQUEUE`): time stamps of sent data,
//! completions of zero-copy sends, ICMP errors; and time stamps of received data.
//!
//! A report of the engine becomes an entry when it is noticed. As in Linux, a waiting entry makes
//! the socket ready for `POLLERR`.

mod calls;

use crate::errno::Errno;
use bytes::Bytes;
use core::net::{IpAddr, SocketAddr};
use core::time::Duration;
use proto::{ConnId, IcmpReport, ReportKind, ReportKinds, SendReport, SeqNum};
use std::collections::VecDeque;

/// Where an entry comes from (`SO_EE_ORIGIN_…`).
pub mod origin {
    /// ICMP.
    pub const ICMP: u8 = 2;
    /// ICMPv6.
    pub const ICMP6: u8 = 3;
    /// A time stamp of sent data.
    pub const TIMESTAMPING: u8 = 4;
    /// The end of sends with `MSG_ZEROCOPY`.
    pub const ZEROCOPY: u8 = 5;
}

/// Flags of `SO_TIMESTAMPING` (`SOF_TIMESTAMPING_…`).
pub mod stamping {
    /// To stamp what a device sends: there is none that could.
    pub const TX_HARDWARE: u32 = 1 << 0;
    /// To stamp what is handed to the device.
    pub const TX_SOFTWARE: u32 = 1 << 1;
    /// To note when data comes.
    pub const RX_SOFTWARE: u32 = 1 << 3;
    /// To tell the stamps made without a device.
    pub const SOFTWARE: u32 = 1 << 4;
    /// To number the bytes of the stream, from the first that is not acknowledged.
    pub const OPT_ID: u32 = 1 << 7;
    /// To stamp what leaves the stack.
    pub const TX_SCHED: u32 = 1 << 8;
    /// To stamp what is acknowledged.
    pub const TX_ACK: u32 = 1 << 9;
    /// Stamps come without the packet.
    pub const OPT_TSONLY: u32 = 1 << 11;
    /// Stamps come with what Linux knows of the connection, in netlink's form: not here.
    pub const OPT_STATS: u32 = 1 << 12;
    /// To convert a device's stamps: there are none.
    pub const BIND_PHC: u32 = 1 << 15;
    /// To number the bytes from the next that is written.
    pub const OPT_ID_TCP: u32 = 1 << 16;
    /// Stamps of received data only with [`RX_SOFTWARE`].
    pub const OPT_RX_FILTER: u32 = 1 << 17;
    /// All that Linux knows.
    pub const ALL: u32 = (1 << 19) - 1;
}

/// One entry (`sock_extended_err` and its data).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueuedError {
    /// `ENOMSG` for a time stamp, 0 for the completion of a send, otherwise the error.
    pub errno: i32,
    /// One of [`origin`].
    pub origin: u8,
    /// ICMP's type.
    pub kind: u8,
    /// ICMP's code; 1 with [`origin::ZEROCOPY`]: the data was copied.
    pub code: u8,
    /// Which time stamp (`SCM_TSTAMP_…`); the first of the sends that ended; ICMP's bytes 4 to 8.
    pub info: u32,
    /// Which byte of the stream with [`stamping::OPT_ID`]; the last of the sends that ended.
    pub data: u32,
    /// The time of a time stamp.
    pub at: Option<Duration>,
    /// The packet, or the TCP part that an ICMP error quotes.
    pub payload: Bytes,
    /// The sender of the ICMP error.
    pub offender: Option<IpAddr>,
    /// Destination of the packet that it is about.
    pub name: Option<SocketAddr>,
}

/// Ancillary data of `recvmsg`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ancillary {
    /// `SO_TIMESTAMP`; `wide`: asked for by its number with 64-bit seconds.
    Timestamp {
        /// When.
        at: Duration,
        /// `SO_TIMESTAMP_NEW`.
        wide: bool,
    },
    /// `SO_TIMESTAMPNS`.
    TimestampNs {
        /// When.
        at: Duration,
        /// `SO_TIMESTAMPNS_NEW`.
        wide: bool,
    },
    /// `SCM_TIMESTAMPING`. Only the first of its three times is set.
    Timestamping {
        /// When.
        at: Duration,
        /// `SO_TIMESTAMPING_NEW`.
        wide: bool,
    },
    /// `TCP_CM_INQ`.
    Inq(i32),
    /// `IP_RECVERR` of an IPv4 socket.
    Error4(QueuedError),
    /// `IPV6_RECVERR`.
    Error6(QueuedError),
}

/// `SCM_TSTAMP_…`.
const STAMP_SENT: u32 = 0;
const STAMP_SCHEDULED: u32 = 1;
const STAMP_ACKNOWLEDGED: u32 = 2;
/// `SO_EE_CODE_ZEROCOPY_COPIED`.
const COPIED: u8 = 1;
/// Sends of one notification go no further than so many bytes, or so many calls (`msg_zerocopy_realloc`).
const ZEROCOPY_BYTES_MAX: usize = 1 << 19;
const ZEROCOPY_CALLS_MAX: u32 = u16::MAX as u32 - 1;
/// What may wait to end, or to be read (`net.core.optmem_max` over the size of an empty buffer).
const ZEROCOPY_MAX: usize = 131_072 / 576;
/// What an entry weighs beside its payload (Linux's empty buffer).
const ENTRY_WEIGHT: usize = 768;

/// What `SO_TIMESTAMP…` ask for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Clock {
    #[default]
    Off,
    Micros,
    Nanos,
}

/// The time stamps that a socket receives.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Stamping {
    pub(crate) received: Clock,
    /// [`stamping`].
    pub(crate) flags: u32,
    /// By the newer numbers.
    pub(crate) wide: bool,
    /// Sequence number of byte 0.
    pub(crate) first: u32,
}

impl Stamping {
    pub(crate) fn notes_arrivals(&self) -> bool {
        self.received != Clock::Off || self.flags & stamping::RX_SOFTWARE != 0
    }

    pub(crate) fn is(&self, clock: Clock, wide: bool) -> bool {
        self.received == clock && self.wide == wide
    }

    /// What the engine is to report of a send.
    fn wanted(&self, instead: Option<u32>) -> ReportKinds {
        let flags = instead.unwrap_or(self.flags);
        let mut kinds = ReportKinds::empty();
        kinds.set(ReportKinds::SCHEDULED, flags & stamping::TX_SCHED != 0);
        kinds.set(ReportKinds::SENT, flags & stamping::TX_SOFTWARE != 0);
        kinds.set(ReportKinds::ACKNOWLEDGED, flags & stamping::TX_ACK != 0);
        if !kinds.is_empty() {
            kinds.set(ReportKinds::PACKET, self.flags & stamping::OPT_TSONLY == 0);
        }
        kinds
    }
}

/// Sends with `MSG_ZEROCOPY` that end together.
#[derive(Clone, Copy, Debug)]
struct Unfinished {
    first: u32,
    calls: u32,
    bytes: usize,
    /// They end when this is acknowledged.
    end: SeqNum,
}

/// The queue, and what is to come into it.
#[derive(Debug, Default)]
pub(crate) struct ErrorQueue {
    entries: VecDeque<QueuedError>,
    next_call: u32,
    unfinished: VecDeque<Unfinished>,
}

impl ErrorQueue {
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Forgets what waits to be told.
    pub(crate) fn clear(&mut self) {
        self.entries.clear();
    }

    fn weight(&self) -> usize {
        self.entries.iter().map(|entry| entry.payload.len() + ENTRY_WEIGHT).sum()
    }

    /// `room`: what the queue may weigh (Linux charges it to the receive buffer); an entry beyond it is not told.
    fn push(&mut self, entry: QueuedError, room: usize) {
        if self.weight() + entry.payload.len() + ENTRY_WEIGHT < room {
            self.entries.push_back(entry);
        }
    }

    /// Sends have ended: those that follow the last ones told become one entry with them.
    fn finish(&mut self, sends: Unfinished) {
        let last = sends.first.wrapping_add(sends.calls - 1);
        if let Some(entry) = self.entries.back_mut()
            && entry.origin == origin::ZEROCOPY
            && entry.data.wrapping_add(1) == sends.first
        {
            entry.data = last;
            return;
        }
        self.entries.push_back(QueuedError {
            errno: 0,
            origin: origin::ZEROCOPY,
            kind: 0,
            code: COPIED,
            info: sends.first,
            data: last,
            at: None,
            payload: Bytes::new(),
            offender: None,
            name: None,
        });
    }
}
