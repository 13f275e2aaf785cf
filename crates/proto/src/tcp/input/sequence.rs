//! First check: the sequence number (RFC 9293 §3.10.7.4, RFC 7323 §5).

use super::{Reply, Segment, Stop};
use crate::State;
use crate::tcp::connection::{Connection, Context};
use crate::tcp::open::handshake::Handshake;
use crate::tcp::rare::special::Special;
use crate::tcp::recv::receiver::Outside;
use wire::{Flags, SeqNum, Timestamps};

impl Connection {
    pub(super) fn check_sequence(&mut self, cx: &mut Context, segment: &Segment) -> Result<(), Stop> {
        if self.is_duplicate_syn(cx, segment) {
            if self.fails_paws(cx, segment).is_none() {
                // The echo tells the client which of its SYNs is answered (RFC 7323 §4.3).
                self.note_timestamp(cx, segment.seq(), segment.header.options.timestamps);
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

    /// Returns whether the client repeats the SYN of an incomplete handshake.
    fn is_duplicate_syn(&self, cx: &Context, segment: &Segment) -> bool {
        matches!(self.handshake.as_deref(), Some(Handshake::Passive(passive)) if passive.fast_open || cx.config.crossed_syns.repeats_answer())
            && segment.header.flags & (Flags::SYN | Flags::ACK | Flags::RST) == Flags::SYN
            && segment.seq() == self.rcv.irs
    }

    /// Retransmits the SYN-ACK (RFC 7413 §4.2.2). Only the first has data or an option.
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

    /// Protects against wrapped sequence numbers (RFC 7323 §5.3). Accepts segments without the
    /// option, like Linux. Also accepts a pure ACK that only repeats the last within a
    /// retransmission timeout, because the network has reordered it. Rule R1: "If there is a
    /// Timestamps option in the arriving segment, SEG.TSval < TS.Recent, TS.Recent is valid (see
    /// later discussion), and if the RST bit is not set, then treat the arriving segment as not
    /// acceptable".
    fn fails_paws(&self, cx: &Context, segment: &Segment) -> Option<Stale> {
        let timestamps = segment.header.options.timestamps.filter(|_| self.agreed.timestamps)?;
        let age = self.ts_recent.wrapping_sub(timestamps.tsval) as i32;
        if age <= cx.config.paws_slack.cast_signed()
            // Some hosts begin to count after their SYN (as in Linux's `tcp_paws_check`).
            || self.ts_recent == 0
            || segment.has(Flags::RST)
            || self.ts_recent_expired(cx.now)
        {
            return None;
        }
        self.is_stale(segment, age)
    }

    /// Judges a segment whose TSval is `age` ms older than TS.Recent.
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

    /// Refuses a stale segment. Old ACKs are common and get no answer (Linux's
    /// `tcp_disordered_ack_check`).
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

    /// Updates TS.Recent. RFC 7323 §4.3: "If: SEG.TSval >= TS.Recent and SEG.SEQ <= Last.ACK.sent
    /// then SEG.TSval is copied to TS.Recent; otherwise, it is ignored." The ACK must be checked
    /// before: otherwise one blind segment could make PAWS refuse all later ones.
    pub(super) fn note_timestamp(&mut self, cx: &Context, seq: SeqNum, timestamps: Option<Timestamps>) {
        if let Some(timestamps) = timestamps.filter(|_| self.agreed.timestamps)
            && seq.before_or_eq(self.rcv.last_ack_sent)
            && (timestamps.tsval.wrapping_sub(self.ts_recent).cast_signed() >= 0
                || self.ts_recent_expired(cx.now))
        {
            self.remember_timestamp(cx.now, timestamps.tsval);
        }
    }

    /// Answers a segment outside the window. RFC 9293 §3.10.7.4: "If an incoming segment is not
    /// acceptable, an acknowledgment should be sent in reply (unless the RST bit is set, if so drop
    /// the segment and return)".
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

    /// Answers a refused segment with an ACK, unless one was sent lately. Text is always answered:
    /// the answer carries no text. Returns whether it answers.
    fn answer_nonsense(&mut self, cx: &mut Context, segment: &Segment) -> bool {
        let answered = segment.len() > 0 || Special::may_answer(&mut self.special, cx);
        if answered {
            self.answer_repetition(cx, segment);
            self.rcv.answer_nonsense();
        }
        answered
    }

    /// Handles a segment that begins before RCV.NXT. Our ACK of it may be lost (Linux's
    /// `tcp_send_dupack`).
    fn answer_repetition(&mut self, cx: &mut Context, segment: &Segment) {
        if segment.len() > 0 && segment.seq().before(self.rcv.nxt) {
            cx.counters.delayed_ack_lost += 1;
            if !self.packet_repeated(cx, segment) {
                self.rcv.acknowledge_quickly();
                self.note_duplicate(cx, segment);
            }
        }
    }

    /// Answers a SYN anywhere with a challenge ACK (RFC 5961 §4.2).
    pub(super) fn challenge_syn(&mut self, cx: &mut Context) {
        // Linux counts it as an error if nothing else explains it.
        cx.counters.in_errs += u64::from(self.state == State::Established && self.handshake.is_none());
        cx.counters.syn_challenge += 1;
        self.challenge(cx);
    }

    /// Sends a challenge ACK (RFC 5961), within the limits of the connection and the stack.
    pub(super) fn challenge(&mut self, cx: &mut Context) {
        if !Special::may_answer(&mut self.special, cx) {
            cx.counters.ack_skipped_challenge += 1;
        } else if cx.challenge.take(cx.now, cx.config.tcp_challenge_ack_limit) {
            cx.counters.challenge_ack += 1;
            self.rcv.answer_nonsense();
        }
    }
}

/// Kinds of segments that are older than the last timestamp.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stale {
    PureAck,
    Segment,
}
