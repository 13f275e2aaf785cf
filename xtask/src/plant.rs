//! `cargo xtask plant`: plants faults one by one into a copy of the engine. Random runs must find
//! each of them.
//!
//! The list is `crates/simulation/faults.txt`. A failed run counts only if it passes with the
//! engine without the fault.

mod faults;

use faults::{Fault, LIST};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Instant;

/// Runs within which a fault must be found.
const RUNS: u64 = 100_000;
/// Length of a symptom in the table, in characters.
const SHOWN: usize = 100;

/// A copy of the workspace with a target folder of its own.
struct Copy {
    tree: PathBuf,
    build: PathBuf,
}

/// A run that failed.
struct Found {
    /// The seed; `None` if the simulation itself crashed.
    seed: Option<u64>,
    symptom: String,
}

/// Plants the faults whose names contain one of `names`, or all of them.
pub(crate) fn run(names: &[&str]) -> Result<(), String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().ok_or("xtask has no parent folder")?;
    let text = read(&root.join(LIST))?;
    let wanted = |fault: &Fault| names.is_empty() || names.iter().any(|name| fault.name.contains(name));
    let faults: Vec<Fault> = faults::parse(&text)?.into_iter().filter(wanted).collect();
    if faults.is_empty() {
        return Err(format!("cannot run plant: no fault of {LIST} has {} in its name", names.join(" or ")));
    }
    let copy = Copy::new(root)?;
    println!("building the engine without faults in {}", copy.build.display());
    let sound = copy.build.join("sound");
    copy_file(&copy.build()?, &sound)?;
    let mut missed = 0;
    for (nth, fault) in faults.iter().enumerate() {
        let begun = Instant::now();
        let found = copy.plant(fault, &sound)?;
        let seconds = begun.elapsed().as_secs();
        let number = format!("{:>2}/{}", nth + 1, faults.len());
        match found {
            Some(Found { seed, symptom }) => {
                let after = seed.map_or("?".to_owned(), |seed| (seed + 1).to_string());
                println!(
                    "{number}  found after {after:>6} runs, {seconds:>4} s: {}\n       {symptom}",
                    fault.name
                );
            }
            None => {
                missed += 1;
                println!("{number}  NOT FOUND in {RUNS} runs, {seconds:>4} s: {}", fault.name);
            }
        }
    }
    println!("{} of {} faults found", faults.len() - missed, faults.len());
    if missed == 0 { Ok(()) } else { Err(format!("random runs do not find {missed} faults")) }
}

impl Copy {
    /// Copies only the files that differ, so that cargo rebuilds only what changed.
    fn new(root: &Path) -> Result<Copy, String> {
        let folder = root.join("target/plant");
        let copy = Copy { tree: folder.join("tree"), build: folder.join("build") };
        make(&copy.build)?;
        for name in ["crates", "xtask"] {
            copy_folder(&root.join(name), &copy.tree.join(name))?;
        }
        for name in ["Cargo.toml", "Cargo.lock"] {
            copy_file(&root.join(name), &copy.tree.join(name))?;
        }
        Ok(copy)
    }

    /// Builds the simulator. Incremental, since a fault changes one function.
    fn build(&self) -> Result<PathBuf, String> {
        let output = Command::new(env!("CARGO"))
            .args([
                "build",
                "--quiet",
                "--profile",
                "simulate",
                "--locked",
                "--package",
                "firstbyte-simulation",
            ])
            .arg("--target-dir")
            .arg(&self.build)
            .env("CARGO_PROFILE_SIMULATE_INCREMENTAL", "true")
            .env("CARGO_PROFILE_SIMULATE_DEBUG", "false")
            .env("CARGO_PROFILE_SIMULATE_CODEGEN_UNITS", "64")
            .current_dir(&self.tree)
            .output()
            .map_err(|error| format!("cannot run cargo: {error}"))?;
        match output.status.success() {
            true => Ok(self.build.join("simulate/firstbyte-simulate")),
            false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
        }
    }

    /// Plants a fault, searches for a run that fails, and removes the fault.
    fn plant(&self, fault: &Fault, sound: &Path) -> Result<Option<Found>, String> {
        let mut sound_texts = Vec::new();
        let mut broken = Ok(());
        for change in &fault.changes {
            let file = self.tree.join(&change.file);
            let text = read(&file)?;
            broken = broken.and_then(|()| write(&file, &change.break_text(&text)?));
            sound_texts.push((file, text));
        }
        let found =
            broken.and_then(|()| self.build()).and_then(|program| search(&program, sound, fault.compared));
        for (file, text) in sound_texts.into_iter().rev() {
            write(&file, &text)?;
        }
        found.map_err(|problem| format!("{}: {problem}", fault.name))
    }
}

/// Searches for the first run that fails with one program and passes with the other.
fn search(broken: &Path, sound: &Path, compared: bool) -> Result<Option<Found>, String> {
    let how: &[&str] = if compared { &["--differential"] } else { &[] };
    let mut from = 0;
    while from < RUNS {
        let (first, runs) = (from.to_string(), (RUNS - from).to_string());
        let runs = ["--from", &first, "--worlds", &runs, "--failures", "1"];
        let output = play(broken, &[how, &runs].concat())?;
        if output.status.success() {
            return Ok(None);
        }
        let found = symptom_of(&output);
        let Some(seed) = found.seed else { return Ok(Some(found)) };
        if play(sound, &[how, &["--seed", &seed.to_string()]].concat())?.status.success() {
            return Ok(Some(found));
        }
        from = seed + 1;
    }
    Ok(None)
}

fn play(program: &Path, arguments: &[&str]) -> Result<Output, String> {
    Command::new(program).args(arguments).output().map_err(|error| format!("{}: {error}", program.display()))
}

/// Reads the seed and the symptom from the output of the simulator: `FAILED intensity seed:
/// symptom`, or `seed N does not come back`.
fn symptom_of(output: &Output) -> Found {
    let [said, complained] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    let failed = said.lines().filter_map(|line| line.strip_prefix("FAILED "));
    let stuck = complained.lines().filter(|line| line.starts_with("seed "));
    let line = failed.chain(stuck).next().map(str::to_owned);
    let seed = line.as_deref().and_then(|line| line.split([' ', ':']).find_map(|word| word.parse().ok()));
    let symptom =
        line.unwrap_or_else(|| format!("the simulator ended with {}: {}", output.status, complained.trim()));
    Found { seed, symptom: symptom.chars().take(SHOWN).collect() }
}

fn copy_folder(from: &Path, to: &Path) -> Result<(), String> {
    make(to)?;
    let entries = std::fs::read_dir(from).map_err(|error| format!("{}: {error}", from.display()))?;
    for entry in entries {
        let from = entry.map_err(|error| error.to_string())?.path();
        let Some(name) = from.file_name().filter(|name| *name != "target") else { continue };
        match from.is_dir() {
            true => copy_folder(&from, &to.join(name))?,
            false => copy_file(&from, &to.join(name))?,
        }
    }
    remove_stale(from, to)
}

/// Removes files of earlier copies that are no longer in the original.
fn remove_stale(from: &Path, to: &Path) -> Result<(), String> {
    let entries = std::fs::read_dir(to).map_err(|error| format!("{}: {error}", to.display()))?;
    for entry in entries {
        let path = entry.map_err(|error| error.to_string())?.path();
        if path.file_name().is_some_and(|name| !from.join(name).exists()) {
            let removed =
                if path.is_dir() { std::fs::remove_dir_all(&path) } else { std::fs::remove_file(&path) };
            removed.map_err(|error| format!("{}: {error}", path.display()))?;
        }
    }
    Ok(())
}

fn copy_file(from: &Path, to: &Path) -> Result<(), String> {
    let bytes = std::fs::read(from).map_err(|error| format!("{}: {error}", from.display()))?;
    if std::fs::read(to).is_ok_and(|before| before == bytes) {
        return Ok(());
    }
    let copied = std::fs::copy(from, to).map_err(|error| format!("{}: {error}", to.display()))?;
    debug_assert_eq!(copied, bytes.len() as u64);
    Ok(())
}

fn make(folder: &Path) -> Result<(), String> {
    std::fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))
}

fn read(file: &Path) -> Result<String, String> {
    std::fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))
}

fn write(file: &Path, text: &str) -> Result<(), String> {
    std::fs::write(file, text).map_err(|error| format!("{}: {error}", file.display()))
}
