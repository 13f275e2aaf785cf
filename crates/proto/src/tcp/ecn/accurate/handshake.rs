//! How the handshake's packets say what the IP-ECN field of those before them was (RFC 9768 §3.1.1 and §3.2.2.1, tables 2 to 4).

use super::{AccurateEcn, Ace, Failures, OptionSeen};
use crate::Config;
use crate::tcp::connection::{Connection, Context};
use crate::tcp::ecn::EcnMode;
use crate::tcp::input::Segment;
use wire::{AccurateEcnOption, Ecn, Flags};

impl Ace {
    /// The code of a codepoint.
    pub(in crate::tcp) fn of_handshake(arrived: Ecn) -> Ace {
        Ace(match arrived {
            Ecn::NotEct => 0b010,
            Ecn::Ect1 => 0b011,
            Ecn::Ect0 => 0b100,
            Ecn::Ce => 0b110,
        })
    }

    /// The codepoint of a code; what is no code says nothing (Linux's `tcp_accecn_extract_syn_ect`).
    fn arrived(self) -> Ecn {
        match self.0 {
            0b010 => Ecn::NotEct,
            0b100 | 0b000 => Ecn::Ect0,
            0b110 => Ecn::Ce,
            _ => Ecn::Ect1,
        }
    }
}

impl OptionSeen {
    /// By the first option that has anything. Its ECT counters are not zero, unless somebody zeroes options (RFC 9768 §3.2.3.2.4): the first
    /// and the third are looked at, in either order.
    pub(crate) fn after(self, option: Option<&AccurateEcnOption>) -> OptionSeen {
        let Some(option) = option.filter(|_| self < OptionSeen::Counters) else { return self };
        let mut ect = option.counters().filter(|(codepoint, _)| *codepoint != Ecn::Ce);
        match option.fields_len() {
            0 => OptionSeen::Empty,
            _ if ect.any(|(_, count)| count == 0) => OptionSeen::Failed,
            _ => OptionSeen::Counters,
        }
    }
}

impl AccurateEcn {
    /// A packet of the handshake brings an option.
    pub(super) fn see_option(&mut self, option: Option<&AccurateEcnOption>) {
        let before = self.seen;
        self.seen = before.after(option);
        if self.seen != before && self.seen == OptionSeen::Failed {
            self.failures |= Failures::OPTION_RECEIVED;
        }
    }

    /// None of our SYNs and SYN-ACKs is ECT: nothing on the way makes anything else of them (RFC 9768 §3.2.2.3). False: something has.
    fn believes(&mut self, config: &Config, code: Ace) -> bool {
        let believed = !config.tcp_ecn_fallback || code.arrived() == Ecn::NotEct;
        if !believed {
            self.failures |= Failures::ACE_RECEIVED;
        }
        believed
    }

    /// What the ACK that completes a handshake says of our SYN-ACK, if it does: a pure one without SACK (RFC 9768 §3.2.2.1, table 4).
    fn completes(&mut self, config: &Config, segment: &Segment) {
        let code = Ace::of(segment.header.flags);
        self.completes = true;
        match code.0 {
            0b000 => self.failures |= Failures::ACE_RECEIVED,
            0b001 | 0b101 | 0b111 => {}
            _ if segment.len() > 0 || !segment.header.options.sack.is_empty() => {}
            _ => {
                let marked = self.believes(config, code) && code.arrived() == Ecn::Ce;
                self.delivered_ce = self.delivered_ce.max(marked.into());
            }
        }
    }
}

impl Connection {
    /// Our SYN was answered, and both ends count marks.
    pub(in crate::tcp) fn marks_agreed_by_syn_ack(&mut self, cx: &Context, segment: &Segment) {
        if !self.agreed.ecn.is_accurate() {
            return;
        }
        let (option, code) = (segment.header.options.accurate_ecn, Ace::of(segment.header.flags));
        let always = cx.config.accurate_ecn_rules.checks_syn_ack() && code.0 != 0b101;
        let marks = self.count_marks(cx.now, Ecn::NotEct, 0);
        if option.is_some() {
            marks.see_option(option.as_ref());
            marks.demand = 2;
        }
        let marked = segment.ecn == Ecn::Ce;
        let believed = code.0 == 0b101 || !(always || marked) || marks.believes(&cx.config, code);
        if marked && believed {
            marks.received_ce = 1;
            marks.unreported_ce = 1;
        }
        marks.read_option(option.as_ref(), 1, 0);
        marks.reflects = true;
    }

    /// The peer's SYN began the connection: a Fast Open child, or one whose SYN has crossed ours. So many options are to go soon.
    pub(crate) fn marks_agreed_by_syn(&mut self, cx: &Context, demand: u8) {
        if let EcnMode::Accurate(syn) = self.agreed.ecn {
            self.count_marks(cx.now, syn, demand);
        }
    }

    /// A half-open request has become the connection; `option_seen`: by earlier ACKs. `ack` completed the handshake.
    pub(crate) fn marks_agreed_by_request(&mut self, cx: &Context, option_seen: OptionSeen, ack: &Segment) {
        if let EcnMode::Accurate(syn) = self.agreed.ecn {
            let marks = self.count_marks(cx.now, syn, 1);
            marks.seen = option_seen;
            marks.completes(&cx.config, ack);
        }
    }

    /// The SYN-ACK that we have sent as a connection is acknowledged.
    pub(in crate::tcp) fn marks_of_completing_ack(
        &mut self,
        config: &Config,
        segment: &Segment,
        crossed: bool,
    ) {
        let first = self.snd.iss + 1;
        if self.agreed.ecn.is_accurate()
            && let Some(marks) = self.accurate_ecn()
        {
            marks.completes(config, segment);
            marks.completes = false;
            if let Some(arriving) = &mut marks.arriving {
                arriving.ace = None;
                // That a child's SYN-ACK is acknowledged is no progress.
                arriving.prior_una = if crossed { arriving.prior_una } else { first };
            }
        }
    }

    /// The peer repeats its SYN, or SYN-ACK. If that is `challenged`, the answer says once more how the first arrived (Linux's
    /// `tcp_validate_incoming`).
    pub(in crate::tcp) fn hear_again(&mut self, segment: &Segment, challenged: bool) {
        if !self.agreed.ecn.is_accurate() {
            return;
        }
        let option = segment.header.options.accurate_ecn;
        if let Some(marks) = self.accurate_ecn() {
            marks.reflects = challenged;
            if option.is_some() && marks.seen < OptionSeen::Counters {
                marks.see_option(option.as_ref());
                marks.demand = marks.demand.max(1);
            }
        }
    }

    /// Flags of a pure ACK that answers a SYN-ACK or a repeated SYN.
    pub(super) fn reflected(&self) -> Flags {
        match self.agreed.ecn {
            EcnMode::Accurate(arrived) => Ace::of_handshake(arrived).flags(),
            _ => Flags::empty(),
        }
    }
}
