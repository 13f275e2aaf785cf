//! Instruction counts of the hot paths, by callgrind, beside recorded ones.
//!
//! Times on a busy machine say little; instructions repeat to a per mille, where the clock steps
//! instead of showing the machine's time ([`meter::step_clock`](crate::meter::step_clock)). Each
//! path is run twice, shorter and longer, and the difference divided by the units between them, so
//! that start-up does not count. Beside them stands how much code an exchange runs through
//! (`code_lines`). The record is `instructions.txt` in this crate: one line per path, written by
//! `firstbyte-bench instructions --record`.
//!
//! A changed count is shown, not refused: the author of the change records it, and the review sees
//! both numbers.

mod code_lines;

use crate::report::Failure;
use crate::side_by_side::side_by_side;
use clap::Args;
use core::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

/// Nanoseconds from one look at the clock to the next: about a round between two stacks. By the
/// machine's clock timers would go off as it has time for us.
const CLOCK_STEP: &str = "1000";

/// A change beyond this share is shown.
const TOLERANCE: f64 = 0.05;

/// callgrind counts every turn of `rep movsb` and `rep stosb`; without them a copy is counted as
/// what it costs.
const GLIBC_TUNABLES: &str =
    "glibc.cpu.x86_rep_movsb_threshold=1000000000:glibc.cpu.x86_rep_stosb_threshold=1000000000";

/// Counts instructions and compares them with the record.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// Writes the counts to the record instead of comparing.
    #[arg(long)]
    record: bool,
    /// The record.
    #[arg(long, default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/instructions.txt"))]
    file: PathBuf,
}

/// A path: the workload's arguments, and the two lengths it is run with.
struct HotPath {
    name: &'static str,
    arguments: &'static [&'static str],
    length: Length,
}

/// What a run's length is counted in.
enum Length {
    /// Exchanges: `--n`, and a tenth of it to warm up.
    Exchanges,
    /// Requests and answers on an open connection: `--requests`, and a tenth of it to warm up.
    Requests,
    /// Payload bytes: `--bytes`.
    Bytes,
    /// Not instructions, but the cache lines that hold them: see `code_lines`.
    Code,
}

const HOT_PATHS: &[HotPath] = &[
    HotPath::exchange("xchg plain conc=1", &["--mode", "plain", "--conc", "1"]),
    HotPath::exchange("xchg plain conc=64", &["--mode", "plain", "--conc", "64"]),
    HotPath::exchange("xchg tfo conc=1", &["--mode", "tfo", "--conc", "1"]),
    HotPath::exchange("xchg tfo conc=64", &["--mode", "tfo", "--conc", "64"]),
    HotPath::exchange("xchg tfo close=syn", &["--mode", "tfo", "--conc", "1", "--close", "syn"]),
    HotPath::requests("request on an open one", &["--conns", "10"]),
    HotPath::stream("bulk mtu=1500", &["--mtu", "1500"]),
    HotPath::stream("bulk mtu=65535", &["--mtu", "65535"]),
    HotPath::code("code lines, plain", &["--mode", "plain", "--conc", "1"]),
    HotPath::code("code lines, tfo", &["--mode", "tfo", "--conc", "1"]),
];

impl HotPath {
    const fn exchange(name: &'static str, arguments: &'static [&'static str]) -> HotPath {
        HotPath { name, arguments, length: Length::Exchanges }
    }

    const fn requests(name: &'static str, arguments: &'static [&'static str]) -> HotPath {
        HotPath { name, arguments, length: Length::Requests }
    }

    const fn stream(name: &'static str, arguments: &'static [&'static str]) -> HotPath {
        HotPath { name, arguments, length: Length::Bytes }
    }

    const fn code(name: &'static str, arguments: &'static [&'static str]) -> HotPath {
        HotPath { name, arguments, length: Length::Code }
    }

    /// Instructions per exchange, per request with its answer, or per byte; cache lines.
    fn count(&self) -> Result<f64, Failure> {
        let (workload, option, short, long, units): (&[&str], _, u64, u64, f64) = match self.length {
            Length::Exchanges => (&["xchg-mem"], "--n", 1000, 3000, 2200.0),
            Length::Requests => (&["scale"], "--requests", 1000, 3000, 2200.0),
            Length::Bytes => (&["bulk-mem", "--secs", "100"], "--bytes", 20_000_000, 60_000_000, 4e7),
            Length::Code => return code_lines::count(self.arguments),
        };
        let run = |length: u64| {
            let length = length.to_string();
            instructions_of(
                &[workload, self.arguments, &[option, &length, "--clock-step", CLOCK_STEP]].concat(),
            )
        };
        Ok((run(long)? as f64 - run(short)? as f64) / units)
    }
}

/// Runs it.
///
/// # Errors
/// A path does not run, or the record cannot be read or written. A changed count is none.
pub fn run(options: &Options) -> Result<(), Failure> {
    if !has_valgrind() {
        println!("instructions: SKIPPED, valgrind is not installed");
        return Ok(());
    }
    let counts = side_by_side(HOT_PATHS, |path| {
        let count = path.count().map_err(|failure| format!("{}: {failure}", path.name))?;
        Ok((path.name.to_string(), count))
    })?;
    if options.record {
        std::fs::write(&options.file, to_text(&counts))
            .map_err(|error| format!("{}: {error}", options.file.display()))?;
        println!("instructions: recorded in {}", options.file.display());
        return Ok(());
    }
    print!("{}", compare(&read(&options.file)?, &counts));
    Ok(())
}

pub(crate) fn has_valgrind() -> bool {
    let version = Command::new("valgrind").arg("--version").output();
    version.is_ok_and(|output| output.status.success())
}

/// Instructions of this program with these arguments, as callgrind counts them.
fn instructions_of(arguments: &[&str]) -> Result<u64, Failure> {
    callgrind_into(Path::new("/dev/null"), &[], arguments)
}

/// What callgrind found by function, or by what the options say, goes into a file.
fn callgrind_into(profile: &Path, options: &[&str], arguments: &[&str]) -> Result<u64, Failure> {
    let output = under_callgrind(profile, options, arguments)?.output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    collected(&said).filter(|_| ExitStatus::success(&output.status)).ok_or_else(|| {
        let last = said.lines().last().unwrap_or_default();
        format!("callgrind on {}: {}: {last}", arguments.join(" "), output.status).into()
    })
}

/// This program with these arguments, and callgrind with these options.
pub(crate) fn under_callgrind(
    profile: &Path,
    options: &[&str],
    arguments: &[&str],
) -> Result<Command, Failure> {
    let mut command = Command::new("valgrind");
    command.arg("--tool=callgrind").arg(format!("--callgrind-out-file={}", profile.display()));
    command.args(options).arg(std::env::current_exe()?).args(arguments);
    command.env("GLIBC_TUNABLES", GLIBC_TUNABLES);
    Ok(command)
}

/// The number in callgrind's line `==123== Collected : 456`.
pub(crate) fn collected(said: &str) -> Option<u64> {
    let line = said.lines().find_map(|line| line.split_once("Collected : "))?;
    line.1.trim().parse().ok()
}

fn to_text(counts: &[(String, f64)]) -> String {
    counts.iter().fold(String::new(), |text, (name, count)| format!("{text}{name}\t{count:.4}\n"))
}

fn read(file: &Path) -> Result<Vec<(String, f64)>, Failure> {
    let text = std::fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
    from_text(&text).ok_or_else(|| format!("{}: not a record of counts", file.display()).into())
}

fn from_text(text: &str) -> Option<Vec<(String, f64)>> {
    let entry = |line: &str| {
        let (name, count) = line.split_once('\t')?;
        Some((name.to_string(), count.parse().ok()?))
    };
    text.lines().map(entry).collect()
}

/// A table of both; changed lines say so.
fn compare(recorded: &[(String, f64)], counted: &[(String, f64)]) -> String {
    let mut text = format!("{:<22} {:>12} {:>12} {:>8}\n", "instructions", "recorded", "now", "change");
    let mut changed = 0;
    for (name, now) in counted {
        let before = recorded.iter().find(|(known, _)| known == name).map(|(_, count)| *count);
        let change = before.map(|before| now / before - 1.0);
        let is_changed = change.is_none_or(|change| change.abs() > TOLERANCE);
        changed += usize::from(is_changed);
        let before = before.map_or("none".to_string(), number);
        let change = change.map_or(String::new(), |change| format!("{:+.1} %", change * 100.0));
        let mark = if is_changed { "  CHANGED" } else { "" };
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{name:<22} {before:>12} {:>12} {change:>8}{mark}", number(*now));
    }
    if changed > 0 {
        let _ = writeln!(
            text,
            "{changed} of them changed by more than {:.0} %; `firstbyte-bench instructions --record` records them",
            TOLERANCE * 100.0
        );
    }
    text
}

/// Counts per exchange and request are whole, counts per byte are small.
fn number(count: f64) -> String {
    if count < 100.0 { format!("{count:.3}") } else { format!("{count:.0}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(first: f64, second: f64) -> Vec<(String, f64)> {
        vec![("exchange".to_string(), first), ("stream".to_string(), second)]
    }

    #[test]
    fn a_record_comes_back_as_it_was_written() {
        assert_eq!(from_text(&to_text(&counts(14_000.25, 1.5))), Some(counts(14_000.25, 1.5)));
        assert_eq!(from_text("exchange 14000\n"), None);
    }

    #[test]
    fn the_record_of_this_crate_names_every_path() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/instructions.txt");
        let recorded: Vec<String> =
            read(Path::new(file)).unwrap().into_iter().map(|(name, _)| name).collect();
        let names: Vec<String> = HOT_PATHS.iter().map(|path| path.name.to_string()).collect();
        assert_eq!(recorded, names);
    }

    #[test]
    fn the_count_is_found_in_what_callgrind_says() {
        let said = "==7== Events    : Ir\n==7== Collected : 545768\n==7== \n";
        assert_eq!(collected(said), Some(545_768));
        assert_eq!(collected("valgrind: no such file\n"), None);
    }

    #[test]
    fn only_changes_beyond_the_tolerance_are_marked() {
        let text = compare(&counts(1000.0, 2.0), &counts(1049.0, 1.85));
        let marked: Vec<&str> = text.lines().filter(|line| line.ends_with("CHANGED")).collect();
        assert_eq!(marked, ["stream                        2.000        1.850   -7.5 %  CHANGED"]);
        assert!(text.contains("1 of them changed by more than 5 %"));
        assert!(!compare(&counts(1000.0, 2.0), &counts(951.0, 2.09)).contains("changed"));
    }

    #[test]
    fn a_path_without_a_record_is_marked() {
        let text = compare(&[], &counts(10_000.0, 2.0));
        assert_eq!(text.matches("none").count(), 2);
        assert_eq!(text.matches("CHANGED").count(), 2);
    }
}
