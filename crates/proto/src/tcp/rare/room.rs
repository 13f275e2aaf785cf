//! Of a connection whose text the queue before the device does not take (see `tcp/send/output/refused`).

use crate::Instant;

/// Text waits to be admitted, with nothing in flight.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waiting {
    /// Attempts of the timer.
    pub(in crate::tcp) probes: u8,
    /// The last of them, and whether it is still to be made.
    pub(in crate::tcp) probed_at: Instant,
    pub(in crate::tcp) due: bool,
    pub(in crate::tcp) next_at: Instant,
}
