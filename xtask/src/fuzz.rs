//! `cargo xtask fuzz`: libFuzzer over the targets of `crates/fuzz`, by cargo-fuzz and a nightly compiler.
//!
//! What is found on the way lies in `target/fuzz`, never in the repository; an entry worth keeping is minimised and added to
//! `crates/fuzz/corpus` by hand.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Each target's corpus is a folder here.
const CORPUS: &str = "crates/fuzz/corpus";
/// Seconds of each target where none are given.
const SECONDS: &str = "60";
/// Of all targets together in the test command.
const SECONDS_IN_TESTS: usize = 60;
/// The longest input, bytes.
const LENGTH_MAX: usize = 4096;

/// `[--seconds N] [TARGET…]`.
pub(crate) fn run(arguments: &[&str]) -> Result<(), String> {
    let (seconds, named) = match arguments {
        ["--seconds", seconds, named @ ..] => (*seconds, named),
        named => (SECONDS, named),
    };
    seconds.parse::<u32>().map_err(|_| format!("`{seconds}` is no number of seconds"))?;
    if let Some(missing) = missing() {
        return Err(missing.to_owned());
    }
    let all = targets()?;
    if let Some(unknown) = named.iter().find(|name| !all.iter().any(|target| target == *name)) {
        return Err(format!("there is no target `{unknown}`; there are {}", all.join(", ")));
    }
    let chosen = all.iter().filter(|target| named.is_empty() || named.contains(&target.as_str()));
    chosen.into_iter().try_for_each(|target| fuzz(target, seconds))
}

/// A minute of all targets together, or a line that says what is missing.
pub(crate) fn run_in_tests() -> Result<(), String> {
    if let Some(missing) = missing() {
        println!("SKIPPED cargo xtask fuzz: {missing}");
        return Ok(());
    }
    let targets = targets()?;
    let seconds = SECONDS_IN_TESTS.div_ceil(targets.len().max(1)).to_string();
    targets.iter().try_for_each(|target| fuzz(target, &seconds))
}

/// What this machine lacks.
fn missing() -> Option<&'static str> {
    if !succeeds("cargo", &["+nightly", "--version"]) {
        Some("it needs a nightly compiler: rustup toolchain install nightly --profile minimal")
    } else if !succeeds("cargo", &["fuzz", "--version"]) {
        Some("it needs cargo-fuzz: cargo install cargo-fuzz")
    } else if !succeeds("c++", &["--version"]) {
        Some("it needs a C++ compiler, for libFuzzer: apt-get install g++")
    } else {
        None
    }
}

/// The toolchain this runs under must not be chosen for the program in place of its own.
fn command(program: &str) -> Command {
    let mut command = Command::new(program);
    command.env_remove("RUSTUP_TOOLCHAIN").env_remove("CARGO");
    command
}

fn succeeds(program: &str, arguments: &[&str]) -> bool {
    let run = command(program).args(arguments).stdout(Stdio::null()).stderr(Stdio::null()).status();
    run.is_ok_and(|status| status.success())
}

fn targets() -> Result<Vec<String>, String> {
    let folders = std::fs::read_dir(CORPUS).map_err(|error| format!("{CORPUS}: {error}"))?;
    let mut names: Vec<String> =
        folders.flatten().filter_map(|folder| folder.file_name().into_string().ok()).collect();
    names.sort();
    Ok(names)
}

fn fuzz(target: &str, seconds: &str) -> Result<(), String> {
    let found: PathBuf = Path::new("target/fuzz/found").join(target);
    let failures: PathBuf = Path::new("target/fuzz/failures").join(target);
    for folder in [&found, &failures] {
        std::fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    }
    println!("\n=== fuzz {target}, {seconds} s");
    // Without sanitizers: the targets are safe Rust, where they find nothing and take half of the speed.
    let status = command("cargo")
        .args(["+nightly", "fuzz", "run", "--sanitizer", "none", "--fuzz-dir", "fuzz", target])
        .args([&found, &Path::new(CORPUS).join(target)])
        .arg("--")
        .arg(format!("-max_total_time={seconds}"))
        .arg(format!("-max_len={LENGTH_MAX}"))
        .arg(format!("-artifact_prefix={}/", failures.display()))
        .args(["-fork=2", "-timeout=20", "-rss_limit_mb=2048", "-verbosity=0"])
        .status()
        .map_err(|error| format!("cannot run cargo fuzz: {error}"))?;
    if status.success() {
        return Ok(());
    }
    Err(format!("the target {target} failed; the bytes that show it are in {}", failures.display()))
}
