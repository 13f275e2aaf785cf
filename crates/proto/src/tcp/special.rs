//! State of what few connections use. It is allocated on first use, so that an ordinary connection holds a null pointer.

use crate::Instant;

#[derive(Debug, Default)]
pub(crate) struct Special {
    /// When the peer last acknowledged anything; kept for keepalive.
    pub(super) heard_at: Instant,
    /// Keepalive probes since.
    pub(super) unanswered: u32,
}

impl Special {
    /// A segment with a good acknowledgement has come.
    pub(super) fn heard(&mut self, now: Instant) {
        self.heard_at = now;
        self.unanswered = 0;
    }
}
