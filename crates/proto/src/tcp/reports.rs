//! What became of bytes that were written, for who asks: when the last byte of a write left and when the peer acknowledged it (Linux's
//! transmit time stamps of a stream, `tcp_tx_timestamp`, `tcp_ack_tstamp`), and when nothing is held any more of what was written until
//! then. And when the bytes that are read had come (`tcp_update_recv_tstamps`). Nothing is kept of it while nobody asks.

use super::connection::{Connection, Context};
use crate::{Events, Instant};
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use bytes::Bytes;
use wire::{SeqNum, TxPacket};

bitflags::bitflags! {
    /// What is to be told of the last byte of a write.
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

/// Reports and marks that are kept; more are not told of (Linux: what the receive buffer has no room for).
const REPORTS_MAX: usize = 1024;

/// What is watched of one connection.
#[derive(Debug, Default)]
pub(crate) struct Reports {
    /// Bytes in the order of the stream.
    watched: VecDeque<(SeqNum, ReportKinds)>,
    /// Ends of what is to be released, in that order.
    held: VecDeque<SeqNum>,
    told: VecDeque<SendReport>,
    /// When the bytes before each number had come: those that are not read, and the last that were.
    arrivals: VecDeque<(SeqNum, Instant)>,
}

impl Reports {
    fn tell(&mut self, report: SendReport) -> bool {
        let room = self.told.len() < REPORTS_MAX;
        if room {
            self.told.push_back(report);
        }
        room
    }
}

impl Connection {
    fn reports(&mut self) -> &mut Reports {
        self.leave_fast_paths();
        self.special.get_or_insert_default().reports.get_or_insert_default()
    }

    /// The last byte written is to be told of. Of several in one segment only the last is: as with Linux, which marks segments.
    pub(crate) fn report_last(&mut self, kinds: ReportKinds) {
        let Some(first) = self.snd.queue.last_segment() else { return };
        let byte = self.snd.queue.end() - 1;
        let reports = self.reports();
        let mut kinds = kinds;
        while let Some((_, others)) = reports.watched.pop_back_if(|(byte, _)| byte.after_or_eq(first)) {
            kinds |= others;
        }
        if reports.watched.len() < REPORTS_MAX {
            reports.watched.push_back((byte, kinds));
        }
    }

    /// All that is in the send queue is to be told of when it is gone. False: it is gone.
    pub(crate) fn report_released(&mut self) -> bool {
        if self.snd.queue.is_empty() {
            return false;
        }
        let end = self.snd.queue.end();
        self.reports().held.push_back(end);
        true
    }

    pub(crate) fn take_report(&mut self) -> Option<SendReport> {
        self.special.as_mut()?.reports.as_mut()?.told.pop_front()
    }

    /// A packet with `len` bytes from `seq` on leaves. Only called where something may be watched.
    pub(super) fn report_sent(&mut self, now: Instant, seq: SeqNum, len: u32, packet: &TxPacket) {
        let Some(reports) = self.special.as_mut().and_then(|special| special.reports.as_mut()) else {
            return;
        };
        let inside = |byte: SeqNum| byte.after_or_eq(seq) && byte.before(seq + len);
        // Packets hold a few segments, and each has one mark at most.
        let marked: Vec<(SeqNum, ReportKinds)> =
            reports.watched.iter().copied().filter(|(byte, _)| inside(*byte)).collect();
        for (byte, kinds) in marked {
            let copy = if kinds.contains(ReportKinds::PACKET) { packet.to_bytes() } else { Bytes::new() };
            for (wanted, kind) in
                [(ReportKinds::SCHEDULED, ReportKind::Scheduled), (ReportKinds::SENT, ReportKind::Sent)]
            {
                let report = SendReport { kind, at: now, seq: byte, packet: copy.clone() };
                if kinds.contains(wanted) && reports.tell(report) {
                    self.events |= Events::REPORT;
                }
            }
        }
    }

    /// Everything before `ack` is acknowledged, and still lies in the queue.
    pub(super) fn report_acknowledged(&mut self, cx: &Context, ack: SeqNum) {
        let Some(reports) = self.special.as_mut().and_then(|special| special.reports.as_mut()) else {
            return;
        };
        while let Some((byte, kinds)) = reports.watched.pop_front_if(|(byte, _)| byte.before(ack)) {
            let wanted = kinds.contains(ReportKinds::ACKNOWLEDGED);
            let packet = if wanted && kinds.contains(ReportKinds::PACKET) {
                self.snd.queue.copy_of_segment(byte)
            } else {
                Bytes::new()
            };
            let report = SendReport { kind: ReportKind::Acknowledged, at: cx.now, seq: byte, packet };
            if wanted && reports.tell(report) {
                self.events |= Events::REPORT;
            }
        }
        while let Some(end) = reports.held.pop_front_if(|end| end.before_or_eq(ack)) {
            // Whoever waits for it must hear of it, however many others wait.
            reports.told.push_back(SendReport {
                kind: ReportKind::Released,
                at: cx.now,
                seq: end,
                packet: Bytes::new(),
            });
            self.events |= Events::REPORT;
        }
    }

    /// Data has become readable up to `rcv_nxt`: when it came is kept for a socket that asked for that (`SO_TIMESTAMP`).
    #[inline(always)]
    pub(super) fn note_arrival(&mut self, now: Instant) {
        if !self.options.is_ordinary() && self.options.receive_times {
            self.keep_arrival(now);
        }
    }

    #[inline(never)]
    fn keep_arrival(&mut self, now: Instant) {
        let (next, read) = (self.rcv.nxt, self.read_until());
        let arrivals = &mut self.reports().arrivals;
        while arrivals.pop_front_if(|(end, _)| end.before(read)).is_some() {}
        let full = arrivals.len() >= REPORTS_MAX;
        match arrivals.back_mut().filter(|last| last.1 == now || full) {
            Some(last) => *last = (next, now),
            None => arrivals.push_back((next, now)),
        }
    }

    /// When the byte came that lies `ahead` bytes behind the last one read, 0 = that one itself.
    pub(crate) fn arrived_at(&self, ahead: usize) -> Option<Instant> {
        let byte = self.read_until() + ahead as u32;
        let arrivals = &self.special.as_ref()?.reports.as_ref()?.arrivals;
        arrivals.iter().find(|(end, _)| end.after_or_eq(byte)).map(|(_, at)| *at)
    }

    /// Number behind the last byte read.
    fn read_until(&self) -> SeqNum {
        self.rcv.nxt - u32::from(self.rcv.fin_received) - self.rcv.buffer.len() as u32
    }
}
