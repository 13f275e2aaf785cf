//! Nagle's test for a connection's small segment.

use super::Nagle;
use crate::tcp::connection::Connection;
use crate::tcp::connection::Sender;

impl Connection {
    /// Returns whether the last, incomplete segment of `small` bytes may be sent. It waits only
    /// while an earlier small segment is unacknowledged, as in Linux's `tcp_nagle_test`: full
    /// segments in flight do not delay it.
    pub(in crate::tcp) fn small_may_go(&self, small: u32) -> bool {
        let nagle = self.snd.nagle;
        small == 0
            || nagle.contains(Nagle::PUSH)
            || self.snd.fin_queued()
            || self.urgent_end().is_some()
            || self.snd.nxt.before(self.snd.max)
            || (!nagle.intersects(Nagle::CORK.union(Nagle::MORE))
                && (nagle.contains(Nagle::OFF) || !self.snd.small_in_flight()))
    }
}

impl Sender {
    /// Returns whether a small segment is in flight (Linux's `tcp_minshall_check`). Numbers outside
    /// of the flight are two gigabytes old.
    fn small_in_flight(&self) -> bool {
        self.small_end.after(self.una) && self.small_end.before_or_eq(self.nxt)
    }

    /// Sends queued data as soon as the windows allow.
    pub(crate) fn push_queued(&mut self) {
        if self.unsent() > 0 {
            self.nagle.insert(Nagle::PUSH);
        }
    }
}
