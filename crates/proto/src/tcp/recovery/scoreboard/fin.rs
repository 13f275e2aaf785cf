//! The FIN, which is no segment of the send queue.

use super::super::rack::{Delivered, ReoWindow};
use super::{Arrived, RACK, Scoreboard};
use crate::Instant;
use crate::tcp::send::send_queue::SendQueue;
use core::time::Duration;
use wire::SeqNum;

/// What is known of it.
#[derive(Debug, Default)]
pub(in crate::tcp) struct Fin {
    /// The peer holds it, which went alone.
    pub(in crate::tcp) reported: bool,
    /// It was found to be lost.
    pub(in crate::tcp) lost: bool,
    /// When it last went; `None`: it did before there was a scoreboard, and was the last thing sent.
    pub(in crate::tcp) sent_at: Option<Instant>,
}

impl Scoreboard {
    /// The peer holds the FIN, which went alone and ends at `end`, but not all text before it: it tells RACK as much as a segment does
    /// (RFC 8985 §6.2). The last thing was sent at `last_sent_at`. `again`: it had gone before.
    #[cold]
    pub(crate) fn fin_arrived(&mut self, end: SeqNum, last_sent_at: Instant, again: bool, arrived: &Arrived) {
        self.fin.reported = true;
        let sent_at = self.fin.sent_at.unwrap_or(last_sent_at);
        self.rack.hear_of(Delivered { sent_at, end, again }, arrived);
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
