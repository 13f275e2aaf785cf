//! Which SYNs are sent, and how many packets that is at most.
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
    /// Plain, and ECN is asked for (RFC 3168).
    Ecn,
    /// Plain, and Accurate ECN is asked for (RFC 9768).
    AccurateEcn,
}

impl Probe {
    /// In the order in which they are sent.
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

    /// Does it need a cookie?
    pub fn needs_cookie(self) -> bool {
        matches!(self, Probe::Cookie | Probe::CookieAgain | Probe::Big)
    }

    /// Does its SYN carry data?
    pub fn has_data(self) -> bool {
        self.needs_cookie() || self == Probe::DataAlone
    }

    /// Does it only look at the handshake? Then no request is sent.
    pub fn is_handshake_only(self) -> bool {
        matches!(self, Probe::Ecn | Probe::AccurateEcn)
    }

    /// What is sent, in words.
    pub fn words(self) -> &'static str {
        match self {
            Probe::Plain => "a plain SYN, then the request",
            Probe::Request => "a SYN that asks for a cookie, then the request",
            Probe::Cookie => "a SYN with the cookie and the request",
            Probe::CookieAgain => "the same from another port",
            Probe::DataAlone => "a SYN with the request and without the option",
            Probe::Big => "a SYN with the cookie and data that fills it",
            Probe::Ecn => "a plain SYN that asks for ECN",
            Probe::AccurateEcn => "a plain SYN that asks for Accurate ECN",
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

/// SYNs of one probe at most: twice as it is, then plain.
pub const SYNS_MAX: usize = 3;
/// Packets that one probe sends at most: its SYNs, an acknowledgement with the request, a reset.
pub const PACKETS_MAX: usize = SYNS_MAX + 2;
/// SYNs with data and a small hop limit, where SYNs with data are lost.
pub const HOPS_MAX: u8 = 8;
