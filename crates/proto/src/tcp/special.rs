//! State of what few connections use. It is allocated on first use, so that an ordinary connection holds a null pointer.

use crate::Instant;

#[derive(Debug, Default)]
pub(crate) struct Special {
    /// When the peer last acknowledged anything; kept for keepalive.
    pub(super) heard_at: Instant,
    /// Keepalive probes since.
    pub(super) unanswered: u32,
    /// When the first window probe since the window closed went; kept for the user time-out.
    pub(super) probing_since: Option<Instant>,
}

impl Special {
    /// A segment with a good acknowledgement has come; the peer's window is `open` or not.
    pub(super) fn heard(&mut self, now: Instant, open: bool) {
        self.heard_at = now;
        self.unanswered = 0;
        self.probing_since = self.probing_since.filter(|_| !open);
    }
}
