//! Progress while worlds are played: how many, how fast, and each failure at once.

use core::time::Duration;
use simulation::campaign::{Campaign, Outcome};
use std::collections::BTreeSet;
use std::io::{IsTerminal, Write};
use std::time::Instant;

/// Where nobody looks at a terminal a line is written so often.
const LINE: Duration = Duration::from_secs(60);
/// Of a failure: it says much about every connection that was busy.
const SHOWN: usize = 400;

pub(crate) struct Progress {
    begun: Instant,
    shown_at: Instant,
    /// Worlds, and failures, of parts that are over.
    before: (u64, usize),
    /// Failures of this part that have been shown: they come in any order, and are sorted at the
    /// end.
    shown: BTreeSet<u64>,
    /// Worlds that are to be played.
    all: u64,
}

impl Progress {
    /// Nothing yet of `all` worlds.
    pub(crate) fn new(all: u64) -> Progress {
        let now = Instant::now();
        Progress { begun: now, shown_at: now, before: (0, 0), shown: BTreeSet::new(), all }
    }

    /// What has become of this part so far.
    pub(crate) fn show(&mut self, campaign: &Campaign, outcome: &Outcome) {
        for (seed, failure) in &outcome.failures {
            if !self.shown.insert(*seed) {
                continue;
            }
            let seen: String = failure.to_string().chars().take(SHOWN).collect();
            println!("FAILED {} {seed}: {seen}", campaign.intensity(*seed).name());
        }
        let terminal = std::io::stderr().is_terminal();
        if !terminal && self.shown_at.elapsed() < LINE {
            return;
        }
        self.shown_at = Instant::now();
        let (worlds, failed) = (self.before.0 + outcome.worlds, self.before.1 + outcome.failures.len());
        let a_second = worlds as f64 / self.begun.elapsed().as_secs_f64().max(0.001);
        let line = format!("{worlds} of {} worlds, {a_second:.0} a second, {failed} failed", self.all);
        if terminal {
            eprint!("\r{line} ");
            let _ = std::io::stderr().flush();
        } else {
            eprintln!("{line}");
        }
    }

    /// A part is over.
    pub(crate) fn end(&mut self, campaign: &Campaign, outcome: &Outcome) {
        self.show(campaign, outcome);
        self.before.0 += outcome.worlds;
        self.before.1 += outcome.failures.len();
        self.shown.clear();
    }

    /// No line stays open on a terminal.
    pub(crate) fn seconds(&self) -> f64 {
        if std::io::stderr().is_terminal() {
            eprintln!();
        }
        self.begun.elapsed().as_secs_f64()
    }
}
