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
    /// What is to be learnt from it as it is run without options.
    pub lesson: &'static str,
}

/// Every scenario, in the order worth reading.
pub const CATALOGUE: [Entry; 10] = [
    Entry {
        name: "fast-open",
        summary: "requests with and without Fast Open: time to the first byte, packet ladders",
        question: "How much time does Fast Open save on the requests of a client that comes again?",
        lesson: "Plain TCP takes two round trips to the first byte of a reply. With Fast Open the first visit does, too, and brings a cookie; each later one takes one.",
    },
    Entry {
        name: "packets",
        summary: "packets per exchange: Linux and Linux, Linux and ours, ours and ours",
        question: "How many packets does an exchange of one request and one reply take?",
        lesson: "Ten between two Linux hosts, eight with Fast Open. A Firstbyte server, whose reply and FIN ride on the SYN-ACK, needs four; two Firstbyte ends, with the client's FIN on the SYN, three.",
    },
    Entry {
        name: "fallback",
        summary: "server off, key changed, other source address, NAT: what a refused cookie costs",
        question: "What does it cost when a server refuses a Fast Open cookie?",
        lesson: "What plain TCP costs, two round trips, and the request is sent twice. A new cookie comes with the refusal, so that the next visit takes one again, unless the client's address changes each time.",
    },
    Entry {
        name: "middlebox",
        summary: "SYN data dropped, option stripped, SYN-ACK lost: five visits, ours beside Linux",
        question: "What does Fast Open cost where a middlebox interferes?",
        lesson: "Where SYNs with data are lost, Firstbyte sends a plain one after 100 ms, remembers the path, and pays that once. Linux waits a second, on every visit.",
    },
    Entry {
        name: "qlen",
        summary: "more connections at once than the Fast Open queue holds",
        question: "What happens when more Fast Open connections come at once than the listener's queue holds?",
        lesson: "What the queue does not hold becomes an ordinary handshake: it takes a round trip more, and nothing is lost.",
    },
    Entry {
        name: "big-request",
        summary: "a request longer than a SYN can carry",
        question: "What does Fast Open save when the request is longer than a SYN can carry?",
        lesson: "Some 1,420 bytes ride on the SYN, the rest follows the SYN-ACK. A server that needs all of the request answers no sooner than without; one that echoes answers after one round trip.",
    },
    Entry {
        name: "flags",
        summary: "the bits of tcp_fastopen, client by server, and a spoofed source",
        question: "Which bits of tcp_fastopen, at which end, let data travel on a SYN?",
        lesson: "0x1 at the client and 0x2 at the server, from the second visit on: the first brings the cookie. Bits that do without a cookie let data in from the first SYN, and from a spoofed source.",
    },
    Entry {
        name: "replay",
        summary: "a SYN with data sent a second time: is the request delivered twice?",
        question: "Is a request delivered twice when its SYN comes a second time?",
        lesson: "Once by Firstbyte, whose replay guard knows the SYN. Linux delivers it again where the client closed first, and nothing of the connection is left at the server.",
    },
    Entry {
        name: "congestion",
        summary: "a download through a bottleneck under each congestion control: windows over time",
        question: "How does each congestion control fill a bottleneck?",
        lesson: "CUBIC fills the queue until a packet is lost, and backs off. BBR measures rate and round trip: nearly as much gets through, with a shorter queue.",
    },
    Entry {
        name: "textbook",
        summary: "the figure of every course: a window in segments, round by round, through chosen losses",
        question: "How does a congestion window grow and shrink, round by round, through losses?",
        lesson: "It doubles each round up to the threshold, then grows by a segment a round. A time-out starts it over at one segment; after duplicate ACKs it goes on at half.",
    },
];
