//! Which cells are measured, how often, and how many at once.
//!
//! A `Job` is one cell with one seed: its three pairings run side by side in namespaces of their
//! own, so that a busy moment of the machine hits them alike. Jobs start as long as the sum of
//! their rates stays within what the machine emulates without falling behind.
use super::bottleneck::Path;
use super::run::{Pairing, Run, run};
use proto::Config;
use qdisc::Probability;
use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// One line of the table.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cell {
    /// `cubic`, `reno` or `bbr`.
    pub algorithm: String,
    /// Round-trip time, ms.
    pub rtt_ms: u64,
    /// Rate, Mbit/s.
    pub rate_mbit: u64,
    /// Segments lost of a thousand.
    pub loss_permille: u64,
}

/// The algorithms of the table.
pub const ALGORITHMS: [&str; 3] = ["cubic", "reno", "bbr"];
/// Its round-trip times, ms.
pub const RTTS: [u64; 2] = [20, 100];
/// Its rates, Mbit/s.
pub const RATES: [u64; 2] = [10, 100];
/// Its losses, of a thousand.
pub const LOSSES: [u64; 3] = [0, 1, 10];

impl Cell {
    /// Every cell, in the table's order.
    pub fn all() -> Vec<Cell> {
        let mut cells = Vec::new();
        for algorithm in ALGORITHMS {
            for rtt_ms in RTTS {
                for rate_mbit in RATES {
                    let losses = LOSSES.into_iter();
                    cells.extend(losses.map(|loss_permille| Cell {
                        algorithm: algorithm.to_owned(),
                        rtt_ms,
                        rate_mbit,
                        loss_permille,
                    }));
                }
            }
        }
        cells
    }

    /// Does loss keep the sender well below the path's rate? Linux's BBR does not mind it, and ours
    /// may not either.
    pub fn is_loss_limited(&self) -> bool {
        self.loss_permille > 0 && self.algorithm != "bbr"
    }

    fn path(&self, seed: u64) -> Path {
        Path {
            rtt: Duration::from_millis(self.rtt_ms),
            rate: self.rate_mbit * 1_000_000,
            loss: Probability::percent(self.loss_permille as f64 / 10.0),
            seed,
        }
    }
}

/// Thoroughness of a measurement.
#[derive(Clone, Debug)]
pub struct Effort {
    /// Settings of our stack.
    pub config: Config,
    /// Settings of the kernel at its ends, beside those that every run sets: name, value.
    pub sysctls: Vec<(String, String)>,
    /// Runs of each cell and pairing, with the seeds 1 to this.
    pub runs: u64,
    /// Length of each,
    pub duration: Duration,
    /// and where loss limits it: a few losses decide such a run, and chance evens out with their
    /// number.
    pub lossy_duration: Duration,
    /// Sum of the rates of the cells that run at once, Mbit/s; each counts once, though it stands
    /// for three paths.
    pub capacity_mbit: u64,
}

/// Measurements of a cell: all runs of each pairing, in the order of their seeds.
pub type Measured = BTreeMap<(Cell, Pairing), Vec<Run>>;

/// What a sender whom loss limits sends at most on the table's paths, Mbit/s: CUBIC at 20 ms and
/// 0.1 %.
const LOSSY_MBIT: u64 = 25;

/// Runs that are taken until one is as it should be.
const TRIES: u32 = 3;

/// A cell with a seed.
struct Job {
    cell: Cell,
    seed: u64,
}

impl Job {
    /// What it takes of a machine's capacity.
    fn weight(&self, capacity: u64) -> u64 {
        let most = if self.cell.is_loss_limited() { LOSSY_MBIT } else { capacity };
        self.cell.rate_mbit.min(most).min(capacity)
    }
}

/// Jobs that wait, and what is free of the machine's capacity.
struct Waiting {
    state: Mutex<(Vec<Job>, u64)>,
    freed: Condvar,
    capacity: u64,
}

/// What a job takes, until it ends, however it does.
struct Share<'a> {
    waiting: &'a Waiting,
    weight: u64,
}

impl Drop for Share<'_> {
    fn drop(&mut self) {
        let mut state = self.waiting.lock();
        state.1 += self.weight;
        if thread::panicking() {
            // Nothing comes of the others: the panic is passed on when those that run have ended.
            state.0.clear();
        }
        drop(state);
        self.waiting.freed.notify_all();
    }
}

impl Waiting {
    fn lock(&self) -> MutexGuard<'_, (Vec<Job>, u64)> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The first job that fits, once there is room for one.
    fn next(&self) -> Option<(Job, Share<'_>)> {
        let mut state = self.lock();
        loop {
            if state.0.is_empty() {
                return None;
            }
            let free = state.1;
            if let Some(at) = state.0.iter().position(|job| job.weight(self.capacity) <= free) {
                let job = state.0.remove(at);
                let weight = job.weight(self.capacity);
                state.1 = free - weight;
                return Some((job, Share { waiting: self, weight }));
            }
            state = self.freed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// Measures `cells`; calls `report` after each job.
///
/// # Panics
/// Where [`run()`] does, or loses packets beside the path time and again.
pub fn measure(cells: &[Cell], effort: &Effort, report: impl Fn(&Cell, u64, &[Run; 3]) + Sync) -> Measured {
    measure_by(cells, effort, report, |job| run_all(job, effort))
}

fn measure_by(
    cells: &[Cell],
    effort: &Effort,
    report: impl Fn(&Cell, u64, &[Run; 3]) + Sync,
    run: impl Fn(&Job) -> [Run; 3] + Sync,
) -> Measured {
    let mut jobs: Vec<Job> = cells
        .iter()
        .flat_map(|cell| (1..=effort.runs).map(|seed| Job { cell: cell.clone(), seed }))
        .collect();
    // Heavy ones first: light ones fill what they leave.
    let capacity = effort.capacity_mbit.max(1);
    jobs.sort_by_key(|job| (std::cmp::Reverse(job.weight(capacity)), job.seed));
    let waiting = Waiting { state: Mutex::new((jobs, capacity)), freed: Condvar::new(), capacity };
    let done = Mutex::new(BTreeMap::new());
    thread::scope(|scope| {
        while let Some((job, share)) = waiting.next() {
            let (done, report, run) = (&done, &report, &run);
            scope.spawn(move || {
                let _share = share;
                let runs = run(&job);
                report(&job.cell, job.seed, &runs);
                done.lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .insert((job.cell.clone(), job.seed), runs);
            });
        }
    });
    let mut measured = Measured::new();
    for ((cell, _), runs) in done.into_inner().unwrap_or_else(PoisonError::into_inner) {
        for (pairing, run) in Pairing::ALL.into_iter().zip(runs) {
            measured.entry((cell.clone(), pairing)).or_default().push(run);
        }
    }
    measured
}

fn run_all(job: &Job, effort: &Effort) -> [Run; 3] {
    let path = job.cell.path(job.seed);
    let lossy = job.cell.is_loss_limited();
    let duration = if lossy { effort.lossy_duration } else { effort.duration };
    thread::scope(|scope| {
        let started = Pairing::ALL.map(|pairing| {
            scope.spawn(move || {
                let settings = (&effort.config, &effort.sysctls[..]);
                undisturbed(|| run(pairing, settings, &job.cell.algorithm, path, duration))
            })
        });
        started.map(|run| run.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
}

/// A run that lost no packet beside the path: one that did says nothing of the path, and is taken
/// again.
fn undisturbed(mut once: impl FnMut() -> Run) -> Run {
    for _ in 0..TRIES {
        let run = once();
        if run.crossed.undelivered == 0 {
            return run;
        }
    }
    panic!(
        "a device lost packets beside the path {TRIES} times: the machine is too busy, so lower --capacity"
    )
}

/// The middle one; of an even number the mean of the two in the middle.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => f64::NAN,
        len if len % 2 == 1 => values[middle],
        _ => (values[middle - 1] + values[middle]) / 2.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::goodput::bottleneck::Crossed;
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

    fn effort(capacity_mbit: u64) -> Effort {
        Effort {
            config: Config::default(),
            sysctls: Vec::new(),
            runs: 2,
            duration: Duration::ZERO,
            lossy_duration: Duration::ZERO,
            capacity_mbit,
        }
    }

    fn run_of(undelivered: u64) -> Run {
        Run { goodput: 1.0, retransmitted: 0, crossed: Crossed { undelivered, ..Crossed::default() } }
    }

    #[test]
    fn no_job_is_too_heavy_for_the_whole_machine() {
        let measured = measure_by(&Cell::all(), &effort(20), |_, _, _| {}, |_| [run_of(0); 3]);
        assert_eq!(measured.len(), 3 * 36);
        assert!(measured.values().all(|runs| runs.len() == 2));
    }

    #[test]
    fn a_job_that_panics_is_told_of_and_holds_up_none() {
        let asked = AtomicU64::new(0);
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            measure_by(
                &Cell::all(),
                &effort(1),
                |_, _, _| {},
                |_| {
                    assert!(asked.fetch_add(1, Relaxed) < 2, "a job that panics");
                    [run_of(0); 3]
                },
            )
        }));
        assert!(outcome.is_err());
        assert_eq!(asked.into_inner(), 3, "no job begins behind it");
    }

    #[test]
    fn a_run_that_lost_packets_beside_the_path_is_taken_again() {
        let mut lost = [7, 1, 0, 5].into_iter();
        undisturbed(|| run_of(lost.next().expect("one more")));
        assert_eq!(lost.next(), Some(5));
        assert!(std::panic::catch_unwind(|| undisturbed(|| run_of(1))).is_err());
    }

    #[test]
    fn thirty_six_cells_and_a_middle() {
        assert_eq!(Cell::all().len(), 36);
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), 2.5);
    }
}
