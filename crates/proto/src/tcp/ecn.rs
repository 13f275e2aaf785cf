//! Explicit congestion notification: routers mark instead of dropping. Here is what the SYNs agree on, and the classic kind (RFC 3168);
//! the other one, which counts marks, is `accurate_ecn`'s.
//!
//! ```text
//!  SYN            ECE CWR   both ends can (`net.ipv4.tcp_ecn` = 1); the SYN-ACK says yes with ECE alone. Neither is ECT itself
//!  new data       ECT(0)    repeated data, pure ACKs and SYNs are not (§6.1.1, §6.1.4, §6.1.5)
//!  CE arrives     ECE       on every ACK until CWR comes (§6.1.3)
//!  ECE arrives    CWR       on the next new data, and the window is reduced once per round trip as for a loss (§6.1.2)
//! ```

use super::accurate_ecn::Ace;
use super::congestion::{Controller, Lost, Signal};
use super::connection::{Connection, Context};
use super::handshake::Handshake;
use super::input::Segment;
use super::negotiation::Negotiated;
use super::receiver::AckOwed;
use super::tcp_info::{CaState, ca_state};
use crate::Config;
use wire::{Ecn, Flags, SeqNum};

/// ECE and CWR together, on a SYN.
const SETUP: Flags = Flags::ECE.union(Flags::CWR);

/// How each end tells the other of marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EcnMode {
    /// It does not, and sends nothing that could be marked.
    Off,
    /// RFC 3168: that there were any.
    Classic,
    /// RFC 9768: how many. The peer's SYN, or SYN-ACK, arrived with this.
    Accurate(Ecn),
}

impl EcnMode {
    #[inline(always)]
    pub(crate) fn is_off(self) -> bool {
        self == EcnMode::Off
    }

    #[inline(always)]
    pub(crate) fn is_accurate(self) -> bool {
        matches!(self, EcnMode::Accurate(_))
    }
}

/// What a SYN of ours asks for: `net.ipv4.tcp_ecn` (Linux's `tcp_ecn_send_syn`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    Nothing,
    Classic,
    Accurate,
}

impl Asked {
    pub(crate) fn by(config: &Config) -> Asked {
        match config.tcp_ecn {
            1 | 4 => Asked::Classic,
            3 => Asked::Accurate,
            _ => Asked::Nothing,
        }
    }
}

bitflags::bitflags! {
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    struct Marks: u8 {
        /// Congestion was experienced by what we received, and the peer has not yet said that it knows.
        const ECHO = 1;
        /// The window was reduced; the peer is to be told with the next new data.
        const CWR_DUE = 1 << 1;
        /// The acknowledgement that is being worked through carried ECE, or what it says of marks is to be looked at.
        const ECHOED = 1 << 2;
        /// What was in flight at the last reduction ends at `reduced_until`: until then there is no other.
        const REDUCED = 1 << 3;
        /// Something that could have been marked has come.
        const ECT_SEEN = 1 << 4;
    }
}

/// Of a connection that has agreed on ECN.
#[derive(Debug, Default)]
pub(crate) struct EcnState {
    marks: Marks,
    reduced_until: SeqNum,
}

/// What was so before an acknowledgement, on connections that have agreed on ECN.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct BeforeAck {
    pub(super) in_flight: u32,
    /// See `Delivery::delivered`.
    pub(super) delivered: u32,
    pub(super) snd_una: SeqNum,
}

impl EcnState {
    /// The window has just been reduced, for whatever reason.
    pub(super) fn on_reduction(&mut self, snd_max: SeqNum) {
        self.marks |= Marks::CWR_DUE | Marks::REDUCED;
        self.reduced_until = snd_max;
    }

    /// The reduction was spurious; if the peer meant one, it goes on echoing (as Linux).
    pub(super) fn on_undo(&mut self) {
        self.marks -= Marks::CWR_DUE | Marks::REDUCED;
    }

    /// What is in flight up to `snd_una` was sent before the window was reduced: it is not reduced again for it (RFC 3168 §6.1.2).
    pub(super) fn is_reduced_for(&self, snd_una: SeqNum) -> bool {
        self.marks.contains(Marks::REDUCED) && snd_una.before(self.reduced_until)
    }

    /// The window may not grow by this acknowledgement: see [`Connection::echo_forbids_growth`].
    #[inline(always)]
    pub(super) fn is_echoed(&self) -> bool {
        self.marks.contains(Marks::ECHOED)
    }

    /// What was in flight at the last reduction has been acknowledged. Told anew with each acknowledgement: after two gigabytes the number
    /// would look like the future.
    #[inline(always)]
    pub(super) fn forget_reduction(&mut self, snd_una: SeqNum) {
        if self.marks.contains(Marks::REDUCED) && !snd_una.before(self.reduced_until) {
            self.marks -= Marks::REDUCED;
        }
    }

    /// The next new data carries CWR, which must not be cut into several segments.
    pub(super) fn cwr_due(&self) -> bool {
        self.marks.contains(Marks::CWR_DUE)
    }

    /// Something that could have been marked has come (Linux's `TCPI_OPT_ECN_SEEN`).
    pub(super) fn ect_seen(&self) -> bool {
        self.marks.contains(Marks::ECT_SEEN)
    }

    pub(super) fn note_ect(&mut self) {
        self.marks |= Marks::ECT_SEEN;
    }

    fn take(&mut self, mark: Marks) -> bool {
        let was = self.marks.contains(mark);
        self.marks -= mark;
        was
    }
}

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

/// RFC 9768 §3.1.2: whatever of the three flags a SYN has set asks for counts, if it is not what RFC 3168 asks by: what else they may come
/// to mean, who sends them knows these.
fn asks_for_accurate(flags: Flags) -> bool {
    let ace = Ace::of(flags);
    ace != Ace(0b000) && ace != Ace(0b011)
}

/// The ACK that brings a SYN cookie back tells the kind of ECN, which the cookie does not (RFC 9768 §5.1).
pub(crate) fn counts_marks(config: &Config, flags: Flags) -> bool {
    (config.tcp_ecn >= 3 || config.accurate_ecn_unasked) && Ace::of(flags).0 > 0b001
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
        (Asked::Classic, 0b101) if config.accurate_ecn_unasked => EcnMode::Classic,
        (Asked::Classic, _) if config.accurate_ecn_unasked => accurate,
        (Asked::Classic, _) => EcnMode::Off,
    }
}

/// Flags of a SYN beside SYN. A repeated one does without: something on the path may drop it (`tcp_ecn_fallback`).
pub(super) fn ecn_of_syn(config: &Config, repeated: bool) -> Flags {
    match Asked::by(config) {
        _ if repeated && config.tcp_ecn_fallback => Flags::empty(),
        Asked::Nothing => Flags::empty(),
        Asked::Classic => SETUP,
        Asked::Accurate => SETUP | Flags::AE,
    }
}

/// SYNs have crossed, and the peer's was this: what is left of what ours asked for (Linux's `tcp_ecn_rcv_syn`).
pub(super) fn crossed(config: &Config, repeated: bool, segment: &Segment) -> EcnMode {
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
    pub(super) fn ecn_before_ack(&mut self, cx: &Context, segment: &Segment) -> BeforeAck {
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
    pub(super) fn ecn_after_ack(&mut self, cx: &mut Context, segment: &Segment, before: BeforeAck) {
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
        // Some hosts say it by a pure ACK (as Linux's `tcp_ecn_accept_cwr`).
        if segment.has(Flags::CWR) {
            self.ecn.marks -= Marks::ECHO;
        }
        // RFC 3168 §6.1.5: what came before, or lies outside of the window, is no sign of congestion now.
        if segment.payload.is_empty() || !segment.end().after(self.rcv.nxt) {
            return;
        }
        self.note_codepoint(segment.ecn);
        if segment.ecn == Ecn::Ce && !self.ecn.marks.contains(Marks::ECHO) {
            self.ecn.marks |= Marks::ECHO;
            self.rcv.delay.alarm();
            self.rcv.ack_owed = AckOwed::Now;
        }
    }

    /// Text has come with this. Where others could have been marked, one that could not is most likely retransmitted, and its sender slow:
    /// it is acknowledged soon (Linux's `tcp_data_ecn_check`).
    pub(super) fn note_codepoint(&mut self, codepoint: Ecn) {
        match codepoint {
            Ecn::NotEct if self.ecn.ect_seen() => self.rcv.delay.unmarked_came(),
            Ecn::NotEct => {}
            _ => self.ecn.note_ect(),
        }
    }

    /// The acknowledgement tells of congestion: the window does not grow by it.
    #[inline(never)]
    pub(super) fn echo_forbids_growth(&mut self, cx: &Context) -> bool {
        let told = !self.agreed.ecn.is_accurate() || self.ace_tells_of_marks();
        told && !self.echo_is_late(cx)
    }

    /// The acknowledgement tells of congestion.
    pub(super) fn is_congestion_echoed(&mut self) -> bool {
        self.ecn.is_echoed() && (!self.agreed.ecn.is_accurate() || self.ace_tells_of_marks())
    }

    /// What was in flight is lost: the window cannot shrink for the same once more, and grows anew (as Linux, whose `tcp_enter_cwr` is for the
    /// states before).
    fn echo_is_late(&self, cx: &Context) -> bool {
        cx.config.ecn_prr && ca_state(self) == CaState::Loss
    }

    pub(super) fn reduce_for_echo(&mut self, cx: &mut Context, before: BeforeAck) {
        if before.in_flight == 0
            || self.ecn.is_reduced_for(self.snd.una)
            || self.recovery.is_recovering(self.snd.una)
            || self.recovery.is_reducing()
            || self.echo_is_late(cx)
        {
            return;
        }
        let in_flight = self.reduction_base(cx, before.in_flight);
        let lost = Lost { in_flight, smss: u32::from(self.smss()), timeout: false, left: 0, again: false };
        self.congestion.on_signal(&lost, Signal::Mark);
        self.ecn.on_reduction(self.snd.max);
        if cx.config.ecn_prr && self.marks_losses(cx) && !self.congestion.shapes_recovery() {
            let delivered = self.snd.queue.delivery.delivered().wrapping_sub(before.delivered);
            self.begin_reduction(cx, in_flight, (delivered, self.snd.una.after(before.snd_una)));
        }
    }

    /// Flags of data that leaves, and whether it is ECT: only what was never sent before.
    pub(super) fn ecn_of_data(&mut self, seq: SeqNum, len: u32) -> (Flags, Ecn) {
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
    pub(super) fn ecn_echo(&self) -> Flags {
        let echo = self.agreed.ecn == EcnMode::Classic && self.ecn.marks.contains(Marks::ECHO);
        if echo { Flags::ECE } else { Flags::empty() }
    }
}
