//! Developer commands that ship nothing: `cargo xtask test` is everything that must pass, with what it needs installed.

mod api;
mod bare;
mod circles;
mod dist;
mod fuzz;
mod package;
mod packages;
mod plant;
mod sanitize;
mod scripts;
mod skipped;
mod suites;
mod threads;
mod tidy;

use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

const USAGE: &str = "\
usage: cargo xtask COMMAND

  test     everything that must pass: packages, format, lints, tidiness, tests, documentation, the main command, half a minute of fuzzing,
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
  doctor-fixes
           every fix of `firstbyte doctor`, run alone and all together in several orders, on this kernel in namespaces (needs root) and
           on records of other hosts; then the host is judged again. Shows what was tried for each rule
  plant [NAME…]
           faults are planted into a copy of the engine one by one, all of crates/simulation/faults.txt or those whose names contain
           a NAME; random worlds must find each of them (takes minutes)
  api [--write]
           the public interfaces of the libraries beside the record in docs/api, or writes that anew
  package [--verify]
           every crate that is published, packed as a registry gets it; with --verify each is built from its package, too
  pictures the pictures of the guide (docs/guide/pictures), drawn by the lab
  deny     licences, advisories and origins of all dependencies, by cargo-deny (deny.toml)
  dist     the command as it is shipped, in target/artifacts: without debug information, and that in a file beside it, where a
           backtrace finds it
  tidy [--english [PATH…]|--write]
           check the rules of CONTRIBUTING.md that a program can check; --english lists each violation of plain English
           below these paths; --write lowers the recorded counts of such violations (xtask/src/tidy/english-counts.txt)
  sanitize the programs of the C library and the preload library, and the examples, under AddressSanitizer (needs a nightly
           toolchain, x86-64) and valgrind's memcheck; as root all of them
  scripts PACKETDRILL [FILE|FOLDER…]
           our packetdrill scripts, or these, over this machine's kernel by google/packetdrill's program, each in a network
           namespace of its own; needs root, python3, iproute2 and Linux 6.18
  captures DIR [--kept FOLDER]
           the captures below DIR, which has a folder for each project, read by `capture` and by tshark, and compared frame by frame:
           the tables of docs/captures.md; with --kept, what tshark writes is kept in FOLDER for the next time; needs tshark
  fuzz [--seconds N] [TARGET…]
           each target of crates/fuzz, or these, under libFuzzer for N seconds (60), two at a time; needs a C++ compiler
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let done = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["help" | "--help" | "-h"]
        | [
            "test" | "package" | "threads" | "plant" | "sanitize" | "fuzz" | "scripts" | "dist",
            "--help" | "-h",
        ] => {
            print!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        ["test"] => test(),
        ["tidy", ref arguments @ ..] => tidy::run(arguments),
        ["package", ref arguments @ ..] => package::run(arguments),
        ["deny"] => deny(),
        ["pictures"] => cargo(&PICTURES, &[]),
        ["dist"] => dist::run(),
        ["api", ref arguments @ ..] => api::run(arguments),
        ["simulate", ref options @ ..] => simulate(options),
        ["threads", ref arguments @ ..] => threads::run(arguments),
        ["plant", ref names @ ..] => plant::run(names),
        ["sanitize"] => sanitize::run(),
        ["doctor-fixes"] => doctor_fixes(),
        ["fuzz", ref arguments @ ..] => fuzz::run(arguments),
        ["captures", ref arguments @ ..] if !arguments.is_empty() => captures(arguments),
        ["scripts", packetdrill, ref paths @ ..] => scripts::run(packetdrill, paths),
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

/// Draws what `docs/guide/pictures/pictures.toml` lists.
const PICTURES: [&str; 6] =
    ["run", "--quiet", "--locked", "--package", "firstbyte-guide", "docs/guide/pictures"];

/// The tests run among all others too: what this adds is the table of what was tried.
fn doctor_fixes() -> Result<(), String> {
    let test = ["test", "--package", "firstbyte-doctor", "--locked", "--test", "fixes", "--", "--nocapture"];
    cargo(&test, &[("FIRSTBYTE_FIXES", "1")])
}

/// Simulated runs in which everything is drawn; `cargo xtask simulate` plays any number of them.
const WORLDS: &str = "20000";

/// Simulated runs that stacks with and without fast paths play alike.
const COMPARED: &str = "10000";

/// Simulated runs with greedy peers.
const GREEDY: &str = "300";

/// Nothing is built twice: tests start and load what lies in `target/debug`, and so do the steps after them. Naming a single package instead
/// would give dependencies other features, which is another build of nearly everything.
fn test() -> Result<(), String> {
    let mut times = Times::default();
    times.step("packages", packages::install_missing)?;
    times.step("format", || cargo(&["fmt", "--all", "--check"], &[]))?;
    times.step("tidy", tidy::check)?;
    times.step("api", || api::run(&[]))?;
    times.step("package", || package::run(&[]))?;
    times.step("deny", deny)?;
    let clippy = [
        &["clippy", "--workspace", "--all-targets", "--locked"],
        &AS_SHIPPED[..],
        &["--", "--deny", "warnings"],
    ];
    times.step("clippy", || cargo(&clippy.concat(), &[]))?;
    times.step("build", || cargo(&["build", "--workspace", "--locked"], &[]))?;
    let mut suites = Vec::new();
    times.step("build tests", || suites::build().map(|built| suites = built))?;
    times.step("tests", || suites::run(&suites))?;
    times.step("documented examples", || cargo(&["test", "--workspace", "--locked", "--doc"], &[]))?;
    times.step("without std", bare::run_in_tests)?;
    times.step("threads", || threads::run(&[]))?;
    times.step("worlds", || built("firstbyte-simulate", &["--worlds", WORLDS]))?;
    times
        .step("compared worlds", || built("firstbyte-simulate", &["--differential", "--worlds", COMPARED]))?;
    times.step("greedy worlds", || built("firstbyte-simulate", &["--greedy", "--worlds", GREEDY]))?;
    // As clippy, whose checks of the dependencies it finds. rustdoc has debug assertions on in any profile, and of what they check the
    // simulation names a type that the engine does not have here.
    let doc = [
        &["doc", "--workspace", "--exclude", "firstbyte-simulation", "--no-deps", "--locked"],
        &AS_SHIPPED[..],
    ];
    times.step("documentation", || cargo(&doc.concat(), &[("RUSTDOCFLAGS", "--deny warnings")]))?;
    times.step("main command", || built("firstbyte", &["lab", "fast-open"]))?;
    times.step("fuzz", fuzz::run_in_tests)?;
    times.step("budgets", || counted("budgets"))?;
    // Last, so that what it shows is seen: a count that has changed is no failure, but somebody must mean it.
    times.step("instructions", || counted("instructions"))?;
    times.print();
    Ok(())
}

/// Licences and origins of what we depend on, and advisories against it. The tool is a build of several minutes, and asks the network for
/// advisories: where it is not installed, a line says so.
fn deny() -> Result<(), String> {
    let is_there =
        Command::new("cargo-deny").arg("--version").output().is_ok_and(|output| output.status.success());
    if !is_there {
        skipped::say("cargo deny: it is not installed: cargo install --locked cargo-deny");
        return Ok(());
    }
    cargo(&["deny", "--workspace", "check", "licenses", "bans", "sources"], &[])?;
    let fetched = Command::new("cargo-deny").args(["--workspace", "fetch", "db"]).output();
    if !fetched.is_ok_and(|output| output.status.success()) {
        skipped::say("cargo deny check advisories: https://github.com/RustSec/advisory-db cannot be fetched");
        return Ok(());
    }
    cargo(&["deny", "--workspace", "--offline", "check", "advisories"], &[])
}

/// The command that is shipped has no debug assertions: what only exists with them must not be missed there. The build that follows is checked
/// with them. What runs while it is built, procedural macros and build scripts, is the same in both.
const AS_SHIPPED: [&str; 4] = [
    "--config",
    "profile.dev.debug-assertions=false",
    "--config",
    "profile.dev.build-override.debug-assertions=true",
];

/// What callgrind counts.
fn counted(what: &str) -> Result<(), String> {
    if !packages::installed("valgrind") {
        skipped::say(&format!("{what}: valgrind is not installed"));
        return Ok(());
    }
    cargo(&[&MEASURE[..], &[what]].concat(), &[])
}

/// The only build with the profile `dist`.
const MEASURE: [&str; 7] = ["run", "--profile", "dist", "--locked", "--package", "firstbyte-bench", "--"];

/// How long each step took.
#[derive(Default)]
struct Times(Vec<(&'static str, Duration)>);

impl Times {
    fn step(&mut self, name: &'static str, run: impl FnOnce() -> Result<(), String>) -> Result<(), String> {
        let begun = Instant::now();
        let result = run();
        self.0.push((name, begun.elapsed()));
        result
    }

    fn print(&self) {
        println!();
        for (name, time) in &self.0 {
            println!("{:>6} s  {name}", time.as_secs());
        }
        let all: Duration = self.0.iter().map(|(_, time)| *time).sum();
        let skipped = skipped::told();
        skipped.iter().for_each(|what| println!("SKIPPED {what}"));
        let but = if skipped.is_empty() { "" } else { ", but for what was skipped" };
        println!("xtask: all of it passed in {} s{but}", all.as_secs());
    }
}

/// Runs a program of the workspace that is built.
fn built(name: &str, arguments: &[&str]) -> Result<(), String> {
    println!("\n=== {name} {}", arguments.join(" "));
    let program = Path::new("target/debug").join(name);
    let status = Command::new(&program)
        .args(arguments)
        .status()
        .map_err(|error| format!("{}: {error}", program.display()))?;
    if status.success() { Ok(()) } else { Err(format!("`{name} {}` failed ({status})", arguments.join(" "))) }
}

/// With overflow checks and debug assertions, and fast all the same (the profile in Cargo.toml).
fn simulate(options: &[&str]) -> Result<(), String> {
    let build = ["run", "--profile", "simulate", "--locked", "--package", "firstbyte-simulation", "--"];
    cargo(&[&build, options].concat(), &[])
}

fn captures(arguments: &[&str]) -> Result<(), String> {
    let build = [
        "run",
        "--profile",
        "dist",
        "--locked",
        "--package",
        "firstbyte-capture",
        "--example",
        "beside_tshark",
        "--",
    ];
    cargo(&[&build, arguments].concat(), &[])
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
