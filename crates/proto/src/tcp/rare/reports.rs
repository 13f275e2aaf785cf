//! What became of bytes that were written, for who asks: when the last byte of a write left and when the peer acknowledged it (Linux's
//! transmit time stamps of a stream, `tcp_tx_timestamp`, `tcp_ack_tstamp`), and when nothing is held any more of what was written until
//! then. And when the bytes that are read had come (`tcp_update_recv_tstamps`). Nothing is kept of it while nobody asks.

mod connection;

use crate::Instant;
use alloc::collections::VecDeque;
use bytes::Bytes;
use wire::SeqNum;

bitflags::bitflags! {
    /// What is to be reported of the last byte of a write.
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

/// What a report tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReportKind {
    /// The packet with the byte is complete (`SCM_TSTAMP_SCHED`). One that is retransmitted is reported again.
    Scheduled,
    /// It was handed to the device (`SCM_TSTAMP_SND`): there is no queue between, so that is at the same time.
    Sent,
    /// The peer has acknowledged the byte and all before it (`SCM_TSTAMP_ACK`).
    Acknowledged,
    /// So it has all that was written until [`Stack::report_released`](crate::Stack::report_released).
    Released,
}

/// One report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SendReport {
    /// What it tells.
    pub kind: ReportKind,
    /// When that was.
    pub at: Instant,
    /// Sequence number of the byte; of [`Released`](ReportKind::Released) the one behind the last.
    pub seq: SeqNum,
    /// With [`ReportKinds::PACKET`]: the IP packet, before a device cuts it; of an acknowledged segment its payload.
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
