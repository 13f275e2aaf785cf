//! First check: is the segment acceptable? (RFC 9293 §3.10.7.4, RFC 7323 §5)

use super::{Reply, Segment, Stop};
use crate::State;
use crate::tcp::connection::{Connection, Context};
use crate::tcp::open::handshake::Handshake;
use crate::tcp::rare::special::Special;
use crate::tcp::recv::receiver::Outside;
use wire::Flags;

impl Connection {
    pub(super) fn check_sequence(&mut self, cx: &mut Context, segment: &Segment) -> Result<(), Stop> {
        if self.is_duplicate_syn(cx, segment) {
            if self.fails_paws(cx, segment).is_none() {
                // So that the client can tell which of its SYNs is answered (RFC 7323 §4.3).
                self.note_timestamp(cx, segment);
            }
            return Err(self.answer_duplicate_syn(cx));
        }
        if let Some(stale) = self.fails_paws(cx, segment) {
            if segment.has(Flags::SYN) {
                return Err(self.out_of_window(cx, segment));
            }
            return Err(self.refuse_stale(cx, segment, stale));
        }
        let Some(outside) = self.rcv.outside(segment.seq(), segment.end(), segment.has(Flags::FIN)) else {
            return Ok(());
        };
        let counts = outside == Outside::Beyond && !segment.header.flags.intersects(Flags::RST | Flags::SYN);
        cx.counters.beyond_window += u64::from(counts);
        Err(self.out_of_window(cx, segment))
    }

    /// The client repeats the SYN of a handshake that is not complete.
    fn is_duplicate_syn(&self, cx: &Context, segment: &Segment) -> bool {
        matches!(self.handshake.as_deref(), Some(Handshake::Passive(passive)) if passive.fast_open || cx.config.crossed_syns.repeats_answer())
            && segment.header.flags & (Flags::SYN | Flags::ACK | Flags::RST) == Flags::SYN
            && segment.seq() == self.rcv.irs
    }

    /// RFC 7413 §4.2.2: the SYN-ACK is retransmitted, without data or option if it has gone before.
    pub(super) fn answer_duplicate_syn(&mut self, cx: &mut Context) -> Reply {
        self.release_synack();
        let Some(Handshake::Passive(passive)) = self.handshake.as_deref_mut() else { return Reply::Nothing };
        if passive.due || Special::may_answer(&mut self.special, cx) {
            passive.due = true;
        } else {
            cx.counters.ack_skipped_syn_recv += 1;
        }
        Reply::Nothing
    }

    /// Protection against wrapped sequences (RFC 7323 §5.3). Segments without the option pass, as with Linux, and so does a pure ACK
    /// that only repeats the last within a retransmission time-out: the network has reordered it. Rule R1: "If there is a Timestamps option in
    /// the arriving segment, SEG.TSval < TS.Recent, TS.Recent is valid (see later discussion), and if the RST bit is not set, then treat the
    /// arriving segment as not acceptable".
    fn fails_paws(&self, cx: &Context, segment: &Segment) -> Option<Stale> {
        let timestamps = segment.header.options.timestamps.filter(|_| self.agreed.timestamps)?;
        let age = self.ts_recent.wrapping_sub(timestamps.tsval) as i32;
        if age <= cx.config.paws_slack.cast_signed()
            // Some hosts begin to count behind their SYN (as Linux's `tcp_paws_check`).
            || self.ts_recent == 0
            || segment.has(Flags::RST)
            || self.ts_recent_expired(cx.now)
        {
            return None;
        }
        self.is_stale(segment, age)
    }

    /// TSval is `age` ms older than what we have seen.
    #[inline(never)]
    fn is_stale(&self, segment: &Segment, age: i32) -> Option<Stale> {
        if segment.len() > 0 || !segment.has(Flags::ACK) {
            return Some(Stale::Segment);
        }
        if segment.seq().before(self.rcv.nxt) {
            return Some(Stale::PureAck);
        }
        let offered = self.offered_by(segment);
        let repeats = segment.seq() == self.snd.wl1 && offered != 0 && offered <= self.snd.wnd;
        let reordered = segment.seq() == self.rcv.nxt
            && segment.header.ack == self.snd.una
            && repeats
            && u128::from(age.unsigned_abs()) <= (self.rtt.rto() * 6 / 5).as_millis();
        (!reordered).then_some(Stale::Segment)
    }

    /// Old ACKs are common, and are not worth an answer (Linux's `tcp_disordered_ack_check`).
    fn refuse_stale(&mut self, cx: &mut Context, segment: &Segment, stale: Stale) -> Reply {
        if stale == Stale::PureAck {
            cx.counters.paws_old_ack += 1;
            return Reply::Nothing;
        }
        cx.counters.paws_estab_rejected += 1;
        if !self.answer_nonsense(cx, segment) {
            cx.counters.ack_skipped_paws += 1;
        }
        Reply::Nothing
    }

    /// RFC 7323 §4.3: "If: SEG.TSval >= TS.Recent and SEG.SEQ <= Last.ACK.sent then SEG.TSval is copied to TS.Recent; otherwise, it is ignored."
    /// Only once its ACK was found good: or one blind segment could make PAWS refuse all that follow.
    pub(super) fn note_timestamp(&mut self, cx: &Context, segment: &Segment) {
        if let Some(timestamps) = segment.header.options.timestamps.filter(|_| self.agreed.timestamps)
            && segment.seq().before_or_eq(self.rcv.last_ack_sent)
            && (timestamps.tsval.wrapping_sub(self.ts_recent).cast_signed() >= 0
                || self.ts_recent_expired(cx.now))
        {
            self.remember_timestamp(cx.now, timestamps.tsval);
        }
    }

    /// RFC 9293 §3.10.7.4: "If an incoming segment is not acceptable, an acknowledgment should be sent in reply (unless the RST bit is set, if
    /// so drop the segment and return)".
    fn out_of_window(&mut self, cx: &mut Context, segment: &Segment) -> Reply {
        if segment.has(Flags::RST) {
            if self.resets_behind_fin(segment) {
                self.reset_by_peer(cx);
            }
            return Reply::Nothing;
        }
        if segment.has(Flags::SYN) {
            self.challenge_syn(cx);
        } else if !self.answer_nonsense(cx, segment) {
            cx.counters.ack_skipped_seq += 1;
        }
        Reply::Nothing
    }

    /// An ACK answers a segment that was not taken, unless one did lately: only text, which no such answer carries, is answered each
    /// time. False if not.
    fn answer_nonsense(&mut self, cx: &mut Context, segment: &Segment) -> bool {
        let answered = segment.len() > 0 || Special::may_answer(&mut self.special, cx);
        if answered {
            self.answer_repetition(cx, segment);
            self.rcv.answer_nonsense();
        }
        answered
    }

    /// What begins before RCV.NXT came before, and our ACK of it may be lost (Linux's `tcp_send_dupack`).
    fn answer_repetition(&mut self, cx: &mut Context, segment: &Segment) {
        if segment.len() > 0 && segment.seq().before(self.rcv.nxt) {
            cx.counters.delayed_ack_lost += 1;
            if !self.packet_repeated(cx, segment) {
                self.rcv.delay.alarm();
                self.note_duplicate(cx, segment);
            }
        }
    }

    /// A challenge ACK that answers a SYN, wherever that lies (RFC 5961 §4.2).
    pub(super) fn challenge_syn(&mut self, cx: &mut Context) {
        // Linux counts it as an error where nothing else explains it.
        cx.counters.in_errs += u64::from(self.state == State::Established && self.handshake.is_none());
        cx.counters.syn_challenge += 1;
        self.challenge(cx);
    }

    /// A challenge ACK (RFC 5961), within what the connection and the stack may send of them.
    pub(super) fn challenge(&mut self, cx: &mut Context) {
        if !Special::may_answer(&mut self.special, cx) {
            cx.counters.ack_skipped_challenge += 1;
        } else if cx.challenge.take(cx.now, cx.config.tcp_challenge_ack_limit) {
            cx.counters.challenge_ack += 1;
            self.rcv.answer_nonsense();
        }
    }
}

/// What is older than the last timestamp.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stale {
    PureAck,
    Segment,
}
