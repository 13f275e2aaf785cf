//! Runs the test programs as `cargo test` would, but several at a time: most of them wait for
//! their peers.
//!
//! First come those that measure time, one by one, then the others, two at a time. Those in
//! virtual time run beside them all, at the lowest priority.

use crate::skipped;
use serde_json::Value;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

/// The arguments for all test programs, except those of `WITHIN`. The examples are left out:
/// clippy has checked them, and no test starts them.
const ALL: [&str; 8] =
    ["test", "--workspace", "--exclude", "firstbyte-proto", "--locked", "--lib", "--bins", "--tests"];

/// The arguments for `--quick`: unit tests, and the packages that test the engine and the wire
/// formats from outside. Names the whole workspace for the features, and the two packages by their
/// targets.
const QUICK: [&str; 11] = [
    "test",
    "--workspace",
    "--exclude",
    "firstbyte-proto",
    "--locked",
    "--lib",
    "--bins",
    "--test",
    "engine",
    "--test",
    "wire",
];

/// The arguments for the engine's own unit tests. Optimised as the engine is for the other tests,
/// they would take three times as long to build.
const WITHIN: [&str; 7] = [
    "test",
    "--package",
    "firstbyte-proto",
    "--locked",
    "--lib",
    "--config",
    "profile.dev.package.firstbyte-proto.opt-level=0",
];

/// Packages, or single test programs (`package/name`), in virtual time: their results do not
/// depend on how long they take. The longest first.
const IN_VIRTUAL_TIME: [&str; 9] = [
    "firstbyte-cli/everything",
    "firstbyte-proto-tests",
    "firstbyte-lab",
    "firstbyte-fleet",
    "firstbyte-fuzz",
    "firstbyte-simulation",
    "firstbyte-script",
    "firstbyte-proto",
    "firstbyte-wire-tests",
];

/// Test programs that measure time, beside the kernel or against a bound. Only programs at the
/// lowest priority run beside them.
const ALONE: [&str; 6] = [
    "firstbyte-interop/figures",
    "firstbyte-interop/interop",
    "firstbyte-probe/it",
    "firstbyte-qdisc/it",
    "firstbyte-doctor/crowd",
    "firstbyte-bench/contract",
];

/// The longest test programs, which start first, so that none is left over at the end.
const LONG: [&str; 2] = ["firstbyte-cli/it", "firstbyte-interop/rows"];

/// Programs that run at once.
const WORKERS: usize = 2;

/// The niceness of programs that run beside the others.
const LOWEST_PRIORITY: &str = "19";

/// Tests of one program that run at once. Tests with a kernel as the peer mostly wait, so more of
/// them than cores finish sooner.
const AT_ONCE: &str = "8";

/// A test program.
#[derive(Clone)]
pub(crate) struct Suite {
    package: String,
    /// The name of the target within the package.
    name: String,
    /// The folder of the package, in which its tests run.
    folder: PathBuf,
    program: PathBuf,
}

/// Builds all test programs.
pub(crate) fn build() -> Result<Vec<Suite>, String> {
    build_by(&ALL)
}

/// Builds the test programs of `cargo xtask test --quick`.
pub(crate) fn build_quick() -> Result<Vec<Suite>, String> {
    build_by(&QUICK)
}

fn build_by(arguments: &[&str]) -> Result<Vec<Suite>, String> {
    let suites: Vec<Suite> = [programs(arguments)?, programs(&WITHIN)?].concat();
    if suites.is_empty() { Err("cargo names no test program".to_owned()) } else { Ok(suites) }
}

/// Builds the test programs that `cargo` would run with these arguments.
fn programs(arguments: &[&str]) -> Result<Vec<Suite>, String> {
    println!("\n=== cargo {} --no-run", arguments.join(" "));
    let output = Command::new(env!("CARGO"))
        .args(arguments)
        .args(["--no-run", "--message-format=json-render-diagnostics"])
        .env("CARGO_INCREMENTAL", "0")
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("cannot run cargo: {error}"))?;
    if !output.status.success() {
        return Err(format!("cannot build the tests ({})", output.status));
    }
    let messages = String::from_utf8_lossy(&output.stdout);
    Ok(messages.lines().filter_map(suite_of).collect())
}

/// Returns the test program that a message of cargo is about, if any.
fn suite_of(message: &str) -> Option<Suite> {
    let message: Value = serde_json::from_str(message).ok()?;
    let is_test = message["profile"]["test"].as_bool()?;
    let program = PathBuf::from(message["executable"].as_str()?);
    let folder = Path::new(message["manifest_path"].as_str()?).parent()?.to_owned();
    // `path+file:///…/crates/wire/tests#firstbyte-wire-tests@0.1.0`, or `…/xtask#0.1.0` where the
    // folder has the package's name.
    let (path, name) = message["package_id"].as_str()?.rsplit_once('#')?;
    let package = match name.split_once('@') {
        Some((name, _)) => name,
        None => path.rsplit('/').next()?,
    };
    let name = message["target"]["name"].as_str()?.to_owned();
    is_test.then(|| Suite { package: package.to_owned(), name, folder, program })
}

/// Runs all test programs; the error names those that failed.
pub(crate) fn run(suites: &[Suite]) -> Result<(), String> {
    let of = |list: &[&str]| {
        let listed = list.iter().flat_map(|entry| suites.iter().filter(|suite| suite.is(entry)));
        listed.collect::<Vec<&Suite>>()
    };
    let (alone, beside, mut together) = (of(&ALONE), of(&IN_VIRTUAL_TIME), of(&LONG));
    let is_left = |suite: &&Suite| {
        !alone.iter().chain(&beside).chain(&together).any(|known| known.program == suite.program)
    };
    let others: Vec<&Suite> = suites.iter().filter(is_left).collect();
    together.extend(others);
    let failed: Vec<String> = thread::scope(|scope| {
        let beside = scope.spawn(|| run_all(&beside, WORKERS, true));
        let mut failed = run_all(&alone, 1, false);
        failed.extend(run_all(&together, WORKERS, false));
        failed.extend(beside.join().expect("a worker does not panic"));
        failed
    });
    if failed.is_empty() { Ok(()) } else { Err(format!("tests failed:\n  {}", failed.join("\n  "))) }
}

/// Runs these in order, `at_once` at a time, and returns those that failed.
fn run_all(suites: &[&Suite], at_once: usize, is_beside: bool) -> Vec<String> {
    let next = AtomicUsize::new(0);
    let work = || {
        let taken = || suites.get(next.fetch_add(1, Ordering::Relaxed));
        std::iter::from_fn(taken).filter_map(|suite| suite.run(is_beside).err()).collect::<Vec<_>>()
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..at_once).map(|_| scope.spawn(work)).collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("a worker does not panic")).collect()
    })
}

impl Suite {
    /// Returns whether an entry of the lists above names this program.
    fn is(&self, entry: &str) -> bool {
        entry
            .split_once('/')
            .map_or(self.package == entry, |(package, name)| self.package == package && self.name == name)
    }

    /// Runs the program and prints its output at the end, so that outputs do not mix.
    fn run(&self, is_beside: bool) -> Result<(), String> {
        let begun = Instant::now();
        let output = self.command(is_beside).output();
        let said = output.as_ref().map(|output| {
            [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text).into_owned()).concat()
        });
        let said = said.unwrap_or_default();
        skipped::count(&said);
        let (program, seconds) = (self.program.display(), begun.elapsed().as_secs());
        // One write, so that no lines of another program come between.
        let text = format!("\n     Running {program} of {}\n{said}     {seconds} s\n", self.package);
        let _ = std::io::stdout().lock().write_all(text.as_bytes());
        self.judge(output.map(|output| output.status))
    }

    fn command(&self, is_beside: bool) -> Command {
        let mut command = Command::new(if is_beside { Path::new("nice") } else { &self.program });
        if is_beside {
            command.args(["-n", LOWEST_PRIORITY]).arg(&self.program);
        }
        command
            .current_dir(&self.folder)
            .env("CARGO_MANIFEST_DIR", &self.folder)
            .env("CARGO", env!("CARGO"))
            .env("FIRSTBYTE_BUILT", "1")
            .env("RUST_TEST_THREADS", AT_ONCE)
            .stdin(Stdio::null());
        command
    }

    fn judge(&self, ended: std::io::Result<ExitStatus>) -> Result<(), String> {
        let program = self.program.display();
        match ended {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(format!("{program} of {} ({status})", self.package)),
            Err(error) => Err(format!("{program} of {}: {error}", self.package)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(message: &str) -> Option<(String, String, String)> {
        let Suite { package, folder, program, .. } = suite_of(message)?;
        Some((package, folder.display().to_string(), program.display().to_string()))
    }

    #[test]
    fn a_program_is_found_in_cargos_messages() {
        let message = r#"{"reason":"compiler-artifact","package_id":"path+file:///w/crates/wire/tests#firstbyte-wire-tests@0.1.0",
            "manifest_path":"/w/crates/wire/tests/Cargo.toml","profile":{"test":true},
            "target":{"name":"it"},"executable":"/w/target/debug/deps/wire-1"}"#;
        let [package, folder, program] =
            ["firstbyte-wire-tests", "/w/crates/wire/tests", "/w/target/debug/deps/wire-1"]
                .map(str::to_owned);
        assert_eq!(seen(message), Some((package, folder, program)));
        let here = message.replace("wire/tests#firstbyte-wire-tests@", "xtask#");
        assert_eq!(seen(&here).map(|(package, ..)| package).as_deref(), Some("xtask"));
        assert_eq!(
            seen(&message.replace(r#""test":true"#, r#""test":false"#)),
            None,
            "a program without tests"
        );
        assert_eq!(seen(r#"{"reason":"build-finished","success":true}"#), None);
    }

    #[test]
    fn an_entry_means_a_package_or_one_of_its_programs() {
        let [package, name] = ["firstbyte-cli", "it"].map(str::to_owned);
        let suite = Suite { package, name, folder: PathBuf::new(), program: PathBuf::new() };
        assert!(suite.is("firstbyte-cli") && suite.is("firstbyte-cli/it"));
        assert!(!suite.is("firstbyte") && !suite.is("firstbyte-cli/everything"));
    }

    /// A renamed program would otherwise run among the others unnoticed.
    #[test]
    fn the_lists_name_existing_programs() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask is in the root");
        for entry in IN_VIRTUAL_TIME.into_iter().chain(ALONE).chain(LONG) {
            let (package, program) =
                entry.split_once('/').map_or((entry, None), |(package, name)| (package, Some(name)));
            let folder = package.trim_start_matches("firstbyte-").replace("-tests", "/tests");
            let folder = root.join("crates").join(folder);
            let text = std::fs::read_to_string(folder.join("Cargo.toml")).expect(entry);
            assert!(text.contains(&format!("name = \"{package}\"")), "{entry}");
            if let Some(program) = program {
                let file = folder.join("tests").join(program);
                let is_library = package.ends_with(program) && folder.join("src/lib.rs").is_file();
                let is_there = file.with_extension("rs").is_file() || file.join("main.rs").is_file();
                assert!(is_there || is_library, "{entry}");
            }
        }
    }
}
