//! A connection asks for ECN, grants it, and answers what is echoed (RFC 3168 §6.1).

use super::{Asked, BeforeAck, EcnMode, Marks, SETUP, asks_for_accurate, ecn_of_syn};
use crate::Config;
use crate::tcp::congestion::{Controller, Lost, Signal};
use crate::tcp::connection::{Connection, Context};
use crate::tcp::ecn::accurate::Ace;
use crate::tcp::input::Segment;
use crate::tcp::observe::tcp_info::{CaState, ca_state};
use crate::tcp::open::handshake::Handshake;
use crate::tcp::open::negotiation::Negotiated;
use crate::tcp::recv::receiver::AckOwed;
use wire::{Ecn, Flags, SeqNum};

impl Negotiated {
    /// What a SYN or SYN-ACK says about ECN.
    pub(crate) fn with_ecn(self, config: &Config, segment: &Segment) -> Negotiated {
        let ecn = match segment.has(Flags::ACK) {
            true => granted(config, segment),
            false => grants(config, segment),
        };
        Negotiated { ecn, ..self }
    }

    /// Flags of a SYN-ACK beside SYN and ACK.
    pub(crate) fn ecn_of_syn_ack(&self) -> Flags {
        match self.ecn {
            EcnMode::Off => Flags::empty(),
            EcnMode::Classic => Flags::ECE,
            EcnMode::Accurate(syn) => Ace::of_handshake(syn).flags(),
        }
    }
}

/// What a listener grants to who sent this SYN (RFC 9768 §3.1.1; Linux's `tcp_ecn_create_request`). A SYN that is itself ECN-capable is no
/// RFC 3168 one, but for a later kind of ECN.
fn grants(config: &Config, segment: &Segment) -> EcnMode {
    let flags = segment.header.flags;
    if config.tcp_ecn >= 3 && asks_for_accurate(flags) {
        return EcnMode::Accurate(segment.ecn);
    }
    let plain = segment.ecn == Ecn::NotEct || flags.contains(Flags::AE);
    let classic = config.tcp_ecn != 0 && flags & SETUP == SETUP && plain;
    if classic { EcnMode::Classic } else { EcnMode::Off }
}

/// What a SYN-ACK grants to us (RFC 9768 §3.1.1, tables 2 and 3; RFC 3168 §6.1.1; Linux's `tcp_ecn_rcv_synack`). One that reflects all flags
/// says nothing.
fn granted(config: &Config, segment: &Segment) -> EcnMode {
    let (asked, ace) = (Asked::by(config), Ace::of(segment.header.flags));
    let accurate = EcnMode::Accurate(segment.ecn);
    match (asked, ace.0) {
        (Asked::Nothing, _) | (_, 0b000 | 0b111) => EcnMode::Off,
        (_, 0b001) => EcnMode::Classic,
        (Asked::Accurate, _) => accurate,
        // RFC 3168 knows no such answer.
        (Asked::Classic, 0b101) if config.accurate_ecn_rules.believes_unasked() => EcnMode::Classic,
        (Asked::Classic, _) if config.accurate_ecn_rules.believes_unasked() => accurate,
        (Asked::Classic, _) => EcnMode::Off,
    }
}

/// SYNs have crossed, and the peer's was this: what is left of what ours asked for (Linux's `tcp_ecn_rcv_syn`).
pub(in crate::tcp) fn crossed(config: &Config, repeated: bool, segment: &Segment) -> EcnMode {
    let flags = segment.header.flags;
    match Asked::by(config) {
        Asked::Accurate if asks_for_accurate(flags) => EcnMode::Accurate(segment.ecn),
        // RFC 3168 §6.1.1: who has sent a SYN that does not ask for it does without.
        Asked::Classic | Asked::Accurate
            if flags.contains(SETUP) && !ecn_of_syn(config, repeated).is_empty() =>
        {
            EcnMode::Classic
        }
        _ => EcnMode::Off,
    }
}

impl Connection {
    /// Before the acknowledgement is looked at.
    pub(in crate::tcp) fn ecn_before_ack(&mut self, cx: &Context, segment: &Segment) -> BeforeAck {
        self.ecn.forget_reduction(self.snd.una);
        if self.agreed.ecn.is_off() {
            return BeforeAck::default();
        }
        let echoed = match self.agreed.ecn {
            EcnMode::Accurate(_) => self.feedback_arrives(cx, segment),
            _ => segment.has(Flags::ECE) && !segment.has(Flags::SYN),
        };
        self.ecn.marks.set(Marks::ECHOED, echoed);
        let delivered = self.snd.queue.delivery.delivered();
        BeforeAck { in_flight: self.pipe(), delivered, snd_una: self.snd.una }
    }

    /// The acknowledgement was in order: what it echoes, and what the segment itself brings.
    pub(in crate::tcp) fn ecn_after_ack(&mut self, cx: &mut Context, segment: &Segment, before: BeforeAck) {
        let echoed = self.ecn.take(Marks::ECHOED);
        if self.agreed.ecn.is_accurate() {
            if self.marks_delivered(cx, segment, &before) {
                self.reduce_for_echo(cx, before);
            }
            return;
        }
        if echoed && segment.header.ack.after_or_eq(self.snd.una) {
            self.reduce_for_echo(cx, before);
        }
        // Some hosts say it by a pure ACK. The window of who says it may hold no more than this segment (Linux's `tcp_ecn_accept_cwr`).
        if segment.has(Flags::CWR) {
            self.ecn.marks -= Marks::ECHO;
            if segment.end() != segment.seq() {
                self.rcv.ack_owed = AckOwed::Now;
            }
        }
        // RFC 3168 §6.1.5: what came before, or lies outside of the window, is no sign of congestion now.
        if segment.payload.is_empty() || !segment.end().after(self.rcv.nxt) {
            return;
        }
        self.note_codepoint(segment.ecn);
        if segment.ecn == Ecn::Ce && !self.ecn.marks.contains(Marks::ECHO) {
            self.ecn.marks |= Marks::ECHO;
            self.rcv.acknowledge_two_at_once();
            self.rcv.ack_owed = AckOwed::Now;
        }
    }

    /// Text has come with this. Where others could have been marked, one that could not is most likely retransmitted, and its sender slow:
    /// it is acknowledged soon (Linux's `tcp_data_ecn_check`).
    pub(in crate::tcp) fn note_codepoint(&mut self, codepoint: Ecn) {
        match codepoint {
            Ecn::NotEct if self.ecn.ect_seen() => self.rcv.acknowledge_two_at_once(),
            Ecn::NotEct => {}
            _ => self.ecn.note_ect(),
        }
    }

    /// The acknowledgement tells of congestion: the window does not grow by it.
    #[inline(never)]
    pub(in crate::tcp) fn echo_forbids_growth(&mut self, cx: &Context) -> bool {
        let is_echoed = !self.agreed.ecn.is_accurate() || self.ace_tells_of_marks();
        is_echoed && !self.echo_is_late(cx)
    }

    /// The acknowledgement tells of congestion.
    pub(in crate::tcp) fn is_congestion_echoed(&mut self) -> bool {
        self.ecn.is_echoed() && (!self.agreed.ecn.is_accurate() || self.ace_tells_of_marks())
    }

    /// What was in flight is lost: the window cannot shrink for the same once more, and grows anew (as Linux, whose `tcp_enter_cwr` is for the
    /// states before).
    fn echo_is_late(&self, cx: &Context) -> bool {
        cx.config.reduction_rules.ecn_by_prr() && ca_state(self) == CaState::Loss
    }

    pub(in crate::tcp) fn reduce_for_echo(&mut self, cx: &mut Context, before: BeforeAck) {
        // RFC 4015 §3.2: nothing is restored where congestion was echoed, too (as Linux's `tcp_fastretrans_alert`).
        self.recovery.keep_windows();
        if before.in_flight == 0
            || self.ecn.is_reduced_for(self.snd.una, self.snd.max)
            || self.recovery.is_recovering()
            || self.recovery.is_reducing()
            || self.echo_is_late(cx)
        {
            return;
        }
        let in_flight = self.reduction_base(cx, before.in_flight);
        let lost = Lost { in_flight, smss: u32::from(self.smss()), timeout: false, left: 0, again: false };
        self.congestion.on_signal(&lost, Signal::Mark);
        self.ecn.on_reduction(self.snd.max);
        if cx.config.reduction_rules.ecn_by_prr() && !self.congestion.shapes_recovery() {
            let delivered = self.snd.queue.delivery.delivered().wrapping_sub(before.delivered);
            self.begin_reduction(cx, in_flight, delivered, self.snd.una.after(before.snd_una));
        }
    }

    /// Flags of data that leaves, and whether it is ECT: only what was never sent before.
    pub(in crate::tcp) fn ecn_of_data(&mut self, seq: SeqNum, len: u32) -> (Flags, Ecn) {
        let classic = self.agreed.ecn == EcnMode::Classic;
        let agreed = match self.handshake.as_deref() {
            Some(Handshake::Passive(passive)) => classic && passive.fast_open,
            Some(Handshake::Active(_)) => false,
            None => classic,
        };
        if !agreed || len == 0 || seq.before(self.snd.max) {
            return (Flags::empty(), Ecn::NotEct);
        }
        let cwr = self.ecn.take(Marks::CWR_DUE);
        (if cwr { Flags::CWR } else { Flags::empty() }, Ecn::Ect0)
    }

    /// Flags of every segment that acknowledges.
    pub(in crate::tcp) fn ecn_echo(&self) -> Flags {
        let echo = self.agreed.ecn == EcnMode::Classic && self.ecn.marks.contains(Marks::ECHO);
        if echo { Flags::ECE } else { Flags::empty() }
    }
}
