//! Clocks of hosts.
use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;
use proto::Instant;

/// A source of time for one [`Host`](crate::Host). Time never goes backwards.
pub trait Clock: Send + Sync + 'static {
    /// Returns the current time, in nanoseconds since an epoch of the clock.
    fn now(&self) -> Instant;
}

/// The monotonic clock of the operating system. Its epoch is 100 days before its construction, so
/// that cached entries of earlier runs have a time (no verdict against Fast Open is older than 46
/// days).
#[derive(Clone, Copy, Debug)]
pub struct RealClock {
    epoch: std::time::Instant,
}

impl RealClock {
    /// Creates a clock that begins now.
    #[expect(clippy::new_without_default, reason = "a default that differs at each call would mislead")]
    #[must_use]
    pub fn new() -> RealClock {
        RealClock { epoch: monotonic() }
    }
}

impl Clock for RealClock {
    fn now(&self) -> Instant {
        let elapsed = monotonic().duration_since(self.epoch);
        Instant::ZERO + BEFORE + elapsed
    }
}

/// Time on the clock when it begins.
const BEFORE: Duration = Duration::from_secs(100 * 24 * 3600);

/// Reads the system clock, the only place that does so for a stack.
fn monotonic() -> std::time::Instant {
    sync::monotonic()
}

/// A clock that only moves when told to.
#[derive(Debug, Default)]
pub struct VirtualClock {
    nanos: AtomicU64,
}

impl VirtualClock {
    /// Creates a clock that shows `start`.
    #[must_use]
    pub fn new(start: Instant) -> VirtualClock {
        VirtualClock { nanos: AtomicU64::new(start.as_nanos()) }
    }

    /// Moves the clock forward by `by`.
    pub fn advance(&self, by: Duration) {
        self.advance_to(self.now() + by);
    }

    /// Moves the clock forward to `to`; an earlier time changes nothing.
    pub fn advance_to(&self, to: Instant) {
        self.nanos.fetch_max(to.as_nanos(), Ordering::SeqCst);
    }
}

impl Clock for VirtualClock {
    fn now(&self) -> Instant {
        Instant::from_nanos(self.nanos.load(Ordering::SeqCst))
    }
}

impl<C: Clock> Clock for std::sync::Arc<C> {
    fn now(&self) -> Instant {
        (**self).now()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn virtual_clock_never_goes_back() {
        let clock = VirtualClock::new(Instant::from_nanos(50));
        clock.advance(Duration::from_nanos(10));
        clock.advance_to(Instant::from_nanos(20));
        assert_eq!(clock.now(), Instant::from_nanos(60));
    }

    #[test]
    fn real_clock_is_monotonic() {
        let clock = RealClock::new();
        let earlier = clock.now();
        assert!(clock.now() >= earlier);
    }
}
