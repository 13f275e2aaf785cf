//! Explicit congestion notification: routers mark instead of dropping. Here is what the SYNs agree on, and the classic kind (RFC 3168);
//! the other one, which counts marks, is `accurate_ecn`'s.
//!
//! ```text
//!  SYN            ECE CWR   both ends can (`net.ipv4.tcp_ecn` = 1); the SYN-ACK says yes with ECE alone. Neither is ECT itself
//!  new data       ECT(0)    repeated data, pure ACKs and SYNs are not (§6.1.1, §6.1.4, §6.1.5)
//!  CE arrives     ECE       on every ACK until CWR comes (§6.1.3)
//!  ECE arrives    CWR       on the next new data, and the window is reduced once per round trip as for a loss (§6.1.2)
//! ```

pub(crate) mod accurate;
mod connection;

pub(in crate::tcp) use connection::crossed;

use crate::Config;
use crate::tcp::ecn::accurate::Ace;
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
    pub(crate) fn is_off(self) -> bool {
        self == EcnMode::Off
    }

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
        /// The window was reduced, which the next new data reports to the peer (CWR).
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
    in_flight: u32,
    /// See `Delivery::delivered`.
    delivered: u32,
    snd_una: SeqNum,
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

    /// What is in flight from `snd_una` on was sent before the window was reduced: it is not reduced again for it (RFC 3168 §6.1.2). A
    /// reduction of two gigabytes ago seems to lie ahead, but beyond all that was sent.
    pub(super) fn is_reduced_for(&self, snd_una: SeqNum, snd_max: SeqNum) -> bool {
        let Self { marks, reduced_until } = self;
        marks.contains(Marks::REDUCED)
            && snd_una.before(*reduced_until)
            && reduced_until.before_or_eq(snd_max)
    }

    /// The window may not grow by this acknowledgement: see `Connection::echo_forbids_growth`.
    pub(super) fn is_echoed(&self) -> bool {
        self.marks.contains(Marks::ECHOED)
    }

    /// What was in flight at the last reduction has been acknowledged.
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

/// RFC 9768 §3.1.2: whatever of the three flags a SYN has set asks for counts, if it is not what RFC 3168 asks by: what else they may come
/// to mean, who sends them knows these.
fn asks_for_accurate(flags: Flags) -> bool {
    let ace = Ace::of(flags);
    ace != Ace(0b000) && ace != Ace(0b011)
}

/// The ACK that brings a SYN cookie back tells the kind of ECN, which the cookie does not (RFC 9768 §5.1).
pub(crate) fn counts_marks(config: &Config, flags: Flags) -> bool {
    (config.tcp_ecn >= 3 || config.accurate_ecn_rules.believes_unasked()) && Ace::of(flags).0 > 0b001
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
