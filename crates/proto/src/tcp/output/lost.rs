//! Sending again what is lost.

use crate::tcp::connection::{Connection, Context};
use crate::tcp::recovery::Phase;
use wire::{SeqNum, TxPacket};

impl Connection {
    /// A peer without SACK: the first segment that is not acknowledged.
    pub(super) fn retransmit_head(&mut self, cx: &mut Context<'_>) -> Option<TxPacket> {
        let outstanding = self.snd.queue.end().earliest(self.snd.nxt).since(self.snd.una);
        let fin_only = outstanding == 0 && self.snd.fin_sent();
        if outstanding == 0 && !fin_only {
            return None;
        }
        let len = outstanding.min(u32::from(self.segment_max()));
        let fin = self.snd.fin_sent() && len == outstanding;
        cx.counters.fast_retrans += 1;
        Some(self.send_range(cx, self.snd.una, len, fin))
    }

    /// A peer with SACK: the next run of bytes that is lost and was not sent again since.
    pub(super) fn next_lost(&mut self) -> Option<(SeqNum, u32)> {
        let max = u32::from(self.segment_max());
        self.recovery.board.as_mut()?.next_lost(&self.snd.queue, self.snd.nxt, max)
    }

    /// Sends that again if the windows let it: something always may when nothing is in the network.
    pub(super) fn retransmit_lost(
        &mut self,
        cx: &mut Context<'_>,
        (seq, len): (SeqNum, u32),
    ) -> Option<TxPacket> {
        let pipe = self.pipe();
        let room = self.congestion_window().saturating_sub(pipe);
        let beyond = (seq + len).after(self.snd.una + self.snd.wnd) && seq != self.snd.una;
        if self.snd.wnd == 0 || beyond || (room < len && pipe > 0) {
            return None;
        }
        match self.recovery.board.as_ref().map(|board| board.phase) {
            Some(Phase::Loss) => cx.counters.slow_start_retrans += 1,
            _ => cx.counters.fast_retrans += 1,
        }
        let fin = self.snd.fin_queued && seq + len == self.snd.queue.end() && self.snd.nxt == seq + len;
        Some(self.send_range(cx, seq, len, fin))
    }
}
