//! The outcome of a scenario file: its checks, as a report.

use super::Experiment;
use super::file::Expect;
use super::formula::Formula;
use super::measure::Measured;
use super::play::Played;
use super::units::{in_unit_of, quantity};
use crate::apps::Told;
use crate::report::{Align, Finding, Page, Recording, Report, Table};
use ::picture::{Graph, Series, Style, Tone};
use serde_json::json;

/// Minimum connections for a graph of their distribution.
const DRAWN_FROM: usize = 20;
/// Maximum curves in a graph.
const CURVES_MAX: usize = 7;

/// All checks, and the runs behind them.
#[derive(Clone, Debug)]
pub struct Outcome {
    question: String,
    lesson: String,
    id: String,
    /// A description of changed values. Checks are then compared with the file's own results.
    changed: Option<String>,
    findings: Vec<Finding>,
    played: Vec<Played>,
}

/// Runs that can be measured.
pub(super) struct Figures<'a> {
    played: &'a [Played],
    runs: Vec<Measured<'a>>,
}

impl<'a> Figures<'a> {
    pub(super) fn new(played: &'a [Played]) -> Figures<'a> {
        Figures { played, runs: played.iter().map(Measured::new).collect() }
    }

    /// Evaluates a formula.
    pub(super) fn value(&self, formula: &Formula) -> Result<f64, String> {
        formula.value(&|name, arguments| self.measure(name, arguments))
    }

    /// Measures a run. With only one run, its name is optional.
    fn measure(&self, name: &str, arguments: &[String]) -> Result<f64, String> {
        let named = arguments
            .split_first()
            .and_then(|(first, rest)| Some((self.played.iter().position(|run| run.name == *first)?, rest)));
        let (run, rest) = named.unwrap_or((0, arguments));
        self.runs.get(run).ok_or("nothing was run")?.measure(name, rest)
    }
}

impl Outcome {
    /// Evaluates the file's checks and appends them to `findings`.
    pub(super) fn new(
        experiment: &Experiment,
        played: Vec<Played>,
        mut findings: Vec<Finding>,
    ) -> Result<Outcome, String> {
        let figures = Figures::new(&played);
        for expect in &experiment.file.expect {
            let value = figures.value(&expect.that);
            findings.push(finding(expect, value.map_err(|error| format!("\"{}\": {error}", expect.what))?));
        }
        Ok(Outcome {
            question: experiment.question.clone(),
            lesson: experiment.file.lesson.clone(),
            id: experiment.file.id.clone(),
            changed: experiment.changed.clone(),
            findings,
            played,
        })
    }

    /// Returns whether all checks passed.
    pub fn holds(&self) -> bool {
        self.changed.is_some() || self.findings.iter().all(|finding| finding.holds)
    }

    /// Returns the checks.
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }
}

/// Compares a value with an expectation.
pub(super) fn finding(expect: &Expect, value: f64) -> Finding {
    let bounds = [&expect.is, &expect.at_least, &expect.at_most];
    // Parsing refused all bounds that are not quantities.
    let [is, least, most] = bounds.map(|bound| bound.as_deref().and_then(|text| quantity(text).ok()));
    let like = bounds.into_iter().flatten().next().map_or("", String::as_str);
    // Times of a simulation are exact to the nanosecond; sums are exact to the precision of a
    // float.
    let share = expect.within.map_or(1e-9, |within| within.0 / 100.0);
    let near = is.is_none_or(|is| (value - is).abs() <= share * is.abs() + 1e-12);
    let holds = near && least.is_none_or(|least| value >= least) && most.is_none_or(|most| value <= most);
    let mut criterion = Vec::new();
    criterion.extend(expect.is.as_ref().map(|is| match expect.within {
        Some(within) => format!("{is} ± {} %", within.0),
        None => is.clone(),
    }));
    criterion.extend(expect.at_least.as_ref().map(|least| format!("at least {least}")));
    criterion.extend(expect.at_most.as_ref().map(|most| format!("at most {most}")));
    Finding {
        what: expect.what.clone(),
        ours: in_unit_of(value, like),
        value: Some(value),
        source: expect.source.clone(),
        linux: expect.linux.clone(),
        criterion: criterion.join(", "),
        holds: holds && value.is_finite(),
    }
}

impl Report for Outcome {
    fn render(&self, page: &mut Page) {
        page.heading(&self.question);
        page.paragraph(&self.lesson);
        let Some(changed) = &self.changed else { return };
        page.paragraph(changed);
        page.gap();
        let columns = [
            ("in the units of the file", Align::Left),
            ("here", Align::Right),
            ("expected without the change", Align::Left),
        ];
        let mut table = Table::new(columns);
        self.findings.iter().for_each(|one| table.row([&*one.what, &*one.ours, &*one.criterion]));
        page.table(&table);
    }

    fn findings(&self) -> Vec<Finding> {
        if self.changed.is_some() { Vec::new() } else { self.findings.clone() }
    }

    fn json(&self) -> serde_json::Value {
        let mut values = json!({
            "question": self.question, "id": self.id, "holds": self.holds(),
        });
        if let Some(changed) = &self.changed {
            values["changed"] = changed.clone().into();
            values["figures"] = self.findings.iter().map(Finding::json).collect();
        }
        values
    }

    fn recordings(&self) -> Vec<Recording<'_>> {
        self.played.iter().map(recording).collect()
    }

    fn graphs(&self) -> Vec<Graph> {
        vec![distribution(&self.played)].into_iter().filter(|graph| !graph.is_empty()).collect()
    }
}

fn recording(played: &Played) -> Recording<'_> {
    let Played { name, capture, clients, .. } = played;
    Recording { name: name.clone(), capture, host: clients[0], clients }
}

/// Draws the distribution of the durations, for runs with many connections.
fn distribution(played: &[Played]) -> Graph {
    let mut graph =
        Graph::new("Distribution of the clients' times", "connections at or below", "%").over("time, ms");
    let times_of = |run: &Played| {
        let span = |told: &Told| Some(told.done_at?.since(told.begun_at?).as_secs_f64() * 1e3);
        run.told[0].iter().filter_map(span).collect::<Vec<f64>>()
    };
    let many: Vec<(&str, Vec<f64>)> = played
        .iter()
        .map(|run| (run.name.as_str(), times_of(run)))
        .filter(|(_, times)| times.len() >= DRAWN_FROM)
        .collect();
    if many.len() > CURVES_MAX {
        graph = graph.with_note(format!("the first {CURVES_MAX} of {} runs", many.len()));
    }
    for (number, (name, mut times)) in many.into_iter().enumerate().take(CURVES_MAX) {
        times.sort_by(f64::total_cmp);
        let count = times.len() as f64;
        let start = times.first().map(|first| (*first, 0.0));
        let rise = |(n, time): (usize, &f64)| (*time, 100.0 * (n + 1) as f64 / count);
        let points = start.into_iter().chain(times.iter().enumerate().map(rise)).collect();
        graph = graph.with(Series::new(name, Style::Step, Tone::nth(number), points));
    }
    graph
}
