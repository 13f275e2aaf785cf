//! `cargo xtask fuzz`: libFuzzer over the targets of `crates/fuzz`, in one program, which the stable compiler instruments.
//!
//! What is found on the way lies in `target/fuzz`, never in the repository; an entry worth keeping is minimised and added to
//! `crates/fuzz/corpus` by hand.

use crate::skipped;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Each target's corpus is a folder here.
const CORPUS: &str = "crates/fuzz/corpus";
/// Seconds of each target where none are given.
const SECONDS: &str = "60";
/// Of all targets together in the test command.
const SECONDS_IN_TESTS: usize = 30;
/// Targets at once, each on a core.
const WORKERS: usize = 2;
/// The longest input, bytes: of the settings all of them, each in a line.
const LENGTH_MAX: usize = 4096;
const LENGTH_MAX_OF_SETTINGS: usize = 16_384;
/// That one input may take: a long transfer in small segments takes 13 of an idle processor, with all that is instrumented.
const INPUT_SECONDS: u32 = 120;
/// Read by `fuzz/src/main.rs`.
const TARGET: &str = "FIRSTBYTE_FUZZ";

/// What libFuzzer reads while the code runs: which edges were taken, where they are, and what was compared (the flags that cargo-fuzz gives
/// too). No sanitizer: the targets are safe Rust, where one finds nothing and takes half of the speed.
const INSTRUMENTED: [&str; 6] = [
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "--cfg=fuzzing",
];

/// `[--seconds N] [TARGET…]`.
pub(crate) fn run(arguments: &[&str]) -> Result<(), String> {
    let (seconds, named) = match arguments {
        ["--seconds"] => return Err("--seconds needs a number".to_owned()),
        ["--seconds", seconds, named @ ..] => (*seconds, named),
        named => (SECONDS, named),
    };
    if !seconds.parse::<u32>().is_ok_and(|seconds| seconds > 0) {
        return Err(format!("--seconds {seconds}: give a whole number from 1 on"));
    }
    let all = targets()?;
    if let Some(unknown) = named.iter().find(|name| !all.iter().any(|target| target == *name)) {
        return Err(format!("there is no target `{unknown}`; there are {}", all.join(", ")));
    }
    if let Some(missing) = missing() {
        return Err(missing.to_owned());
    }
    let chosen = all.into_iter().filter(|target| named.is_empty() || named.contains(&target.as_str()));
    fuzz_all(&build()?, &chosen.collect::<Vec<_>>(), seconds, Path::new("target/fuzz/found"))
}

/// Half a minute of all targets together, or a line that says what is missing.
pub(crate) fn run_in_tests() -> Result<(), String> {
    if let Some(missing) = missing() {
        skipped::say(&format!("cargo xtask fuzz: {missing}"));
        return Ok(());
    }
    let targets = targets()?;
    let seconds = (WORKERS * SECONDS_IN_TESTS).div_ceil(targets.len().max(1)).to_string();
    // What earlier runs have found would take long to load.
    let scratch = Path::new("target/fuzz/scratch");
    let _ = std::fs::remove_dir_all(scratch);
    fuzz_all(&build()?, &targets, &seconds, scratch)
}

/// What this machine lacks.
fn missing() -> Option<&'static str> {
    let compiler = Command::new("c++").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    let is_there = compiler.is_ok_and(|status| status.success());
    (!is_there).then_some("it needs a C++ compiler, for libFuzzer: apt-get install g++")
}

fn targets() -> Result<Vec<String>, String> {
    let folders = std::fs::read_dir(CORPUS).map_err(|error| format!("{CORPUS}: {error}"))?;
    let mut names: Vec<String> =
        folders.flatten().filter_map(|folder| folder.file_name().into_string().ok()).collect();
    names.sort();
    Ok(names)
}

/// The one program; where it is.
fn build() -> Result<PathBuf, String> {
    let host = host_triple()?;
    let folder = Path::new("target/fuzz/build");
    let mut cargo = Command::new(env!("CARGO"));
    // With a target named, what runs while it is built is not instrumented.
    cargo.args(["build", "--release", "--locked", "--manifest-path", "fuzz/Cargo.toml", "--target", &host]);
    cargo.arg("--target-dir").arg(folder).env("RUSTFLAGS", INSTRUMENTED.join(" "));
    println!("\n=== build the fuzzer");
    let status = cargo.status().map_err(|error| format!("cannot run cargo: {error}"))?;
    if !status.success() {
        return Err(format!("the fuzzer cannot be built ({status})"));
    }
    Ok(folder.join(host).join("release/firstbyte-fuzzer"))
}

fn host_triple() -> Result<String, String> {
    let told =
        Command::new("rustc").arg("-vV").output().map_err(|error| format!("cannot run rustc: {error}"))?;
    let text = String::from_utf8_lossy(&told.stdout);
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).ok_or_else(|| "rustc does not say what it builds for".to_owned())
}

/// Each target for so long, two at a time.
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

/// What is found on the way is written to `found`; what it says, to a log.
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
        .map_err(|error| format!("{}: {error}", program.display()))?;
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
        "the target {target} failed; the bytes that show it are in {}, all that was said is in {}",
        failures.display(),
        log.display()
    ))
}

fn longest(target: &str) -> usize {
    if target == "settings" { LENGTH_MAX_OF_SETTINGS } else { LENGTH_MAX }
}

/// Of a log, where a target fails.
const LINES_SHOWN: usize = 60;
