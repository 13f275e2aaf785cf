//! A measured connection as values for programs and words for people.

use crate::exchange::{Answer, Exchange, Verdict};
use crate::ladder::{milliseconds, milliseconds_text};
use serde::Serialize;

/// One connection, measured from its packets.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct VisitRecord {
    /// From the first SYN to the first byte of the reply; none when no reply came.
    pub first_byte_ms: Option<f64>,
    /// From the first SYN to the last packet.
    pub total_ms: f64,
    /// What became of Fast Open, e.g. `accepted`.
    pub fast_open: &'static str,
    /// Packets both ends sent.
    pub packets: usize,
    /// Bytes of all those IP packets.
    pub bytes_on_wire: u64,
    /// SYNs sent.
    pub syns: u32,
    /// Data bytes on the first SYN.
    pub syn_data_len: u32,
    /// Of those, acknowledged by the SYN-ACK.
    pub syn_data_acked: u32,
    /// Data bytes on the SYN-ACK.
    pub synack_data_len: u32,
    /// Data bytes the client sent more than once.
    pub bytes_resent: u64,
    /// Cookie on the SYN, hexadecimal.
    pub cookie: Option<String>,
    /// Cookie on the SYN-ACK, hexadecimal.
    pub cookie_granted: Option<String>,
}

impl From<&Exchange> for VisitRecord {
    fn from(exchange: &Exchange) -> VisitRecord {
        VisitRecord {
            first_byte_ms: exchange.time_to_first_byte().map(milliseconds),
            total_ms: milliseconds(exchange.ended_at.since(exchange.started_at)),
            fast_open: word(exchange.verdict),
            packets: exchange.packets(),
            bytes_on_wire: exchange.bytes_on_wire,
            syns: exchange.syns,
            syn_data_len: exchange.syn_data_len,
            syn_data_acked: exchange.syn_data_acked,
            synack_data_len: exchange.synack_data_len,
            bytes_resent: exchange.bytes_resent,
            cookie: exchange.cookie.map(|cookie| cookie.to_string()),
            cookie_granted: exchange.cookie_granted.map(|cookie| cookie.to_string()),
        }
    }
}

/// For programs.
fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Plain => "plain",
        Verdict::CookieRequested { granted: true } => "cookie_granted",
        Verdict::CookieRequested { granted: false } => "no_cookie",
        Verdict::Accepted => "accepted",
        Verdict::Partial => "partial",
        Verdict::NotAcknowledged { answer: Answer::NoOption } => "ignored",
        Verdict::NotAcknowledged { answer: Answer::SameCookie } => "busy",
        Verdict::NotAcknowledged { answer: Answer::NewCookie } => "stale_cookie",
        Verdict::Lost => "lost",
        Verdict::Unanswered => "unanswered",
    }
}

/// What happened on the wire, for people.
pub fn wording(exchange: &Exchange) -> String {
    let len = exchange.syn_data_len;
    match exchange.verdict {
        Verdict::Plain => "plain handshake".into(),
        Verdict::CookieRequested { granted: true } => "asks for a cookie and gets one".into(),
        Verdict::CookieRequested { granted: false } => "asks for a cookie, gets none".into(),
        Verdict::Accepted if len == 0 => "cookie without data, accepted".into(),
        Verdict::Accepted => format!("{len} bytes in the SYN, accepted{}", riding(exchange)),
        Verdict::Partial => format!("{} of the SYN's {len} bytes accepted", exchange.syn_data_acked),
        Verdict::NotAcknowledged { answer } => {
            let answer = match answer {
                Answer::NoOption => "no cookie comes back",
                Answer::SameCookie => "the same cookie comes back",
                Answer::NewCookie => "a new cookie comes",
            };
            format!("{len} bytes in the SYN refused, {answer}")
        }
        Verdict::Lost => format!("{len} bytes in the SYN lost, plain SYN later"),
        Verdict::Unanswered => "no SYN-ACK".into(),
    }
}

/// What became of Fast Open in a few words, for tables with several columns of it.
pub(super) fn short(exchange: &Exchange) -> &'static str {
    match exchange.verdict {
        Verdict::Plain => "plain",
        Verdict::CookieRequested { granted: true } => "cookie granted",
        Verdict::CookieRequested { granted: false } => "no cookie granted",
        Verdict::Accepted if exchange.synack_data_len > 0 => "accepted, reply on SYN-ACK",
        Verdict::Accepted => "accepted",
        Verdict::Partial => "accepted in part",
        Verdict::NotAcknowledged { answer: Answer::NoOption } => "refused",
        Verdict::NotAcknowledged { answer: Answer::SameCookie } => "refused, same cookie",
        Verdict::NotAcknowledged { answer: Answer::NewCookie } => "refused, new cookie",
        Verdict::Lost => "lost, plain SYN later",
        Verdict::Unanswered => "no answer",
    }
}

fn riding(exchange: &Exchange) -> String {
    match exchange.synack_data_len {
        0 => String::new(),
        len => format!("; {len} bytes of reply on the SYN-ACK"),
    }
}

/// A time for people; a dash where there is none.
pub(super) fn ms(time: Option<f64>) -> String {
    time.map_or_else(|| "-".into(), milliseconds_text)
}

/// The time to the first byte, for people.
pub(super) fn first_byte(exchange: &Exchange) -> String {
    ms(exchange.time_to_first_byte().map(milliseconds))
}

/// The times to the first byte of several connections, for people.
pub(super) fn first_bytes<'a>(exchanges: impl IntoIterator<Item = &'a Exchange>) -> String {
    exchanges.into_iter().map(first_byte).collect::<Vec<_>>().join(", ")
}
