//! Developer commands that ship nothing: `cargo xtask test` is everything that must pass, with what it needs installed.

mod bare;
mod circles;
mod fuzz;
mod packages;
mod plant;
mod sanitize;
mod scripts;
mod threads;
mod tidy;

use std::process::{Command, ExitCode};
use std::time::Instant;

const USAGE: &str = "\
usage: cargo xtask COMMAND

  test     everything that must pass: packages, format, lints, tidiness, tests, documentation, the main command, a minute of fuzzing,
           the engine without the standard library (`bare`: built for x86_64-unknown-none, which rustup installs, and run),
           what packets out of order may cost (`firstbyte-bench budgets`);
           then the instruction counts of the hot paths beside the recorded ones (changes of more than 5 % are marked).
           As root, programs the tests talk to are installed with apt; tests that need root say so when skipped.
  simulate [OPTION…]
           two stacks in virtual time with every setting, option, fault and application step drawn at random; --help lists
           the options (worlds, seeds, intensity, replay, shrink, a journal for long campaigns); with --differential each is
           played with fast paths and without, which must come to the same
  threads [--times N]
           the host's and the sockets' locks, wakers and sleepers, signal handlers and cancelled threads in some thousand random
           orders of events (shuttle), or N times as many
  plant [NAME…]
           faults are planted into a copy of the engine one by one, all of crates/simulation/faults.txt or those whose names contain
           a NAME; random worlds must find each of them (takes minutes)
  tidy     only the rules of CONTRIBUTING.md that a program can check
  sanitize the programs of the C library and the preload library, and the examples, under AddressSanitizer (needs a nightly
           toolchain, x86-64) and valgrind's memcheck; as root all of them
  scripts PACKETDRILL [FILE|FOLDER…]
           our packetdrill scripts, or these, over this machine's kernel by google/packetdrill's program, each in a network
           namespace of its own; needs root, python3, iproute2 and Linux 6.18
  fuzz [--seconds N] [TARGET…]
           each target of crates/fuzz, or these, under libFuzzer for N seconds (60), two at a time; needs a C++ compiler
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let done = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["test"] => test(),
        ["tidy"] => tidy::check(),
        ["simulate", ref options @ ..] => simulate(options),
        ["threads", ref arguments @ ..] => threads::run(arguments),
        ["plant", ref names @ ..] => plant::run(names),
        ["sanitize"] => sanitize::run(),
        ["fuzz", ref arguments @ ..] => fuzz::run(arguments),
        ["scripts", packetdrill, ref paths @ ..] => scripts::run(packetdrill, paths),
        ["help" | "--help" | "-h"] => {
            print!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        _ => {
            eprint!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("xtask: {problem}");
            ExitCode::FAILURE
        }
    }
}

/// Of the simulation in each of its worlds; a bare `cargo test` plays fewer.
const SEEDS: &str = "1000";

/// Of those in which everything is drawn; `cargo xtask simulate` plays as many as one likes.
const WORLDS: &str = "20000";

/// Of those that stacks with and without fast paths play alike.
const COMPARED: &str = "10000";

fn test() -> Result<(), String> {
    let begun = Instant::now();
    packages::install_missing()?;
    cargo(&["fmt", "--all", "--check"], &[])?;
    tidy::check()?;
    cargo(&["clippy", "--workspace", "--all-targets", "--locked", "--", "--deny", "warnings"], &[])?;
    cargo(&["build", "--release", "--locked", "--package", "firstbyte-cli"], &[])?;
    cargo(&["test", "--workspace", "--locked"], &[("FIRSTBYTE_SEEDS", SEEDS)])?;
    bare::run_in_tests()?;
    threads::run(&[])?;
    simulate(&["--worlds", WORLDS])?;
    simulate(&["--differential", "--worlds", COMPARED])?;
    cargo(&["doc", "--workspace", "--no-deps", "--locked"], &[("RUSTDOCFLAGS", "--deny warnings")])?;
    cargo(&["run", "--release", "--locked", "--", "lab", "fast-open"], &[])?;
    fuzz::run_in_tests()?;
    cargo(&["run", "--release", "--locked", "--package", "firstbyte-bench", "--", "budgets"], &[])?;
    // Last, so that what it shows is seen: a count that has changed is no failure, but somebody must mean it.
    cargo(&["run", "--release", "--locked", "--package", "firstbyte-bench", "--", "instructions"], &[])?;
    println!("xtask: all of it passed in {} s", begun.elapsed().as_secs());
    Ok(())
}

/// With overflow checks and debug assertions, and fast all the same (the profile in Cargo.toml).
fn simulate(options: &[&str]) -> Result<(), String> {
    let build = ["run", "--profile", "simulate", "--locked", "--package", "firstbyte-simulation", "--"];
    cargo(&[&build, options].concat(), &[])
}

fn cargo(arguments: &[&str], environment: &[(&str, &str)]) -> Result<(), String> {
    println!("\n=== cargo {}", arguments.join(" "));
    let status = Command::new(env!("CARGO"))
        .args(arguments)
        // What incremental builds keep would be the larger half of the target folder.
        .env("CARGO_INCREMENTAL", "0")
        .envs(environment.iter().copied())
        .status()
        .map_err(|error| format!("cannot run cargo: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("`cargo {}` failed ({status})", arguments.join(" "))) }
}
