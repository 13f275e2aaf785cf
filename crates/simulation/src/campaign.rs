//! Many worlds on several threads: each seed is played, panics are caught, and a world that does
//! not come back is named.

use crate::open::Open;
use crate::scenario::{Intensity, Scenario};
use crate::world::{Failure, Summary, play};
use core::cell::RefCell;
use core::ops::Range;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use core::time::Duration;
use rustix::time::{ClockId, clock_gettime};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, Once, PoisonError};

/// A world takes a millisecond; one during which each thread has worked this long does not end.
/// (Time on the processor: a busy machine is no fault.)
const STUCK: Duration = Duration::from_secs(60);
/// One in so many worlds is played twice, which must give the same packets.
const TWICE: u64 = 50;

/// One world in this many has an attacker.
pub const ATTACKED_EVERY: u64 = 5;

/// Which worlds to play.
#[derive(Clone, Debug)]
pub struct Campaign {
    /// Their seeds.
    pub seeds: Range<u64>,
    /// Rows off their defaults; in turn, if there are several.
    pub intensities: Vec<Intensity>,
    /// One in so many worlds has an attacker; 0: none.
    pub attacked_every: u64,
    /// See [`Scenario::differential`].
    pub differential: bool,
    /// Threads.
    pub threads: usize,
    /// Failures that are listed, and end nothing.
    pub open: Open,
    /// Failures after which it ends, without those that are listed.
    pub most_failures: usize,
}

/// The results of a campaign.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Worlds played.
    pub worlds: u64,
    /// Sums over the worlds that passed; the fingerprint is the sum of all.
    pub totals: Summary,
    /// Time on the processor, of all threads.
    pub core: Duration,
    /// Seeds that failed.
    pub failures: Vec<(u64, Failure)>,
}

impl Campaign {
    /// The scenario of a seed.
    pub fn scenario(&self, seed: u64) -> Scenario {
        let attacked = self.attacked_every > 0 && (seed / 5).is_multiple_of(self.attacked_every);
        let drawn = Scenario::draw(seed, self.intensity(seed), attacked);
        if self.differential { drawn.compared() } else { drawn }
    }

    /// The intensity of a seed.
    pub fn intensity(&self, seed: u64) -> Intensity {
        self.intensities[(seed % self.intensities.len() as u64) as usize]
    }

    /// Everything that makes a world of a seed, in words.
    pub fn kind(&self) -> String {
        let intensities: Vec<_> = self.intensities.iter().map(|intensity| intensity.name()).collect();
        let differential = if self.differential { "; differential" } else { "" };
        format!("{}; attacked 1 in {}{differential}", intensities.join(", "), self.attacked_every)
    }

    /// Failures that are not listed.
    pub fn unlisted(&self, outcome: &Outcome) -> usize {
        outcome.failures.iter().filter(|(seed, failure)| !self.open.has(*seed, failure)).count()
    }

    /// Plays all of them. `progress` hears now and then what has become of them.
    pub fn run(&self, mut progress: impl FnMut(&Outcome)) -> Outcome {
        let begun = worked();
        let next = AtomicU64::new(self.seeds.start);
        let over = AtomicBool::new(false);
        let busy: Vec<Mutex<Option<(u64, Duration)>>> = (0..self.threads).map(|_| Mutex::new(None)).collect();
        let outcome = Mutex::new(Outcome::default());
        std::thread::scope(|scope| {
            let workers: Vec<_> =
                busy.iter().map(|busy| scope.spawn(|| self.work(&next, &over, busy, &outcome))).collect();
            while workers.iter().any(|worker| !worker.is_finished()) {
                std::thread::park_timeout(Duration::from_millis(200));
                progress(&lock(&outcome));
                for busy in &busy {
                    if let Some((seed, since)) = *lock(busy)
                        && worked().saturating_sub(since) > STUCK * self.threads as u32
                    {
                        eprintln!("seed {seed} does not come back: play it with --seed {seed}");
                        std::process::exit(1);
                    }
                }
            }
        });
        let mut outcome = outcome.into_inner().unwrap_or_else(PoisonError::into_inner);
        outcome.core = worked() - begun;
        outcome.failures.sort_by_key(|(seed, _)| *seed);
        outcome
    }

    fn work(
        &self,
        next: &AtomicU64,
        over: &AtomicBool,
        busy: &Mutex<Option<(u64, Duration)>>,
        outcome: &Mutex<Outcome>,
    ) {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= self.seeds.end || over.load(Ordering::Relaxed) {
                return;
            }
            *lock(busy) = Some((seed, worked()));
            let scenario = self.scenario(seed);
            let played = attempt(&scenario, false).and_then(|summary| match seed % TWICE {
                0 => same_again(&scenario, summary),
                _ => Ok(summary),
            });
            *lock(busy) = None;
            let mut outcome = lock(outcome);
            outcome.worlds += 1;
            match played {
                Ok(summary) => outcome.totals.add(summary),
                Err(failure) => outcome.failures.push((seed, failure)),
            }
            if self.unlisted(&outcome) >= self.most_failures {
                over.store(true, Ordering::Relaxed);
            }
        }
    }
}

/// Time that this process has been on a processor.
fn worked() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn same_again(scenario: &Scenario, summary: Summary) -> Result<Summary, Failure> {
    let again = attempt(scenario, false)?;
    if again == summary {
        return Ok(summary);
    }
    Err(Failure::new(
        "not the same twice",
        format_args!("{} packets, then {}", summary.packets, again.packets),
    ))
}

thread_local! {
    static PANIC: RefCell<Option<Failure>> = const { RefCell::new(None) };
}

/// Plays a scenario; a panic of the engine is a failure too.
///
/// # Errors
/// The first rule that was broken.
pub fn attempt(scenario: &Scenario, trace: bool) -> Result<Summary, Failure> {
    guarded(|| play(scenario, trace))
}

/// Plays a world; a panic is a failure.
pub(crate) fn guarded<T>(play: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    note_panics();
    catch_unwind(AssertUnwindSafe(play)).unwrap_or_else(|_| {
        let noted = PANIC.with(|panic| panic.borrow_mut().take());
        Err(noted.unwrap_or_else(|| Failure::new("panic", "nobody knows where")))
    })
}

/// Panics of worlds are kept for [`attempt`] and not printed.
fn note_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        std::panic::set_hook(Box::new(|info| {
            let place = info.location().map_or(String::new(), |at| format!("{}:{}", at.file(), at.line()));
            let message = info.payload_as_str().unwrap_or("").to_owned();
            PANIC.with(|panic| {
                *panic.borrow_mut() = Some(Failure::new(&format!("panic at {place}"), message))
            });
        }));
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use proto::{CongestionControl, Counters};

    /// What must have been met under each: a world without it tests nothing of it.
    const MET: [&str; 7] = [
        "RetransSegs",
        "TCPTimeouts",
        "TCPSACKReorder",
        "TCPDSACKOldSent",
        "InCsumErrors",
        "TCPWinProbe",
        "TCPToZeroWindowAdv",
    ];

    /// Else there would be nothing to compare with the general path.
    #[cfg(debug_assertions)]
    #[test]
    fn every_fast_path_is_taken_at_defaults_and_with_a_few_rows_off() {
        for intensity in [Intensity::Defaults, Intensity::Few] {
            let mut totals = Summary::default();
            for seed in 0..200 {
                let scenario = Scenario::draw(seed, intensity, false).compared();
                let summary = attempt(&scenario, false);
                totals.add(summary.unwrap_or_else(|failure| panic!("seed {seed}: {failure:?}")));
            }
            let (taken, of) =
                (totals.fast_paths.values().filter(|count| **count > 0).count(), totals.fast_paths.len());
            assert!(taken == of && of > 0, "{intensity:?}: {:?}", totals.fast_paths);
        }
    }

    #[test]
    fn every_trouble_is_met_under_every_congestion_control() {
        for congestion in CongestionControl::ALL {
            let mut totals = Summary::default();
            for seed in 0..300 {
                let intensity = if seed % 2 == 0 { Intensity::Defaults } else { Intensity::Few };
                let mut scenario = Scenario::draw(seed, intensity, false);
                for host in &mut scenario.hosts {
                    let name = "net.ipv4.tcp_congestion_control".to_owned();
                    host.settings.push((name, format!("{congestion:?}").to_lowercase()));
                }
                for side in [0, 1] {
                    assert_eq!(scenario.config(side).tcp_congestion_control, *congestion, "seed {seed}");
                }
                let summary = attempt(&scenario, false);
                totals.add(
                    summary.unwrap_or_else(|failure| panic!("{congestion:?}, seed {seed}: {failure:?}")),
                );
            }
            for name in MET {
                let at = Counters::default().all().position(|(counter, _)| counter == name);
                assert!(totals.counters[at.expect("a counter")] > 0, "{name} under {congestion:?}");
            }
        }
    }
}
