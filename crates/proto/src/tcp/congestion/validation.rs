//! A window that was not used says nothing about the path any more, and decays (RFC 2861 §3.2, RFC 7661 §4.4; as Linux).

use crate::Instant;
use core::time::Duration;

/// Data is about to be sent, nothing is in flight, and nothing was sent for a while.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Idle {
    pub(in crate::tcp) now: Instant,
    /// How long.
    pub(in crate::tcp) idle: Duration,
    /// The window halves for every time-out that has passed; `None` leaves it (`tcp_slow_start_after_idle` = 0).
    pub(in crate::tcp) rto: Option<Duration>,
    /// Below this the window does not fall, bytes.
    pub(in crate::tcp) initial_window: u32,
    /// Nothing more was to be sent.
    pub(in crate::tcp) app_limited: bool,
    pub(in crate::tcp) srtt: Option<Duration>,
}

impl Idle {
    /// `cwnd` and `ssthresh` afterwards (Linux's `tcp_cwnd_restart`).
    pub(super) fn decay(&self, cwnd: u32, ssthresh: u32) -> (u32, u32) {
        let Some(rto) = self.rto.filter(|rto| self.idle > *rto) else { return (cwnd, ssthresh) };
        let halvings = (self.idle.as_nanos() - 1) / rto.as_nanos().max(1);
        let halved = cwnd.checked_shr(halvings.min(32) as u32).unwrap_or(0);
        (halved.max(cwnd.min(self.initial_window)), remembered(cwnd, ssthresh))
    }
}

/// For a whole time-out the window was never full.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unused {
    /// Most bytes in flight meanwhile.
    pub(in crate::tcp) used: u32,
    /// Below this the window does not fall, bytes.
    pub(in crate::tcp) initial_window: u32,
}

impl Unused {
    /// `cwnd` and `ssthresh` afterwards: half-way towards what was used (Linux's `tcp_cwnd_application_limited`).
    pub(super) fn decay(&self, cwnd: u32, ssthresh: u32) -> (u32, u32) {
        let used = self.used.max(self.initial_window);
        if used >= cwnd {
            return (cwnd, ssthresh);
        }
        ((cwnd - used) / 2 + used, remembered(cwnd, ssthresh))
    }
}

/// `ssthresh` keeps the memory of the window: three quarters of it (RFC 2861 §3.2).
fn remembered(cwnd: u32, ssthresh: u32) -> u32 {
    ssthresh.max(cwnd / 2 + cwnd / 4)
}

#[cfg(test)]
mod tests {
    use super::super::events::idle;
    use super::*;

    fn after(ms: u64) -> (u32, u32) {
        idle(ms, 200).decay(100_000, 40_000)
    }

    #[test]
    fn an_idle_window_halves_per_time_out_and_not_below_the_initial_one() {
        let halved = [200, 201, 400, 401, 700, 1000, 3_600_000].map(|ms| after(ms).0);
        assert_eq!(halved, [100_000, 50_000, 50_000, 25_000, 12_500, 10_000, 10_000]);
        assert_eq!([after(200).1, after(201).1], [40_000, 75_000]);
    }

    #[test]
    fn a_window_smaller_than_the_initial_one_stays() {
        let idle = idle(9000, 1000);
        assert_eq!(idle.decay(2000, 5000), (2000, 5000));
        assert_eq!(Idle { rto: None, ..idle }.decay(90_000, 5000), (90_000, 5000));
    }

    #[test]
    fn an_unused_window_moves_half_way_towards_its_use() {
        let unused = |used| Unused { used, initial_window: 10_000 }.decay(50_000, 20_000);
        assert_eq!(unused(30_000), (40_000, 37_500));
        assert_eq!(unused(2_000), (30_000, 37_500));
        assert_eq!(unused(50_000), (50_000, 20_000));
    }
}
