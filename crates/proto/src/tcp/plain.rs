//! The bit that permits fast paths: nothing has happened to the connection, and nobody has asked
//! for anything, that they do not handle.
//!
//! Like `pred_flags` in Linux's `tcp_fast_path_check`, it is computed in one place after every
//! change of a connection: in `stack/timers/settle`, and in `stack/timers/egress` after a
//! transmission. A fast path first tests the bit, then only what the current segment can change.
//! Debug builds recompute the bit at every use and compare.

use super::connection::{Connection, Context};
use crate::tcp::rare::special::Special;

impl Connection {
    /// Recomputes the bit. Must follow every change before a fast path may be taken.
    #[inline]
    pub(crate) fn note_plain(&mut self) {
        self.plain = self.is_plain();
    }

    /// Forbids fast paths: the application has asked for something that they do not handle.
    pub(super) fn leave_fast_paths(&mut self) {
        self.plain = false;
    }

    /// Returns whether this connection may take fast paths.
    pub(crate) fn takes_fast_paths(&self, cx: &Context) -> bool {
        debug_assert_eq!(self.plain, self.is_plain(), "a change was not followed by `note_plain`");
        self.plain && cx.takes_fast_paths()
    }

    /// Returns whether this connection may take fast paths and has completed its handshake.
    pub(crate) fn takes_fast_paths_open(&self, cx: &Context) -> bool {
        self.handshake.is_none() && self.takes_fast_paths(cx)
    }

    #[inline]
    fn is_plain(&self) -> bool {
        self.asks_for_nothing()
            && self.special.as_deref().is_none_or(Special::only_remembers)
            && self.agrees_on_the_usual()
            && self.is_undisturbed()
    }

    /// Returns whether the ends agreed on SACK without ECN, or on nothing yet, and windows are
    /// counted by payload, in bytes.
    #[inline]
    fn agrees_on_the_usual(&self) -> bool {
        (self.agreed.sack || self.handshake.is_some())
            && self.agreed.ecn.is_off()
            && self.rcv.space.counts_payload()
            && self.snd.rules.is_empty()
    }

    /// Returns whether no data is missing at either end, nothing is retransmitted, and no timer has
    /// expired.
    #[inline]
    fn is_undisturbed(&self) -> bool {
        self.recovery.is_idle()
            && !self.rcv.has_holes()
            && !self.rcv.refuses()
            && self.timeouts == 0
            && self.snd.nxt == self.snd.max
            && !self.snd.probe_due
            && !self.reset_due
    }
}
