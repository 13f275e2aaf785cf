//! Fast Open (RFC 7413) as a handshake shows it, and the time that it saved or cost.

use crate::connection::{Connection, CookieOption, Side};
use core::fmt;
use core::time::Duration;

/// The outcome of Fast Open in a handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FastOpen {
    /// The SYN had neither the option nor text.
    NotTried,
    /// The SYN asked for a cookie (RFC 7413 section 4.1.1).
    CookieRequested {
        /// The SYN-ACK brought one.
        granted: bool,
    },
    /// The SYN-ACK acknowledged the SYN's text; or the SYN had a cookie and nothing to say.
    Accepted {
        /// The SYN had no cookie: client and server are told to do without.
        without_cookie: bool,
    },
    /// The SYN-ACK acknowledged a part of the text.
    AcceptedInPart,
    /// The text was taken, and afterwards nothing of the server's came through.
    Stalled,
    /// The SYN-ACK acknowledged the SYN alone.
    NotAcknowledged(Answer),
    /// The SYN with text, or with the option, was not answered; one without was.
    Dropped,

    /// The text was taken, but the first SYN-ACK was lost on the way: a later one acknowledges it.
    SynAckLost,
    /// The server, or somebody on the way, answered by a reset.
    Reset,
    /// There was no answer at all.
    Unanswered,
    /// The SYN was not captured, or not its options.
    NotSeen,
}

/// The Fast Open option of a SYN-ACK that did not acknowledge the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Answer {
    /// No option: the server does not do Fast Open, its queue of pending requests is full, or somebody on the way strips the option.
    NoOption,
    /// Another cookie: the server's key has changed, or this is another server behind the same address.
    NewCookie,
    /// The cookie that the client has sent: the server holds it valid and still took no text (its queue was full, or it had seen this SYN before).
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
            // The SYN-ACK answers the SYN without option and text that followed.
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

    /// Returns advice; `None` where all is well or nothing is known.
    pub fn advice(self) -> Option<&'static str> {
        Some(match self {
            FastOpen::CookieRequested { granted: false } => {
                "the server gave no cookie: Fast Open is off there (net.ipv4.tcp_fastopen without 0x2, or a listener without \
                 TCP_FASTOPEN), or the option is stripped on the way"
            }
            FastOpen::NotAcknowledged(Answer::NoOption) => {
                "the server took no data and gave no cookie: its listener lacks TCP_FASTOPEN, its queue of pending requests is full \
                 (TCPFastOpenListenOverflow), or the option is stripped on the way"
            }
            FastOpen::NotAcknowledged(Answer::NewCookie) => {
                "the cookie was not the server's: its key has changed without a backup, or servers behind one address have different \
                 keys (net.ipv4.tcp_fastopen_key)"
            }
            FastOpen::NotAcknowledged(Answer::SameCookie) => {
                "the cookie is valid, the data was still not taken: the queue of pending requests was full, or a replay guard had seen \
                 this SYN"
            }
            FastOpen::Dropped => {
                "the SYN with data or with the option was lost by chance, or somebody on the way drops such SYNs: if it happens each time, \
                 each attempt costs a time-out; then turn Fast Open off for this path"
            }
            FastOpen::Reset => {
                "the SYN was answered by a reset: nobody listens there, or somebody on the way forbids it"
            }
            FastOpen::Stalled => {
                "the data was taken and nothing came back: somebody on the way drops what follows; turn Fast Open off for this path"
            }
            FastOpen::AcceptedInPart => {
                "the server took a part of the data: the rest followed with the first acknowledgement"
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
    /// This much earlier: one round trip.
    Saved(Duration),
    /// This much later: the time-out before the SYN without it.
    Wasted(Duration),
}

impl Connection {
    /// Returns the time that Fast Open saved or cost; `None`: nothing, or the round trip is not
    /// known.
    pub fn fast_open_effect(&self) -> Option<Effect> {
        match self.fast_open() {
            FastOpen::Accepted { .. } if self.handshake().syn_text_len() > 0 => self.rtt().map(Effect::Saved),
            FastOpen::Dropped => Some(Effect::Wasted(self.handshake().retried_for())),
            _ => None,
        }
    }
}

/// The server's text is retransmitted again and again, and nothing of it is acknowledged.
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
