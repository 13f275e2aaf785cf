//! The handshake of a connection: SYNs, SYN-ACK, and their Fast Open options.

use super::Side;
use crate::icmp::{IcmpError, Unreachable};
use crate::packet::Packet;
use core::net::IpAddr;
use core::time::Duration;
use wire::{Cookie, Flags, SeqNum, TcpOptions};

/// The Fast Open option of a SYN or SYN-ACK.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CookieOption {
    /// No option.
    #[default]
    Absent,
    /// A request for a cookie.
    Request,
    /// A cookie.
    Cookie(Cookie),
}

impl CookieOption {
    fn of(options: &TcpOptions) -> CookieOption {
        match options.fast_open.map(|option| option.cookie) {
            None => CookieOption::Absent,
            Some(None) => CookieOption::Request,
            Some(Some(cookie)) => CookieOption::Cookie(cookie),
        }
    }

    /// Returns the cookie, if it is one.
    pub fn cookie(self) -> Option<Cookie> {
        match self {
            CookieOption::Cookie(cookie) => Some(cookie),
            CookieOption::Absent | CookieOption::Request => None,
        }
    }
}

/// The handshake of one connection.
#[derive(Clone, Debug, Default)]
pub struct Handshake {
    syn: Option<Syn>,
    syns: u32,
    last_syn_at: Duration,
    /// True if the last SYN before the first SYN-ACK had data or the option.
    is_last_tried: bool,
    syn_ack: Option<SynAck>,
    syn_acks: u32,
    answered_at: Option<Duration>,
    refusals: u32,
    is_simultaneous: bool,
    is_aborted: bool,
    unreachable: Option<(Unreachable, IpAddr)>,
}

#[derive(Clone, Debug)]
struct Syn {
    at: Duration,
    isn: SeqNum,
    text_len: u32,
    option: CookieOption,
    is_header_cut: bool,
}

#[derive(Clone, Debug)]
pub(super) struct SynAck {
    at: Duration,
    /// SYNs seen before the first SYN-ACK, and the time of the last of them.
    syns_before: u32,
    last_syn_at: Duration,
    ack: SeqNum,
    text_len: u32,
    option: CookieOption,
}

impl SynAck {
    /// Returns the time of the SYN-ACK.
    pub(super) fn at(&self) -> Duration {
        self.at
    }
}

impl Handshake {
    pub(super) fn handle(&mut self, side: Side, packet: &Packet<'_>) {
        let is_reset = packet.flags.contains(Flags::RST);
        match side {
            _ if is_reset => self.on_reset(side),
            Side::Client if packet.is_syn() => self.on_syn(packet),
            Side::Server if packet.is_syn() => self.is_simultaneous = true,
            Side::Server if packet.is_syn_ack() => {
                self.syn_acks += 1;
                let syn_ack = self.answer(packet);
                self.syn_ack.get_or_insert(syn_ack);
            }
            // Of two SYNs that cross, each may be acknowledged alone (RFC 9293 section 3.5).
            Side::Server if self.is_simultaneous && packet.flags.contains(Flags::ACK) => {
                let syn_ack = self.answer(packet);
                self.syn_ack.get_or_insert(syn_ack);
            }
            Side::Client
                if packet.flags.contains(Flags::ACK) && (self.syn_ack.is_some() || self.is_simultaneous) =>
            {
                self.answered_at.get_or_insert(packet.at);
            }
            Side::Client | Side::Server => {}
        }
    }

    fn on_syn(&mut self, packet: &Packet<'_>) {
        let option = CookieOption::of(&packet.options);
        self.syns += 1;
        self.last_syn_at = self.last_syn_at.max(packet.at);
        if self.syn_ack.is_none() {
            self.is_last_tried = packet.text_len > 0 || option != CookieOption::Absent;
        }
        self.syn.get_or_insert(Syn {
            at: packet.at,
            isn: packet.seq,
            text_len: packet.text_len,
            option,
            is_header_cut: packet.is_header_cut,
        });
    }

    fn on_reset(&mut self, side: Side) {
        match side {
            Side::Server => self.refusals += u32::from(self.syn_ack.is_none()),
            Side::Client => self.is_aborted |= self.syn_ack.is_some() && self.answered_at.is_none(),
        }
    }

    /// Handles an ICMP error that quotes one of the SYNs.
    pub(super) fn on_icmp(&mut self, error: &IcmpError) {
        if self.syn.as_ref().is_some_and(|syn| syn.isn == error.seq) && self.syn_ack.is_none() {
            self.unreachable.get_or_insert((error.reason, error.from));
        }
    }

    /// Returns the record of a SYN-ACK that is seen now.
    pub(super) fn answer(&self, packet: &Packet<'_>) -> SynAck {
        SynAck {
            at: packet.at,
            syns_before: self.syns,
            last_syn_at: self.last_syn_at,
            ack: packet.ack,
            text_len: packet.text_len,
            option: CookieOption::of(&packet.options),
        }
    }

    /// Replaces the first answer by this one, which the client accepted and which came `times`
    /// times. Returns the first answer, and how often it came.
    pub(super) fn replace_answer(&mut self, syn_ack: SynAck, times: u64) -> (Option<SynAck>, u32) {
        let times = u32::try_from(times).unwrap_or(u32::MAX);
        (self.syn_ack.replace(syn_ack), core::mem::replace(&mut self.syn_acks, times))
    }

    /// Returns the time of the first SYN, or `None` if the capture started later.
    pub fn first_syn_at(&self) -> Option<Duration> {
        self.syn.as_ref().map(|syn| syn.at)
    }

    /// Returns whether the capture may have cut options off the first SYN.
    pub fn is_syn_cut(&self) -> bool {
        self.syn.as_ref().is_some_and(|syn| syn.is_header_cut)
    }

    /// Returns the number of SYNs of the client, including retransmissions.
    pub fn syns(&self) -> u32 {
        self.syns
    }

    /// Returns the number of SYN-ACKs of the server, including retransmissions.
    pub fn syn_acks(&self) -> u32 {
        self.syn_acks
    }

    /// Returns whether a SYN-ACK was seen.
    pub fn is_answered(&self) -> bool {
        self.syn_ack.is_some()
    }

    /// Returns whether the server answered the SYN with a reset.
    pub fn is_refused(&self) -> bool {
        self.refusals > 0 && self.syn_ack.is_none()
    }

    /// Returns the number of resets with which the server answered SYNs.
    pub fn refusals(&self) -> u32 {
        self.refusals
    }

    /// Returns the first ICMP error that answered a SYN, and its sender.
    pub fn unreachable(&self) -> Option<(Unreachable, IpAddr)> {
        self.unreachable
    }

    /// Returns whether the client acknowledged the SYN-ACK.
    pub fn is_acknowledged(&self) -> bool {
        self.answered_at.is_some()
    }

    /// Returns whether the client answered the SYN-ACK with a reset.
    pub fn is_aborted(&self) -> bool {
        self.is_aborted
    }

    /// Returns whether both ends sent a SYN (RFC 9293 section 3.5).
    pub fn is_simultaneous(&self) -> bool {
        self.is_simultaneous
    }

    /// Returns the bytes of data on the first SYN.
    pub fn syn_text_len(&self) -> u32 {
        self.syn.as_ref().map_or(0, |syn| syn.text_len)
    }

    /// Returns the option on the first SYN.
    pub fn syn_option(&self) -> CookieOption {
        self.syn.as_ref().map_or(CookieOption::Absent, |syn| syn.option)
    }

    /// Returns the bytes of data on the first SYN that the first SYN-ACK acknowledged, or `None` if
    /// there is no SYN-ACK, or if its number fits no captured SYN.
    pub fn syn_text_acked(&self) -> Option<u32> {
        let (syn, syn_ack) = (self.syn.as_ref()?, self.syn_ack.as_ref()?);
        let acked = syn_ack.ack.since(syn.isn + 1);
        (acked <= syn.text_len).then_some(acked)
    }

    /// Returns the option on the first SYN-ACK.
    pub fn syn_ack_option(&self) -> CookieOption {
        self.syn_ack.as_ref().map_or(CookieOption::Absent, |syn_ack| syn_ack.option)
    }

    /// Returns the bytes of data on the first SYN-ACK.
    pub fn syn_ack_text_len(&self) -> u32 {
        self.syn_ack.as_ref().map_or(0, |syn_ack| syn_ack.text_len)
    }

    /// Returns whether the client retransmitted its SYN before the first SYN-ACK was seen.
    pub fn is_retried(&self) -> bool {
        self.syn_ack.as_ref().map_or(self.syns, |syn_ack| syn_ack.syns_before) > 1
    }

    /// Returns whether the last SYN before the first SYN-ACK had data or the option, like the first
    /// SYN.
    pub fn is_tried_to_the_end(&self) -> bool {
        self.is_last_tried
    }

    /// Returns the time from the first SYN to the last.
    pub fn retried_for(&self) -> Duration {
        self.first_syn_at().map_or(Duration::ZERO, |first| self.last_syn_at.saturating_sub(first))
    }

    /// Returns the round trip from the place of capture to the server if it is known which SYN was
    /// answered: the only one, or the second if the first had data that was not acknowledged.
    pub(super) fn to_server(&self) -> Option<Duration> {
        let (syn, syn_ack) = (self.syn.as_ref()?, self.syn_ack.as_ref()?);
        let is_known = match syn_ack.syns_before {
            1 => true,
            2 => syn.text_len > 0 && self.syn_text_acked() == Some(0),
            _ => false,
        };
        is_known.then(|| syn_ack.at.saturating_sub(syn_ack.last_syn_at))
    }

    /// Returns the round trip from the place of capture to the client, measured with a SYN-ACK that
    /// was not retransmitted.
    pub(super) fn to_client(&self) -> Option<Duration> {
        let syn_ack = self.syn_ack.as_ref()?;
        self.answered_at.filter(|_| self.syn_acks == 1).map(|at| at.saturating_sub(syn_ack.at))
    }
}
