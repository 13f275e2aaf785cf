//! Accurate ECN (RFC 9768): each end counts the marks it receives and tells the other their number, as Linux 6.18 does.
//!
//! ```text
//!  SYN            AE CWR ECE  both ends can (`net.ipv4.tcp_ecn` = 3); the SYN-ACK's three flags say how the SYN arrived, and those of the
//!                             ACK that completes the handshake how the SYN-ACK did (§3.1.1, §3.2.2.1)
//!  then           ACE         the same flags are a counter of marked packets, modulo 8, which began at 5 (§3.2.2)
//!  where it fits  option      bytes that came marked, as ECT(1) and as ECT(0), modulo 2²⁴ (§3.2.3)
//!  every packet   ECT(0)      pure ACKs and what is retransmitted too: marks on them are counted like others
//! ```
//!
//! Here is what a connection keeps of it, behind `Special`: only one that has agreed on it does. `handshake` reads the codes of the
//! handshake, `counting` what arrives, `emit` writes ACE and option, `feedback` reads the peer's. What follows from marks is as of
//! RFC 3168's echo (`ecn`).

mod connection;
mod counting;
mod emit;
mod feedback;
mod handshake;

use crate::{AccurateEcnInfo, Instant};
pub(crate) use emit::add_to_syn_ack;
use feedback::Arriving;
use wire::{Ecn, Flags, SeqNum};

/// r.cep and s.cep begin with this, lest a field that somebody zeroes look like one that tells of nothing (RFC 9768 §3.2.1).
const CEP_INIT: u32 = 5;
/// So do the byte counters of ECT(0) and ECT(1).
const ECT_BYTES_INIT: u32 = 1;
/// The ACE field has three bits.
const ACE_MASK: u32 = 7;

/// The flags AE, CWR and ECE as one field, the first the highest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::tcp) struct Ace(pub(in crate::tcp) u8);

impl Ace {
    pub(in crate::tcp) fn of(flags: Flags) -> Ace {
        let bit = |flag, value| if flags.contains(flag) { value } else { 0 };
        Ace(bit(Flags::AE, 0b100) | bit(Flags::CWR, 0b010) | bit(Flags::ECE, 0b001))
    }

    fn of_count(marked: u32) -> Ace {
        Ace((marked.wrapping_add(CEP_INIT) & ACE_MASK) as u8)
    }

    pub(in crate::tcp) fn flags(self) -> Flags {
        let mut flags = Flags::empty();
        flags.set(Flags::AE, self.0 & 0b100 != 0);
        flags.set(Flags::CWR, self.0 & 0b010 != 0);
        flags.set(Flags::ECE, self.0 & 0b001 != 0);
        flags
    }
}

bitflags::bitflags! {
    /// What the path was found not to carry, as Linux's `tcpi_accecn_fail_mode` tells it.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub(in crate::tcp) struct Failures: u16 {
        /// What the peer reported of our SYN, or SYN-ACK, cannot be: its IP-ECN field is mangled on the way (RFC 9768 §3.2.2.3).
        const ACE_RECEIVED = 1 << 1;
        /// Options do not arrive, or arrive zeroed (RFC 9768 §3.2.3.2).
        const OPTION_RECEIVED = 1 << 3;
    }
}

/// What was seen of the peer's options, as Linux's `tcpi_accecn_opt_seen` tells it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum OptionSeen {
    #[default]
    Nothing,
    /// One without counters.
    Empty,
    Counters,
    /// The first was zeroed, or none came for long.
    Failed,
}

/// Bytes of payload by codepoint.
#[derive(Clone, Copy, Debug, Default)]
struct ByteCounts {
    ect1: u32,
    ect0: u32,
    ce: u32,
}

impl ByteCounts {
    fn of(&mut self, codepoint: Ecn) -> Option<&mut u32> {
        match codepoint {
            Ecn::NotEct => None,
            Ecn::Ect1 => Some(&mut self.ect1),
            Ecn::Ect0 => Some(&mut self.ect0),
            Ecn::Ce => Some(&mut self.ce),
        }
    }
}

/// Of a connection that has agreed on it.
#[derive(Debug)]
pub(crate) struct AccurateEcn {
    /// r.cep less what it began with: packets received with CE.
    received_ce: u32,
    /// Of them, those that no ACE field has reported; 15 at most.
    unreported_ce: u8,
    received: ByteCounts,
    /// Of the packet before.
    last: Ecn,
    /// The next acknowledgement of text goes at once: the codepoint has changed (RFC 9768 §3.2.2.5.1).
    ack_next: bool,
    /// The next pure ACK says how the peer's SYN or SYN-ACK arrived (RFC 9768 §3.2.2.1).
    reflects: bool,
    /// Counters that the next option needs, those of its front, to tell of all that came since the last.
    least_fields: u8,
    /// Options that are to go with the next segments, where not all have one.
    demand: u8,
    option_sent_at: Instant,
    /// Segments that leave now have the option: see `Connection::refresh_marks`.
    tells: bool,
    /// They have room for it, as all have that leave at once with one that has it.
    reserves: bool,
    refreshed_at: Instant,
    /// s.cep less what it began with: our packets that the peer received with CE.
    delivered_ce: u32,
    delivered: ByteCounts,
    /// What the last options reported was all of this codepoint: so will be what is acknowledged without any.
    estimated: Option<Ecn>,
    /// Of the segment that is being worked through, until it is decoded.
    arriving: Option<Arriving>,
    /// Marks that it reported.
    newly_marked: u32,
    /// It completes the handshake: its ACE field is no counter.
    completes: bool,
    seen: OptionSeen,
    failures: Failures,
    /// What we send is ECT(0).
    sends_ect: bool,
}

impl AccurateEcn {
    fn new(last: Ecn, demand: u8) -> AccurateEcn {
        AccurateEcn {
            received_ce: 0,
            unreported_ce: 0,
            received: ByteCounts::default(),
            last,
            ack_next: false,
            reflects: false,
            least_fields: 0,
            demand,
            option_sent_at: Instant::ZERO,
            tells: false,
            reserves: false,
            refreshed_at: Instant::ZERO,
            delivered_ce: 0,
            delivered: ByteCounts::default(),
            estimated: None,
            arriving: None,
            newly_marked: 0,
            completes: false,
            seen: OptionSeen::Nothing,
            failures: Failures::empty(),
            sends_ect: false,
        }
    }

    pub(in crate::tcp) fn info(&self) -> AccurateEcnInfo {
        AccurateEcnInfo {
            received_ce: self.received_ce,
            delivered_ce: self.delivered_ce,
            received_e1_bytes: self.received.ect1,
            received_e0_bytes: self.received.ect0,
            received_ce_bytes: self.received.ce,
            delivered_e1_bytes: self.delivered.ect1,
            delivered_e0_bytes: self.delivered.ect0,
            delivered_ce_bytes: self.delivered.ce,
            fail_mode: self.failures.bits(),
            opt_seen: self.seen as u16,
        }
    }
}

/// A newer timestamp came with the number that is to be echoed (see `note_timestamp`).
fn is_newer(tsval: u32, ts_recent: u32) -> bool {
    (tsval.wrapping_sub(ts_recent) as i32) > 0
}

/// Bytes that were acknowledged.
fn advance(una: SeqNum, prior_una: SeqNum) -> u32 {
    if una.after(prior_una) { una.since(prior_una) } else { 0 }
}
