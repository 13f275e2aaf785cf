//! The outcome of a visit, layer by layer.
use proto::Outcome;

/// The outcome of a client's connection, layer by layer: the cookie of Fast Open, the ticket of
/// TLS, and early data. Only if all three were accepted was the answer there after one round trip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TlsOutcome {
    /// The outcome of the data on the SYN, which is the ClientHello and the early data.
    pub fast_open: Outcome,
    /// The outcome of the ticket of an earlier session.
    pub ticket: Ticket,
    /// The outcome of the first bytes of the stream.
    pub early_data: EarlyBytes,
}

/// The ticket of an earlier session (RFC 8446 §2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ticket {
    /// None was known, or it had expired.
    None,
    /// The server's answer has not come yet.
    Pending,
    /// The session was resumed.
    Accepted,
    /// The server made a whole handshake instead: it does not know the ticket, or it was used.
    Refused,
}

/// The first bytes of the stream, with regard to early data (RFC 8446 §2.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EarlyBytes {
    /// Not sent early.
    NotSent(NotSent),
    /// Sent early; the server's answer has not come yet.
    Pending,
    /// The server has taken them.
    Accepted,
    /// The server has not taken them. They were repeated after the handshake.
    Refused,
}

/// The reason why the first bytes of a stream waited for the handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotSent {
    /// Early data was not asked for, or nothing was written yet.
    NotAsked,
    /// No ticket was known.
    NoTicket,
    /// The server takes no early data with this ticket.
    NotTaken,
    /// The first request may not be executed twice.
    NotRepeatable,
    /// The first bytes are more than the server takes.
    TooLong,
}
