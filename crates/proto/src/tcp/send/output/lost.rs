//! Sending again what is lost.

use super::segment::Outgoing;
use crate::tcp::connection::{Connection, Context};
use crate::tcp::recovery::{Phase, Probe, Purpose, Resend};
use crate::tcp::send::send_queue::Sending;
use wire::{Ecn, Flags, SeqNum, TxPacket};

impl Connection {
    /// A window probe: an old number, so that the peer must answer (as Linux's `tcp_xmit_probe_skb`).
    ///
    /// Where the peer has shrunk its window over what was sent, the first of that goes as the probe. If both ends believe the
    /// other's window closed, their empty segments carry numbers from before those that closed it, and neither believes the other's
    /// answers; text that is taken moves the numbers on. To the accounts it stays unsent: a closed window will have dropped it.
    pub(super) fn send_window_probe(&mut self, cx: &mut Context, packet: &mut TxPacket) -> bool {
        cx.counters.win_probe += 1;
        let una = self.snd.una;
        let sent = self.snd.queue.end().earliest(self.snd.max);
        if self.snd.wnd > 0 || !sent.after(una) {
            if self.special.is_some()
                && cx.config.peer_window_rules.probes_tell_urgent()
                && self.tells_urgent_first()
            {
                self.snd.probe_due = true;
                return self.send_bare(cx, una, Flags::ACK, packet);
            }
            return self.send_bare(cx, una - 1, Flags::ACK, packet);
        }
        let len = sent.since(una).min(u32::from(self.segment_max()));
        let unit = self.segment_unit();
        let sending = Sending { now: cx.now, in_flight: self.pipe(), unit, packet: len.max(1), again: true };
        let (taken, push) = self.snd.queue.transmit(sending, una, len, &mut packet.shared);
        if let Some(board) = self.recovery.board_mut() {
            board.weigh(&mut self.snd.queue);
        }
        let flags = if push { Flags::ACK | Flags::PSH } else { Flags::ACK };
        let ecn = Ecn::NotEct;
        let out = Outgoing { seq: una, flags, payload_len: taken as usize, ecn, urgent: 0, again: true };
        self.build(cx, out, packet);
        true
    }

    /// What an acknowledgement finds to be lost leaves before the text that comes with it is taken (`loss_rules`).
    #[cold]
    pub(in crate::tcp) fn resend_meanwhile(&mut self, cx: &mut Context) {
        while self.synchronized()
            && self.is_open()
            && let Some(lost) = self.next_lost(cx)
        {
            let mut packet = TxPacket::default();
            if !self.retransmit_lost(cx, lost, &mut packet) {
                break;
            }
            cx.meanwhile.push(packet);
        }
    }

    /// The next run of bytes that is lost and was not retransmitted since.
    pub(super) fn next_lost(&self, cx: &Context) -> Option<(SeqNum, u32)> {
        let segment = u32::from(self.segment_max());
        let most = self.lost_burst(cx, segment);
        let joins = cx.config.tcp_retrans_collapse;
        let how = match cx.config.burst_rules.resend_as_sent() {
            true => Resend {
                most,
                together: if joins { segment } else { 0 },
                until: self.snd.una + self.snd.wnd,
                all_lost: false,
            },
            false => Resend {
                most,
                together: if joins { u32::MAX } else { 0 },
                until: self.snd.nxt,
                all_lost: true,
            },
        };
        self.recovery.board()?.next_lost(&self.snd.queue, (self.snd.una, self.snd.nxt), &how)
    }

    /// Whole segments that the windows and the device let us retransmit at once, one at least (Linux's `tcp_xmit_retransmit_queue`).
    fn lost_burst(&self, cx: &Context, segment: u32) -> u32 {
        let room = self.congestion_window().saturating_sub(self.pipe());
        let room = (room / segment).max(1).saturating_mul(segment);
        room.min(self.autosized(cx, segment)).min(self.device_goal(&cx.capabilities, u32::MAX))
    }

    /// The tail loss probe of RFC 8985 §7.3, whatever cwnd is: "Transmit the lowest-sequence unsent Segment" if the peer's window takes it, else
    /// "Retransmit the highest-sequence Segment sent".
    pub(super) fn send_loss_probe(&mut self, cx: &mut Context, packet: &mut TxPacket) -> bool {
        let Some(board) = self.recovery.board_mut() else { return false };
        if !core::mem::take(&mut board.probe_due) || self.snd.flight_size() == 0 {
            return false;
        }
        let (unsent, room) = (self.snd.unsent(), self.snd.wnd.saturating_sub(self.snd.flight_size()));
        let first = unsent.min(u32::from(self.segment_max()));
        let fits = first > 0 && first <= room;
        if fits {
            let new =
                if cx.config.probe_rules.may_be_burst() { self.probing_burst(cx).min(room) } else { first };
            let fin = self.snd.fin_queued() && new == unsent;
            self.send_range(cx, self.snd.nxt, new, fin, packet);
        } else {
            let (seq, len) = self.last_missing();
            if seq != self.snd.una && seq.after_or_eq(self.snd.una + self.snd.wnd) {
                // The window was closed over it. The time-out counts from the first transmission, as if there had been no probe.
                self.purpose = Purpose::Probe;
                self.resume_rto(cx.now);
                return false;
            }
            let fin = self.snd.fin_sent() && seq + len == self.snd.queue.end();
            self.send_range(cx, seq, len, fin, packet);
        }
        cx.counters.loss_probes += 1;
        let end = self.snd.nxt;
        if let Some(board) = self.recovery.board_mut() {
            board.probe = Some(Probe { end, again: !fits });
        }
        self.arm_rto(cx.now);
        true
    }

    /// New data of a loss probe that may be a burst: of what was written as one, what cwnd has room for, a segment at least (Linux's
    /// `tcp_write_xmit` for a probe).
    #[cold]
    fn probing_burst(&mut self, cx: &Context) -> u32 {
        let segment = u32::from(self.segment_max());
        self.join_next(cx);
        let most = self.lost_burst(cx, segment).min(self.share_of_window(cx, segment));
        most.min(self.snd.queue.left_of_segment(self.snd.nxt)).min(self.snd.unsent())
    }

    /// The last segment in flight, as far as one packet holds it; without bytes if only the FIN is.
    fn last_missing(&self) -> (SeqNum, u32) {
        let end = self.snd.queue.end().earliest(self.snd.nxt);
        if self.snd.fin_sent() && self.snd.fin_alone() {
            return (end, 0);
        }
        let (seq, len) = self.snd.queue.last_before(end).unwrap_or((end, 0));
        let most = u32::from(self.segment_max());
        // Of a burst, what the device made the last segment.
        let before = len.saturating_sub(1) / most * most;
        (seq + before, len - before)
    }

    /// Sends that again if the windows and the pacer let it: something always may when nothing is in the network.
    pub(super) fn retransmit_lost(
        &mut self,
        cx: &mut Context,
        (seq, len): (SeqNum, u32),
        packet: &mut TxPacket,
    ) -> bool {
        let len = if seq == self.snd.una { self.within_window(len) } else { self.before_edge(seq, len) };
        let pipe = self.pipe();
        let room = self.congestion_window().saturating_sub(pipe);
        let closed =
            self.snd.wnd == 0 && !(cx.config.peer_window_rules.resends_into_closed() && seq == self.snd.una);
        if closed || len == 0 || (pipe > 0 && (room < len || !self.pacing_allows(cx))) {
            return false;
        }
        match self.recovery.board().map(|board| board.phase) {
            // What the time-out itself sends again is counted as that.
            Some(Phase::Loss) if (self.timeouts > 0 || self.snd.wnd == 0) && seq == self.snd.una => {}
            Some(Phase::Loss) => cx.counters.slow_start_retrans += self.segments_of(len),
            _ => cx.counters.fast_retrans += self.segments_of(len),
        }
        // A FIN that has never gone waits for its own turn, and one that went alone joins no whole segment (Linux's
        // `tcp_retrans_try_collapse`).
        let fin_went = self.snd.fin_queued() && self.snd.max.after(self.snd.queue.end());
        let fin_went = fin_went && (len < self.segment_max().into() || !self.snd.fin_alone());
        let fin = fin_went && seq + len == self.snd.queue.end() && self.snd.nxt == seq + len;
        self.send_range(cx, seq, len, fin, packet)
    }

    /// Of `len` bytes that are retransmitted first, what the peer's window still takes: whole segments where it takes any. A closed one is tried with
    /// one segment (as in Linux's `__tcp_retransmit_skb`).
    fn within_window(&self, len: u32) -> u32 {
        let segment = u32::from(self.segment_max());
        let most = match self.snd.wnd {
            0 => segment,
            wnd if wnd < segment => wnd,
            wnd => wnd - wnd % segment,
        };
        if len > self.snd.wnd { len.min(most) } else { len }
    }

    /// Of `len` bytes from `seq` on, the whole segments that the peer's window still takes, if not all (Linux's `tcp_retransmit_skb`).
    fn before_edge(&self, seq: SeqNum, len: u32) -> u32 {
        let room = self.snd.wnd.saturating_sub(seq.since(self.snd.una));
        if len > room { room - room % u32::from(self.segment_max()) } else { len }
    }

    fn segments_of(&self, len: u32) -> u64 {
        len.div_ceil(u32::from(self.segment_max())).max(1).into()
    }
}
