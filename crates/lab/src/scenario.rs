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
}

/// Every scenario, in the order worth reading.
pub const CATALOGUE: [Entry; 10] = [
    Entry {
        name: "fast-open",
        summary: "requests with and without Fast Open: time to the first byte, packet ladders",
    },
    Entry {
        name: "packets",
        summary: "packets per exchange: Linux and Linux, Linux and ours, ours and ours",
    },
    Entry {
        name: "fallback",
        summary: "server off, key changed, other source address, NAT: what a refused cookie costs",
    },
    Entry {
        name: "middlebox",
        summary: "SYN data dropped, option stripped, SYN-ACK lost: five visits, ours beside Linux",
    },
    Entry { name: "qlen", summary: "more connections at once than the Fast Open queue holds" },
    Entry { name: "big-request", summary: "a request longer than a SYN can carry" },
    Entry { name: "flags", summary: "the bits of tcp_fastopen, client by server, and a spoofed source" },
    Entry { name: "replay", summary: "a SYN with data sent a second time: is the request delivered twice?" },
    Entry {
        name: "congestion",
        summary: "a download through a bottleneck under each congestion control: windows over time",
    },
    Entry {
        name: "textbook",
        summary: "the figure of every course: a window in segments, round by round, through chosen losses",
    },
];
