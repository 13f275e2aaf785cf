//! `cargo xtask dist`: builds what users install, in target/artifacts.
//!
//! - `dist/build.rs`: the command and the C libraries, and their debug information;
//! - `dist/files.rs`: the files beside them: manual pages, completions, units;
//! - `dist/tarball.rs`, `dist/deb.rs`, `dist/wheel.rs`: the packages;
//! - `dist/install.rs`: the test that installs and removes them.

mod build;
mod deb;
mod files;
mod install;
mod tarball;
mod wheel;

pub(crate) use install::run_in_tests;

use crate::skipped;
use build::Target;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The profile of what is shipped.
const PROFILE: &str = "dist";

/// The profile of the test command. Its artefacts are in target/debug already.
const QUICK: &str = "dev";

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// One run of `cargo xtask dist`.
struct Release {
    profile: String,
    /// Absolute, because packages are made from within other folders.
    folder: PathBuf,
}

impl Release {
    /// Creates the folder of a release with this profile.
    fn with_profile(profile: &str) -> Result<Release, String> {
        let name = if profile == PROFILE { "artifacts".to_owned() } else { format!("artifacts-{profile}") };
        let folder = std::env::current_dir().unwrap_or_default().join("target").join(name);
        fs::create_dir_all(&folder)
            .map_err(|error| format!("cannot create {}: {error}", folder.display()))?;
        Ok(Release { profile: profile.to_owned(), folder })
    }

    /// True for a build of the test command: this machine only, large and unoptimised.
    fn is_quick(&self) -> bool {
        self.profile == QUICK
    }

    /// Returns an empty folder `name` of the release.
    fn empty_folder(&self, name: &str) -> Result<PathBuf, String> {
        empty(&self.folder.join(name))
    }
}

/// The packages that can be asked for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Tarball,
    Deb,
    Wheel,
}

const PARTS: [(&str, Part); 3] = [("tarball", Part::Tarball), ("deb", Part::Deb), ("wheel", Part::Wheel)];

/// Builds the packages that are named, or all, and prints their sizes. With `--test`, tests the
/// packages of the debug build.
pub(crate) fn run(arguments: &[&str]) -> Result<(), String> {
    if matches!(arguments, ["--test"]) {
        return run_in_tests();
    }
    let (profile, parts) = parsed(arguments)?;
    let release = Release::with_profile(profile)?;
    let is_wanted = |part| parts.is_empty() || parts.contains(&part);
    let here = Target::of_this_machine(&release)?;
    let command = build::command(&release, &here)?;
    let files = files::written(&release, &command)?;
    let mut made = Vec::new();
    if is_wanted(Part::Deb) {
        let libraries = build::libraries(&release)?;
        made.push(deb::pack(&release, &command, &libraries, &files)?);
    }
    let mut machines = vec![(here, command)];
    if is_wanted(Part::Tarball) || is_wanted(Part::Wheel) {
        match Target::other_machine(&release) {
            Ok(there) => {
                let command = build::command(&release, &there)?;
                machines.push((there, command));
            }
            Err(why) => skipped::say(&format!("packages of another machine: {why}")),
        }
    }
    for (target, command) in &machines {
        made.extend([command.elf.clone(), command.debug.clone()]);
        if is_wanted(Part::Tarball) {
            made.push(tarball::pack(&release, target, command, &files)?);
        }
        if is_wanted(Part::Wheel) {
            match wheel::pack(&release, target, command) {
                Ok(wheel) => made.push(wheel),
                Err(why) if parts.is_empty() => skipped::say(&format!("the wheel: {why}")),
                Err(why) => return Err(why),
            }
        }
    }
    println!();
    made.iter().try_for_each(|path| print_size(path))
}

fn parsed<'a>(arguments: &[&'a str]) -> Result<(&'a str, Vec<Part>), String> {
    let (mut profile, mut parts) = (PROFILE, Vec::new());
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        if *argument == "--profile" {
            profile = arguments.next().ok_or("--profile needs a name, such as dist or dev")?;
        } else {
            let part = PARTS.iter().find(|(name, _)| name == argument);
            let (_, part) = part.ok_or_else(|| format!("cannot build `{argument}`: {USAGE}"))?;
            parts.push(*part);
        }
    }
    Ok((profile, parts))
}

const USAGE: &str = "usage: cargo xtask dist [--profile PROFILE] [tarball] [deb] [wheel], or dist --test";

fn print_size(path: &Path) -> Result<(), String> {
    let size = fs::metadata(path).map_err(|error| format!("cannot read {}: {error}", path.display()))?.len();
    println!("{:>8.1} MB  {}", size as f64 / 1e6, shown(path));
    Ok(())
}

/// Returns a path as a reader of the output would type it.
fn shown(path: &Path) -> String {
    let here = std::env::current_dir().unwrap_or_default();
    path.strip_prefix(here).unwrap_or(path).display().to_string()
}

/// Runs a program to its end and returns what it printed.
fn output(command: &mut Command) -> Result<String, String> {
    let output = command.output().map_err(|error| format!("cannot run {command:?}: {error}"))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if output.status.success() {
        Ok(text(&output.stdout))
    } else {
        Err(format!("{command:?}: {}\n{}{}", output.status, text(&output.stdout), text(&output.stderr)))
    }
}

/// Returns `folder`, empty.
fn empty(folder: &Path) -> Result<PathBuf, String> {
    let failed = |error| format!("cannot empty {}: {error}", folder.display());
    if folder.exists() {
        fs::remove_dir_all(folder).map_err(failed)?;
    }
    fs::create_dir_all(folder).map_err(failed)?;
    Ok(folder.to_owned())
}

/// Copies a file, with the folders above it and this mode.
fn place(from: &Path, to: &Path, mode: u32) -> Result<(), String> {
    let text = fs::read(from).map_err(|error| format!("cannot read {}: {error}", from.display()))?;
    write(to, text, mode)
}

/// Writes a file, with the folders above it and this mode.
fn write(to: &Path, text: impl AsRef<[u8]>, mode: u32) -> Result<(), String> {
    use std::os::unix::fs::PermissionsExt;
    let failed = |error| format!("cannot write {}: {error}", to.display());
    fs::create_dir_all(to.parent().unwrap_or(to)).map_err(failed)?;
    fs::write(to, text).map_err(failed)?;
    fs::set_permissions(to, fs::Permissions::from_mode(mode)).map_err(failed)
}

/// The time of the last commit: the same sources give the same packages.
fn source_date() -> String {
    let stamp = Command::new("git").args(["log", "-1", "--format=%ct"]).output();
    let stamp = stamp.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    stamp.ok().filter(|stamp| !stamp.is_empty()).unwrap_or_else(|| "0".to_owned())
}
