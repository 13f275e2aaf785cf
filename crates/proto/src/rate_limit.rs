//! At most so many answers to strangers and to nonsense per second.

use crate::Instant;
use core::time::Duration;

/// A fixed window of one second.
#[derive(Debug)]
pub(crate) struct RateLimit {
    window_start: Instant,
    used: u32,
}

impl RateLimit {
    pub(crate) fn new() -> RateLimit {
        RateLimit { window_start: Instant::ZERO, used: 0 }
    }

    /// Takes one of `per_second`; false when this second's are used up.
    pub(crate) fn take(&mut self, now: Instant, per_second: u32) -> bool {
        if now.since(self.window_start) >= Duration::from_secs(1) {
            self.window_start = now;
            self.used = 0;
        }
        self.used = self.used.saturating_add(1);
        self.used <= per_second
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_has_its_allowance_and_no_more() {
        let mut limit = RateLimit::new();
        let at = |ms: u64| Instant::from_nanos(ms * 1_000_000);
        let taken = |limit: &mut RateLimit, ms| (0..5).filter(|_| limit.take(at(ms), 3)).count();
        assert_eq!(taken(&mut limit, 0), 3);
        assert_eq!(taken(&mut limit, 999), 0);
        assert_eq!(taken(&mut limit, 1000), 3);
    }
}
