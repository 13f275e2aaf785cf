//! Counters of fast paths, kept with debug assertions, so that a comparison of stacks with and
//! without them can show that it compared something.

#[cfg(debug_assertions)]
use alloc::{format, string::String};

/// A fast path.
#[derive(Clone, Copy, Debug)]
pub(crate) enum FastPath {
    /// The segment that an open connection expects (`tcp/input/predicted`).
    Segment,
    /// What follows the first segment of a GRO run (`tcp/input/gro_run`).
    Run,
    /// The acknowledgement that makes a connection of a request (`stack/demux/completing`).
    Completing,
    /// That of a Fast Open child (`tcp/input/completing`).
    CompletingChild,
    /// The SYN-ACK that a connection expects (`tcp/input/usual_syn_ack`).
    SynAck,
    /// The first SYN (`tcp/send/output/usual_syn`).
    SynSent,
    /// The first SYN-ACK of a Fast Open child (`tcp/send/output/answer`).
    SynAckSent,
    /// All that was written, as one segment (`tcp/send/output/ordinary`).
    TextSent,
    /// A FIN alone.
    FinSent,
    /// A small write (`tcp/send/write`).
    Write,
}

#[cfg(debug_assertions)]
impl FastPath {
    const ALL: [FastPath; 10] = [
        FastPath::Segment,
        FastPath::Run,
        FastPath::Completing,
        FastPath::CompletingChild,
        FastPath::SynAck,
        FastPath::SynSent,
        FastPath::SynAckSent,
        FastPath::TextSent,
        FastPath::FinSent,
        FastPath::Write,
    ];
}

/// How often each was taken.
#[cfg(debug_assertions)]
#[derive(Clone, Debug, Default)]
pub(crate) struct FastPathsTaken([u64; FastPath::ALL.len()]);

#[cfg(debug_assertions)]
impl FastPathsTaken {
    pub(crate) fn note(&mut self, path: FastPath) {
        self.0[path as usize] += 1;
    }

    /// With the name of each.
    pub(crate) fn all(&self) -> impl Iterator<Item = (String, u64)> {
        FastPath::ALL.into_iter().map(|path| (format!("{path:?}"), self.0[path as usize]))
    }
}
