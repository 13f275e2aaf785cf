//! The observations of one probe.
use crate::plan::Probe;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// The observations of one probe. Times are in milliseconds since its first SYN.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Visit {
    /// The probe.
    pub probe: Probe,
    /// Number of SYNs sent.
    pub syns: usize,
    /// True if only the plain SYN was answered, after those with option or data.
    pub fell_back: bool,
    /// The answer to the SYN.
    pub answer: Answer,
    /// Time of the answer.
    pub answered_ms: Option<f64>,
    /// Bytes of data in the SYN.
    pub sent: usize,
    /// Bytes of `sent` that the SYN-ACK acknowledged.
    pub acknowledged: usize,
    /// The cookie of the SYN-ACK, hexadecimal.
    pub cookie: Option<String>,
    /// Length of a cookie of the SYN-ACK that clients ignore (RFC 7413 §4.1.1), bytes.
    pub invalid_cookie: Option<usize>,
    /// True if this host's kernel sent neither option nor data, although it should.
    pub paused: bool,
    /// Options that the SYN-ACK agreed to.
    pub agreed: Option<Agreed>,
    /// Time of the first byte of the reply.
    pub first_byte_ms: Option<f64>,
    /// Segments of the reply that arrived before any ACK.
    pub segments: usize,
    /// Bytes of these segments.
    pub reply: usize,
    /// True if a SYN-ACK opened the connection, and a reset ended it before any reply.
    #[serde(default)]
    pub reset: bool,
}

impl Visit {
    /// Creates a visit of a probe whose SYN carries `sent` bytes of data, without observations.
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

/// The answer to a SYN.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// A SYN-ACK.
    SynAck,
    /// A reset.
    Reset,
    /// A router reports that the host or port is unreachable.
    Unreachable(IpAddr),
    /// A router reports that the packet is too big, with the MTU of the next hop.
    TooBig(IpAddr, u32),
    /// The hop limit expired at this router.
    Expired(IpAddr),
    /// No answer.
    Nothing,
}

/// Options that a SYN-ACK agreed to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Agreed {
    /// MSS.
    pub mss: Option<u16>,
    /// Window scale.
    pub window_scale: Option<u8>,
    /// Selective acknowledgements.
    pub sack: bool,
    /// Timestamps.
    pub timestamps: bool,
    /// ECN (RFC 3168).
    pub ecn: bool,
    /// Accurate ECN.
    pub accurate_ecn: bool,
    /// Remaining hop limit of its packet, if known.
    pub hop_limit: Option<u8>,
}
