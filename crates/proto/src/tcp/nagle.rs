//! May a segment smaller than the MSS go? (RFC 896, RFC 9293 §3.7.4, with Minshall's refinement)

use super::connection::Connection;
use crate::Config;

bitflags::bitflags! {
    /// What the application said about small segments. As Linux's `nonagle`.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
    pub(crate) struct Nagle: u8 {
        /// They need not wait for an acknowledgement (`TCP_NODELAY`).
        const OFF = 0x1;
        /// They wait, whatever is acknowledged (`TCP_CORK`).
        const CORK = 0x2;
        /// What is queued now goes, corked or not.
        const PUSH = 0x4;
        /// The last write announced another (`MSG_MORE`): it waits as if corked, but only until something arrives.
        const MORE = 0x8;
        /// A write that goes on sends what it has: no burst waits for an ACK.
        const AT_ONCE = 0x10;
        /// `fill_small_windows` as it was when the connection began.
        const FILLS_WINDOWS = 0x20;
        /// Kept here for want of room: the FIN was first sent without text.
        const FIN_ALONE = 0x40;
        /// And so is `count_segments` as it was when the connection began.
        const COUNTS_SEGMENTS = 0x80;
    }
}

impl Nagle {
    /// With the stack's habit.
    pub(crate) fn in_stack(self, config: &Config) -> Nagle {
        let fills = if config.fill_small_windows { Nagle::FILLS_WINDOWS } else { Nagle::empty() };
        let counts = if config.count_segments { Nagle::COUNTS_SEGMENTS } else { Nagle::empty() };
        self.union(fills).union(counts)
    }
}

impl Connection {
    /// `small`: bytes of the last, incomplete segment. It waits only while an earlier small segment is unacknowledged, as with
    /// Linux's `tcp_nagle_test`: full ones in flight do not hold it back.
    #[inline(always)]
    pub(super) fn small_may_go(&self, small: u32) -> bool {
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
