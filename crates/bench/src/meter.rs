//! Time: the stack's clock, and what a stretch of work took.

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;
use proto::Instant;
use rustix::time::{ClockId, Timespec, clock_gettime};
use std::sync::atomic::{AtomicU64, Ordering};

/// Nanoseconds from one look at the clock to the next; 0: as the machine's clock says.
static STEP: AtomicU64 = AtomicU64::new(0);
/// Where a clock that steps is; it does not begin at nothing.
static STEPPED: AtomicU64 = AtomicU64::new(1_000_000_000_000);

/// From now on time goes on by so many nanoseconds at each look, however long that takes: every run
/// is the same.
pub fn step_clock(nanos: u64) {
    STEP.store(nanos, Ordering::Relaxed);
}

/// The clock as a stack wants it: the machine's monotonic one, unless it [steps](step_clock).
pub fn now() -> Instant {
    Instant::from_nanos(match STEP.load(Ordering::Relaxed) {
        0 => nanos(clock_gettime(ClockId::Monotonic)),
        step => STEPPED.fetch_add(step, Ordering::Relaxed),
    })
}

fn nanos(time: Timespec) -> u64 {
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The beginning of a stretch of work.
pub struct Meter {
    wall: u64,
    cpu: u64,
    split: (f64, f64),
}

/// Time spent, in seconds. `cpu` is the process's, user and system, all threads.
#[derive(Clone, Copy, Debug)]
pub struct Spent {
    /// By the monotonic clock.
    pub wall: f64,
    /// `CLOCK_PROCESS_CPUTIME_ID`.
    pub cpu: f64,
    /// Seconds of `cpu` in user mode; split by the kernel's tick.
    pub user: f64,
    /// Seconds of `cpu` in the kernel.
    pub system: f64,
}

impl Meter {
    /// Starts.
    pub fn start() -> Meter {
        Meter { split: user_and_system(), cpu: cpu_nanos(), wall: now().as_nanos() }
    }

    /// Returns the time spent since.
    pub fn spent(&self) -> Spent {
        let wall = now().as_nanos() - self.wall;
        let cpu = cpu_nanos() - self.cpu;
        let (user, system) = user_and_system();
        Spent {
            wall: wall as f64 / 1e9,
            cpu: cpu as f64 / 1e9,
            user: user - self.split.0,
            system: system - self.split.1,
        }
    }
}

/// CPU time of this thread over a short stretch of work: what others do on the machine is not in
/// it.
pub struct Stopwatch {
    begun: u64,
    /// What two looks at the clock take by themselves.
    looks: u64,
}

impl Stopwatch {
    /// Starts.
    pub fn start() -> Stopwatch {
        let before = thread_cpu_nanos();
        let begun = thread_cpu_nanos();
        Stopwatch { begun, looks: begun - before }
    }

    /// Nanoseconds since.
    pub fn nanos(&self) -> u64 {
        (thread_cpu_nanos() - self.begun).saturating_sub(self.looks)
    }
}

fn thread_cpu_nanos() -> u64 {
    nanos(clock_gettime(ClockId::ThreadCPUTime))
}

fn cpu_nanos() -> u64 {
    nanos(clock_gettime(ClockId::ProcessCPUTime))
}

fn user_and_system() -> (f64, f64) {
    let seconds = |time: TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6;
    getrusage(UsageWho::RUSAGE_SELF)
        .map_or((0.0, 0.0), |usage| (seconds(usage.user_time()), seconds(usage.system_time())))
}
