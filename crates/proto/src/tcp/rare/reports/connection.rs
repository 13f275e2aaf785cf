//! A connection reports what became of its bytes.

use super::{REPORTS_MAX, ReportKind, ReportKinds, Reports, SendReport};
use crate::tcp::connection::{Connection, Context};
use crate::{Events, Instant};
use alloc::vec::Vec;
use bytes::Bytes;
use wire::{SeqNum, TxPacket};

impl Connection {
    fn reports(&mut self) -> &mut Reports {
        self.leave_fast_paths();
        self.special.get_or_insert_default().reports.get_or_insert_default()
    }

    /// The last byte written is to be reported. Of several in one segment only the last is: as with Linux, which marks segments.
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

    /// When all that is in the send queue is gone, that is to be reported. False: it is gone.
    pub(crate) fn report_released(&mut self) -> bool {
        if self.snd.queue.is_empty() {
            return false;
        }
        let end = self.snd.queue.end();
        self.reports().held.push_back(end);
        true
    }

    pub(crate) fn take_report(&mut self) -> Option<SendReport> {
        self.special.as_mut()?.reports.as_mut()?.unread.pop_front()
    }

    /// A packet with `len` bytes from `seq` on leaves. Only called where something may be watched.
    pub(in crate::tcp) fn report_sent(&mut self, now: Instant, seq: SeqNum, len: u32, packet: &TxPacket) {
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
    pub(in crate::tcp) fn report_acknowledged(&mut self, cx: &Context, ack: SeqNum) {
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
            reports.unread.push_back(SendReport {
                kind: ReportKind::Released,
                at: cx.now,
                seq: end,
                packet: Bytes::new(),
            });
            self.events |= Events::REPORT;
        }
    }

    /// Data has become readable up to `rcv_nxt`: when it came is kept for a socket that asked for that (`SO_TIMESTAMP`).
    pub(in crate::tcp) fn note_arrival(&mut self, now: Instant) {
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
