//! Segments that continue a GRO run: text in order, with the acknowledgment, window and options of
//! the first segment. Of the checks of RFC 9293 §3.10.7.4 only the seventh, "process the segment
//! text", remains.

use crate::State;
use crate::tcp::connection::{Connection, Context};
use crate::tcp::recv::payload::Payload;
use crate::tcp::recv::receiver::Receiver;
use wire::{Ecn, Flags, SeqNum, TcpHeader};

impl Connection {
    /// Returns whether further segments with this header can change only received data. The
    /// connection must be synchronized and in order. The header must have no new acknowledgment,
    /// window or SACK block, and its codepoint must not cause quick ACKs.
    pub(crate) fn continues(&self, ecn: Ecn, header: &TcpHeader) -> bool {
        let options = &header.options;
        let synchronized = self.handshake.is_none()
            && matches!(self.state, State::Established | State::FinWait1 | State::FinWait2);
        let window = u32::from(header.window) << self.agreed.snd_wscale.unwrap_or(0);
        let timely = options.timestamps.is_none_or(|timestamps| {
            !self.agreed.timestamps || (timestamps.tsval.wrapping_sub(self.ts_recent) as i32) >= 0
        });
        synchronized
            && !self.orphan
            && !self.agreed.ecn.is_accurate()
            && (ecn != Ecn::NotEct || !self.ecn.ect_seen())
            && self.rcv.space.counts_payload()
            && self.rcv.in_order()
            && !self.rcv.refuses()
            && self.recovery.is_idle()
            && header.flags - Flags::PSH == Flags::ACK
            && (header.ack, window) == (self.snd.una, self.snd.wnd)
            && (self.snd.wl2, self.timeouts) == (header.ack, 0)
            && options.sack.is_empty()
            && timely
    }

    /// Handles one segment of the run. [`continues`](Self::continues) and
    /// [`takes_at_once`](Self::takes_at_once) must be true, and the stack must not be under memory
    /// pressure.
    #[inline]
    pub(crate) fn take_run_segment(
        &mut self,
        cx: &mut Context,
        header: &TcpHeader,
        seq: SeqNum,
        pushed: bool,
        text: Payload<'_, '_>,
    ) {
        let len = text.len() as u32;
        self.tally.came(text.len(), text.gso_size());
        cx.counters.hp_hits += u64::from(self.state == State::Established);
        // The retransmission may follow a newer segment that the peer sent before.
        self.snd.wl1 = self.snd.wl1.latest(seq);
        self.note_timestamp(cx, seq, header.options.timestamps);
        let flags = if pushed { Flags::ACK | Flags::PSH } else { Flags::ACK };
        let arrival = self.text_arrival(flags, len, None);
        self.rcv.accept_next(cx.now, text, &mut cx.spare);
        self.text_accepted(cx, len, len, header.options.timestamps);
        self.keep_within_memory(cx);
        self.text_taken(cx, &arrival, len);
        self.arm_delayed_ack(cx);
    }
}

impl Receiver {
    /// Returns whether the text begins at RCV.NXT and fits the receive window.
    #[inline]
    pub(crate) fn takes_at_once(&self, seq: SeqNum, len: usize) -> bool {
        seq == self.nxt && len <= self.wnd() as usize
    }
}
