//! Installs the packages, uses what they bring, and removes them: a step of the test command.
//!
//! - `install/root.rs`: the Debian package in an empty root;
//! - `install/shells.rs`: completions in the shells that are here;
//! - `install/library.rs`: C programs against the installed library;
//! - `install/units.rs`: the systemd units, and the commands that they start;
//! - `install/wheel.rs`: the wheel in a virtual environment.

mod library;
mod root;
mod shells;
mod units;
mod wheel;

use super::build::Target;
use super::{QUICK, Release, VERSION, build, deb, files, output, wheel as packing};
use crate::skipped;
use root::Root;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Makes the packages of the debug build, installs them, uses them and removes them.
pub(crate) fn run_in_tests() -> Result<(), String> {
    println!("\n=== packages: install, use, remove");
    let release = Release::with_profile(QUICK)?;
    let here = Target::of_this_machine(&release)?;
    let command = build::command(&release, &here)?;
    let files = files::written(&release, &command)?;
    let libraries = build::libraries(&release)?;
    match deb::pack(&release, &command, &libraries, &files) {
        Ok(package) => installed(&package)?,
        Err(why) if why.contains("is missing") => skipped::say(&format!("the Debian package: {why}")),
        Err(why) => return Err(why),
    }
    match packing::pack(&release, &here, &command) {
        Ok(wheel) => wheel::install_and_remove(&wheel),
        Err(why) => {
            skipped::say(&format!("the wheel: {why}"));
            Ok(())
        }
    }
}

fn installed(package: &Path) -> Result<(), String> {
    let root = Root::install(package)?;
    says_its_version(&root.path("usr/bin/firstbyte"))?;
    manual(&root)?;
    shells::complete(&root)?;
    library::link(&root)?;
    units::check(&root)?;
    root.remove()
}

fn says_its_version(command: &Path) -> Result<(), String> {
    let said = output(Command::new(command).arg("--version"))?;
    expect(said == format!("firstbyte {VERSION}\n"), "firstbyte --version", &said)?;
    let said = output(Command::new(command).args(["bdp", "100mbit", "20ms"]))?;
    expect(said.contains("250000"), "firstbyte bdp 100mbit 20ms", &said)
}

/// Renders two pages as a user would read them.
fn manual(root: &Root) -> Result<(), String> {
    if !crate::packages::installed("man") {
        skipped::say("manual pages are not rendered: man is missing (apt-get install man-db)");
        return Ok(());
    }
    for (page, sections) in [
        ("firstbyte", ["SYNOPSIS", "COMMANDS", "EXIT STATUS", "PRIVILEGES", "ENVIRONMENT"]),
        ("firstbyte-fleet-agent", ["SYNOPSIS", "OPTIONS", "EXIT STATUS", "FILES", "EXAMPLES"]),
    ] {
        let mut man = Command::new("man");
        man.env("MANPATH", root.path("usr/share/man")).env("MANWIDTH", "80").env("MANPAGER", "cat");
        let text = output(man.env("LC_ALL", "C.UTF-8").args(["--warnings", page]))?;
        let missing = sections.iter().find(|section| !text.lines().any(|line| line == **section));
        expect(missing.is_none(), &format!("man {page}: no section {missing:?}"), &text)?;
    }
    println!("manual pages: rendered");
    Ok(())
}

fn expect(holds: bool, what: &str, said: &str) -> Result<(), String> {
    if holds { Ok(()) } else { Err(format!("{what}: not as expected:\n{said}")) }
}

/// Returns the files and links below a folder.
fn files_below(folder: &Path) -> Result<BTreeSet<PathBuf>, String> {
    let found = output(Command::new("find").arg(folder).args(["(", "-type", "f", "-o", "-type", "l", ")"]))?;
    Ok(found.lines().map(PathBuf::from).collect())
}
