//! The outcome of an attempt to open a connection.

use crate::connection::{Connection, Side};
use crate::icmp::Unreachable;
use core::fmt;
use core::net::IpAddr;
use core::time::Duration;

/// The outcome of an attempt. All but the first three are failures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opening {
    /// The handshake is complete.
    Open,
    /// The capture started later.
    NotSeen,
    /// The capture has only the packets of this side, which show that the other side answered.
    OneWay(Side),
    /// Nobody answered the SYN.
    NoAnswer {
        /// Number of SYNs, including retransmissions.
        syns: u32,
        /// Time from the first SYN to the last.
        over: Duration,
    },
    /// The server reset the attempt.
    Refused {
        /// Number of SYNs, including retransmissions.
        syns: u32,
    },
    /// Only an ICMP error answered the SYN.
    Unreachable {
        /// The reason in the ICMP error.
        reason: Unreachable,
        /// The router or host that sent it.
        from: IpAddr,
    },
    /// Only an older connection between the same ports answered.
    OlderConnection {
        /// Number of SYNs, including retransmissions.
        syns: u32,
    },
    /// The client did not acknowledge the SYN-ACK.
    NotAcknowledged {
        /// Number of SYN-ACKs, including retransmissions.
        syn_acks: u32,
    },
    /// The client answered the SYN-ACK with a reset.
    Aborted,
    /// This side reset the connection before either side sent data.
    ResetAtOnce(Side),
}

impl Connection {
    /// Returns how the attempt to open the connection ended.
    pub fn opening(&self) -> Opening {
        let handshake = self.handshake();
        let has_packets = |side: Side| self.half(side).has_packets_after_syn();
        match (handshake.first_syn_at(), handshake.is_answered()) {
            (None, false) => Opening::NotSeen,
            (None, true) if self.half(Side::Client).segments() == 0 => Opening::OneWay(Side::Server),
            (Some(_), false) if has_packets(Side::Server) => self.established(),
            (Some(_), false) => self.unanswered(),
            (_, true) if handshake.is_acknowledged() || has_packets(Side::Client) => self.established(),
            (_, true) if handshake.is_aborted() => Opening::Aborted,
            (_, true) => Opening::NotAcknowledged { syn_acks: handshake.syn_acks() },
        }
    }

    /// Returns the only side whose packets were captured, if they show that the other side also
    /// sent some.
    pub fn captured_only(&self) -> Option<Side> {
        let is_alone = |side: &Side| {
            let (own, other) = (self.half(*side), self.half(side.other()));
            // It acknowledges the other side's SYN, and its acknowledgements advance.
            let is_answered = other.has_moved() || own.isn().is_some() && other.is_acknowledged();
            other.segments() == 0 && own.has_packets_after_syn() && is_answered
        };
        Side::BOTH.into_iter().find(is_alone)
    }

    fn unanswered(&self) -> Opening {
        let handshake = self.handshake();
        let syns = handshake.syns();
        if handshake.is_refused() {
            return Opening::Refused { syns };
        }
        if let Some((reason, from)) = handshake.unreachable() {
            return Opening::Unreachable { reason, from };
        }
        match () {
            // The client acknowledges data that the capture does not have.
            () if self.half(Side::Client).has_packets_after_syn() => Opening::OneWay(Side::Client),
            () if self.is_answered_by_older() => Opening::OlderConnection { syns },
            () => Opening::NoAnswer { syns, over: handshake.retried_for() },
        }
    }

    fn established(&self) -> Opening {
        let has_text =
            |side: Side| self.half(side).first_text_at().is_some() || self.half(side).is_finished();
        match self.reset_by() {
            Some(side) if !Side::BOTH.into_iter().any(has_text) => Opening::ResetAtOnce(side),
            _ => Opening::Open,
        }
    }
}

impl Opening {
    /// Returns whether the attempt failed.
    pub fn is_failure(self) -> bool {
        !matches!(self, Opening::Open | Opening::NotSeen | Opening::OneWay(_))
    }

    /// Returns a name for programs.
    pub fn name(self) -> &'static str {
        match self {
            Opening::Open => "open",
            Opening::NotSeen => "not-captured",
            Opening::OneWay(Side::Client) => "only-client-captured",
            Opening::OneWay(Side::Server) => "only-server-captured",
            Opening::NoAnswer { .. } => "no-answer",
            Opening::Refused { .. } => "refused",
            Opening::Unreachable { .. } => "unreachable",
            Opening::OlderConnection { .. } => "older-connection",
            Opening::NotAcknowledged { .. } => "syn-ack-not-acknowledged",
            Opening::Aborted => "reset-by-client-on-syn-ack",
            Opening::ResetAtOnce(Side::Client) => "reset-by-client-at-once",
            Opening::ResetAtOnce(Side::Server) => "reset-by-server-at-once",
        }
    }

    /// Returns a name for people, without numbers.
    pub fn title(self) -> &'static str {
        match self {
            Opening::Open => "open",
            Opening::NotSeen => "opening not captured",
            Opening::OneWay(Side::Client) => "only the client's packets were captured",
            Opening::OneWay(Side::Server) => "only the server's packets were captured",
            Opening::NoAnswer { .. } => "no answer",
            Opening::Refused { .. } => "refused by a reset",
            Opening::Unreachable { .. } => "unreachable (ICMP error)",
            Opening::OlderConnection { .. } => "only an older connection between the same ports answered",
            Opening::NotAcknowledged { .. } => "the client never acknowledged the SYN-ACK",
            Opening::Aborted => "the client reset the connection on the SYN-ACK",
            Opening::ResetAtOnce(Side::Client) => "the client reset the connection before any data",
            Opening::ResetAtOnce(Side::Server) => "the server reset the connection before any data",
        }
    }
}

impl fmt::Display for Opening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let syns = |count: u32| if count == 1 { "1 SYN".to_owned() } else { format!("{count} SYNs") };
        match *self {
            Opening::NoAnswer { syns: 1, .. } => f.write_str("no answer to 1 SYN"),
            Opening::NoAnswer { syns: count, over } => {
                write!(f, "no answer to {} in {:.2} s", syns(count), over.as_secs_f64())
            }
            Opening::Refused { syns: 1 } => f.write_str("refused by a reset"),
            Opening::Refused { syns: count } => write!(f, "refused by a reset, {}", syns(count)),
            Opening::Unreachable { reason, from } => write!(f, "{reason}: ICMP error from {from}"),
            Opening::OlderConnection { syns: count } => {
                write!(f, "only an older connection between the same ports answered {}", syns(count))
            }
            Opening::NotAcknowledged { syn_acks } if syn_acks > 1 => {
                write!(f, "the client never acknowledged {syn_acks} SYN-ACKs")
            }
            other => f.write_str(other.title()),
        }
    }
}
