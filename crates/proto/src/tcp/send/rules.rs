//! Settings of the sender that stay as they were when the connection began.

use crate::Config;

bitflags::bitflags! {
    /// Settings of the sender that stay as they were when the connection began.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
    pub(crate) struct SendRules: u8 {
        /// Segments fill the peer's window exactly (`peer_window_rules`).
        const FILLS_WINDOWS = 0x1;
        /// The congestion window counts segments (`window_unit`).
        const COUNTS_SEGMENTS = 0x2;
    }
}

impl SendRules {
    /// Returns the rules of a connection that begins now.
    pub(crate) fn new(config: &Config) -> SendRules {
        let mut rules = SendRules::empty();
        rules.set(SendRules::FILLS_WINDOWS, config.peer_window_rules.are_filled());
        rules.set(SendRules::COUNTS_SEGMENTS, config.window_unit.is_segments());
        rules
    }
}
