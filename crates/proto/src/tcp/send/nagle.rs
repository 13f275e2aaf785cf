//! May a segment smaller than the MSS go? (RFC 896, RFC 9293 §3.7.4, with Minshall's refinement)

mod connection;

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
        /// `peer_window_rules` as it was when the connection began.
        const FILLS_WINDOWS = 0x20;
        /// Kept here for want of room: the FIN was first sent without text.
        const FIN_ALONE = 0x40;
        /// `window_unit` as it was when the connection began.
        const COUNTS_SEGMENTS = 0x80;
    }
}

impl Nagle {
    /// With the stack's habit.
    pub(crate) fn in_stack(self, config: &Config) -> Nagle {
        let fills = if config.peer_window_rules.are_filled() { Nagle::FILLS_WINDOWS } else { Nagle::empty() };
        let counts = if config.window_unit.is_segments() { Nagle::COUNTS_SEGMENTS } else { Nagle::empty() };
        self.union(fills).union(counts)
    }
}
