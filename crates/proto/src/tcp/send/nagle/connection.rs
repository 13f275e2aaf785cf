//! A connection asks whether its small segment may go.

use super::Nagle;
use crate::tcp::connection::Connection;

impl Connection {
    /// `small`: bytes of the last, incomplete segment. It waits only while an earlier small segment is unacknowledged, as with
    /// Linux's `tcp_nagle_test`: full ones in flight do not hold it back.
    pub(in crate::tcp) fn small_may_go(&self, small: u32) -> bool {
        let nagle = self.snd.nagle;
        small == 0
            || nagle.contains(Nagle::PUSH)
            || self.snd.fin_queued()
            || self.urgent_end().is_some()
            || self.snd.nxt.before(self.snd.max)
            || (!nagle.intersects(Nagle::CORK.union(Nagle::MORE))
                && (nagle.contains(Nagle::OFF) || !self.small_in_flight()))
    }

    /// Linux's `tcp_minshall_check`: what lies outside of the flight is of two gigabytes ago.
    fn small_in_flight(&self) -> bool {
        self.snd.small_end.after(self.snd.una) && self.snd.small_end.before_or_eq(self.snd.nxt)
    }

    /// What is queued leaves as soon as the windows let it.
    pub(crate) fn push_queued(&mut self) {
        if self.unsent() > 0 {
            self.snd.nagle.insert(Nagle::PUSH);
        }
    }
}
