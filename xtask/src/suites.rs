//! The tests' programs, run as `cargo test` would, but for one thing: those that meet neither a kernel nor a clock run beside the others, which
//! wait for their peers most of the time, and take what is left of the processor.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::thread;

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

/// Packages whose tests all play in virtual time: how long they take is no matter of theirs.
const IN_VIRTUAL_TIME: [&str; 8] = [
    "firstbyte-fleet",
    "firstbyte-fuzz",
    "firstbyte-lab",
    "firstbyte-proto",
    "firstbyte-proto-tests",
    "firstbyte-script",
    "firstbyte-simulation",
    "firstbyte-wire-tests",
];

/// Tests of one program at once. Those with a kernel as the peer wait most of the time, so that more than there are cores end sooner.
const AT_ONCE: &str = "8";

/// One program of tests.
#[derive(Clone)]
pub(crate) struct Suite {
    package: String,
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
    is_test.then(|| Suite { package: package.to_owned(), folder, program })
}

/// Runs all of them; an error names those that failed.
pub(crate) fn run(suites: &[Suite]) -> Result<(), String> {
    let is_beside = |suite: &&Suite| IN_VIRTUAL_TIME.contains(&suite.package.as_str());
    let failed: Vec<String> = thread::scope(|scope| {
        let beside =
            scope.spawn(|| suites.iter().filter(is_beside).map(Suite::run_beside).collect::<Vec<_>>());
        let ahead = suites.iter().filter(|suite| !is_beside(suite)).map(Suite::run);
        let mut failed: Vec<String> = ahead.filter_map(Result::err).collect();
        for (said, result) in beside.join().expect("it runs programs, and collects what they say") {
            println!("{said}");
            failed.extend(result.err());
        }
        failed
    });
    if failed.is_empty() { Ok(()) } else { Err(format!("tests failed:\n  {}", failed.join("\n  "))) }
}

impl Suite {
    fn title(&self) -> String {
        format!("\n     Running {} of {}", self.program.display(), self.package)
    }

    fn command(&self, mut command: Command) -> Command {
        command
            .current_dir(&self.folder)
            .env("CARGO_MANIFEST_DIR", &self.folder)
            .env("CARGO", env!("CARGO"))
            .env("FIRSTBYTE_BUILT", "1")
            .env("RUST_TEST_THREADS", AT_ONCE);
        command
    }

    fn run(&self) -> Result<(), String> {
        println!("{}", self.title());
        self.judge(self.command(Command::new(&self.program)).status())
    }

    /// At the lowest priority. What it says would fall into what others say.
    fn run_beside(&self) -> (String, Result<(), String>) {
        let mut nice = Command::new("nice");
        nice.args(["-n", "19"]).arg(&self.program);
        let output = self.command(nice).stdin(Stdio::null()).output();
        let said = output.as_ref().map(|output| {
            [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text).into_owned()).concat()
        });
        let said = format!("{}\n{}", self.title(), said.unwrap_or_default());
        (said, self.judge(output.map(|output| output.status)))
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
        let Suite { package, folder, program } = suite_of(message)?;
        Some((package, folder.display().to_string(), program.display().to_string()))
    }

    #[test]
    fn a_program_is_found_in_cargos_messages() {
        let message = r#"{"reason":"compiler-artifact","package_id":"path+file:///w/crates/wire/tests#firstbyte-wire-tests@0.1.0",
            "manifest_path":"/w/crates/wire/tests/Cargo.toml","profile":{"test":true},"executable":"/w/target/debug/deps/wire-1"}"#;
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

    /// Else a package that was renamed would run ahead, and nobody would notice.
    #[test]
    fn what_runs_beside_exists() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask is in the root");
        for name in IN_VIRTUAL_TIME {
            let folder = name.trim_start_matches("firstbyte-").replace("-tests", "/tests");
            let manifest = root.join("crates").join(folder).join("Cargo.toml");
            let text = std::fs::read_to_string(&manifest).expect(name);
            assert!(text.contains(&format!("name = \"{name}\"")), "{name}");
        }
    }
}
