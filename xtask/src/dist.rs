//! Builds the release: the command without debug information, and the debug information in its own
//! file.

use crate::{cargo, packages};
use std::fs;
use std::path::Path;
use std::process::Command;

/// The folder of the release.
const FOLDER: &str = "target/artifacts";

/// The built command, before it is taken apart.
const BUILT: &str = "target/dist/firstbyte";

/// Builds the command once, and takes it apart. A backtrace of the shipped command finds its lines
/// again if the debug file lies beside it.
pub(crate) fn run() -> Result<(), String> {
    if !packages::installed("objcopy") {
        return Err("objcopy takes the command apart: apt-get install binutils".to_owned());
    }
    let whole = "profile.dist.package.firstbyte-cli.strip=\"none\"";
    let build = ["build", "--profile", "dist", "--locked", "--package", "firstbyte-cli"];
    cargo(&[&build[..], &["--config", whole]].concat(), &[])?;
    let (command, debug) = (format!("{FOLDER}/firstbyte"), format!("{FOLDER}/firstbyte.debug"));
    fs::create_dir_all(FOLDER).map_err(|error| format!("cannot make {FOLDER}: {error}"))?;
    // The command must not be changed in place: later builds on it would link again.
    objcopy(&["--only-keep-debug", BUILT, &debug])?;
    objcopy(&["--strip-all", &format!("--add-gnu-debuglink={debug}"), BUILT, &command])?;
    for path in [&command, &debug] {
        let size = fs::metadata(Path::new(path)).map_err(|error| format!("{path}: {error}"))?.len();
        println!("{path}: {:.1} MB", size as f64 / 1e6);
    }
    Ok(())
}

fn objcopy(arguments: &[&str]) -> Result<(), String> {
    let status = Command::new("objcopy")
        .args(arguments)
        .status()
        .map_err(|error| format!("cannot run objcopy: {error}"))?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("`objcopy {}` failed ({status})", arguments.join(" ")))
    }
}
