//! Text that goes on where the segment before it ended, with the same acknowledgement, window and options: of the eight checks only
//! the seventh has anything left to do.

use super::Segment;
use crate::State;
use crate::tcp::connection::{Connection, Context};
use wire::{Flags, SeqNum, TcpHeader};

impl Connection {
    /// More segments with this header, but for their numbers, change nothing but what is received: everything is in order here, and the
    /// header acknowledges, offers and reports nothing new.
    pub(crate) fn text_may_go_on(&self, header: &TcpHeader) -> bool {
        let options = &header.options;
        let synchronized = self.handshake.is_none()
            && matches!(self.state, State::Established | State::FinWait1 | State::FinWait2);
        let window = u32::from(header.window) << self.agreed.snd_wscale.unwrap_or(0);
        let timely = options.timestamps.is_none_or(|timestamps| {
            !self.agreed.timestamps || (timestamps.tsval.wrapping_sub(self.ts_recent) as i32) >= 0
        });
        synchronized
            && !self.orphan
            && self.rcv.in_order()
            && self.recovery.is_idle()
            && header.flags - Flags::PSH == Flags::ACK
            && (header.ack, window) == (self.snd.una, self.snd.wnd)
            && (self.snd.wl2, self.timeouts) == (header.ack, 0)
            && options.sack.is_empty()
            && timely
    }

    /// `len` bytes from `seq` on are what comes next, and all of them lie in the window.
    pub(crate) fn takes_at_once(&self, seq: SeqNum, len: usize) -> bool {
        seq == self.rcv.nxt && len <= self.rcv.wnd() as usize
    }

    /// The next segment, of which [`text_may_go_on`](Self::text_may_go_on) and [`takes_at_once`](Self::takes_at_once) hold.
    pub(crate) fn text_goes_on(&mut self, cx: &mut Context<'_>, segment: &mut Segment) {
        self.tally.came(segment.payload.len(), segment.gso_size);
        self.snd.wl1 = segment.seq();
        self.note_timestamp(cx, segment);
        // In this state there is nothing to stop for.
        let _ = self.process_text_and_fin(cx, segment);
    }
}
