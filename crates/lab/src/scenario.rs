//! Scenarios that are code: each builds its networks, runs them, and measures the captures.
//!
//! A scenario is a module with `Params` (its parameters and their defaults), `run`, and results
//! that implement [`Report`]. Times, packets and outcomes in the results come from the capture of
//! the run, never from the parameters.
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

/// A scenario that is code, as lists show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The name on the command line.
    pub name: &'static str,
    /// The catalog id, such as `L-TFO-4`; empty if it has none.
    pub id: &'static str,
    /// The chapter of the catalog.
    pub chapter: &'static str,
    /// A summary for help texts.
    pub summary: &'static str,
    /// The question that it answers.
    pub question: &'static str,
    /// The answer, as a run without options shows it.
    pub lesson: &'static str,
}

/// All scenarios that are code, in the order worth reading. The other built-in scenarios are files.
pub const CATALOGUE: [Entry; 10] = [
    Entry {
        name: "fast-open",
        id: "L-TFO-1",
        chapter: OPENING,
        summary: "requests with and without Fast Open: time to first byte, packet ladders",
        question: "How much time does Fast Open save for a returning client?",
        lesson: "Plain TCP needs two round trips to the first byte of a reply. With Fast Open the first visit needs two as well, and brings a cookie. Each later visit needs one.",
    },
    Entry {
        name: "packets",
        id: "L-TFO-6",
        chapter: OPENING,
        summary: "packets per exchange: Linux to Linux, Linux to Firstbyte, Firstbyte to Firstbyte",
        question: "How many packets does an exchange of one request and one reply take?",
        lesson: "Ten between two Linux hosts, eight with Fast Open. A Firstbyte server sends its reply and FIN on the SYN-ACK and needs four. Two Firstbyte ends, with the client's FIN on the SYN, need three.",
    },
    Entry {
        name: "fallback",
        id: "L-TFO-3",
        chapter: OPENING,
        summary: "what a rejected cookie costs: server off, key changed, other source address, NAT",
        question: "What does it cost when a server rejects a Fast Open cookie?",
        lesson: "As much as plain TCP: two round trips. The request is sent twice. The rejection brings a new cookie, so the next visit takes one round trip again, unless the client's address changes each time.",
    },
    Entry {
        name: "middlebox",
        id: "L-TFO-7",
        chapter: OPENING,
        summary: "SYN data dropped, option stripped, SYN-ACK lost: five visits, Firstbyte beside Linux",
        question: "What does Fast Open cost where a middlebox interferes?",
        lesson: "Where the path drops SYNs with data, Firstbyte retries with a plain SYN after 100 ms, remembers the path, and pays once. Linux waits a second on every visit.",
    },
    Entry {
        name: "qlen",
        id: "L-TFO-5",
        chapter: OPENING,
        summary: "more connections at once than the Fast Open queue holds",
        question: "What happens when more Fast Open connections arrive than the listener's queue holds?",
        lesson: "The excess connections complete an ordinary handshake: one more round trip, and nothing is lost. A server sets the queue with TCP_FASTOPEN, nginx with `listen 80 fastopen=256`.",
    },
    Entry {
        name: "big-request",
        id: "L-TFO-8",
        chapter: OPENING,
        summary: "a request larger than a SYN can carry",
        question: "What does Fast Open save when the request is larger than a SYN can carry?",
        lesson: "The SYN carries about 1,420 bytes; the rest follows the SYN-ACK. A server that needs the whole request answers no sooner than without Fast Open. A server that echoes answers after one round trip.",
    },
    Entry {
        name: "flags",
        id: "L-TFO-4",
        chapter: OPENING,
        summary: "the bits of tcp_fastopen, client by server, with a spoofed source",
        question: "Which bits of tcp_fastopen, at which end, allow data on a SYN?",
        lesson: "0x1 at the client and 0x2 at the server, from the second visit on: the first brings the cookie. The bits that skip the cookie accept data from the first SYN, and also from a spoofed source.",
    },
    Entry {
        name: "replay",
        id: "L-TFO-9",
        chapter: OPENING,
        summary: "a duplicated SYN with data: is the request delivered twice?",
        question: "Is a request delivered twice when its SYN arrives twice?",
        lesson: "Firstbyte delivers it once: its replay guard recognizes the SYN. Linux delivers it again if the client closed first, because the server keeps no state of the connection.",
    },
    Entry {
        name: "congestion",
        id: "",
        chapter: CONGESTION,
        summary: "a download through a bottleneck with each congestion control: windows over time",
        question: "How does each congestion control fill a bottleneck?",
        lesson: "CUBIC fills the queue until a packet is lost, then backs off. BBR measures rate and round trip: nearly the same throughput, with a shorter queue.",
    },
    Entry {
        name: "textbook",
        id: "L-CC-1",
        chapter: CONGESTION,
        summary: "the textbook figure: a congestion window in segments, round by round, through chosen losses",
        question: "How does a congestion window grow and shrink, round by round, through losses?",
        lesson: "It doubles each round up to the threshold, then grows by one segment a round. A timeout resets it to one segment. Three duplicate ACKs halve it.",
    },
];

const OPENING: &str = "Opening a connection";
const CONGESTION: &str = "Congestion control and loss recovery";
