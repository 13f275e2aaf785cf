//! The tests' programs, run as `cargo test` would, but several at a time: most of them wait for their peers. First come those that need the
//! machine to themselves, one by one, then the others, two at a time. Those that meet neither a kernel nor a clock run beside them all, and take
//! what is left of the processor.

use crate::skipped;
use serde_json::Value;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

/// All but the examples, which clippy has checked and no test starts, and those of `WITHIN`.
const ALL: [&str; 8] =
    ["test", "--workspace", "--exclude", "firstbyte-proto", "--locked", "--lib", "--bins", "--tests"];

/// Those that lie in the engine's own files. Optimised as the engine is for the others, they take three times as long to build.
const WITHIN: [&str; 7] = [
    "test",
    "--package",
    "firstbyte-proto",
    "--locked",
    "--lib",
    "--config",
    "profile.dev.package.firstbyte-proto.opt-level=0",
];

/// Packages, or single programs of tests (`package/name`), that play in virtual time: how long they take is no matter of theirs. The longest
/// first.
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

/// Those that measure time, beside the kernel's or against a bound: nothing but what takes the processor's leavings runs beside them.
const ALONE: [&str; 6] = [
    "firstbyte-interop/figures",
    "firstbyte-interop/interop",
    "firstbyte-probe/it",
    "firstbyte-qdisc/it",
    "firstbyte-doctor/crowd",
    "firstbyte-bench/contract",
];

/// Those that take longest begin first, so that none is left over at the end.
const LONG: [&str; 2] = ["firstbyte-cli/it", "firstbyte-interop/rows"];

/// Programs at once.
const WORKERS: usize = 2;

/// Of what runs beside the others.
const LOWEST_PRIORITY: &str = "19";

/// Tests of one program at once. Those with a kernel as the peer wait most of the time, so that more than there are cores end sooner.
const AT_ONCE: &str = "8";

/// One program of tests.
#[derive(Clone)]
pub(crate) struct Suite {
    package: String,
    /// Within the package.
    name: String,
    /// Of the package, where its tests run.
    folder: PathBuf,
    program: PathBuf,
}

/// Builds all of them.
pub(crate) fn build() -> Result<Vec<Suite>, String> {
    let suites: Vec<Suite> = [programs(&ALL)?, programs(&WITHIN)?].concat();
    if suites.is_empty() { Err("cargo names no program of tests".to_owned()) } else { Ok(suites) }
}

/// Builds those that `cargo` would run with these arguments.
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
        return Err(format!("the tests cannot be built ({})", output.status));
    }
    let messages = String::from_utf8_lossy(&output.stdout);
    Ok(messages.lines().filter_map(suite_of).collect())
}

/// Of a message of cargo's, if it is about one.
fn suite_of(message: &str) -> Option<Suite> {
    let message: Value = serde_json::from_str(message).ok()?;
    let is_test = message["profile"]["test"].as_bool()?;
    let program = PathBuf::from(message["executable"].as_str()?);
    let folder = Path::new(message["manifest_path"].as_str()?).parent()?.to_owned();
    // `path+file:///…/crates/wire/tests#firstbyte-wire-tests@0.1.0`, or `…/xtask#0.1.0` where the folder has the package's name.
    let (path, name) = message["package_id"].as_str()?.rsplit_once('#')?;
    let package = match name.split_once('@') {
        Some((name, _)) => name,
        None => path.rsplit('/').next()?,
    };
    let name = message["target"]["name"].as_str()?.to_owned();
    is_test.then(|| Suite { package: package.to_owned(), name, folder, program })
}

/// Runs all of them; an error names those that failed.
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
        failed.extend(beside.join().expect("it runs programs, and shows what they say"));
        failed
    });
    if failed.is_empty() { Ok(()) } else { Err(format!("tests failed:\n  {}", failed.join("\n  "))) }
}

/// Runs these in their order, so many at once; which of them failed.
fn run_all(suites: &[&Suite], at_once: usize, is_beside: bool) -> Vec<String> {
    let next = AtomicUsize::new(0);
    let work = || {
        let taken = || suites.get(next.fetch_add(1, Ordering::Relaxed));
        std::iter::from_fn(taken).filter_map(|suite| suite.run(is_beside).err()).collect::<Vec<_>>()
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..at_once).map(|_| scope.spawn(work)).collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("it runs programs")).collect()
    })
}

impl Suite {
    /// Does an entry of the lists above mean it?
    fn is(&self, entry: &str) -> bool {
        entry
            .split_once('/')
            .map_or(self.package == entry, |(package, name)| self.package == package && self.name == name)
    }

    /// What it says is shown when it has ended: it would fall into what others say.
    fn run(&self, is_beside: bool) -> Result<(), String> {
        let begun = Instant::now();
        let output = self.command(is_beside).output();
        let said = output.as_ref().map(|output| {
            [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text).into_owned()).concat()
        });
        let said = said.unwrap_or_default();
        skipped::count(&said);
        let (program, seconds) = (self.program.display(), begun.elapsed().as_secs());
        // At once, so that no other's lines come between.
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
            "a program that is no test"
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

    /// Else one that was renamed would run among the others, and nobody would notice.
    #[test]
    fn what_the_lists_name_exists() {
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
