//! A connection that is put together from outside instead of by its handshake (Linux's `TCP_REPAIR`).

use crate::tcp::connection::{Connection, Context};
use crate::tcp::open::negotiation::WSCALE_MAX;
use crate::tcp::recv::packets::Packet;
use crate::tcp::recv::payload::Payload;
use crate::tcp::recv::receiver::AckOwed;
use crate::tcp::send::send_queue::{Sending, Slices};
use crate::tcp::timers::Timer;
use crate::{Events, Repair, SavedConnection, Windows};
use alloc::vec::Vec;
use bytes::Bytes;
use wire::SeqNum;

impl Connection {
    /// ESTABLISHED, with nothing agreed but the numbers of the next byte either way.
    pub(crate) fn begin_repaired(&mut self, cx: &mut Context, snd_nxt: SeqNum, rcv_nxt: SeqNum) {
        self.begin_agreed(cx, self.agreed, rcv_nxt - 1);
        self.rcv.last_ack_sent = rcv_nxt;
        self.snd.una = snd_nxt;
        self.snd.advance_nxt(snd_nxt);
        (self.snd.wl1, self.snd.wl2) = (rcv_nxt - 1, snd_nxt);
        self.moments.establish(cx.now);
        self.recall_path(cx);
    }

    /// Puts a piece in its place. False: it is text, and has none behind a FIN.
    pub(crate) fn repair(&mut self, cx: &mut Context, piece: Repair<'_>) -> bool {
        match piece {
            Repair::Sent(_) if self.snd.fin_queued() => return false,
            Repair::Received(_) if self.rcv.fin_received => return false,
            _ => {}
        }
        let mut agreed = self.agreed;
        match piece {
            Repair::Mss(mss) => agreed.peer_mss = mss,
            Repair::WindowScale(peers, ours) => {
                agreed.snd_wscale = Some(peers.min(WSCALE_MAX));
                self.rcv.wscale = ours.min(WSCALE_MAX);
            }
            Repair::Sack => agreed.sack = true,
            Repair::Timestamps => agreed.timestamps = true,
            Repair::TsVal(tsval) => self.ts_offset = tsval.wrapping_sub(cx.now.as_millis() as u32),
            Repair::TsRecent(tsval) => self.remember_timestamp(cx.now, tsval),
            Repair::Windows(windows) => self.set_windows(windows),
            Repair::Sent(data) => self.repair_sent(cx, data),
            Repair::Received(data) => self.repair_received(cx, data),
        }
        if agreed != self.agreed {
            self.agree(cx, agreed);
        }
        true
    }

    pub(crate) fn windows(&self) -> Windows {
        Windows {
            snd_wl1: self.snd.wl1,
            snd_wnd: self.snd.wnd,
            max_window: self.snd.wnd_max,
            rcv_wnd: self.rcv.advertised(),
            rcv_wup: self.rcv.last_ack_sent,
        }
    }

    fn set_windows(&mut self, windows: Windows) {
        let Windows { snd_wl1, snd_wnd, max_window, rcv_wnd, rcv_wup } = windows;
        (self.snd.wl1, self.snd.wnd, self.snd.wnd_max) = (snd_wl1, snd_wnd, max_window);
        (self.rcv.last_ack_sent, self.rcv.adv) = (rcv_wup, rcv_wup + rcv_wnd);
        self.window_grew();
    }

    /// As if it had been sent twice: of which transmission an acknowledgement tells is not known, and so no round trip is measured
    /// (RFC 6298 §3). What waits before it was sent, too (Linux's `tcp_write_xmit` moves all that is queued).
    fn repair_sent(&mut self, cx: &mut Context, data: &[u8]) {
        let goal = self.size_goal(&cx.capabilities);
        self.snd.queue.write(data, goal, &mut cx.blocks);
        self.snd.queue.mark_push();
        let (seq, len) = (self.snd.nxt, self.snd.unsent());
        let mut unused = Slices::new();
        let unit = self.segment_unit();
        for again in [false, true] {
            let packet = self.segment_max().into();
            let sending = Sending { now: cx.now, in_flight: self.pipe(), unit, packet, again };
            let mut at = seq;
            while at.before(seq + len) {
                let left = (seq + len).since(at);
                at += self.snd.queue.transmit(sending, at, left, &mut unused).0;
            }
            unused.clear();
        }
        self.snd.advance_nxt(seq + len);
        let in_flight = self.snd.in_flight();
        self.data_left(cx, len, in_flight, false);
        if !self.timers.is_set(Timer::Retransmit) {
            self.arm_rto(cx.now);
        }
    }

    fn repair_received(&mut self, cx: &mut Context, data: &[u8]) {
        let (seq, len) = (self.rcv.nxt, data.len());
        let headers = if self.agreed.timestamps { 52 } else { 40 };
        self.rcv.space.came(Packet::arriving(seq, seq + len as u32, false, headers + len as u32, 0));
        let mut bytes = Bytes::copy_from_slice(data);
        let mut packet = wire::Arrival::shared(&mut bytes, len, 0);
        self.rcv.append(Payload::new(&mut packet, 0..len), &mut cx.spare);
        self.events |= Events::READABLE;
    }

    /// Asks the peer where it is: what it answers advertises its window, whatever it advertised before (Linux's `tcp_send_window_probe`). Who had the
    /// connection may have read, and not advertised the room: if text goes instead of the probe, and is kept back, an acknowledgement tells.
    pub(crate) fn ask_window(&mut self) {
        self.rcv.ack_owed = AckOwed::Now;
        self.snd.wl1 = self.rcv.nxt - 1;
        self.snd.probe_due = true;
    }

    /// What was written and is not acknowledged.
    pub(crate) fn unacknowledged(&self) -> Bytes {
        let mut all = Vec::with_capacity(self.snd.queue.len());
        let mut at = self.snd.queue.end() - self.snd.queue.len() as u32;
        while at.before(self.snd.queue.end()) {
            let segment = self.snd.queue.copy_of_segment(at);
            at += segment.len() as u32;
            all.extend_from_slice(&segment);
        }
        all.into()
    }

    /// What another stack needs to go on.
    pub(crate) fn saved(&self, cx: &Context) -> SavedConnection {
        let mut unread = vec![0; self.rcv.buffer.len()];
        self.rcv.buffer.peek(0, &mut unread);
        SavedConnection {
            local: self.tuple.local_addr(),
            peer: self.tuple.peer_addr(),
            snd_una: self.snd.una,
            unacknowledged: self.unacknowledged(),
            unsent: self.snd.queue.end().since(self.snd.max.earliest(self.snd.queue.end())) as usize,
            rcv_nxt: self.rcv.nxt,
            unread: unread.into(),
            peer_mss: self.agreed.peer_mss,
            window_scale: self.agreed.snd_wscale.map(|peers| (peers, self.rcv.wscale)),
            sack: self.agreed.sack,
            timestamps: self.agreed.timestamps.then(|| (self.tsval(cx.now), self.ts_recent)),
            windows: self.windows(),
        }
    }
}
