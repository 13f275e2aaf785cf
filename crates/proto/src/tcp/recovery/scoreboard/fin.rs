//! The FIN, which is no segment of the send queue.

use super::super::rack::{Delivered, ReoWindow};
use super::{Arrived, RACK, Scoreboard};
use crate::Instant;
use crate::tcp::send::send_queue::SendQueue;
use core::time::Duration;
use wire::SeqNum;

/// What is known of it.
#[derive(Debug, Default)]
pub(super) struct Fin {
    /// The peer holds it, which went alone.
    pub(super) reported: bool,
    /// It was found to be lost.
    pub(super) lost: bool,
    /// When it last went; `None`: it did before there was a scoreboard, and was the last thing sent.
    sent_at: Option<Instant>,
}

impl Scoreboard {
    /// It is retransmitted with what is lost: what was sent before the loss was found ends before it.
    pub(crate) fn ends_before_fin(&mut self, fin: SeqNum) {
        self.point = self.point.earliest(fin);
    }

    /// It goes now.
    pub(crate) fn fin_goes(&mut self, now: Instant) {
        self.fin.sent_at = Some(now);
    }

    /// Something else goes, after the FIN. The last thing was sent at `last_sent_at`.
    pub(crate) fn goes_after_fin(&mut self, last_sent_at: Instant) {
        self.fin.sent_at.get_or_insert(last_sent_at);
    }

    /// The peer holds the FIN, which went alone and ends at `end`, but not all text before it: it tells RACK as much as a segment does
    /// (RFC 8985 §6.2). The last thing was sent at `last_sent_at`. `again`: it had gone before.
    #[cold]
    pub(crate) fn fin_arrived(&mut self, end: SeqNum, last_sent_at: Instant, again: bool, arrived: &Arrived) {
        self.fin.reported = true;
        let sent_at = self.fin.sent_at.unwrap_or(last_sent_at);
        self.rack.hear_of(Delivered { sent_at, end, again }, arrived);
    }

    /// Has it reported so, and has nothing since made that doubtful?
    pub(crate) fn has_fin(&self) -> bool {
        self.fin.reported
    }

    /// It is retransmitted, since it is lost.
    pub(crate) fn lose_fin(&mut self) {
        self.fin.lost = true;
    }

    pub(crate) fn fin_is_lost(&self) -> bool {
        self.fin.lost && !self.fin.reported
    }

    /// How long the FIN, which went alone and ends at `end`, may yet take to be reported. Zero: it is lost, since something sent after it was
    /// delivered (RFC 8985 §6.2, step 5). `None`: that is not known.
    pub(crate) fn fin_remaining(
        &self,
        queue: &SendQueue,
        (snd_una, end): (SeqNum, SeqNum),
        now: Instant,
        how: &ReoWindow,
    ) -> Option<Duration> {
        let sent_at = self.fin.sent_at.filter(|_| !self.fin.reported && how.flags & RACK != 0)?;
        let reo_wnd = self.rack.reo_wnd(queue, snd_una, self.repairs(), how);
        self.rack.remaining((sent_at, end), reo_wnd, now)
    }
}
