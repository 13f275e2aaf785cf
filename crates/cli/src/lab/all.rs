//! `firstbyte lab all`: every scenario, as many at a time as there are cores, and the book of their pages.

use super::args::{AllArgs, LabArgs, Scenario};
use super::{parallel, perform, shelf};
use crate::failure::Failure;
use crate::terminal::print;
use ::lab::experiment::{Experiment, SHELF};
use ::lab::report::document;
use ::lab::scenario::CATALOGUE;
use clap::Parser;
use picture::{Chapter, Leaf};
use std::path::Path;
use std::process::ExitCode;

/// A scenario that was run.
struct Done {
    chapter: String,
    leaf: Leaf,
    failure: Option<String>,
}

/// Runs everything.
pub(super) fn run(args: &AllArgs) -> Result<ExitCode, Failure> {
    if let Some(folder) = &args.html {
        std::fs::create_dir_all(folder).map_err(|error| Failure::file("make", folder, &error))?;
    }
    let names: Vec<&str> =
        CATALOGUE.iter().map(|entry| entry.name).chain(SHELF.iter().map(|shelved| shelved.name)).collect();
    let (i, n) = args.shard.unwrap_or((1, 1));
    let mine: Vec<&str> = names.into_iter().skip(i - 1).step_by(n).collect();
    let done = parallel::each(&mine, |name| (*name).to_owned(), |name| run_one(name, args.html.as_deref()));
    let done: Vec<Done> = done.into_iter().collect::<Result<_, _>>()?;
    if let Some(folder) = &args.html {
        let index = folder.join("index.html");
        std::fs::write(&index, book(&done)).map_err(|error| Failure::file("write", &index, &error))?;
    }
    let mut text = String::new();
    for one in &done {
        let mark = match (&one.failure, one.leaf.holds) {
            (Some(_), _) | (None, Some(false)) => "FAILS",
            (None, _) => "ok",
        };
        text.push_str(&format!("{mark:<6} {:<20} {}\n", one.leaf.name, one.leaf.answer));
        one.failure.iter().for_each(|failure| text.push_str(&format!("       {failure}\n")));
    }
    let failed = done.iter().filter(|one| one.failure.is_some() || one.leaf.holds == Some(false)).count();
    text.push_str(&format!("{} scenarios, {failed} not as expected\n", done.len()));
    print(&text)?;
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn run_one(name: &str, folder: Option<&Path>) -> Result<Done, Failure> {
    let write = |document: picture::Document| {
        let Some(folder) = folder else { return Ok(()) };
        let path = folder.join(format!("{name}.html"));
        std::fs::write(&path, document.to_html()).map_err(|error| Failure::file("write", &path, &error))
    };
    let leaf = |question: &str, holds, answer| Leaf {
        file: format!("{name}.html"),
        name: name.to_owned(),
        question: question.to_owned(),
        holds,
        answer,
    };
    if let Some(entry) = CATALOGUE.iter().find(|entry| entry.name == name) {
        let (report, _) = perform(tour(name)?);
        write(document(name, entry.question, &*report))?;
        let findings = report.findings();
        let holds = findings.iter().all(|finding| finding.holds);
        let leaf = leaf(entry.question, Some(holds), shelf::in_a_line(&findings));
        return Ok(Done { chapter: "Tours".into(), leaf, failure: None });
    }
    let text = SHELF.iter().find(|shelved| shelved.name == name).map_or("", |shelved| shelved.text);
    let experiment = Experiment::parse(text).map_err(|error| Failure::failed(format!("{name}: {error}")))?;
    let (leaf, failure) = match experiment.run() {
        Ok(outcome) => {
            write(document(name, experiment.question(), &outcome))?;
            (leaf(experiment.question(), Some(outcome.holds()), shelf::in_a_line(outcome.findings())), None)
        }
        Err(error) => (leaf(experiment.question(), Some(false), String::new()), Some(error)),
    };
    Ok(Done { chapter: experiment.chapter().to_owned(), leaf, failure })
}

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    args: LabArgs,
}

/// A scenario of the catalogue with its default parameters.
fn tour(name: &str) -> Result<Scenario, Failure> {
    let parsed = Line::try_parse_from(["lab", name]).ok().and_then(|line| line.args.scenario);
    parsed.ok_or_else(|| Failure::failed(format!("`{name}` is listed but cannot be run")))
}

fn book(done: &[Done]) -> String {
    let mut chapters: Vec<Chapter> = Vec::new();
    for one in done {
        match chapters.iter_mut().find(|chapter| chapter.title == one.chapter) {
            Some(chapter) => chapter.leaves.push(one.leaf.clone()),
            None => chapters.push(Chapter { title: one.chapter.clone(), leaves: vec![one.leaf.clone()] }),
        }
    }
    let preface = "What TCP does, one question a page. Every figure was read off packets of a network in virtual time, and is the same \
                   each time it is run.";
    picture::book("The lab", preface, &chapters)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tour_runs_with_its_defaults() {
        for entry in CATALOGUE {
            assert!(tour(entry.name).is_ok(), "{}", entry.name);
        }
    }
}
