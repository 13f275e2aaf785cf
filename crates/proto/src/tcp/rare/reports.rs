//! Reports about written bytes, on request: when the last byte of a write left, when the peer
//! acknowledged it (Linux's transmit timestamps of a stream, `tcp_tx_timestamp`, `tcp_ack_tstamp`),
//! and when no earlier data is held any more. Also the arrival times of read bytes
//! (`tcp_update_recv_tstamps`). Nothing is stored without a request.

mod connection;

use crate::Instant;
use alloc::collections::VecDeque;
use bytes::Bytes;
use wire::SeqNum;

bitflags::bitflags! {
    /// Requested reports about the last byte of a write.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
    pub struct ReportKinds: u8 {
        /// [`ReportKind::Scheduled`].
        const SCHEDULED = 0x1;
        /// [`ReportKind::Sent`].
        const SENT = 0x2;
        /// [`ReportKind::Acknowledged`].
        const ACKNOWLEDGED = 0x4;
        /// Each report brings the packet, or the segment that was acknowledged.
        const PACKET = 0x8;
    }
}

/// The kind of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReportKind {
    /// The packet with the byte is complete (`SCM_TSTAMP_SCHED`). A retransmitted one is reported
    /// again.
    Scheduled,
    /// The packet was passed to the device (`SCM_TSTAMP_SND`). There is no queue in between, so the
    /// time is the same.
    Sent,
    /// The peer has acknowledged the byte and all before it (`SCM_TSTAMP_ACK`).
    Acknowledged,
    /// The peer has acknowledged all data written before
    /// [`Stack::report_released`](crate::Stack::report_released).
    Released,
}

/// A report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SendReport {
    /// Its kind.
    pub kind: ReportKind,
    /// Time of the event.
    pub at: Instant,
    /// Sequence number of the byte; for [`Released`](ReportKind::Released), the one after the last.
    pub seq: SeqNum,
    /// With [`ReportKinds::PACKET`]: the IP packet before the device cuts it; for an acknowledged
    /// segment, its payload.
    pub packet: Bytes,
}

/// Reports and marks that are kept; more are not reported (Linux: what the receive buffer has no room for).
const REPORTS_MAX: usize = 1024;

/// What is watched of one connection.
#[derive(Debug, Default)]
pub(crate) struct Reports {
    /// Bytes in the order of the stream.
    watched: VecDeque<(SeqNum, ReportKinds)>,
    /// Ends of what is to be released, in that order.
    held: VecDeque<SeqNum>,
    unread: VecDeque<SendReport>,
    /// When the bytes before each number had come: those that are not read, and the last that were.
    arrivals: VecDeque<(SeqNum, Instant)>,
}

impl Reports {
    fn tell(&mut self, report: SendReport) -> bool {
        let room = self.unread.len() < REPORTS_MAX;
        if room {
            self.unread.push_back(report);
        }
        room
    }
}
