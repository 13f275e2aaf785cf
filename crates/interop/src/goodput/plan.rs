//! Which cells are measured, how often, and how many at once.
//!
//! A `Job` is one cell with one seed: its three pairings run side by side in namespaces of their own, so that a busy moment of
//! the machine hits them alike. Jobs start as long as the sum of their rates stays within what the machine emulates without
//! falling behind.
use super::bottleneck::Path;
use super::run::{Pairing, Run, run};
use proto::Config;
use qdisc::Probability;
use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, PoisonError};
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

    /// Does loss keep the sender well below the path's rate? Linux's BBR does not mind it, and ours may not either.
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

/// How thorough a measurement is.
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
    /// and where loss limits it: a few losses decide such a run, and chance evens out with their number.
    pub lossy_duration: Duration,
    /// Sum of the rates of the cells that run at once, Mbit/s; each counts once, though it stands for three paths.
    pub capacity_mbit: u64,
}

/// What was measured of a cell: all runs of each pairing, in the order of their seeds.
pub type Measured = BTreeMap<(Cell, Pairing), Vec<Run>>;

/// What a sender whom loss limits sends at most on the table's paths, Mbit/s: CUBIC at 20 ms and 0.1 %.
const LOSSY_MBIT: u64 = 25;

/// A cell with a seed.
struct Job {
    cell: Cell,
    seed: u64,
}

impl Job {
    /// What it takes of a machine's capacity.
    fn weight(&self, capacity: u64) -> u64 {
        let most = if self.cell.is_loss_limited() { LOSSY_MBIT } else { capacity };
        self.cell.rate_mbit.min(most)
    }
}

/// Measures `cells`; `report` is told of each job that is done.
pub fn measure(cells: &[Cell], effort: &Effort, report: impl Fn(&Cell, u64, &[Run; 3]) + Sync) -> Measured {
    let mut jobs: Vec<Job> = cells
        .iter()
        .flat_map(|cell| (1..=effort.runs).map(|seed| Job { cell: cell.clone(), seed }))
        .collect();
    // Heavy ones first: light ones fill what they leave.
    jobs.sort_by_key(|job| (std::cmp::Reverse(job.weight(effort.capacity_mbit)), job.seed));
    let state = Mutex::new((jobs, effort.capacity_mbit));
    let freed = Condvar::new();
    let done = Mutex::new(BTreeMap::new());
    thread::scope(|scope| {
        while let Some(job) = next(&state, &freed, effort.capacity_mbit) {
            let (state, freed, done, report) = (&state, &freed, &done, &report);
            scope.spawn(move || {
                let runs = run_all(&job, effort);
                report(&job.cell, job.seed, &runs);
                done.lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .insert((job.cell.clone(), job.seed), runs);
                state.lock().unwrap_or_else(PoisonError::into_inner).1 += job.weight(effort.capacity_mbit);
                freed.notify_all();
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

/// The first job that fits, once there is room for one.
fn next(state: &Mutex<(Vec<Job>, u64)>, freed: &Condvar, capacity: u64) -> Option<Job> {
    let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
    loop {
        if state.0.is_empty() {
            return None;
        }
        let free = state.1;
        if let Some(at) = state.0.iter().position(|job| job.weight(capacity) <= free) {
            let job = state.0.remove(at);
            state.1 = free - job.weight(capacity);
            return Some(job);
        }
        state = freed.wait(state).unwrap_or_else(PoisonError::into_inner);
    }
}

fn run_all(job: &Job, effort: &Effort) -> [Run; 3] {
    let path = job.cell.path(job.seed);
    let lossy = job.cell.is_loss_limited();
    let duration = if lossy { effort.lossy_duration } else { effort.duration };
    thread::scope(|scope| {
        let started = Pairing::ALL.map(|pairing| {
            scope.spawn(move || {
                run(pairing, (&effort.config, &effort.sysctls), &job.cell.algorithm, path, duration)
            })
        });
        started.map(|run| run.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
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

    #[test]
    fn thirty_six_cells_and_a_middle() {
        assert_eq!(Cell::all().len(), 36);
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), 2.5);
    }
}
