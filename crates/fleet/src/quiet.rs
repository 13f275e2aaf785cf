//! The time since the last cookie of the old key.
use std::time::Duration;

/// A counter of cookies accepted with the backup key, watched by one process. Times are relative to
/// any fixed point.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quiet {
    begun: Option<Begun>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Begun {
    version: u64,
    since: Duration,
    uptime: Duration,
    uses: u64,
}

impl Quiet {
    /// Adds an observation: the counter shows `uses`, its owner has run for `uptime`, and plan
    /// `version` is in use. Returns the time without a use, as far as this process has seen it. A
    /// reset counter or a new plan restarts the time.
    pub fn observe(&mut self, now: Duration, version: u64, uptime: Duration, uses: u64) -> Duration {
        let goes_on =
            |begun: &Begun| begun.version == version && begun.uses == uses && begun.uptime <= uptime;
        let since = self.begun.filter(goes_on).map_or(now, |begun| begun.since);
        self.begun = Some(Begun { version, since, uptime, uses });
        now.saturating_sub(since)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_use_a_new_plan_and_a_restart_begin_the_time_anew() {
        let seconds = Duration::from_secs;
        let mut quiet = Quiet::default();
        let mut observe = |now, version, uptime, uses| {
            quiet.observe(seconds(now), version, seconds(uptime), uses).as_secs()
        };
        assert_eq!(observe(100, 3, 50, 7), 0, "what was before is not known");
        assert_eq!(observe(110, 3, 60, 7), 10);
        assert_eq!(observe(120, 3, 70, 8), 0, "a use");
        assert_eq!(observe(125, 3, 75, 8), 5);
        assert_eq!(observe(130, 3, 1, 8), 0, "a restart");
        assert_eq!(observe(135, 3, 6, 8), 5);
        assert_eq!(observe(140, 4, 11, 8), 0, "a new plan");
    }
}
