//! Experiments that are files: one question each, in TOML.
//!
//! ```text
//! # How fast can a transfer be without window scaling?      the question, in the first line
//! chapter = "What limits a window"
//! [path] [client] [server]                                  what all runs share; programs are steps in words
//! [[run]]                                                   variants: what differs
//! [[expect]]                                                what is measured, what it should be, what others found
//! ```
//!
//! - `file`: the form of a file, `units`, `formula` and `event` what stands in its texts;
//! - `path`: what lies between both ends, `topology`: who is joined to whom, `routes`: an end's routes, `device`: its network card;
//! - `discipline`: another queueing discipline than the file's;
//! - `play`: builds and runs a variant, `measure` and `seen` read figures off what was captured;
//! - `real`: the same at the time of a clock, with hosts that may be the kernel's;
//! - `nearest`: the word that was probably meant;
//! - `talk`: a conversation with `tc`;
//! - `outcome`: the figures beside what was expected, as a report;
//! - `sweep`: the same played with other values and seeds, `swept` what came of it;
//! - `shelf`: the experiments that come with the lab.

mod device;
mod discipline;
mod event;
mod file;
mod formula;
mod measure;
mod nearest;
mod outcome;
mod path;
mod play;
mod quantities;
mod real;
mod routes;
mod seen;
mod shelf;
mod sweep;
mod swept;
mod talk;
mod topology;
pub(crate) mod units;

pub use crate::report::Finding;
pub use nearest::{nearest_setting, nearest_word};
pub use outcome::Outcome;
pub use path::route_of_words;
pub use real::{Beside, KernelEnd, KernelTold, RealPlayed, RealRun, Standing, Whose};
pub use shelf::{SHELF, Shelved};
pub use sweep::{Axis, Sample, Sweep};
pub use swept::Swept;

use file::{File, RunPart};
use formula::Formula;
use nearest::nearest;
use play::{Played, Variant};

/// Some editors begin a file with it.
const BYTE_ORDER_MARK: char = '\u{feff}';

/// An experiment, read and found to be well formed.
#[derive(Clone, Debug)]
pub struct Experiment {
    question: String,
    file: File,
    runs: Vec<RunPart>,
    /// What is other than in the file, so that nothing is expected; in words.
    changed: Option<String>,
}

impl Experiment {
    /// Reads a file.
    ///
    /// # Errors
    /// What is wrong, where, and what was expected there.
    pub fn parse(text: &str) -> Result<Experiment, String> {
        let text = text.trim_start_matches(BYTE_ORDER_MARK);
        let question = question(text)?;
        let file: File = toml::from_str(text).map_err(|error| explained(&error))?;
        Experiment::of(question, file)
    }

    fn of(question: String, file: File) -> Result<Experiment, String> {
        let runs = match file.run.is_empty() {
            // A conversation with tc alone needs no network.
            true if file.expect.is_empty() => Vec::new(),
            true => vec![RunPart { name: "run".into(), ..RunPart::default() }],
            false => file.run.clone(),
        };
        let experiment = Experiment { question, file, runs, changed: None };
        experiment.check()?;
        Ok(experiment)
    }

    /// What it asks.
    pub fn question(&self) -> &str {
        &self.question
    }

    /// The subject it belongs to.
    pub fn chapter(&self) -> &str {
        &self.file.chapter
    }

    /// Which claim it is about; may be empty.
    pub fn id(&self) -> &str {
        &self.file.id
    }

    /// What is to be learnt from it.
    pub fn lesson(&self) -> &str {
        &self.file.lesson
    }

    /// Replaces the seed of everything random.
    pub fn with_seed(mut self, seed: u64) -> Experiment {
        self.file.seed = seed;
        self
    }

    /// Puts a discipline in tc's words before the bottleneck of each run that says none of its own. Nothing is expected of its figures then.
    ///
    /// # Errors
    /// Why it means nothing here.
    pub fn with_qdisc(mut self, words: &str) -> Result<Experiment, String> {
        let placed = discipline::placed(&self.file, &self.runs, words)?;
        let is_all = placed.taken.len() == placed.runs.len();
        let runs = if placed.taken.len() == 1 { "run" } else { "runs" };
        let which =
            if is_all { String::new() } else { format!(" of the {runs} {}", in_a_row(&placed.taken)) };
        self.changed = Some(format!("The discipline{which} is `{words}`, so that other figures may come."));
        self.runs = placed.runs;
        Ok(self)
    }

    /// Makes every variant's network, without running it.
    ///
    /// # Errors
    /// What a host refuses, or does not fit together: a setting, a route, parts of a path, a counter.
    pub fn check_hosts(&self) -> Result<(), String> {
        let formulas: Vec<&Formula> = self.file.expect.iter().map(|expect| &expect.that).collect();
        self.check_hosts_for(&formulas)
    }

    /// As [`check_hosts`](Experiment::check_hosts), where these are measured.
    fn check_hosts_for(&self, formulas: &[&Formula]) -> Result<(), String> {
        self.runs.iter().try_for_each(|run| {
            let check = self.check_hosts_of(run, formulas);
            check.map_err(|error| format!("run `{}`: {error}", run.name))
        })
    }

    fn check_hosts_of(&self, run: &RunPart, formulas: &[&Formula]) -> Result<(), String> {
        let variant = Variant::of(&self.file, run);
        let (mut network, hosts, _) = variant.build([true; 2])?;
        variant.try_settings(&mut network, &hosts)?;
        let counters = play::counters(&network, &hosts.servers);
        for (name, arguments) in formulas.iter().flat_map(|formula| formula.measures()) {
            let named = arguments.first().filter(|first| self.runs.iter().any(|run| run.name == **first));
            if named.is_some_and(|named| *named != run.name) {
                continue;
            }
            match (name, &arguments[usize::from(named.is_some())..]) {
                ("count", [_, counter]) if !counters.contains_key(counter) => {
                    return Err(measure::no_counter(counter, &counters));
                }
                (name, arguments) => measure::check_looked_at(&variant, name, arguments)?,
            }
        }
        Ok(())
    }

    /// Runs every variant, and compares.
    ///
    /// # Errors
    /// Where a setting is refused, or a measure has nothing to measure.
    pub fn run(&self) -> Result<Outcome, String> {
        let played = self.play_all()?;
        Outcome::new(self, played, talk::findings(&self.file.tc))
    }

    fn play_all(&self) -> Result<Vec<Played>, String> {
        let play = |run: &RunPart| {
            let played = Variant::of(&self.file, run).play();
            played.map_err(|error| format!("run `{}`: {error}", run.name))
        };
        self.runs.iter().map(play).collect()
    }

    /// What can be seen without running.
    fn check(&self) -> Result<(), String> {
        if self.file.expect.is_empty() && self.file.tc.is_empty() {
            return Err("nothing is expected: add an `[[expect]]` with `what`, `that` and `is`".into());
        }
        let names: Vec<&str> = self.runs.iter().map(|run| run.name.as_str()).collect();
        if let Some(name) = names.iter().find(|name| name.is_empty() || name.contains([',', '(', ')'])) {
            return Err(format!("run `{name}`: a name is not empty, and has no comma or parenthesis"));
        }
        if let Some((_, name)) = names.iter().enumerate().find(|(at, name)| names[..*at].contains(name)) {
            return Err(format!("run `{name}`: another run has this name; no measure could tell them apart"));
        }
        self.runs.iter().try_for_each(|run| {
            let check = Variant::of(&self.file, run).check();
            check.map_err(|error| format!("run `{}`: {error}", run.name))
        })?;
        for (at, expect) in self.file.expect.iter().enumerate() {
            let wrong = |error: String| format!("expect \"{}\": {error}", expect.what);
            if self.file.expect[..at].iter().any(|other| other.what == expect.what) {
                return Err(wrong(
                    "another one has the same words; nobody could tell their figures apart".into(),
                ));
            }
            if expect.within.is_some() && expect.is.is_none() {
                return Err(wrong("`within` says how far it may be from `is`, which is not there".into()));
            }
            if expect.is.is_none() && expect.at_least.is_none() && expect.at_most.is_none() {
                return Err(wrong("it needs `is`, `at_least` or `at_most`".into()));
            }
            self.check_formula(&expect.that).map_err(wrong)?;
            let unit = expect.that.unit(&measure::unit_of);
            for bound in [&expect.is, &expect.at_least, &expect.at_most].into_iter().flatten() {
                units::quantity(bound)
                    .and(unit.map_or(Ok(()), |unit| units::comparable(bound, unit)))
                    .map_err(wrong)?;
            }
        }
        Ok(())
    }

    /// Does it name measures and runs that there are?
    fn check_formula(&self, formula: &Formula) -> Result<(), String> {
        let names: Vec<&str> = self.runs.iter().map(|run| run.name.as_str()).collect();
        for (name, arguments) in formula.measures() {
            measure::check(name)?;
            let run = arguments.first().map_or("", String::as_str);
            if names.len() > 1 && !names.contains(&run) {
                return Err(format!(
                    "there is no run `{run}`{}; runs are: {}",
                    nearest(run, &names),
                    names.join(", ")
                ));
            }
            let arguments = &arguments[usize::from(names.contains(&run))..];
            measure::check_arguments(name, arguments)?;
            if let ("mark", Some(mark)) = (name, arguments.first()) {
                self.check_mark(mark)?;
            }
        }
        Ok(())
    }

    /// Does a program of some run give a moment this name?
    fn check_mark(&self, mark: &str) -> Result<(), String> {
        let variants: Vec<Variant<'_>> = self.runs.iter().map(|run| Variant::of(&self.file, run)).collect();
        let marks: Vec<&str> = variants.iter().flat_map(Variant::marks).collect();
        match marks.contains(&mark) {
            true => Ok(()),
            false => Err(format!("no step is `mark {mark}`{}", nearest(mark, &marks))),
        }
    }
}

/// Names as a sentence has them.
fn in_a_row(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [name] => format!("`{name}`"),
        [names @ .., last] => {
            let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
            format!("{} and `{last}`", names.join(", "))
        }
    }
}

/// The first line.
fn question(text: &str) -> Result<String, String> {
    let question = text.lines().next().and_then(|line| line.strip_prefix('#')).map(str::trim);
    let question = question.filter(|question| question.ends_with('?'));
    let told = "line 1: the first line is the question, as a comment that ends in `?`";
    question.map(str::to_owned).ok_or_else(|| told.to_owned())
}

/// What `toml` says, and the nearest word to one that is not known.
fn explained(error: &toml::de::Error) -> String {
    let text = error.to_string();
    let text = text.trim_end().replace("expected usize", "expected a whole number");
    let quoted: Vec<&str> = error.message().split('`').skip(1).step_by(2).collect();
    match quoted.split_first() {
        Some((unknown, known)) if error.message().starts_with("unknown ") => {
            format!("{text}{}", nearest(unknown, known))
        }
        _ => text,
    }
}

#[cfg(test)]
mod tests;
