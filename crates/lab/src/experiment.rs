//! Scenarios that are files: one question each, in TOML.
//!
//! ```text
//! # How fast can a transfer be without window scaling?   the question, in the first line
//! chapter = "Windows and buffers"
//! [path] [client] [server]                               common to all runs; programs are steps
//! [[run]]                                                variants: the differing values
//! [[expect]]                                             checks: formula, expected value, sources
//! ```
//!
//! - `file`: the format of a file; `units`, `formula` and `event`: the texts in it;
//! - `path`: the path between the ends; `topology`: the links; `routes`: an end's routes; `device`:
//!   its network card;
//! - `discipline`: a queueing discipline from the command line; `kind`: errors about one;
//! - `play`: builds and runs a variant; `measure` and `seen`: measures of the capture;
//! - `limits`: the resources that a file may use;
//! - `real`: the same in real time, with hosts that may be the kernel's;
//! - `nearest`: suggestions for misspelled words; `mistake`: errors with their line;
//! - `unused`: values of a file without an effect;
//! - `talk`: conversations with `tc`;
//! - `outcome`: the checks, as a report;
//! - `sweep`: runs with other values and seeds; `swept`: their results;
//! - `shelf`: the built-in scenario files.

mod device;
mod discipline;
mod event;
mod file;
mod formula;
mod kind;
mod limits;
mod measure;
mod mistake;
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
mod unused;

pub use crate::report::Finding;
pub use limits::Limits;
pub use nearest::{nearest_setting, nearest_word};
pub use outcome::Outcome;
pub use path::route_of_words;
pub use real::{Beside, KernelEnd, KernelTold, RealPlayed, RealRun, Standing, Whose};
pub use shelf::{SHELF, Shelved};
pub use sweep::{Axis, Sample, Sweep};
pub use swept::Swept;

use file::{Expect, File, RunPart};
use formula::Formula;
use mistake::{Lines, Mistake, Within, below_its_line};
use nearest::nearest;
pub(crate) use nearest::nearest_beginning;
use play::{Played, Variant};
use std::sync::Arc;

/// A byte order mark, which some editors write at the start of a file.
const BYTE_ORDER_MARK: char = '\u{feff}';

/// A well-formed scenario file.
#[derive(Clone, Debug)]
pub struct Experiment {
    question: String,
    file: File,
    runs: Vec<RunPart>,
    /// The file's text, to show the lines of mistakes; `None` if values differ from the file.
    text: Option<Arc<str>>,
    /// A description of the changed values. If set, the file's expectations do not apply.
    changed: Option<String>,
    limits: Limits,
}

impl Experiment {
    /// Parses a file.
    ///
    /// # Errors
    /// The mistake, its place, and what was expected there.
    pub fn parse(text: &str) -> Result<Experiment, String> {
        let text = text.trim_start_matches(BYTE_ORDER_MARK);
        let question = question(text)?;
        let file: File = toml::from_str(text).map_err(|error| match error.span() {
            Some(span) => below_its_line(text, &span, &with_nearest(error.message(), &error)),
            None => explained(&error),
        })?;
        Experiment::of(question, file, Some(text))
    }

    /// Builds the scenario. `text` is the file, if its values are unchanged.
    fn of(question: String, mut file: File, text: Option<&str>) -> Result<Experiment, String> {
        file.number_events();
        let runs = match file.run.is_empty() {
            // A conversation with tc alone needs no network.
            true if file.expect.is_empty() => Vec::new(),
            true => vec![RunPart { name: "run".into(), ..RunPart::default() }],
            false => file.run.clone(),
        };
        let experiment = Experiment {
            question,
            file,
            runs,
            text: text.map(Arc::from),
            changed: None,
            limits: Limits::default(),
        };
        experiment.check().map_err(|mistake| experiment.told(&mistake))?;
        Ok(experiment)
    }

    /// Returns the question.
    pub fn question(&self) -> &str {
        &self.question
    }

    /// Returns the chapter of the catalog.
    pub fn chapter(&self) -> &str {
        &self.file.chapter
    }

    /// Returns the catalog id, such as `L-TFO-4`; empty if there is none.
    pub fn id(&self) -> &str {
        &self.file.id
    }

    /// Returns the answer, for pages and indexes.
    pub fn lesson(&self) -> &str {
        &self.file.lesson
    }

    /// Replaces the seed of all randomness.
    pub fn with_seed(mut self, seed: u64) -> Experiment {
        self.file.seed = seed;
        self
    }

    /// Replaces the limits that all runs share.
    pub fn with_limits(mut self, limits: Limits) -> Experiment {
        self.limits = limits;
        self
    }

    /// Puts a queueing discipline, in tc's words, before the bottleneck of each run that has none
    /// of its own. The file's expectations do not apply then.
    ///
    /// # Errors
    /// The reason why no run can use it.
    pub fn with_qdisc(mut self, words: &str) -> Result<Experiment, String> {
        let placed = discipline::placed(&self.file, &self.runs, words)?;
        let is_all = placed.taken.len() == placed.runs.len();
        let runs = if placed.taken.len() == 1 { "run" } else { "runs" };
        let which =
            if is_all { String::new() } else { format!(" of the {runs} {}", in_a_row(&placed.taken)) };
        self.changed =
            Some(format!("The discipline{which} is `{words}`; results may differ from the file's."));
        self.runs = placed.runs;
        self.text = None;
        Ok(self)
    }

    /// Builds the network of every variant without running it.
    ///
    /// # Errors
    /// A value that a host refuses or that does not fit the others: a setting, a route, parts of a
    /// path, a counter.
    pub fn check_hosts(&self) -> Result<(), String> {
        let formulas: Vec<&Formula> = self.file.expect.iter().map(|expect| &expect.that).collect();
        self.check_hosts_for(&formulas)
    }

    /// Checks the hosts as [`check_hosts`](Experiment::check_hosts) does, for these formulas.
    fn check_hosts_for(&self, formulas: &[&Formula]) -> Result<(), String> {
        let check = self.check_runs(|run| self.check_hosts_of(run, formulas));
        check.map_err(|mistake| self.told(&mistake))
    }

    /// Checks all runs.
    fn check_runs(&self, check: impl Fn(&RunPart) -> Result<(), Mistake>) -> Result<(), Mistake> {
        let mut runs = self.runs.iter().enumerate();
        runs.try_for_each(|(n, run)| check(run).map_err(|mistake| self.blamed(n, mistake, &check)))
    }

    /// Attributes a mistake to the n-th run. The run is named unless the mistake is in a value of
    /// the whole file.
    fn blamed(
        &self,
        n: usize,
        mistake: Mistake,
        check: &impl Fn(&RunPart) -> Result<(), Mistake>,
    ) -> Mistake {
        if self.file.run.is_empty() {
            return mistake;
        }
        let has = |mistake: &Mistake| self.text.as_deref().is_some_and(|text| Lines::of(text).has(mistake));
        let of_run = |n: usize| mistake.clone().within(n).within("run");
        if has(&of_run(n)) || !has(&mistake) {
            return of_run(n).of(&format!("run `{}`", self.runs[n].name));
        }
        let mut runs = self.runs.iter().enumerate();
        let is_whole = !mistake.is_of_a_run()
            && runs.all(|(n, run)| check(run).as_ref() == Err(&mistake) || has(&of_run(n)));
        if is_whole { mistake } else { mistake.of(&format!("run `{}`", self.runs[n].name)) }
    }

    /// Formats a mistake with its line.
    fn told(&self, mistake: &Mistake) -> String {
        let lines = self.text.as_deref().map(Lines::of);
        lines.map_or_else(|| mistake.text().to_owned(), |lines| lines.told(mistake))
    }

    fn check_hosts_of(&self, run: &RunPart, formulas: &[&Formula]) -> Result<(), Mistake> {
        let variant = Variant::of(&self.file, run);
        variant.check_limits(&self.limits)?;
        let (mut network, hosts, _) = variant.build([true; 2])?;
        variant.try_settings(&mut network, &hosts)?;
        let counters = play::counters(&network, &hosts.servers);
        let measures = formulas.iter().enumerate();
        let measures =
            measures.flat_map(|(at, formula)| formula.measures().into_iter().map(move |one| (at, one)));
        for (at, (name, arguments)) in measures {
            let named = arguments.first().filter(|first| self.runs.iter().any(|run| run.name == **first));
            if named.is_some_and(|named| *named != run.name) {
                continue;
            }
            let check = match (name, &arguments[usize::from(named.is_some())..]) {
                ("count", [_, counter]) if !counters.contains_key(counter) => {
                    Err(measure::no_counter(counter, &counters))
                }
                (name, arguments) => measure::check_looked_at(&variant, name, arguments),
            };
            check.within("that").within(at).within("expect")?;
        }
        Ok(())
    }

    /// Runs every variant and compares the results with the expectations.
    ///
    /// # Errors
    /// A host refuses a setting, or a measure finds nothing to measure.
    pub fn run(&self) -> Result<Outcome, String> {
        let played = self.play_all()?;
        Outcome::new(self, played, talk::findings(&self.file.tc))
    }

    fn play_all(&self) -> Result<Vec<Played>, String> {
        let mut left = self.limits;
        let play = |(n, run): (usize, &RunPart)| {
            let played = Variant::of(&self.file, run).play(&mut left);
            played.map_err(|mistake| {
                self.told(&self.blamed(n, mistake, &|run: &RunPart| self.check_hosts_of(run, &[])))
            })
        };
        self.runs.iter().enumerate().map(play).collect()
    }

    /// Checks everything that needs no run.
    fn check(&self) -> Result<(), Mistake> {
        if self.file.expect.is_empty() && self.file.tc.is_empty() {
            return Err("the file has no checks: add an `[[expect]]` with `what`, `that` and `is`".into());
        }
        let names: Vec<&str> = self.runs.iter().map(|run| run.name.as_str()).collect();
        for (at, name) in names.iter().enumerate() {
            let wrong = match name {
                name if name.is_empty() || name.contains([',', '(', ')']) => {
                    "a name must not be empty or contain a comma or parenthesis"
                }
                name if names[..at].contains(name) => "duplicate name; each run needs its own",
                _ => continue,
            };
            return Err(format!("run `{name}`: {wrong}")).within("name").within(at).within("run");
        }
        self.check_runs(|run| Variant::of(&self.file, run).check())?;
        let all: Vec<Variant<'_>> = self.runs.iter().map(|run| Variant::of(&self.file, run)).collect();
        self.check_runs(|run| unused::check_routes(&Variant::of(&self.file, run)))?;
        // In a sweep a value may be one of many, so only the file itself is checked.
        if self.text.is_some() {
            self.check_runs(|run| unused::check_keys(&Variant::of(&self.file, run), &all))?;
        }
        for (at, expect) in self.file.expect.iter().enumerate() {
            let is_there = self.file.expect[..at].iter().any(|other| other.what == expect.what);
            let check = if is_there {
                Err("duplicate `what`; each check needs its own").within("what")
            } else {
                self.check_expect(expect)
            };
            let check = check.map_err(|mistake| mistake.of(&format!("expect \"{}\"", expect.what)));
            check.within(at).within("expect")?;
        }
        Ok(())
    }

    fn check_expect(&self, expect: &Expect) -> Result<(), Mistake> {
        if expect.within.is_some() && expect.is.is_none() {
            return Err("`within` is the tolerance of `is`; add `is`").within("within");
        }
        if expect.is.is_none() && expect.at_least.is_none() && expect.at_most.is_none() {
            return Err("add `is`, `at_least` or `at_most`".into());
        }
        self.check_formula(&expect.that).within("that")?;
        let unit = expect.that.unit(&measure::unit_of);
        let bounds = [("is", &expect.is), ("at_least", &expect.at_least), ("at_most", &expect.at_most)];
        for (key, bound) in bounds.into_iter().filter_map(|(key, bound)| Some((key, bound.as_ref()?))) {
            let check = units::quantity(bound);
            check.and(unit.map_or(Ok(()), |unit| units::comparable(bound, unit))).within(key)?;
        }
        Ok(())
    }

    /// Checks that a formula names existing measures and runs.
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

    /// Checks that a program of some run marks this time.
    fn check_mark(&self, mark: &str) -> Result<(), String> {
        let variants: Vec<Variant<'_>> = self.runs.iter().map(|run| Variant::of(&self.file, run)).collect();
        let marks: Vec<&str> = variants.iter().flat_map(Variant::marks).collect();
        match marks.contains(&mark) {
            true => Ok(()),
            false => Err(format!("no program has the step `mark {mark}`{}", nearest(mark, &marks))),
        }
    }
}

/// Joins names as in a sentence.
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

/// Returns the first line.
fn question(text: &str) -> Result<String, String> {
    let first = text.lines().next().unwrap_or_default();
    let question = first.strip_prefix('#').map(str::trim).filter(|question| question.ends_with('?'));
    let told = "the first line must be the question, as a comment that ends in `?`";
    question.map(str::to_owned).ok_or_else(|| below_its_line(text, &(0..first.len()), told))
}

/// Formats an error of the TOML parser that has no place in a file, with the nearest known word.
fn explained(error: &toml::de::Error) -> String {
    with_nearest(error.to_string().trim_end(), error)
}

/// Replaces Rust's names of types in the parser's message, and adds the nearest known word.
fn with_nearest(said: &str, error: &toml::de::Error) -> String {
    let mut text = said.replace("wanted string or table", "expected a string in quotes");
    for whole in ["usize", "u64", "u32", "u16"] {
        text = text.replace(&format!("expected {whole}"), "expected a whole number");
    }
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
