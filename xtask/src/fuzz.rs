//! `cargo xtask fuzz`: runs the targets of `crates/fuzz` under libFuzzer, in one program that the
//! stable compiler instruments.
//!
//! New inputs go to `target/fuzz`, never into the repository. A developer minimises an input worth
//! keeping and adds it to `crates/fuzz/corpus`.

use crate::{skipped, unexpected};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// The folder with the corpus of each target.
const CORPUS: &str = "crates/fuzz/corpus";
/// Seconds for each target by default.
const SECONDS: &str = "60";
/// Seconds for all targets together in the test command.
const SECONDS_IN_TESTS: usize = 30;
/// Targets that run at once, each on a core.
const WORKERS: usize = 2;
/// The longest input, in bytes.
const LENGTH_MAX: usize = 4096;
/// The longest input of the target `settings`: every setting on a line of its own.
const LENGTH_MAX_OF_SETTINGS: usize = 16_384;
/// Seconds that one input may take. A long transfer in small segments takes 13 s, instrumented, on
/// an idle processor.
const INPUT_SECONDS: u32 = 120;
/// The variable from which `fuzz/src/main.rs` reads its target.
const TARGET: &str = "FIRSTBYTE_FUZZ";

/// Flags for the coverage that libFuzzer reads: edges and comparisons, as cargo-fuzz sets them. No
/// sanitizer: the targets are safe Rust, where it would find nothing and halve the speed.
const INSTRUMENTED: [&str; 6] = [
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "--cfg=fuzzing",
];

/// Runs `cargo xtask fuzz` with its arguments.
pub(crate) fn run(arguments: &[&str]) -> Result<(), String> {
    let (seconds, named) = match arguments {
        ["--seconds"] => return Err(format!("cannot run fuzz: --seconds needs a number; usage: {USAGE}")),
        ["--seconds", seconds, named @ ..] => (*seconds, named),
        named => (SECONDS, named),
    };
    if !seconds.parse::<u32>().is_ok_and(|seconds| seconds > 0) {
        return Err(format!(
            "cannot run fuzz: `--seconds {seconds}`: not a whole number from 1 on; usage: {USAGE}"
        ));
    }
    if let Some(option) = named.iter().find(|name| name.starts_with('-')) {
        return Err(unexpected("fuzz", option, USAGE));
    }
    let all = targets()?;
    if let Some(unknown) = named.iter().find(|name| !all.iter().any(|target| target == *name)) {
        let known = all.join(", ");
        return Err(format!("cannot run fuzz: no target `{unknown}`; the targets are {known}"));
    }
    if let Some(missing) = missing() {
        return Err(missing.to_owned());
    }
    let chosen = all.into_iter().filter(|target| named.is_empty() || named.contains(&target.as_str()));
    fuzz_all(&build()?, &chosen.collect::<Vec<_>>(), seconds, Path::new("target/fuzz/found"))
}

/// Runs all targets for half a minute together, or prints SKIPPED with what is missing.
pub(crate) fn run_in_tests() -> Result<(), String> {
    if let Some(missing) = missing() {
        skipped::say(&format!("cargo xtask fuzz: {missing}"));
        return Ok(());
    }
    let targets = targets()?;
    let seconds = (WORKERS * SECONDS_IN_TESTS).div_ceil(targets.len().max(1)).to_string();
    // The inputs of earlier runs would take long to load.
    let scratch = Path::new("target/fuzz/scratch");
    let _ = std::fs::remove_dir_all(scratch);
    fuzz_all(&build()?, &targets, &seconds, scratch)
}

const USAGE: &str = "cargo xtask fuzz [--seconds N] [TARGET…]";

/// Returns what this machine lacks.
fn missing() -> Option<&'static str> {
    let compiler = Command::new("c++").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    let is_there = compiler.is_ok_and(|status| status.success());
    (!is_there).then_some("libFuzzer needs a C++ compiler; run `apt-get install g++`")
}

fn targets() -> Result<Vec<String>, String> {
    let folders = std::fs::read_dir(CORPUS).map_err(|error| format!("{CORPUS}: {error}"))?;
    let mut names: Vec<String> =
        folders.flatten().filter_map(|folder| folder.file_name().into_string().ok()).collect();
    names.sort();
    Ok(names)
}

/// Builds the program of all targets and returns its path.
fn build() -> Result<PathBuf, String> {
    let host = host_triple()?;
    let folder = Path::new("target/fuzz/build");
    let mut cargo = Command::new(env!("CARGO"));
    // With a target named, build scripts and procedural macros are not instrumented.
    cargo.args(["build", "--release", "--locked", "--manifest-path", "fuzz/Cargo.toml", "--target", &host]);
    cargo.arg("--target-dir").arg(folder).env("RUSTFLAGS", INSTRUMENTED.join(" "));
    println!("\n=== build the fuzzer");
    let status = cargo.status().map_err(|error| format!("cannot run cargo: {error}"))?;
    if !status.success() {
        return Err(format!("cannot build the fuzzer ({status})"));
    }
    Ok(folder.join(host).join("release/firstbyte-fuzzer"))
}

fn host_triple() -> Result<String, String> {
    let told =
        Command::new("rustc").arg("-vV").output().map_err(|error| format!("cannot run rustc: {error}"))?;
    let text = String::from_utf8_lossy(&told.stdout);
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).ok_or_else(|| "cannot read the host triple from `rustc -vV`".to_owned())
}

/// Runs each target for `seconds`, two at a time.
fn fuzz_all(program: &Path, targets: &[String], seconds: &str, found: &Path) -> Result<(), String> {
    println!("\n=== fuzz {} for {seconds} s each", targets.join(", "));
    let next = AtomicUsize::new(0);
    let work = || {
        let mut ended = Ok(());
        while ended.is_ok()
            && let Some(target) = targets.get(next.fetch_add(1, Ordering::Relaxed))
        {
            ended = fuzz(program, target, seconds, &found.join(target));
        }
        ended
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..WORKERS).map(|_| scope.spawn(work)).collect();
        let panicked = || Err("a worker panicked".to_owned());
        workers.into_iter().try_for_each(|worker| worker.join().unwrap_or_else(|_| panicked()))
    })
}

/// Runs one target. New inputs go to the folder `found`, the output to a log.
fn fuzz(program: &Path, target: &str, seconds: &str, found: &Path) -> Result<(), String> {
    let log = Path::new("target/fuzz/logs").join(target);
    let failures = Path::new("target/fuzz/failures").join(target);
    for folder in [found, Path::new("target/fuzz/logs"), &failures] {
        std::fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    }
    let unwritable = |error: std::io::Error| format!("{}: {error}", log.display());
    let output = File::create(&log).map_err(unwritable)?;
    let status = Command::new(program)
        .args([found, &Path::new(CORPUS).join(target)])
        .env(TARGET, target)
        .arg(format!("-max_total_time={seconds}"))
        .arg(format!("-max_len={}", longest(target)))
        .arg(format!("-artifact_prefix={}/", failures.display()))
        .arg(format!("-timeout={INPUT_SECONDS}"))
        .arg("-rss_limit_mb=2048")
        .stderr(output)
        .status()
        .map_err(|error| format!("cannot run {}: {error}", program.display()))?;
    let said = std::fs::read(&log).map_err(unwritable)?;
    let said = String::from_utf8_lossy(&said);
    if status.success() {
        // `Done 123 runs in 60 second(s)`
        println!("{target}: {}", said.lines().last().unwrap_or_default());
        return Ok(());
    }
    let end: Vec<&str> = said.lines().rev().take(LINES_SHOWN).collect();
    end.iter().rev().for_each(|line| eprintln!("{line}"));
    Err(format!(
        "the target {target} failed; its input is in {}, its log is {}",
        failures.display(),
        log.display()
    ))
}

fn longest(target: &str) -> usize {
    if target == "settings" { LENGTH_MAX_OF_SETTINGS } else { LENGTH_MAX }
}

/// Lines of the log that are shown if a target fails.
const LINES_SHOWN: usize = 60;
