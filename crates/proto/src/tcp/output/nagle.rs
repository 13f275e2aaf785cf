//! May a segment smaller than the MSS go while others are unacknowledged? (RFC 896, RFC 9293 §3.7.4)

use crate::tcp::connection::Connection;

impl Connection {
    /// `small`: bytes of the last, incomplete segment. With Minshall's refinement, as Linux: it waits only while an earlier small
    /// segment is unacknowledged.
    pub(super) fn small_may_go(&self, small: u32) -> bool {
        small == 0
            || self.options.nodelay
            || self.snd.fin_queued
            || self.snd.nxt.before(self.snd.max)
            || !self.small_in_flight()
    }

    /// Linux's `tcp_minshall_check`: what lies outside of the flight is of two gigabytes ago.
    fn small_in_flight(&self) -> bool {
        self.snd.small_end.after(self.snd.una) && self.snd.small_end.before_or_eq(self.snd.nxt)
    }
}
