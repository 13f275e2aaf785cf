//! The engine without the standard library: builds `bare/` for a target that has none, and runs
//! it.

use crate::{skipped, targets};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A target with `core` and `alloc` only.
const TARGET: &str = "x86_64-unknown-none";

/// Builds and runs the program, or prints SKIPPED with what is missing.
pub(crate) fn run_in_tests() -> Result<(), String> {
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        skipped::say("the engine without std: its program needs Linux on x86-64");
        return Ok(());
    }
    if !targets::is_ready(TARGET)? {
        skipped::say(&format!("the engine without std: no target; run `rustup target add {TARGET}`"));
        return Ok(());
    }
    let program = build()?;
    let status = Command::new(&program)
        .status()
        .map_err(|error| format!("cannot run {}: {error}", program.display()))?;
    if !status.success() {
        return Err(format!(
            "the exchange without std failed ({status}); bare/src/main.rs explains the status"
        ));
    }
    println!("two stacks without std completed an exchange");
    Ok(())
}

fn build() -> Result<PathBuf, String> {
    println!("\n=== build bare for {TARGET}");
    let folder = Path::new("target/bare");
    let status = Command::new(env!("CARGO"))
        .args(["build", "--locked", "--manifest-path", "bare/Cargo.toml", "--target", TARGET, "--target-dir"])
        .arg(folder)
        // Linux loads the program at the address it was linked for: without std, nothing relocates
        // it.
        .env("RUSTFLAGS", "-Crelocation-model=static")
        .env("CARGO_INCREMENTAL", "0")
        .status()
        .map_err(|error| format!("cannot run cargo: {error}"))?;
    if !status.success() {
        return Err(format!("cannot build the engine without std ({status})"));
    }
    Ok(folder.join(TARGET).join("debug/firstbyte-bare"))
}
