//! Scenarios that are files: built-in ones, and a user's own.

use super::args::{ChangeArgs, OutputArgs, Scenario};
use super::{draw_document, real, show};
use crate::failure::Failure;
use crate::input;
use crate::terminal::{print, terminal_width};
use ::lab::catalog::{catalog, contains};
use ::lab::experiment::{Experiment, Limits, SHELF, nearest_word};
use ::lab::report::{Finding, document, wrapped};
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
    if !path.exists() && catalog().iter().any(|listing| listing.name == name) {
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
    let all = catalog();
    let by_id: Vec<String> = all
        .iter()
        .filter(|listing| !name.is_empty() && listing.id.eq_ignore_ascii_case(name))
        .map(|listing| format!("`firstbyte lab {}`", listing.name))
        .collect();
    if !by_id.is_empty() {
        return Failure::usage(format!("`{name}` is an id; run its scenario by name: {}", by_id.join(", ")));
    }
    let names: Vec<&str> = all.iter().map(|listing| listing.name).collect();
    let near = nearest_word(name, &names).map_or(String::new(), |near| format!("; did you mean `{near}`?"));
    let file =
        if name.ends_with(".toml") { format!("; `lab run {name}` runs a file") } else { String::new() };
    Failure::usage(format!("there is no scenario `{name}`{near}{file} (`firstbyte lab` lists them)"))
}

/// Lists the scenarios that match all words, or explains why none does.
pub(super) fn find(words: &[String]) -> Result<String, Failure> {
    let found = list(words);
    if !found.is_empty() {
        return Ok(found);
    }
    let alone = |word: &&String| list(std::slice::from_ref(*word)).is_empty();
    let nowhere: Vec<String> = words.iter().filter(alone).map(|word| format!("`{word}`")).collect();
    let names: Vec<&str> = catalog().iter().map(|listing| listing.name).collect();
    let near = words.iter().filter(alone).find_map(|word| nearest_word(word, &names));
    let near = near.map_or(String::new(), |near| format!("; did you mean `{near}`?"));
    Err(Failure::failed(match nowhere.len() {
        0 => format!(
            "no scenario matches all of `{}`, though each word matches some; use fewer words",
            words.join("`, `")
        ),
        _ => format!("no scenario matches {}{near} (`firstbyte lab` lists all)", nowhere.join(" or ")),
    }))
}

/// Lists the scenarios that match all words, by chapter.
pub(super) fn list(words: &[String]) -> String {
    let coded = Scenario::augment_subcommands(clap::Command::new("lab"));
    let mut text = String::new();
    let mut chapter = String::new();
    for listing in catalog() {
        let options = coded.find_subcommand(listing.name).map(own_options).unwrap_or_default();
        let searched = format!("{} {options}", listing.text());
        if !words.iter().all(|word| contains(&searched, word)) {
            continue;
        }
        if chapter != listing.chapter {
            text.push_str(&format!("{}\n", listing.chapter));
            chapter = listing.chapter;
        }
        text.push_str(&beside(&format!("  {:<20} ", listing.name), &listing.question));
    }
    text
}

/// Returns the help of the options that only this scenario has.
fn own_options(scenario: &clap::Command) -> String {
    let all_take = OutputArgs::augment_args(clap::Command::new("all"));
    let is_own = |arg: &&clap::Arg| all_take.get_arguments().all(|common| common.get_id() != arg.get_id());
    let words = |arg: &clap::Arg| {
        let values = arg.get_possible_values();
        let values: Vec<&str> = values.iter().map(clap::builder::PossibleValue::get_name).collect();
        let help = arg.get_help().map(ToString::to_string);
        format!("{} {} {}", arg.get_id(), help.unwrap_or_default(), values.join(" "))
    };
    scenario.get_arguments().filter(is_own).map(words).collect::<Vec<_>>().join(" ")
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

    #[test]
    fn a_search_needs_all_words_and_explains_why_nothing_matches() {
        let found = |line: &str| find(&line.split(' ').map(str::to_owned).collect::<Vec<_>>());
        assert!(found("TIME_WAIT ports").unwrap().contains("  ports "));
        assert_eq!(found("L-TFO-4").unwrap().lines().count(), 2);
        for (line, part) in [
            ("xyzzy", "no scenario matches `xyzzy` (`firstbyte lab` lists all)"),
            ("bufferblot", "did you mean `bufferbloat`?"),
            ("nagle tahoe", "each word matches some; use fewer words"),
            ("nagle xyzzy", "no scenario matches `xyzzy`"),
        ] {
            let failure = found(line).unwrap_err();
            assert!(failure.message().contains(part), "{line}: {failure:?}");
        }
        assert!(unknown("l-tfo-4").message().contains("`firstbyte lab flags`"), "{:?}", unknown("l-tfo-4"));
    }

    /// Options that all scenarios have match none of them.
    #[test]
    fn a_scenario_is_found_by_its_own_options() {
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
