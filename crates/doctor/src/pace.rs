//! Limits how often a host is sampled, so that sampling stays within a budget of processor time.
//!
//! The kernel reports sockets one by one, so a sample of a host with hundreds of thousands of
//! sockets is expensive. The budget covers the processor time of the whole process, including time
//! in the kernel.
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

/// The sampling rate of a watch.
#[derive(Clone, Debug)]
pub struct Pace {
    interval: Duration,
    /// Percentage of a core.
    budget: f64,
    /// The process's processor time at the end of the last sample.
    counted: Duration,
    slowed: Option<Slowed>,
}

/// The reason why samples are further apart than requested.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Slowed {
    /// Seconds between two samples.
    pub seconds: f64,
    /// Requested seconds between two samples.
    pub asked_seconds: f64,
    /// Processor seconds that the last sample took.
    pub look_seconds: f64,
    /// Percentage of a core that sampling may use.
    pub budget_percent: f64,
}

impl fmt::Display for Slowed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Slowed { seconds, asked_seconds, look_seconds, budget_percent } = self;
        write!(
            f,
            "every {seconds:.1} s, not {asked_seconds:.1} s: one sample takes {look_seconds:.2} s of a core, and --budget is {budget_percent} %"
        )
    }
}

impl Pace {
    /// Creates a pace with this interval and a budget in percent of a core. The first sample starts
    /// now.
    pub fn new(interval: Duration, budget: f64) -> Pace {
        Pace { interval, budget, counted: processor_time(), slowed: None }
    }

    /// Marks the end of a sample, and returns the time to wait before the next one.
    pub fn rest(&mut self) -> Duration {
        let now = processor_time();
        let spent = now.saturating_sub(self.counted);
        self.counted = now;
        self.rest_after(spent)
    }

    fn rest_after(&mut self, spent: Duration) -> Duration {
        let affordable = Duration::try_from_secs_f64(spent.as_secs_f64() * 100.0 / self.budget);
        let pause = self.interval.max(affordable.unwrap_or(Duration::MAX)).min(LONGEST.max(self.interval));
        self.slowed = (pause > self.interval).then_some(Slowed {
            seconds: pause.as_secs_f64(),
            asked_seconds: self.interval.as_secs_f64(),
            look_seconds: spent.as_secs_f64(),
            budget_percent: self.budget,
        });
        pause
    }

    /// Returns the actual and the requested interval if samples are further apart than requested.
    pub fn slowed(&self) -> Option<Slowed> {
        self.slowed
    }
}

/// Longest interval, however expensive a sample is.
const LONGEST: Duration = Duration::from_secs(600);

/// Returns the processor time of this process.
fn processor_time() -> Duration {
    clock_gettime(ClockId::ProcessCPUTime).try_into().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn a_dear_look_is_made_less_often() {
        let mut pace = Pace::new(5000 * MS, 5.0);
        assert_eq!((pace.rest_after(20 * MS), pace.slowed()), (5000 * MS, None));
        assert_eq!(pace.rest_after(400 * MS), 8000 * MS);
        let slowed = pace.slowed().expect("slowed");
        assert_eq!(
            slowed.to_string(),
            "every 8.0 s, not 5.0 s: one sample takes 0.40 s of a core, and --budget is 5 %"
        );
        assert_eq!((pace.rest_after(20 * MS), pace.slowed()), (5000 * MS, None));
    }

    #[test]
    fn a_small_budget_is_no_reason_to_stop_looking() {
        let mut pace = Pace::new(5000 * MS, 0.001);
        assert_eq!(pace.rest_after(400 * MS), LONGEST);
    }

    #[test]
    fn the_time_of_the_process_counts() {
        let mut pace = Pace::new(Duration::ZERO, 50.0);
        let begun = processor_time();
        while processor_time() - begun < 20 * MS {}
        assert!(pace.rest() >= 40 * MS);
    }
}
