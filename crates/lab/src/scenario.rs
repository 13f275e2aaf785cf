//! The experiments: each builds its networks, runs them, and measures what was captured.
//!
//! A scenario is a module with `Params` (what may be varied, with defaults), `run`, and results that are a [`Report`].
//! Times, packets and outcomes in the results come from the capture of the run, never from the parameters.
//!
//! [`Report`]: crate::report::Report

pub mod big_request;
pub mod congestion;
pub mod fallback;
pub mod fast_open;
pub mod flags;
pub mod middlebox;
pub mod packets;
mod pair;
pub mod qlen;
mod record;
pub mod replay;
pub mod textbook;
mod texts;

pub use pair::{Remembered, Run};
pub use record::{VisitRecord, wording};

#[cfg(test)]
mod tests;

/// A scenario, as lists show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it shows.
    pub summary: &'static str,
    /// What it asks.
    pub question: &'static str,
}

/// Every scenario, in the order worth reading.
pub const CATALOGUE: [Entry; 10] = [
    Entry {
        name: "fast-open",
        summary: "requests with and without Fast Open: time to the first byte, packet ladders",
        question: "How much time does Fast Open save on the requests of a client that comes again?",
    },
    Entry {
        name: "packets",
        summary: "packets per exchange: Linux and Linux, Linux and ours, ours and ours",
        question: "How many packets does an exchange of one request and one reply take?",
    },
    Entry {
        name: "fallback",
        summary: "server off, key changed, other source address, NAT: what a refused cookie costs",
        question: "What does it cost when a server refuses a Fast Open cookie?",
    },
    Entry {
        name: "middlebox",
        summary: "SYN data dropped, option stripped, SYN-ACK lost: five visits, ours beside Linux",
        question: "What does Fast Open cost where a middlebox interferes?",
    },
    Entry {
        name: "qlen",
        summary: "more connections at once than the Fast Open queue holds",
        question: "What happens when more Fast Open connections come at once than the listener's queue holds?",
    },
    Entry {
        name: "big-request",
        summary: "a request longer than a SYN can carry",
        question: "What does Fast Open save when the request is longer than a SYN can carry?",
    },
    Entry {
        name: "flags",
        summary: "the bits of tcp_fastopen, client by server, and a spoofed source",
        question: "Which bits of tcp_fastopen, at which end, let data travel on a SYN?",
    },
    Entry {
        name: "replay",
        summary: "a SYN with data sent a second time: is the request delivered twice?",
        question: "Is a request delivered twice when its SYN comes a second time?",
    },
    Entry {
        name: "congestion",
        summary: "a download through a bottleneck under each congestion control: windows over time",
        question: "How does each congestion control fill a bottleneck?",
    },
    Entry {
        name: "textbook",
        summary: "the figure of every course: a window in segments, round by round, through chosen losses",
        question: "How does a congestion window grow and shrink, round by round, through losses?",
    },
];
