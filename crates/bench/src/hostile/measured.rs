//! What was measured of a case.

/// What it took.
#[derive(Clone, Copy, Debug)]
pub struct Measured {
    /// CPU time of a packet, nanoseconds.
    pub nanos: f64,
    /// Bytes held in the end.
    pub pinned: usize,
    /// Bytes sent for each that came.
    pub sent_back: f64,
}

impl Measured {
    /// The cheaper one of two runs of a case.
    #[must_use]
    pub fn cheaper(self, other: Measured) -> Measured {
        if other.nanos < self.nanos { other } else { self }
    }
}
