//! A measured connection as values for programs and words for people.

use crate::exchange::{Answer, Exchange, Verdict};
use crate::ladder::{milliseconds, milliseconds_text};
use serde::Serialize;

/// One connection, measured from its packets.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct VisitRecord {
    /// From the first SYN to the first byte of the reply; `None` if no reply came.
    pub first_byte_ms: Option<f64>,
    /// From the first SYN to the last packet.
    pub total_ms: f64,
    /// The result of Fast Open, e.g. `accepted`.
    pub fast_open: &'static str,
    /// Packets that both ends sent.
    pub packets: usize,
    /// Bytes of all these IP packets.
    pub bytes_on_wire: u64,
    /// Number of SYNs.
    pub syns: u32,
    /// Data bytes on the first SYN.
    pub syn_data_len: u32,
    /// Bytes of them acknowledged by the SYN-ACK.
    pub syn_data_acked: u32,
    /// Data bytes on the SYN-ACK.
    pub synack_data_len: u32,
    /// Data bytes that the client retransmitted.
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

/// Returns the result as a word for programs.
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

/// Describes the result on the wire for people.
pub fn wording(exchange: &Exchange) -> String {
    let len = exchange.syn_data_len;
    match exchange.verdict {
        Verdict::Plain => "plain handshake".into(),
        Verdict::CookieRequested { granted: true } => "cookie requested and granted".into(),
        Verdict::CookieRequested { granted: false } => "cookie requested, not granted".into(),
        Verdict::Accepted if len == 0 => "cookie without data, accepted".into(),
        Verdict::Accepted => format!("{len} bytes in the SYN, accepted{}", riding(exchange)),
        Verdict::Partial => format!("{} of the SYN's {len} bytes accepted", exchange.syn_data_acked),
        Verdict::NotAcknowledged { answer } => {
            let answer = match answer {
                Answer::NoOption => "no cookie returned",
                Answer::SameCookie => "the same cookie returned",
                Answer::NewCookie => "a new cookie granted",
            };
            format!("{len} bytes in the SYN rejected, {answer}")
        }
        Verdict::Lost => format!("{len} bytes in the SYN lost, plain SYN later"),
        Verdict::Unanswered => "no SYN-ACK".into(),
    }
}

/// Describes the result in a few words, for tables with several such columns.
pub(super) fn short(exchange: &Exchange) -> &'static str {
    match exchange.verdict {
        Verdict::Plain => "plain",
        Verdict::CookieRequested { granted: true } => "cookie granted",
        Verdict::CookieRequested { granted: false } => "no cookie granted",
        Verdict::Accepted if exchange.synack_data_len > 0 => "accepted, reply on SYN-ACK",
        Verdict::Accepted => "accepted",
        Verdict::Partial => "partly accepted",
        Verdict::NotAcknowledged { answer: Answer::NoOption } => "refused",
        Verdict::NotAcknowledged { answer: Answer::SameCookie } => "rejected, same cookie",
        Verdict::NotAcknowledged { answer: Answer::NewCookie } => "rejected, new cookie",
        Verdict::Lost => "lost, plain SYN later",
        Verdict::Unanswered => "no answer",
    }
}

fn riding(exchange: &Exchange) -> String {
    match exchange.synack_data_len {
        0 => String::new(),
        len => format!("; {len} reply bytes on the SYN-ACK"),
    }
}

/// Formats a time; a dash for `None`.
pub(super) fn ms(time: Option<f64>) -> String {
    time.map_or_else(|| "-".into(), milliseconds_text)
}

/// Formats the time to first byte.
pub(super) fn first_byte(exchange: &Exchange) -> String {
    ms(exchange.time_to_first_byte().map(milliseconds))
}

/// Formats the times to first byte of several connections.
pub(super) fn first_bytes<'a>(exchanges: impl IntoIterator<Item = &'a Exchange>) -> String {
    exchanges.into_iter().map(first_byte).collect::<Vec<_>>().join(", ")
}
