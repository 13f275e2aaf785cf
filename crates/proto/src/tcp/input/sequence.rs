//! First check: is the segment acceptable? (RFC 9293 §3.10.7.4, RFC 7323 §5)

use super::{Reply, Segment, Stop};
use crate::tcp::connection::{Connection, Context};
use crate::tcp::handshake::Handshake;
use crate::tcp::receiver::AckOwed;
use core::time::Duration;
use wire::Flags;

/// A timestamp older than this says nothing (RFC 7323 §5.5).
const TS_RECENT_LIFE: Duration = Duration::from_secs(24 * 24 * 3600);

impl Connection {
    pub(super) fn check_sequence(&mut self, cx: &mut Context<'_>, segment: &Segment) -> Result<(), Stop> {
        if self.is_duplicate_syn(segment) {
            if !self.fails_paws(cx, segment) {
                // So that the client can tell which of its SYNs is answered (RFC 7323 §4.3).
                self.note_timestamp(cx, segment);
            }
            return Err(self.answer_duplicate_syn());
        }
        if self.fails_paws(cx, segment) {
            cx.counters.paws_estab_rejected += 1;
            return Err(self.out_of_window(cx, segment));
        }
        // As Linux's `tcp_sequence`: anything that touches the window from the left edge on. Text is trimmed later.
        if segment.end().before(self.rcv.nxt) || segment.seq().after(self.rcv.adv.latest(self.rcv.nxt)) {
            return Err(self.out_of_window(cx, segment));
        }
        Ok(())
    }

    /// The client repeats the SYN of a handshake that is not complete.
    fn is_duplicate_syn(&self, segment: &Segment) -> bool {
        matches!(self.handshake, Some(Handshake::Passive(_)))
            && segment.header.flags & (Flags::SYN | Flags::ACK | Flags::RST) == Flags::SYN
            && segment.seq() == self.rcv.irs
    }

    /// RFC 7413 §4.2.2: the SYN-ACK goes again, without data or option if it has gone before.
    fn answer_duplicate_syn(&mut self) -> Reply {
        self.release_synack();
        if let Some(Handshake::Passive(passive)) = &mut self.handshake {
            passive.due = true;
        }
        Reply::Nothing
    }

    /// Protection against wrapped sequences (RFC 7323 §5.3). Segments without the option pass, as with Linux.
    fn fails_paws(&self, cx: &Context<'_>, segment: &Segment) -> bool {
        let Some(timestamps) = segment.header.options.timestamps.filter(|_| self.agreed.timestamps) else {
            return false;
        };
        let older = (timestamps.tsval.wrapping_sub(self.ts_recent) as i32) < 0;
        older && !segment.has(Flags::RST) && cx.now.since(self.ts_recent_at) < TS_RECENT_LIFE
    }

    /// RFC 7323 §4.3: the timestamp to echo is that of the segment that covers Last.ACK.sent. Only once its ACK was found good: or one
    /// blind segment could make PAWS refuse all that follow.
    pub(super) fn note_timestamp(&mut self, cx: &Context<'_>, segment: &Segment) {
        if let Some(timestamps) = segment.header.options.timestamps.filter(|_| self.agreed.timestamps)
            && segment.seq().before_or_eq(self.rcv.last_ack_sent)
        {
            self.ts_recent = timestamps.tsval;
            self.ts_recent_at = cx.now;
        }
    }

    /// "If an incoming segment is not acceptable, an acknowledgment should be sent in reply (unless the RST bit is set)."
    fn out_of_window(&mut self, cx: &mut Context<'_>, segment: &Segment) -> Reply {
        if segment.has(Flags::RST) {
            return Reply::Nothing;
        }
        self.note_duplicate(cx, segment);
        if segment.has(Flags::SYN) {
            self.challenge(cx);
        } else if segment.len() > 0 || cx.challenge.take(cx.now, cx.config.replies_per_second) {
            self.rcv.ack_owed = AckOwed::Now;
        }
        Reply::Nothing
    }

    /// A challenge ACK (RFC 5961), within the allowance.
    pub(super) fn challenge(&mut self, cx: &mut Context<'_>) {
        if cx.challenge.take(cx.now, cx.config.replies_per_second) {
            cx.counters.challenge_ack += 1;
            self.rcv.ack_owed = AckOwed::Now;
        }
    }
}
