//! Explicit congestion notification (RFC 3168): routers mark instead of dropping.
//!
//! ```text
//!  SYN            ECE CWR   both ends can (`net.ipv4.tcp_ecn` = 1); the SYN-ACK says yes with ECE alone. Neither is ECT itself
//!  new data       ECT(0)    repeated data, pure ACKs and SYNs are not (§6.1.1, §6.1.4, §6.1.5)
//!  CE arrives     ECE       on every ACK until CWR comes (§6.1.3)
//!  ECE arrives    CWR       on the next new data, and the window is reduced once per round trip as for a loss (§6.1.2)
//! ```

use super::congestion::{Controller, Lost, Signal};
use super::connection::{Connection, Context};
use super::input::Segment;
use super::negotiation::Negotiated;
use super::receiver::AckOwed;
use crate::Config;
use wire::{Ecn, Flags, SeqNum};

/// `net.ipv4.tcp_ecn`: asks with every SYN.
const ASK: u32 = 1;
/// ECE and CWR together, on a SYN.
const SETUP: Flags = Flags::ECE.union(Flags::CWR);

/// Of a connection that has agreed on ECN.
#[derive(Debug, Default)]
pub(crate) struct EcnState {
    /// Congestion was experienced by what we received, and the peer has not yet said that it knows.
    echo: bool,
    /// The window was reduced; the peer is to be told with the next new data.
    cwr_due: bool,
    /// The acknowledgement that is being worked through carried ECE.
    echoed: bool,
    /// What was in flight at the last reduction ends here, if `reduced`: until then there is no other.
    reduced: bool,
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
        self.cwr_due = true;
        (self.reduced, self.reduced_until) = (true, snd_max);
    }

    /// The reduction was needless; if the peer meant one, it goes on echoing (as Linux).
    pub(super) fn on_undo(&mut self) {
        self.cwr_due = false;
        self.reduced = false;
    }

    /// What is in flight up to `snd_una` was sent before the window was reduced: it is not reduced again for it (RFC 3168 §6.1.2).
    pub(super) fn is_reduced_for(&self, snd_una: SeqNum) -> bool {
        self.reduced && snd_una.before(self.reduced_until)
    }

    /// The window must not grow by this acknowledgement.
    pub(super) fn forbids_growth(&self) -> bool {
        self.echoed
    }

    /// The next new data carries CWR, which must not be cut into several segments.
    pub(super) fn cwr_due(&self) -> bool {
        self.cwr_due
    }
}

impl Negotiated {
    /// What a SYN or SYN-ACK says about ECN. A SYN-ACK that reflects both flags says nothing (RFC 3168 §6.1.1), nor does a SYN that is itself
    /// ECN-capable, which only a later kind of ECN sends (as Linux's `tcp_ecn_create_request`).
    pub(crate) fn with_ecn(self, config: &Config, segment: &Segment) -> Negotiated {
        let flags = segment.header.flags;
        let plain = segment.ecn == Ecn::NotEct || flags.contains(Flags::AE);
        let ecn = match flags & SETUP {
            setup if flags.contains(Flags::ACK) => config.tcp_ecn == ASK && setup == Flags::ECE,
            setup => config.tcp_ecn != 0 && setup == SETUP && plain,
        };
        Negotiated { ecn, ..self }
    }

    /// Flags of a SYN-ACK beside SYN and ACK.
    pub(crate) fn ecn_of_syn_ack(&self) -> Flags {
        if self.ecn { Flags::ECE } else { Flags::empty() }
    }
}

/// Flags of a SYN beside SYN. A repeated one does without: something on the path may drop it (`tcp_ecn_fallback`).
pub(super) fn ecn_of_syn(config: &Config, repeated: bool) -> Flags {
    let asks = config.tcp_ecn == ASK && !(repeated && config.tcp_ecn_fallback);
    if asks { SETUP } else { Flags::empty() }
}

impl Connection {
    /// Before the acknowledgement is looked at.
    pub(super) fn ecn_before_ack(&mut self, segment: &Segment) -> BeforeAck {
        if self.ecn.reduced {
            // Told anew each time: after two gigabytes the number would look like the future.
            self.ecn.reduced = self.snd.una.before(self.ecn.reduced_until);
        }
        if !self.agreed.ecn {
            return BeforeAck::default();
        }
        self.ecn.echoed = segment.has(Flags::ECE) && !segment.has(Flags::SYN);
        let delivered = self.snd.queue.delivery.delivered();
        BeforeAck { in_flight: self.pipe(), delivered, snd_una: self.snd.una }
    }

    /// The acknowledgement was in order: what it echoes, and what the segment itself brings.
    pub(super) fn ecn_after_ack(&mut self, cx: &Context, segment: &Segment, before: BeforeAck) {
        if std::mem::take(&mut self.ecn.echoed) && segment.header.ack.after_or_eq(self.snd.una) {
            self.reduce_for_echo(cx, before);
        }
        if segment.payload.is_empty() {
            return;
        }
        if segment.has(Flags::CWR) {
            self.ecn.echo = false;
        }
        if segment.ecn == Ecn::Ce && !std::mem::replace(&mut self.ecn.echo, true) {
            self.rcv.delay.alarm();
            self.rcv.ack_owed = AckOwed::Now;
        }
    }

    fn reduce_for_echo(&mut self, cx: &Context, before: BeforeAck) {
        if before.in_flight == 0
            || self.ecn.is_reduced_for(self.snd.una)
            || self.recovery.is_recovering(self.snd.una)
            || self.recovery.is_reducing()
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
        if !self.agreed.ecn || len == 0 || self.handshake.is_some() || seq.before(self.snd.max) {
            return (Flags::empty(), Ecn::NotEct);
        }
        let cwr = std::mem::take(&mut self.ecn.cwr_due);
        (if cwr { Flags::CWR } else { Flags::empty() }, Ecn::Ect0)
    }

    /// Flags of every segment that acknowledges.
    pub(super) fn ecn_echo(&self) -> Flags {
        if self.agreed.ecn && self.ecn.echo { Flags::ECE } else { Flags::empty() }
    }
}
