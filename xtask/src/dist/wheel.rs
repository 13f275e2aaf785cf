//! The Python wheel that carries the command, by maturin.
//!
//! maturin asks cargo to build the command. Here cargo's answer is the command that was shipped, so
//! that the wheel, the tarball and the Debian package have the same bytes and one file of debug
//! information, and nothing is linked twice.

use super::build::{Shipped, Target};
use super::files::listed;
use super::{Release, output, write};
use crate::packages;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The versions of maturin that pyproject.toml names.
const MATURIN: &str = "maturin>=1.9,<2";

/// A virtual environment for maturin, where it is not installed.
const ENVIRONMENT: &str = "target/maturin";

/// Packs the command.
pub(super) fn pack(release: &Release, target: &Target, command: &Shipped) -> Result<PathBuf, String> {
    let maturin = maturin()?;
    let folder = release.empty_folder(&format!("wheel-{}", target.name()))?;
    let cargo = answering(release, command)?;
    let mut build = Command::new(maturin);
    build.args(["build", "--quiet", "--locked", "--out"]).arg(&folder).env("CARGO", cargo);
    match target.triple() {
        // A static command runs with every C library.
        Some(triple) => build.args(["--profile", &release.profile, "--target", triple]).args([
            "--compatibility",
            "manylinux2014",
            "musllinux_1_1",
        ]),
        // It needs the C library of this machine.
        None => build.args(["--profile", "dev", "--auditwheel", "skip", "--compatibility", "linux"]),
    };
    output(&mut build)?;
    let wheels = listed(&folder)?;
    let wheel = wheels.into_iter().find(|path| path.extension().is_some_and(|name| name == "whl"));
    wheel.ok_or_else(|| format!("maturin left no wheel in {}", folder.display()))
}

/// Returns the program maturin, which is installed into a virtual environment if it is missing.
fn maturin() -> Result<PathBuf, String> {
    if packages::installed("maturin") {
        return Ok(PathBuf::from("maturin"));
    }
    let program = Path::new(ENVIRONMENT).join("bin/maturin");
    if program.exists() {
        return Ok(program);
    }
    let why = |error: String| {
        let line = error.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default().to_owned();
        format!("maturin is missing and cannot be installed ({line}); pip install '{MATURIN}'")
    };
    output(Command::new("python3").args(["-m", "venv", ENVIRONMENT])).map_err(why)?;
    let pip = Path::new(ENVIRONMENT).join("bin/pip");
    output(Command::new(pip).args(["install", "--quiet", "--disable-pip-version-check", MATURIN]))
        .map_err(why)?;
    Ok(program)
}

/// Writes a program that maturin takes for cargo: it answers `cargo rustc` with the command that is
/// there, and hands everything else to cargo.
fn answering(release: &Release, command: &Shipped) -> Result<PathBuf, String> {
    let (answer, program) =
        (release.folder.join("cargo-answer.json"), release.folder.join("cargo-answering"));
    write(&answer, built(command)?, 0o644)?;
    let script = format!(
        "#!/bin/sh\nif [ \"$1\" = rustc ]; then exec cat '{}'; fi\nexec '{}' \"$@\"\n",
        answer.display(),
        env!("CARGO")
    );
    write(&program, script, 0o755)?;
    Ok(program)
}

/// Returns cargo's messages about a command that was built (cargo's reference, "External tools").
fn built(command: &Shipped) -> Result<String, String> {
    let metadata = output(Command::new(env!("CARGO")).args([
        "metadata",
        "--locked",
        "--no-deps",
        "--format-version",
        "1",
    ]))?;
    let metadata: Value =
        serde_json::from_str(&metadata).map_err(|error| format!("cargo metadata: {error}"))?;
    let packages = metadata["packages"].as_array().cloned().unwrap_or_default();
    let package = packages.into_iter().find(|package| package["name"] == "firstbyte-cli");
    let package = package.ok_or("cargo metadata names no firstbyte-cli")?;
    let elf = command.elf.display().to_string();
    let artifact = json!({
        "reason": "compiler-artifact",
        "package_id": package["id"],
        "manifest_path": package["manifest_path"],
        "target": package["targets"].as_array().and_then(|targets| {
            targets.iter().find(|target| target["name"] == "firstbyte")
        }),
        "profile": {
            "opt_level": "3", "debuginfo": 0, "debug_assertions": false, "overflow_checks": false, "test": false,
        },
        "features": [],
        "filenames": [elf],
        "executable": elf,
        "fresh": true,
    });
    Ok(format!("{artifact}\n{}\n", json!({ "reason": "build-finished", "success": true })))
}
