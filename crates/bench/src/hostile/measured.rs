//! What was measured of a case.

/// The cost of a case.
#[derive(Clone, Copy, Debug)]
pub struct Measured {
    /// CPU time of a packet, nanoseconds.
    pub nanos: f64,
    /// CPU time of an ordinary data packet in the same run, nanoseconds; `None` where none was
    /// sent.
    pub ordinary: Option<f64>,
    /// Bytes held in the end.
    pub pinned: usize,
    /// Bytes sent for each that came.
    pub sent_back: f64,
}

impl Measured {
    /// The cost of a packet in ordinary data packets of the same run. Infinite where none was sent.
    pub fn cost(&self) -> f64 {
        self.ordinary.map_or(f64::INFINITY, |ordinary| self.nanos / ordinary)
    }

    /// The cheaper one of two runs of a case: by cost, or by time where no ordinary packets were
    /// sent.
    #[must_use]
    pub fn cheaper(self, other: Measured) -> Measured {
        let key = |measured: Measured| (measured.cost(), measured.nanos);
        if key(other) < key(self) { other } else { self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A busy machine slows both: the run counts whose ratio is least, not the one that took least
    /// time.
    #[test]
    fn the_cheaper_run_is_the_one_that_costs_fewer_ordinary_packets() {
        let run = |nanos, ordinary| Measured { nanos, ordinary, pinned: 0, sent_back: 0.0 };
        let (quiet, busy) = (run(120.0, Some(100.0)), run(550.0, Some(500.0)));
        assert_eq!(quiet.cheaper(busy).nanos, 550.0);
        assert_eq!(busy.cheaper(quiet).nanos, 550.0);
        assert_eq!(run(120.0, None).cheaper(run(110.0, None)).nanos, 110.0);
    }
}
