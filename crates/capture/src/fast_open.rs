//! The outcome of Fast Open (RFC 7413) in a handshake, and the time it saved or cost.

use crate::connection::{Connection, CookieOption, Side};
use core::fmt;
use core::time::Duration;

/// The outcome of Fast Open in a handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FastOpen {
    /// The SYN had neither the option nor data.
    NotTried,
    /// The SYN requested a cookie (RFC 7413 section 4.1.1).
    CookieRequested {
        /// True if the SYN-ACK brought a cookie.
        granted: bool,
    },
    /// The SYN-ACK acknowledged the data of the SYN, or the SYN had a cookie and no data.
    Accepted {
        /// True if the SYN had no cookie, because both ends are configured to work without one.
        without_cookie: bool,
    },
    /// The SYN-ACK acknowledged part of the data.
    AcceptedInPart,
    /// The server accepted the data, but nothing that it sent afterwards arrived.
    Stalled,
    /// The SYN-ACK acknowledged only the SYN.
    NotAcknowledged(Answer),
    /// The SYN with data or with the option got no answer. A SYN without them did.
    Dropped,

    /// The server accepted the data, but its first SYN-ACK was lost. A later one acknowledges the
    /// data.
    SynAckLost,
    /// The server or a middlebox answered with a reset.
    Reset,
    /// Nobody answered.
    Unanswered,
    /// The SYN or its options were not captured.
    NotSeen,
}

/// The Fast Open option of a SYN-ACK that did not acknowledge the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Answer {
    /// No option. The server has Fast Open disabled, its queue of pending requests is full, or a
    /// middlebox strips the option.
    NoOption,
    /// Another cookie. The server's key has changed, or this is another server behind the same
    /// address.
    NewCookie,
    /// The cookie that the client sent. The server considers it valid but did not accept the data:
    /// its queue was full, or it had seen this SYN before.
    SameCookie,
}

impl Connection {
    /// Returns the outcome of Fast Open in the handshake.
    pub fn fast_open(&self) -> FastOpen {
        FastOpen::of(self)
    }
}

impl FastOpen {
    fn of(connection: &Connection) -> FastOpen {
        let handshake = connection.handshake();
        let (option, text_len) = (handshake.syn_option(), handshake.syn_text_len());
        if handshake.first_syn_at().is_none() || option == CookieOption::Absent && handshake.is_syn_cut() {
            return FastOpen::NotSeen;
        }
        if !handshake.is_answered() && !connection.half(Side::Server).has_packets_after_syn() {
            return if handshake.is_refused() { FastOpen::Reset } else { FastOpen::Unanswered };
        }
        if option == CookieOption::Absent && text_len == 0 {
            return FastOpen::NotTried;
        }
        let cookie = handshake.syn_ack_option().cookie();
        let acked = handshake.syn_text_acked();
        match acked {
            Some(acked) if acked > 0 && acked == text_len => match () {
                () if handshake.is_retried() => FastOpen::SynAckLost,
                () if is_stalled(connection) => FastOpen::Stalled,
                () => FastOpen::Accepted { without_cookie: option == CookieOption::Absent },
            },
            Some(acked) if acked > 0 => FastOpen::AcceptedInPart,
            // The SYN-ACK answers a later SYN without option and data.
            _ if handshake.is_retried() && !handshake.is_tried_to_the_end() => FastOpen::Dropped,
            _ if text_len == 0 => match option {
                CookieOption::Cookie(own) if cookie.is_none_or(|granted| granted == own) => {
                    FastOpen::Accepted { without_cookie: false }
                }
                CookieOption::Cookie(_) => FastOpen::NotAcknowledged(Answer::NewCookie),
                CookieOption::Request | CookieOption::Absent => {
                    FastOpen::CookieRequested { granted: cookie.is_some() }
                }
            },
            _ => match (option.cookie(), cookie) {
                (None, Some(_)) => FastOpen::CookieRequested { granted: true },
                (_, None) => FastOpen::NotAcknowledged(Answer::NoOption),
                (Some(own), Some(granted)) if own == granted => FastOpen::NotAcknowledged(Answer::SameCookie),
                (Some(_), Some(_)) => FastOpen::NotAcknowledged(Answer::NewCookie),
            },
        }
    }

    /// A name for programs.
    pub fn name(self) -> &'static str {
        match self {
            FastOpen::NotTried => "not-tried",
            FastOpen::CookieRequested { granted: true } => "cookie-granted",
            FastOpen::CookieRequested { granted: false } => "cookie-not-granted",
            FastOpen::Accepted { without_cookie: false } => "accepted",
            FastOpen::Accepted { without_cookie: true } => "accepted-without-cookie",
            FastOpen::AcceptedInPart => "accepted-in-part",
            FastOpen::Stalled => "stalled-later",
            FastOpen::NotAcknowledged(Answer::NoOption) => "not-acknowledged",
            FastOpen::NotAcknowledged(Answer::NewCookie) => "stale-cookie",
            FastOpen::NotAcknowledged(Answer::SameCookie) => "refused-with-same-cookie",
            FastOpen::Dropped => "dropped",
            FastOpen::SynAckLost => "syn-ack-lost",
            FastOpen::Reset => "reset",
            FastOpen::Unanswered => "unanswered",
            FastOpen::NotSeen => "not-captured",
        }
    }

    /// Returns advice, or `None` if there is no problem or nothing is known.
    pub fn advice(self) -> Option<&'static str> {
        Some(match self {
            FastOpen::CookieRequested { granted: false } => {
                "the server sent no cookie: it has Fast Open disabled (net.ipv4.tcp_fastopen without 0x2, or a listener without \
                 TCP_FASTOPEN), or a middlebox strips the option"
            }
            FastOpen::NotAcknowledged(Answer::NoOption) => {
                "the server accepted no data and sent no cookie: its listener lacks TCP_FASTOPEN, its queue of pending requests is full \
                 (TCPFastOpenListenOverflow), or a middlebox strips the option"
            }
            FastOpen::NotAcknowledged(Answer::NewCookie) => {
                "the server rejected the cookie: its key has changed without a backup, or servers behind one address have different \
                 keys (net.ipv4.tcp_fastopen_key)"
            }
            FastOpen::NotAcknowledged(Answer::SameCookie) => {
                "the cookie is valid, but the server did not accept the data: its queue of pending requests was full, or its replay guard \
                 had seen this SYN"
            }
            FastOpen::Dropped => {
                "the SYN with data or with the option was lost, or a middlebox drops such SYNs; if this happens each time, each attempt \
                 costs a time-out: disable Fast Open for this path"
            }
            FastOpen::Reset => "a reset answered the SYN: no program listens there, or a firewall rejects it",
            FastOpen::Stalled => {
                "the server accepted the data, but nothing came back: a middlebox drops the following packets; disable Fast Open for \
                 this path"
            }
            FastOpen::AcceptedInPart => {
                "the server accepted part of the data; the rest followed with the first acknowledgement"
            }
            FastOpen::NotTried
            | FastOpen::CookieRequested { granted: true }
            | FastOpen::Accepted { .. }
            | FastOpen::SynAckLost
            | FastOpen::Unanswered
            | FastOpen::NotSeen => return None,
        })
    }
}

/// Time that Fast Open saved or cost a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Time saved: one round trip.
    Saved(Duration),
    /// Time lost: the time-out before the SYN without Fast Open.
    Wasted(Duration),
}

impl Connection {
    /// Returns the time that Fast Open saved or cost, or `None` if neither or if the round trip is
    /// unknown.
    pub fn fast_open_effect(&self) -> Option<Effect> {
        match self.fast_open() {
            FastOpen::Accepted { .. } if self.handshake().syn_text_len() > 0 => self.rtt().map(Effect::Saved),
            FastOpen::Dropped => Some(Effect::Wasted(self.handshake().retried_for())),
            _ => None,
        }
    }
}

/// Returns whether the server retransmits its data repeatedly and gets no acknowledgement.
fn is_stalled(connection: &Connection) -> bool {
    const REPEATED: u64 = 3;
    let server = connection.half(Side::Server);
    server.retransmitted_segments() >= REPEATED && !server.is_text_acked()
}

impl fmt::Display for FastOpen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FastOpen::NotTried => "not tried",
            FastOpen::CookieRequested { granted: true } => "cookie requested and granted",
            FastOpen::CookieRequested { granted: false } => "cookie requested, none granted",
            FastOpen::Accepted { without_cookie: false } => "accepted",
            FastOpen::Accepted { without_cookie: true } => "accepted without a cookie",
            FastOpen::AcceptedInPart => "accepted in part",
            FastOpen::Stalled => "accepted, then stalled",
            FastOpen::NotAcknowledged(Answer::NoOption) => "data not acknowledged, no cookie",
            FastOpen::NotAcknowledged(Answer::NewCookie) => "data not acknowledged, another cookie",
            FastOpen::NotAcknowledged(Answer::SameCookie) => "data not acknowledged, same cookie",
            FastOpen::Dropped => "SYN dropped, plain SYN answered",
            FastOpen::SynAckLost => "accepted, first SYN-ACK lost",
            FastOpen::Reset => "reset",
            FastOpen::Unanswered => "unanswered",
            FastOpen::NotSeen => "opening not captured",
        })
    }
}
