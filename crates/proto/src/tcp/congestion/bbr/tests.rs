//! BBR's modes with exact figures.

use crate::tcp::delivery::RateSample;

/// So many bytes delivered in so many microseconds.
pub(super) fn rate_sample(delivered: u32, micros: u32) -> RateSample {
    RateSample {
        newly_acked: delivered,
        total: delivered,
        prior_delivered: 0,
        micros,
        app_limited: false,
        tx_in_flight: delivered,
        lost: 0,
        rtt: None,
    }
}
