//! Experiments that are files: those that come with the lab, and a user's own.

use super::args::{HostArgs, OutputArgs};
use super::{draw_document, real, show};
use crate::failure::Failure;
use crate::terminal::print;
use ::lab::experiment::{Experiment, SHELF, nearest_word};
use ::lab::report::{Finding, document};
use ::lab::scenario::CATALOGUE;
use clap::{CommandFactory, FromArgMatches, Parser};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// What an experiment takes on the command line.
#[derive(Parser, Debug)]
#[command(name = "firstbyte lab", no_binary_name = true)]
struct ShelvedArgs {
    #[command(flatten)]
    hosts: HostArgs,
    #[command(flatten)]
    output: OutputArgs,
}

/// An experiment by its name, with the words behind it.
pub(super) fn run_named(words: &[String]) -> Result<ExitCode, Failure> {
    let (name, options) = words.split_first().ok_or_else(|| Failure::usage("name a scenario"))?;
    let Some(shelved) = SHELF.iter().find(|shelved| shelved.name == name) else {
        return Err(unknown(name));
    };
    let command = ShelvedArgs::command().override_usage(format!("firstbyte lab {name} [OPTIONS]"));
    let args = command.try_get_matches_from(options).and_then(|read| ShelvedArgs::from_arg_matches(&read));
    let args = args.unwrap_or_else(|error| error.exit());
    let experiment = Experiment::parse(shelved.text).map_err(Failure::failed)?;
    run(name, experiment, &args.hosts, &args.output)
}

/// An experiment in a file.
pub(super) fn run_file(path: &Path, hosts: &HostArgs, output: &OutputArgs) -> Result<ExitCode, Failure> {
    let name = path.display().to_string();
    if !path.exists() && names().any(|known| known == name) {
        return Err(Failure::usage(format!(
            "there is no file `{name}`; the scenario of that name is run by `firstbyte lab {name}`"
        )));
    }
    run(&name, read(path)?, hosts, output)
}

/// All that come with the lab.
fn names() -> impl Iterator<Item = &'static str> {
    CATALOGUE.iter().map(|entry| entry.name).chain(SHELF.iter().map(|shelved| shelved.name))
}

/// Says of a file whether it is well formed.
pub(super) fn check(paths: &[PathBuf]) -> Result<ExitCode, Failure> {
    let mut text = String::new();
    for path in paths {
        let experiment = read(path)?;
        let wrong = |error| Failure::failed(format!("{}: {error}", path.display()));
        experiment.check_hosts().map_err(wrong)?;
        text.push_str(&format!("{}: {}\n", path.display(), experiment.question()));
    }
    print(&text)
}

fn read(path: &Path) -> Result<Experiment, Failure> {
    let text = std::fs::read_to_string(path).map_err(|error| Failure::file("read", path, &error))?;
    Experiment::parse(&text).map_err(|error| Failure::failed(format!("{}: {error}", path.display())))
}

fn run(
    name: &str,
    experiment: Experiment,
    hosts: &HostArgs,
    output: &OutputArgs,
) -> Result<ExitCode, Failure> {
    let experiment = experiment.with_seed(output.seed);
    if let Some(hosts) = hosts.host {
        return real::run(&experiment, hosts, output);
    }
    let outcome = experiment.run().map_err(|error| Failure::failed(format!("{name}: {error}")))?;
    draw_document(
        || document(name, experiment.question(), &outcome),
        output.html.as_deref(),
        output.svg.as_deref(),
    )?;
    show(&outcome, output)
}

/// What to say of a name that no scenario has.
pub(super) fn unknown(name: &str) -> Failure {
    let names: Vec<&str> = names().collect();
    let near = nearest_word(name, &names).map_or(String::new(), |near| format!("; did you mean `{near}`?"));
    let file =
        if name.ends_with(".toml") { format!("; a file is run by `lab run {name}`") } else { String::new() };
    Failure::usage(format!("there is no scenario `{name}`{near}{file} (`firstbyte lab` lists them)"))
}

/// Every scenario, by chapter; with a word, only those that have it.
pub(super) fn list(word: Option<&str>) -> String {
    let wanted = |text: &str| word.is_none_or(|word| text.to_lowercase().contains(&word.to_lowercase()));
    let mut chapters: Vec<(String, Vec<(&str, String)>)> = Vec::new();
    for entry in CATALOGUE {
        if wanted(&format!("{} {} {}", entry.name, entry.summary, entry.question)) {
            put(&mut chapters, "Tours", entry.name, entry.question.to_owned());
        }
    }
    for shelved in SHELF {
        let Ok(experiment) = Experiment::parse(shelved.text) else { continue };
        if wanted(&format!("{} {}", shelved.name, shelved.text)) {
            put(&mut chapters, experiment.chapter(), shelved.name, experiment.question().to_owned());
        }
    }
    let mut text = String::new();
    for (chapter, scenarios) in chapters {
        text.push_str(&format!("{chapter}\n"));
        for (name, question) in scenarios {
            text.push_str(&format!("  {name:<20} {question}\n"));
        }
    }
    text
}

fn put<'a>(
    chapters: &mut Vec<(String, Vec<(&'a str, String)>)>,
    chapter: &str,
    name: &'a str,
    question: String,
) {
    match chapters.iter_mut().find(|(known, _)| known == chapter) {
        Some((_, scenarios)) => scenarios.push((name, question)),
        None => chapters.push((chapter.to_owned(), vec![(name, question)])),
    }
}

/// What came of an experiment, in a line; words that are too long for one are left out.
pub(super) fn in_a_line(findings: &[Finding]) -> String {
    let short = findings.iter().filter(|finding| finding.what.len() + finding.ours.len() < 100);
    let mut figures: Vec<String> =
        short.map(|finding| format!("{}: {}", finding.what, finding.ours)).collect();
    if figures.len() < findings.len() {
        figures.push(format!("and {} more", findings.len() - figures.len()));
    }
    figures.join("; ")
}
