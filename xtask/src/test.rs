//! `cargo xtask test`: everything that must pass, or with `--quick` the part that takes minutes.

use crate::suites::{self, Suite};
use crate::{api, bare, cargo, dist, fuzz, package, packages, skipped, targets, threads, tidy, unexpected};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// Simulated runs in which everything is drawn; `cargo xtask simulate` plays any number of them.
const RUNS: &str = "20000";

/// Simulated runs of `--quick`.
const RUNS_QUICK: &str = "2000";

/// Simulated runs that are played with fast paths and without, and compared.
const COMPARED: &str = "10000";

/// Simulated runs with greedy peers.
const GREEDY: &str = "300";

/// Runs `cargo xtask test` with its arguments.
pub(crate) fn run(arguments: &[&str]) -> Result<(), String> {
    match arguments {
        [] => whole(),
        ["--quick"] => quick(),
        ["--quick", other, ..] | [other, ..] => Err(unexpected("test", other, USAGE)),
    }
}

const USAGE: &str = "cargo xtask test [--quick]";

/// Runs what finds most mistakes within minutes, and needs neither root nor other programs.
fn quick() -> Result<(), String> {
    let mut times = Times::default();
    times.step("format", format)?;
    times.step("tidy", tidy::check)?;
    times.step("clippy", clippy)?;
    let mut suites = Vec::new();
    times.step("build tests", || build(suites::build_quick(), &mut suites))?;
    times.step("tests", || suites::run(&suites))?;
    times.step("build simulation", || {
        cargo(&["build", "--workspace", "--locked", "--bin", "firstbyte-simulate"], &[])
    })?;
    times.step("random runs", || built("firstbyte-simulate", &["--worlds", RUNS_QUICK]))?;
    times.print("the quick tests passed");
    Ok(())
}

/// Builds the examples that the guide's test runs.
const EXAMPLES: [&str; 17] = [
    "build",
    "--workspace",
    "--locked",
    "--example",
    "embed",
    "--example",
    "echo",
    "--example",
    "axum",
    "--example",
    "https",
    "--example",
    "hyper_client",
    "--example",
    "redis",
    "--example",
    "tonic",
];

/// Runs everything.
///
/// Nothing is built twice: tests start and load the programs in `target/debug`, and later steps
/// use them too. Every build names the whole workspace, because a build of a single package would
/// give its dependencies other features and compile nearly everything again.
fn whole() -> Result<(), String> {
    let mut times = Times::default();
    times.step("packages", packages::install_missing)?;
    times.step("format", format)?;
    times.step("tidy", tidy::check)?;
    times.step("api", || api::run(&[]))?;
    times.step("package", || package::run(&[]))?;
    times.step("deny", deny)?;
    times.step("clippy", clippy)?;
    times.step("clippy without features", clippy_without_features)?;
    times.step("other systems", targets::check_other_systems)?;
    times.step("build", || cargo(&["build", "--workspace", "--locked"], &[]))?;
    times.step("build examples", || cargo(&EXAMPLES, &[]))?;
    let mut suites = Vec::new();
    times.step("build tests", || build(suites::build(), &mut suites))?;
    times.step("tests", || suites::run(&suites))?;
    times.step("documented examples", || cargo(&["test", "--workspace", "--locked", "--doc"], &[]))?;
    times.step("without std", bare::run_in_tests)?;
    times.step("installation", dist::run_in_tests)?;
    times.step("threads", || threads::run(&[]))?;
    times.step("random runs", || built("firstbyte-simulate", &["--worlds", RUNS]))?;
    times.step("compared runs", || built("firstbyte-simulate", &["--differential", "--worlds", COMPARED]))?;
    times.step("greedy runs", || built("firstbyte-simulate", &["--greedy", "--worlds", GREEDY]))?;
    times.step("documentation", documentation)?;
    times.step("main command", || built("firstbyte", &["lab", "fast-open"]))?;
    times.step("fuzz", fuzz::run_in_tests)?;
    times.step("budgets", || counted("budgets"))?;
    // The last step, so that its output is seen: a changed count is not a failure, but somebody
    // must have meant it.
    times.step("instructions", || counted("instructions"))?;
    times.print("everything passed");
    Ok(())
}

fn build(built: Result<Vec<Suite>, String>, suites: &mut Vec<Suite>) -> Result<(), String> {
    *suites = built?;
    Ok(())
}

fn format() -> Result<(), String> {
    cargo(&["fmt", "--all", "--check"], &[])
}

/// The shipped command has no debug assertions: this build must not need an item that exists only
/// with them. The build that follows is checked with them. Procedural macros and build scripts are
/// the same in both.
const AS_SHIPPED: [&str; 4] = [
    "--config",
    "profile.dev.debug-assertions=false",
    "--config",
    "profile.dev.build-override.debug-assertions=true",
];

const DENY_WARNINGS: [&str; 3] = ["--", "--deny", "warnings"];

fn clippy() -> Result<(), String> {
    let all = ["clippy", "--workspace", "--all-targets", "--locked"];
    cargo(&[&all, &AS_SHIPPED[..], &DENY_WARNINGS].concat(), &[])
}

/// Checks the command without its optional jobs (the features of crates/cli/Cargo.toml), and the
/// library with each of its features alone: all other builds have them all.
fn clippy_without_features() -> Result<(), String> {
    let command = ["clippy", "--package", "firstbyte-cli", "--no-default-features", "--locked"];
    cargo(&[&command, &AS_SHIPPED[..], &DENY_WARNINGS].concat(), &[])?;
    for feature in ["", "axum", "hyper-util", "redis", "stream", "tls", "tonic"] {
        let library = ["clippy", "--package", "firstbyte", "--lib", "--locked", "--features", feature];
        cargo(&[&library, &AS_SHIPPED[..], &DENY_WARNINGS].concat(), &[])?;
    }
    Ok(())
}

/// Uses the settings of clippy, whose checks of the dependencies it finds. rustdoc always has
/// debug assertions on. The simulation names a type that the engine has only with them, so it is
/// left out.
fn documentation() -> Result<(), String> {
    let doc = ["doc", "--workspace", "--exclude", "firstbyte-simulation", "--no-deps", "--locked"];
    cargo(&[&doc, &AS_SHIPPED[..]].concat(), &[("RUSTDOCFLAGS", "--deny warnings")])
}

/// Checks licences and origins of the dependencies, and advisories against them.
///
/// Installing cargo-deny takes minutes, and advisories need the network. Prints SKIPPED where one
/// of them is missing.
pub(crate) fn deny() -> Result<(), String> {
    let is_there =
        Command::new("cargo-deny").arg("--version").output().is_ok_and(|output| output.status.success());
    if !is_there {
        skipped::say("cargo deny: not installed; run `cargo install --locked cargo-deny`");
        return Ok(());
    }
    cargo(&["deny", "--workspace", "check", "licenses", "bans", "sources"], &[])?;
    let fetched = Command::new("cargo-deny").args(["--workspace", "fetch", "db"]).output();
    if !fetched.is_ok_and(|output| output.status.success()) {
        skipped::say("cargo deny check advisories: cannot fetch https://github.com/RustSec/advisory-db");
        return Ok(());
    }
    cargo(&["deny", "--workspace", "--offline", "check", "advisories"], &[])
}

/// Counts instructions with callgrind. The only build with the profile `dist`: recorded counts are
/// those of the shipped code.
fn counted(what: &str) -> Result<(), String> {
    if !packages::installed("valgrind") {
        skipped::say(&format!("{what}: valgrind is not installed"));
        return Ok(());
    }
    cargo(&["run", "--profile", "dist", "--locked", "--package", "firstbyte-bench", "--", what], &[])
}

/// Runs a program of the workspace that is already built.
fn built(name: &str, arguments: &[&str]) -> Result<(), String> {
    println!("\n=== {name} {}", arguments.join(" "));
    let program = Path::new("target/debug").join(name);
    let status = Command::new(&program)
        .args(arguments)
        .status()
        .map_err(|error| format!("cannot run {}: {error}", program.display()))?;
    if status.success() { Ok(()) } else { Err(format!("`{name} {}` failed ({status})", arguments.join(" "))) }
}

/// The duration of each step.
#[derive(Default)]
struct Times(Vec<(&'static str, Duration)>);

impl Times {
    fn step(&mut self, name: &'static str, run: impl FnOnce() -> Result<(), String>) -> Result<(), String> {
        let begun = Instant::now();
        let result = run();
        self.0.push((name, begun.elapsed()));
        result
    }

    fn print(&self, passed: &str) {
        println!();
        for (name, time) in &self.0 {
            println!("{:>6} s  {name}", time.as_secs());
        }
        let all: Duration = self.0.iter().map(|(_, time)| *time).sum();
        let skipped = skipped::told();
        skipped.iter().for_each(|what| println!("SKIPPED {what}"));
        let except = if skipped.is_empty() { "" } else { ", except what was skipped" };
        println!("xtask: {passed} in {} s{except}", all.as_secs());
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;
    use yaml_rust2::YamlLoader;

    fn root() -> &'static Path {
        Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask is in the root")
    }

    #[test]
    fn the_hosted_ci_runs_the_test_command() {
        let workflow = std::fs::read_to_string(root().join(".github/workflows/ci.yml")).expect("it exists");
        let documents = YamlLoader::load_from_str(&workflow).expect("YAML");
        let [workflow] = &documents[..] else { panic!("{} documents", documents.len()) };
        assert_eq!(workflow["on"]["push"]["branches"][0].as_str(), Some("main"));
        let job = &workflow["jobs"]["test"];
        assert!(job["runs-on"].as_str().is_some() && job["timeout-minutes"].as_i64().is_some());
        let steps = job["steps"].as_vec().expect("steps");
        assert!(steps.iter().all(|step| step["run"].as_str().is_some() != step["uses"].as_str().is_some()));
        assert!(steps.iter().any(|step| step["run"].as_str() == Some(".ci/run")), "{steps:?}");
        let run = root().join(".ci/run");
        let mode = std::fs::metadata(&run).expect("it exists").permissions().mode();
        assert_eq!(mode & 0o111, 0o111, "executable");
        assert!(std::fs::read_to_string(run).expect("text").contains("\nexec cargo xtask test\n"));
    }
}
