//! The bit that opens the fast paths: nothing has happened to the connection, and nobody has asked of it, what they leave to the general path.
//!
//! As Linux's `tcp_fast_path_check` keeps `pred_flags`, it is computed in one place after every change of a connection (`stack/timers/settle`, and
//! `stack/timers/egress` for what was sent). A fast path asks for it first, and then only what the segment at hand can change; debug builds compute
//! it again each time and compare.

use super::connection::{Connection, Context};
use crate::tcp::rare::special::Special;

impl Connection {
    /// To be called after a change, before a fast path may be taken.
    pub(crate) fn note_plain(&mut self) {
        self.plain = self.is_plain();
    }

    /// Something was asked of it that closes them.
    pub(super) fn leave_fast_paths(&mut self) {
        self.plain = false;
    }

    /// The fast paths are open to this connection.
    pub(crate) fn takes_fast_paths(&self, cx: &Context) -> bool {
        debug_assert_eq!(self.plain, self.is_plain(), "a change was not followed by `note_plain`");
        self.plain && cx.takes_fast_paths()
    }

    /// The fast paths are open to this connection, and its handshake is over.
    pub(crate) fn takes_fast_paths_open(&self, cx: &Context) -> bool {
        self.handshake.is_none() && self.takes_fast_paths(cx)
    }

    fn is_plain(&self) -> bool {
        self.asks_for_nothing()
            && self.special.as_deref().is_none_or(Special::only_remembers)
            && self.agrees_on_the_usual()
            && self.is_undisturbed()
    }

    /// Selective acknowledgements and no ECN, or nothing yet; and windows that are counted by payload, in bytes.
    fn agrees_on_the_usual(&self) -> bool {
        (self.agreed.sack || self.handshake.is_some())
            && self.agreed.ecn.is_off()
            && self.rcv.space.counts_payload()
            && self.snd.rules.is_empty()
    }

    /// Nothing is missing, here or there, nothing is retransmitted, and no timer has fired in vain.
    fn is_undisturbed(&self) -> bool {
        self.recovery.is_idle()
            && !self.rcv.has_holes()
            && !self.rcv.refuses
            && self.timeouts == 0
            && self.snd.nxt == self.snd.max
            && !self.snd.probe_due
            && !self.reset_due
    }
}
