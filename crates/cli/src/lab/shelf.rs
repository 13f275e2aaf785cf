//! Scenarios that are files: built-in ones, and a user's own.

use super::args::{ChangeArgs, OutputArgs, Scenario};
use super::{draw_document, real, show};
use crate::failure::Failure;
use crate::input;
use crate::terminal::{print, terminal_width};
use ::lab::experiment::{Experiment, Limits, SHELF, nearest_word};
use ::lab::report::{Finding, document, wrapped};
use ::lab::scenario::CATALOGUE;
use clap::error::{ContextKind, ErrorKind};
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Options of a scenario that is a file.
#[derive(Parser, Debug)]
#[command(name = "firstbyte lab", no_binary_name = true)]
struct ShelvedArgs {
    #[command(flatten)]
    changes: ChangeArgs,
    #[command(flatten)]
    output: OutputArgs,
}

/// Runs a scenario by its name, with the words behind it.
pub(super) fn run_named(words: &[String]) -> Result<ExitCode, Failure> {
    let (name, options) = words.split_first().ok_or_else(|| Failure::usage("name a scenario"))?;
    let Some(shelved) = SHELF.iter().find(|shelved| shelved.name == name) else {
        return Err(unknown(name));
    };
    let command = ShelvedArgs::command().override_usage(format!("firstbyte lab {name} [OPTIONS]"));
    let args = command.try_get_matches_from(options).and_then(|read| ShelvedArgs::from_arg_matches(&read));
    let args = args.or_else(|error| not_taken(name, error))?;
    let experiment = Experiment::parse(shelved.text).map_err(Failure::failed)?;
    run(name, experiment, &args.changes, &args.output)
}

/// Explains arguments that the scenario does not accept, or prints help.
fn not_taken(name: &str, error: clap::Error) -> Result<ShelvedArgs, Failure> {
    let Some(word) =
        error.get(ContextKind::InvalidArg).filter(|_| error.kind() == ErrorKind::UnknownArgument)
    else {
        error.exit()
    };
    Err(Failure::usage(format!(
        "`lab {name}` has no option `{word}`: `firstbyte lab {name} --help` lists its options. The \
        scenario is a file; try other values of its keys with `firstbyte lab sweep {name} --vary \
        path.rtt=10ms,100ms`"
    )))
}

/// Runs a scenario file.
pub(super) fn run_file(path: &Path, changes: &ChangeArgs, output: &OutputArgs) -> Result<ExitCode, Failure> {
    run(&path.display().to_string(), read(path)?, changes, output)
}

/// Returns the names of the built-in scenarios that are files.
fn names() -> impl Iterator<Item = &'static str> {
    CATALOGUE.iter().map(|entry| entry.name).chain(SHELF.iter().map(|shelved| shelved.name))
}

/// Checks scenario files and reports errors.
pub(super) fn check(paths: &[PathBuf], limits: Limits) -> Result<ExitCode, Failure> {
    let mut text = String::new();
    let mut wrong = Vec::new();
    for path in paths {
        let checked = read(path).and_then(|experiment| {
            let experiment = experiment.with_limits(limits);
            let wrong = |error| Failure::failed(format!("{}: {error}", path.display()));
            experiment.check_hosts().map_err(wrong).map(|()| experiment)
        });
        match checked {
            Ok(experiment) => {
                text.push_str(&format!("{}: {}\n", path.display(), experiment.question()));
            }
            Err(failure) => wrong.push(failure),
        }
    }
    print(&text)?;
    // All but the last error are printed here, the last by the caller.
    let last = wrong.pop();
    wrong.iter().for_each(|failure| _ = failure.report());
    last.map_or(Ok(ExitCode::SUCCESS), Err)
}

fn read(path: &Path) -> Result<Experiment, Failure> {
    let name = path.display().to_string();
    if !path.exists() && names().any(|known| known == name) {
        return Err(Failure::usage(format!(
            "there is no file `{name}`; run the scenario of that name with `firstbyte lab {name}`"
        )));
    }
    let text = String::from_utf8(input::bytes(path, input::WRITTEN_MAX)?).map_err(|_| {
        Failure::failed(format!(
            "{} is not a text file; expected a scenario in TOML (format: docs/experiments.md)",
            path.display()
        ))
    })?;
    Experiment::parse(&text).map_err(|error| Failure::failed(format!("{}: {error}", path.display())))
}

fn run(
    name: &str,
    experiment: Experiment,
    changes: &ChangeArgs,
    output: &OutputArgs,
) -> Result<ExitCode, Failure> {
    let mut experiment = match output.seed {
        Some(seed) => experiment.with_seed(seed),
        None => experiment,
    };
    experiment = experiment.with_limits(changes.limit.unwrap_or_default());
    if let Some(words) = &changes.qdisc {
        let told = |error| Failure::usage(format!("--qdisc is not possible for {name}: {error}"));
        experiment = experiment.with_qdisc(words).map_err(told)?;
    }
    if let Some(hosts) = changes.host {
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

/// Explains that no scenario has this name.
pub(super) fn unknown(name: &str) -> Failure {
    let names: Vec<&str> = names().collect();
    let near = nearest_word(name, &names).map_or(String::new(), |near| format!("; did you mean `{near}`?"));
    let by_id = SHELF.iter().filter(|_| !name.is_empty()).find(|shelved| {
        Experiment::parse(shelved.text).is_ok_and(|experiment| experiment.id().eq_ignore_ascii_case(name))
    });
    if let Some(shelved) = by_id {
        return Failure::usage(format!("{name} is the scenario `{0}`: firstbyte lab {0}", shelved.name));
    }
    let file =
        if name.ends_with(".toml") { format!("; a file is run by `lab run {name}`") } else { String::new() };
    Failure::usage(format!("there is no scenario `{name}`{near}{file} (`firstbyte lab` lists them)"))
}

/// Lists the scenarios by chapter; with words, only those that match all of them.
pub(super) fn list(words: &[String]) -> String {
    let wanted = |text: &str| {
        let text = text.to_lowercase();
        words.iter().all(|word| text.contains(&word.to_lowercase()))
    };
    let mut chapters: Vec<(String, Vec<(&str, String)>)> = Vec::new();
    let tours = Scenario::augment_subcommands(clap::Command::new("lab"));
    for entry in CATALOGUE {
        let options = tours.find_subcommand(entry.name).map(own_options).unwrap_or_default();
        if wanted(&format!("{} {} {} {options}", entry.name, entry.summary, entry.question)) {
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
            text.push_str(&beside(&format!("  {name:<20} "), &question));
        }
    }
    text
}

/// Returns the help of the options that only this scenario has.
fn own_options(tour: &clap::Command) -> String {
    let all_take = OutputArgs::augment_args(clap::Command::new("all"));
    let is_own = |arg: &&clap::Arg| all_take.get_arguments().all(|common| common.get_id() != arg.get_id());
    let words = |arg: &clap::Arg| {
        let values = arg.get_possible_values();
        let values: Vec<&str> = values.iter().map(clap::builder::PossibleValue::get_name).collect();
        let help = arg.get_help().map(ToString::to_string);
        format!("{} {} {}", arg.get_id(), help.unwrap_or_default(), values.join(" "))
    };
    tour.get_arguments().filter(is_own).map(words).collect::<Vec<_>>().join(" ")
}

/// Puts a text beside a label: wrapped on a terminal, otherwise on one line, so that programs can
/// search it.
pub(super) fn beside(before: &str, text: &str) -> String {
    let width = terminal_width().unwrap_or(usize::MAX);
    let margin = before.chars().count();
    let lines = wrapped(text, width.saturating_sub(margin).max(TEXT_MIN));
    let mut all = format!("{before}{}\n", lines.first().map_or("", String::as_str));
    lines.iter().skip(1).for_each(|line| all.push_str(&format!("{:margin$}{line}\n", "")));
    all
}

/// Least width of a text, columns.
const TEXT_MIN: usize = 30;

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

/// Longest line of results, characters: no result starts after this length.
const LINE: usize = 160;

/// Summarizes the results in a line: the first ones, and the number of others.
pub(super) fn in_a_line(findings: &[Finding]) -> String {
    let mut line = String::new();
    let mut told = 0;
    // Names that are too long for a line are skipped.
    for finding in findings.iter().filter(|finding| finding.what.len() + finding.ours.len() < 100) {
        if line.chars().count() > LINE {
            break;
        }
        let gap = if line.is_empty() { "" } else { "; " };
        let colon = if finding.what.ends_with('?') { "" } else { ":" };
        line.push_str(&format!("{gap}{}{colon} {}", finding.what, finding.ours));
        told += 1;
    }
    match findings.len() - told {
        0 => line,
        more if line.is_empty() => format!("{more} figures"),
        more => format!("{line}; and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Options that all scenarios have match none of them.
    #[test]
    fn a_tour_is_found_by_what_only_it_takes() {
        let found = |word: &str| list(&[word.to_owned()]);
        assert!(found("tahoe").contains("  textbook "), "{}", found("tahoe"));
        assert!(found("forget").contains("  fast-open "), "{}", found("forget"));
        assert!(!found("wireshark").contains("  fast-open "), "{}", found("wireshark"));
    }

    #[test]
    fn a_line_has_the_first_figures_and_how_many_more_there_are() {
        let findings = |count: usize| vec![Finding::same("a figure of some length", "its value", ""); count];
        assert_eq!(in_a_line(&findings(2)).matches("a figure").count(), 2);
        let many = in_a_line(&findings(40));
        assert!(many.ends_with("; and 35 more") && many.chars().count() < 220, "{many}");
    }
}
