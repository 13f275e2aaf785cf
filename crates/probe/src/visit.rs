//! What was seen of one probe.
use crate::plan::Probe;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// What was seen of one probe. Times are in milliseconds since its first SYN.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Visit {
    /// Which.
    pub probe: Probe,
    /// SYNs that were sent.
    pub syns: usize,
    /// Was the SYN that was answered only the plain one, after those with option or data?
    pub fell_back: bool,
    /// What answered.
    pub answer: Answer,
    /// When the answer came.
    pub answered_ms: Option<f64>,
    /// Bytes of data in the SYN.
    pub sent: usize,
    /// Of these, bytes that the SYN-ACK acknowledged.
    pub acknowledged: usize,
    /// The cookie that the SYN-ACK brought, hexadecimal.
    pub cookie: Option<String>,
    /// Length of a cookie that the SYN-ACK brought and that clients ignore (RFC 7413 §4.1.1), bytes.
    pub invalid_cookie: Option<usize>,
    /// Did this host's kernel send neither option nor data, although it was to?
    pub paused: bool,
    /// What the SYN-ACK agreed to.
    pub agreed: Option<Agreed>,
    /// When the first byte of the reply came.
    pub first_byte_ms: Option<f64>,
    /// Segments of the reply that came before any was acknowledged.
    pub segments: usize,
    /// Bytes of them.
    pub reply: usize,
    /// A SYN-ACK opened the connection, and a reset ended it before any reply.
    #[serde(default)]
    pub reset: bool,
}

impl Visit {
    /// Of a probe whose SYN carries `sent` bytes of data, before anything was sent or came back.
    #[must_use]
    pub fn new(probe: Probe, sent: usize) -> Visit {
        Visit {
            probe,
            syns: 0,
            fell_back: false,
            answer: Answer::Nothing,
            answered_ms: None,
            sent,
            acknowledged: 0,
            cookie: None,
            invalid_cookie: None,
            paused: false,
            agreed: None,
            first_byte_ms: None,
            segments: 0,
            reply: 0,
            reset: false,
        }
    }
}

/// What answered a SYN.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// A SYN-ACK.
    SynAck,
    /// A reset.
    Reset,
    /// A router says that the place, or the port, cannot be reached.
    Unreachable(IpAddr),
    /// A router says that the packet is too big for what follows, whose MTU it names.
    TooBig(IpAddr, u32),
    /// The hop limit ended there.
    Expired(IpAddr),
    /// Nothing.
    Nothing,
}

/// What a SYN-ACK agreed to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Agreed {
    /// MSS.
    pub mss: Option<u16>,
    /// Shift of its windows.
    pub window_scale: Option<u8>,
    /// Selective acknowledgements.
    pub sack: bool,
    /// Timestamps.
    pub timestamps: bool,
    /// ECN (RFC 3168).
    pub ecn: bool,
    /// Accurate ECN.
    pub accurate_ecn: bool,
    /// Hops that were left of its packet, where they were seen.
    pub hop_limit: Option<u8>,
}
