//! Counters of fast paths, kept with debug assertions, so that a comparison of stacks with and
//! without them can show that it compared something.

#[cfg(debug_assertions)]
use alloc::{format, string::String};

/// A fast path.
#[derive(Clone, Copy, Debug)]
pub(crate) enum FastPath {
    /// The next segment of an open connection (`tcp/input/predicted`).
    Segment,
    /// Segments that continue a GRO run (`tcp/input/gro_run`).
    Run,
    /// The acknowledgement that completes the handshake of a Fast Open child
    /// (`tcp/input/completing`).
    CompletingChild,
    /// The first SYN-ACK of a Fast Open child (`tcp/send/output/answer`).
    SynAckSent,
    /// All unsent data, as one segment (`tcp/send/output/ordinary`).
    TextSent,
    /// A FIN without data.
    FinSent,
    /// A small write (`tcp/send/write`).
    Write,
}

#[cfg(debug_assertions)]
impl FastPath {
    const ALL: [FastPath; 7] = [
        FastPath::Segment,
        FastPath::Run,
        FastPath::CompletingChild,
        FastPath::SynAckSent,
        FastPath::TextSent,
        FastPath::FinSent,
        FastPath::Write,
    ];
}

/// Number of times that each path was taken.
#[cfg(debug_assertions)]
#[derive(Clone, Debug, Default)]
pub(crate) struct FastPathsTaken([u64; FastPath::ALL.len()]);

#[cfg(debug_assertions)]
impl FastPathsTaken {
    pub(crate) fn note(&mut self, path: FastPath) {
        self.0[path as usize] += 1;
    }

    /// Returns the name and count of each path.
    pub(crate) fn all(&self) -> impl Iterator<Item = (String, u64)> {
        FastPath::ALL.into_iter().map(|path| (format!("{path:?}"), self.0[path as usize]))
    }
}
