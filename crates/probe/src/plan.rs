//! The SYNs to send, and the most packets they need.
use serde::{Deserialize, Serialize};
use std::fmt;

/// A form of SYN.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Probe {
    /// Neither option nor data.
    Plain,
    /// An empty Fast Open option.
    Request,
    /// The cookie, and the request as data.
    Cookie,
    /// The cookie, and the request as data, from another port.
    CookieAgain,
    /// The request as data, without the option.
    DataAlone,
    /// The cookie, and data that fills the segment.
    Big,
    /// Plain, with an ECN request (RFC 3168).
    Ecn,
    /// Plain, with an Accurate ECN request (RFC 9768).
    AccurateEcn,
}

impl Probe {
    /// All probes, in the order of sending.
    pub const ALL: [Probe; 8] = [
        Probe::Plain,
        Probe::Request,
        Probe::Cookie,
        Probe::CookieAgain,
        Probe::DataAlone,
        Probe::Big,
        Probe::Ecn,
        Probe::AccurateEcn,
    ];

    /// True if it needs a cookie.
    pub fn needs_cookie(self) -> bool {
        matches!(self, Probe::Cookie | Probe::CookieAgain | Probe::Big)
    }

    /// True if its SYN carries data.
    pub fn has_data(self) -> bool {
        self.needs_cookie() || self == Probe::DataAlone
    }

    /// True if it only tests the handshake, without a request.
    pub fn is_handshake_only(self) -> bool {
        matches!(self, Probe::Ecn | Probe::AccurateEcn)
    }

    /// Describes the packets sent.
    pub fn words(self) -> &'static str {
        match self {
            Probe::Plain => "a plain SYN, then the request",
            Probe::Request => "a SYN that requests a cookie, then the request",
            Probe::Cookie => "a SYN with the cookie and the request",
            Probe::CookieAgain => "the same from another port",
            Probe::DataAlone => "a SYN with the request, without the option",
            Probe::Big => "a SYN with the cookie and data that fills it",
            Probe::Ecn => "a plain SYN that requests ECN",
            Probe::AccurateEcn => "a plain SYN that requests Accurate ECN",
        }
    }
}

impl fmt::Display for Probe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Probe::Plain => "plain",
            Probe::Request => "request",
            Probe::Cookie => "cookie and data",
            Probe::CookieAgain => "the same again",
            Probe::DataAlone => "data alone",
            Probe::Big => "big",
            Probe::Ecn => "ECN",
            Probe::AccurateEcn => "Accurate ECN",
        })
    }
}

/// Most SYNs of one probe: twice the form, then a plain one.
pub const SYNS_MAX: usize = 3;
/// Most packets of one probe: its SYNs, an ACK with the request, a reset.
pub const PACKETS_MAX: usize = SYNS_MAX + 2;
/// Number of SYNs with data and a small hop limit, if SYNs with data are lost.
pub const HOPS_MAX: u8 = 8;
