//! What came of an experiment: its figures beside what was expected, as a report.

use super::Experiment;
use super::file::Expect;
use super::measure::Measured;
use super::play::Played;
use super::units::{in_unit_of, quantity};
use crate::report::{Finding, Page, Recording, Report};
use serde_json::json;

/// All figures, and the runs behind them.
#[derive(Clone, Debug)]
pub struct Outcome {
    question: String,
    lesson: String,
    id: String,
    findings: Vec<Finding>,
    played: Vec<Played>,
}

impl Outcome {
    /// What was measured of the runs, behind what else was found.
    pub(super) fn new(
        experiment: &Experiment,
        played: Vec<Played>,
        mut findings: Vec<Finding>,
    ) -> Result<Outcome, String> {
        let runs: Vec<Measured<'_>> = played.iter().map(Measured::new).collect();
        let measure = |name: &str, arguments: &[String]| {
            // With one run its name may be left out.
            let (run, rest) = match arguments.split_first() {
                Some((first, rest)) if played.iter().any(|played| played.name == *first) => {
                    (first.as_str(), rest)
                }
                _ => (played[0].name.as_str(), arguments),
            };
            let index = played.iter().position(|played| played.name == run).unwrap_or(0);
            runs[index].measure(name, rest)
        };
        for expect in &experiment.file.expect {
            let value = expect.that.value(&measure);
            findings.push(finding(expect, value.map_err(|error| format!("\"{}\": {error}", expect.what))?));
        }
        Ok(Outcome {
            question: experiment.question.clone(),
            lesson: experiment.file.lesson.clone(),
            id: experiment.file.id.clone(),
            findings,
            played,
        })
    }

    /// Is everything as expected?
    pub fn holds(&self) -> bool {
        self.findings.iter().all(|finding| finding.holds)
    }

    /// The figures.
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }
}

/// A figure beside what a file expects of it.
fn finding(expect: &Expect, value: f64) -> Finding {
    let bounds = [&expect.is, &expect.at_least, &expect.at_most];
    // A file is refused unless all its bounds are quantities.
    let [is, least, most] = bounds.map(|bound| bound.as_deref().and_then(|text| quantity(text).ok()));
    let like = bounds.into_iter().flatten().next().map_or("", String::as_str);
    // Times of a simulation are exact to the nanosecond; sums of them to what a float holds.
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
    }

    fn findings(&self) -> Vec<Finding> {
        self.findings.clone()
    }

    fn json(&self) -> serde_json::Value {
        json!({
            "question": self.question, "id": self.id, "holds": self.holds(),
        })
    }

    fn recordings(&self) -> Vec<Recording<'_>> {
        let recording = |played: &'_ Played| (played.name.clone(), played.client);
        let each = self.played.iter().map(|played| {
            let (name, client) = recording(played);
            Recording { name, capture: &played.capture, host: client, client }
        });
        each.collect()
    }
}
