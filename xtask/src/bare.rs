//! The engine where there is no standard library: `bare/` is built for a target that has none, and run.

use crate::skipped;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Has `core` and `alloc` only.
const TARGET: &str = "x86_64-unknown-none";

/// Builds the program and runs it, or says what is missing.
pub(crate) fn run_in_tests() -> Result<(), String> {
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        skipped::say("the engine without std: its program ends by a system call of Linux on x86-64");
        return Ok(());
    }
    if !has_target()? && !install_target() {
        skipped::say(&format!("the engine without std: the target is missing: rustup target add {TARGET}"));
        return Ok(());
    }
    let program = build()?;
    let status =
        Command::new(&program).status().map_err(|error| format!("{}: {error}", program.display()))?;
    if !status.success() {
        return Err(format!(
            "the exchange without std failed ({status}; bare/src/main.rs says what its status means)"
        ));
    }
    println!("an exchange between two stacks without std came off");
    Ok(())
}

fn has_target() -> Result<bool, String> {
    let told = Command::new("rustc")
        .args(["--print", "target-libdir", "--target", TARGET])
        .output()
        .map_err(|error| format!("cannot run rustc: {error}"))?;
    Ok(Path::new(String::from_utf8_lossy(&told.stdout).trim()).is_dir())
}

fn install_target() -> bool {
    let status = Command::new("rustup").args(["target", "add", TARGET]).stdin(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

fn build() -> Result<PathBuf, String> {
    println!("\n=== build bare for {TARGET}");
    let folder = Path::new("target/bare");
    let status = Command::new(env!("CARGO"))
        .args(["build", "--locked", "--manifest-path", "bare/Cargo.toml", "--target", TARGET, "--target-dir"])
        .arg(folder)
        // Linux loads it where it was linked: nothing is there that could relocate it.
        .env("RUSTFLAGS", "-Crelocation-model=static")
        .env("CARGO_INCREMENTAL", "0")
        .status()
        .map_err(|error| format!("cannot run cargo: {error}"))?;
    if !status.success() {
        return Err(format!("the engine cannot be built without std ({status})"));
    }
    Ok(folder.join(TARGET).join("debug/firstbyte-bare"))
}
