//! The FIN, which is no segment of the send queue.

use super::super::rack::Delivered;
use super::{Arrived, Scoreboard};
use crate::Instant;
use wire::SeqNum;

impl Scoreboard {
    /// The FIN goes again with what is lost: what was sent before the loss was found ends before it.
    pub(crate) fn ends_before_fin(&mut self, fin: SeqNum) {
        self.point = self.point.earliest(fin);
    }

    /// The peer holds the FIN, which went alone and ends at `end`, but not all text before it. When it was last sent is known if it was the last
    /// thing sent, at `last_sent_at`; then it tells RACK as much as a segment does (RFC 8985 §6.2). `again`: it had gone before.
    #[cold]
    pub(crate) fn fin_arrived(&mut self, end: SeqNum, last_sent_at: Instant, again: bool, arrived: &Arrived) {
        self.fin_reported = true;
        if !self.any_resent() {
            self.rack.hear_of(Delivered { sent_at: last_sent_at, end, again }, arrived);
        }
    }

    /// Has it told so, and nothing since has made that doubtful?
    pub(crate) fn has_fin(&self) -> bool {
        self.fin_reported
    }
}
