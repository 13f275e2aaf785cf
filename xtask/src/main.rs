//! Developer commands that ship nothing. `cargo xtask test` runs everything that must pass.

mod api;
mod bare;
mod circles;
mod dist;
mod fuzz;
mod package;
mod packages;
mod peers;
mod plant;
mod sanitize;
mod scripts;
mod skipped;
mod suites;
mod targets;
mod test;
mod threads;
mod tidy;

use std::process::{Command, ExitCode};

const USAGE: &str = "\
usage: cargo xtask COMMAND

Tests
  test --quick
           Check format, rules and lints, run the unit tests, the engine's tests and 2,000 random
           simulated runs. Takes minutes; needs no root.
  test     Run everything that must pass: the above and the tests beside the kernel, the
           documentation, 20,000 random runs, half a minute of fuzzing, the engine without the
           standard library, lints for macOS and FreeBSD, and the instruction counts of the hot
           paths. As root, it first installs the Debian packages that the tests talk to. A test
           that cannot run says SKIPPED and why.
  tidy [--english [PATH…]|--write]
           Check the rules of CONTRIBUTING.md that a program can check. --english lists the
           violations of plain English below these paths; --write lowers their recorded counts
           (xtask/src/tidy/english-counts.txt).
  api [--write]
           Compare the public interfaces of the libraries with the record in docs/api, or renew
           the record.
  deny     Check licences, advisories and origins of all dependencies with cargo-deny (deny.toml).
  doctor-fixes
           Run every fix of `firstbyte doctor` on this kernel in namespaces (needs root) and on
           records of other hosts, then diagnose the host again. Prints a table of the rules.

Searching for faults
  simulate [OPTION…]
           Play random runs of two stacks in virtual time; --help lists the options (seeds, replay,
           shrinking, comparing fast paths with the slow one, greedy peers).
  plant [NAME…]
           Plant the faults of crates/simulation/faults.txt, or those whose names contain a NAME,
           one by one into a copy of the engine. Random runs must find each. Takes minutes.
  threads [--times N]
           Play the locks, wakers and sleepers of the host and the sockets in random orders of
           events (shuttle), N times as many as the tests do.
  fuzz [--seconds N] [TARGET…]
           Run each target of crates/fuzz, or these, under libFuzzer for N seconds (default 60),
           two at a time. Needs a C++ compiler.
  sanitize Run the C library, the preload library and their examples under AddressSanitizer (needs
           a nightly toolchain, x86-64) and valgrind. Needs root for all of them.

Comparing with others
  scripts PACKETDRILL [FILE|FOLDER…]
           Run our packetdrill scripts, or these, on this machine's kernel with google/packetdrill.
           Needs root, python3, iproute2 and Linux 6.18.
  captures DIR [--kept FOLDER]
           Compare `capture` with tshark on the captures below DIR, frame by frame, and print the
           tables of docs/captures.md. --kept keeps the output of tshark in FOLDER.
  peers [--rounds N]
           Measure CPU time of bulk data and small exchanges beside smoltcp, gVisor's netstack and
           lwIP, in N rounds (default 9; 5 minutes at most after building). Prints the table of
           docs/peers.md. Needs Go for gVisor, and the Debian package liblwip-dev for lwIP.

Releases
  pictures Draw the pictures of the guide (docs/guide/pictures) with the lab.
  package [--verify]
           Pack every published crate; --verify also builds each from its package.
  dist [--profile PROFILE] [tarball] [deb] [wheel]
           Build the packages that users install into target/artifacts: tarballs of the static
           command, a Debian package, a Python wheel, and the debug information of the command.
  dist --test
           Install the Debian package and the wheel of the debug build, use them and remove them.
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let Some((command, rest)) = arguments.split_first() else {
        eprint!("{USAGE}");
        return ExitCode::from(2);
    };
    // `simulate --help` belongs to the program that it starts.
    let asks_help = matches!(rest, ["--help" | "-h"]) && *command != "simulate";
    if asks_help || matches!(*command, "help" | "--help" | "-h") {
        print!("{USAGE}");
        return ExitCode::SUCCESS;
    }
    match run(command, rest) {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("xtask: {problem}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: &str, arguments: &[&str]) -> Result<(), String> {
    match command {
        "test" => test::run(arguments),
        "tidy" => tidy::run(arguments),
        "package" => package::run(arguments),
        "deny" => without_arguments(command, arguments).and_then(|()| test::deny()),
        "dist" => dist::run(arguments),
        "api" => api::run(arguments),
        "pictures" => without_arguments(command, arguments).and_then(|()| cargo(&PICTURES, &[])),
        "simulate" => simulate(arguments),
        "threads" => threads::run(arguments),
        "plant" => plant::run(arguments),
        "sanitize" => without_arguments(command, arguments).and_then(|()| sanitize::run()),
        "doctor-fixes" => without_arguments(command, arguments).and_then(|()| doctor_fixes()),
        "fuzz" => fuzz::run(arguments),
        "captures" => captures(arguments),
        "peers" => peers::run(arguments),
        "scripts" => scripts::run(arguments),
        _ => Err(format!("cannot run `{command}`: no such command; `cargo xtask help` lists them")),
    }
}

fn without_arguments(command: &str, arguments: &[&str]) -> Result<(), String> {
    match arguments {
        [] => Ok(()),
        [first, ..] => Err(unexpected(command, first, &format!("cargo xtask {command}"))),
    }
}

/// Returns the error for an argument that `command` does not have.
fn unexpected(command: &str, argument: &str, usage: &str) -> String {
    format!("cannot run {command}: unexpected argument `{argument}`; usage: {usage}")
}

/// Draws the pictures that `docs/guide/pictures/pictures.toml` lists.
const PICTURES: [&str; 6] =
    ["run", "--quiet", "--locked", "--package", "firstbyte-guide", "docs/guide/pictures"];

/// Prints the table of what was tried for each rule. The tests run in `cargo xtask test` too.
fn doctor_fixes() -> Result<(), String> {
    let test = ["test", "--package", "firstbyte-doctor", "--locked", "--test", "fixes", "--", "--nocapture"];
    cargo(&test, &[("FIRSTBYTE_FIXES", "1")])
}

/// Plays simulated runs, optimised and with overflow checks and debug assertions.
fn simulate(options: &[&str]) -> Result<(), String> {
    let build = ["run", "--profile", "simulate", "--locked", "--package", "firstbyte-simulation", "--"];
    cargo(&[&build, options].concat(), &[])
}

fn captures(arguments: &[&str]) -> Result<(), String> {
    if arguments.is_empty() {
        return Err(
            "cannot run captures: no folder; usage: cargo xtask captures DIR [--kept FOLDER]".to_owned()
        );
    }
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
        // The files of incremental builds would be the larger half of the target folder.
        .env("CARGO_INCREMENTAL", "0")
        .envs(environment.iter().copied())
        .status()
        .map_err(|error| format!("cannot run cargo: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("`cargo {}` failed ({status})", arguments.join(" "))) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_arguments_are_named_with_the_usage() {
        let wrong = [
            ("tests", &[][..], "cannot run `tests`: no such command; `cargo xtask help` lists them"),
            (
                "test",
                &["--fast"],
                "cannot run test: unexpected argument `--fast`; usage: cargo xtask test [--quick]",
            ),
            ("deny", &["now"], "cannot run deny: unexpected argument `now`; usage: cargo xtask deny"),
            (
                "threads",
                &["--times"],
                "cannot run threads: --times needs a number; usage: cargo xtask threads [--times N]",
            ),
            (
                "threads",
                &["--times", "0"],
                "cannot run threads: `--times 0`: not a whole number from 1 on; \
                 usage: cargo xtask threads [--times N]",
            ),
            (
                "fuzz",
                &["--seconds", "x"],
                "cannot run fuzz: `--seconds x`: not a whole number from 1 on; \
                 usage: cargo xtask fuzz [--seconds N] [TARGET…]",
            ),
            (
                "peers",
                &["--rounds", "0"],
                "cannot run peers: `--rounds 0`: not a whole number from 1 on; \
                 usage: cargo xtask peers [--rounds N]",
            ),
            (
                "captures",
                &[],
                "cannot run captures: no folder; usage: cargo xtask captures DIR [--kept FOLDER]",
            ),
            (
                "scripts",
                &[],
                "cannot run scripts: no packetdrill; \
                 usage: cargo xtask scripts PACKETDRILL [FILE|FOLDER…]",
            ),
            (
                "api",
                &["--read"],
                "cannot run api: unexpected argument `--read`; usage: cargo xtask api [--write]",
            ),
        ];
        for (command, arguments, message) in wrong {
            assert_eq!(run(command, arguments), Err(message.to_owned()));
        }
    }

    #[test]
    fn the_usage_names_every_command() {
        let source = include_str!("main.rs");
        let arms = source.lines().filter_map(|line| line.trim().strip_prefix('"')?.split_once("\" => "));
        let names: Vec<&str> = arms.map(|(name, _)| name).collect();
        assert!(names.len() > 10, "{names:?}");
        for name in names {
            let mut named = USAGE.lines().filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
            assert!(named.any(|named| named == name), "{name}");
        }
    }
}
