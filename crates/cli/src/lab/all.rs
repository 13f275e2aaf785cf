//! `firstbyte lab all`: runs every scenario on all cores, and writes a book of their pages.

use super::args::{AllArgs, LabArgs, Scenario};
use super::{parallel, perform, shelf};
use crate::failure::Failure;
use crate::output::write_whole;
use crate::terminal::print;
use ::lab::catalog::catalog;
use ::lab::experiment::{Experiment, SHELF};
use ::lab::report::document;
use ::lab::scenario::CATALOGUE;
use clap::Parser;
use picture::{Chapter, Leaf, Place};
use std::path::Path;
use std::process::ExitCode;

/// A finished scenario.
struct Done {
    chapter: String,
    leaf: Leaf,
    figures: String,
    failure: Option<String>,
}

/// Runs every scenario.
pub(super) fn run(args: &AllArgs) -> Result<ExitCode, Failure> {
    if let Some(folder) = &args.html {
        std::fs::create_dir_all(folder).map_err(|error| Failure::file("make", folder, &error))?;
    }
    let names: Vec<&str> = catalog().iter().map(|listing| listing.name).collect();
    let (i, n) = args.shard.unwrap_or((1, 1));
    let mine: Vec<&str> = names.into_iter().skip(i - 1).step_by(n).collect();
    let done = parallel::each(
        &mine,
        |name| (*name).to_owned(),
        |name| run_one(name, args.html.as_deref(), place(name, &mine)),
    );
    let done: Vec<Done> = done.into_iter().collect::<Result<_, _>>()?;
    if let Some(folder) = &args.html {
        let index = folder.join("index.html");
        write_whole(&index, book(&done))?;
    }
    let mut text = String::new();
    for one in &done {
        let mark = match (&one.failure, one.leaf.holds) {
            (Some(_), _) | (None, Some(false)) => "FAILS",
            (None, _) => "ok",
        };
        text.push_str(&shelf::beside(&format!("{mark:<6} {:<20} ", one.leaf.name), &one.figures));
        one.failure.iter().for_each(|failure| text.push_str(&format!("       {failure}\n")));
    }
    let failed = done.iter().filter(|one| one.failure.is_some() || one.leaf.holds == Some(false)).count();
    text.push_str(&format!("{} scenarios, {failed} not as expected\n", done.len()));
    print(&text)?;
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Returns the previous and the next page.
fn place(name: &str, names: &[&str]) -> Place {
    let all = catalog();
    let page = |name: &&str| {
        let listing = all.iter().find(|listing| listing.name == *name)?;
        Some((format!("{name}.html"), listing.question.clone()))
    };
    let at = names.iter().position(|known| *known == name);
    let beside = |at: Option<usize>| names.get(at?).and_then(page);
    Place { previous: beside(at.and_then(|at| at.checked_sub(1))), next: beside(at.map(|at| at + 1)) }
}

/// Longest answer in the index, characters: no sentence starts after this length.
const ANSWER: usize = 110;

/// Returns the first sentences of a lesson.
fn begin_of(lesson: &str) -> String {
    let mut answer = String::new();
    for sentence in lesson.split_inclusive(". ") {
        if answer.chars().count() > ANSWER {
            break;
        }
        answer.push_str(sentence);
    }
    answer.trim_end().to_owned()
}

fn run_one(name: &str, folder: Option<&Path>, place: Place) -> Result<Done, Failure> {
    let write = |mut document: picture::Document| {
        document.place = Some(place.clone());
        let Some(folder) = folder else { return Ok(()) };
        let path = folder.join(format!("{name}.html"));
        write_whole(&path, document.to_html())
    };
    let leaf = |question: &str, holds, answer| Leaf {
        file: format!("{name}.html"),
        name: name.to_owned(),
        question: question.to_owned(),
        holds,
        answer,
    };
    if let Some(entry) = CATALOGUE.iter().find(|entry| entry.name == name) {
        let (report, _) = perform(with_defaults(name)?);
        write(document(name, entry.question, &*report))?;
        let findings = report.findings();
        let holds = findings.iter().all(|finding| finding.holds);
        let figures = shelf::in_a_line(&findings);
        let leaf = leaf(entry.question, Some(holds), entry.lesson.to_owned());
        return Ok(Done { chapter: entry.chapter.to_owned(), leaf, figures, failure: None });
    }
    let text = SHELF.iter().find(|shelved| shelved.name == name).map_or("", |shelved| shelved.text);
    let experiment = Experiment::parse(text).map_err(|error| Failure::failed(format!("{name}: {error}")))?;
    let (holds, answer, figures, failure) = match experiment.run() {
        Ok(outcome) => {
            write(document(name, experiment.question(), &outcome))?;
            let figures = shelf::in_a_line(outcome.findings());
            (outcome.holds(), begin_of(experiment.lesson()), figures, None)
        }
        Err(error) => (false, String::new(), String::new(), Some(error)),
    };
    let leaf = leaf(experiment.question(), Some(holds), answer);
    Ok(Done { chapter: experiment.chapter().to_owned(), leaf, figures, failure })
}

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    args: LabArgs,
}

/// Returns a scenario that is code, with its default parameters.
fn with_defaults(name: &str) -> Result<Scenario, Failure> {
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
    let preface = "How TCP behaves, one question per page. All values are measured from packets of \
        a network in virtual time, and are the same in every run.";
    picture::book("The lab", preface, &chapters)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_in_the_index_is_whole_sentences() {
        let long = "x".repeat(ANSWER);
        assert_eq!(begin_of(&format!("{long}. More.")), format!("{long}."));
        assert_eq!(begin_of("TLS 1.3 takes one. Short. End."), "TLS 1.3 takes one. Short. End.");
    }

    #[test]
    fn a_page_stands_between_its_neighbours() {
        let place = place("packets", &["fast-open", "packets", "nagle"]);
        assert_eq!(place.previous.unwrap().0, "fast-open.html");
        assert_eq!(place.next.unwrap().1, "Why does a request that is written in two parts wait 40 ms?");
        assert_eq!(super::place("fast-open", &["fast-open"]), Place::default());
    }

    #[test]
    fn every_coded_scenario_runs_with_its_defaults() {
        for entry in CATALOGUE {
            assert!(with_defaults(entry.name).is_ok(), "{}", entry.name);
        }
    }
}
