//! Other targets of the compiler: the kernel's sockets are checked for other systems.

use crate::{cargo, skipped};
use std::path::Path;
use std::process::{Command, Stdio};

/// Systems on which `firstbyte` has a backend that the tests cannot run.
const OTHER_SYSTEMS: [&str; 3] = ["x86_64-apple-darwin", "aarch64-apple-darwin", "x86_64-unknown-freebsd"];

/// The static command is built for this C library, and the lab has most of what it consists of.
const STATIC: (&str, &str) = ("x86_64-unknown-linux-musl", "firstbyte-lab");

/// Checks and lints `firstbyte` for other systems, and the lab for the static command, or prints
/// SKIPPED with what is missing.
pub(crate) fn check_other_systems() -> Result<(), String> {
    for (target, package) in OTHER_SYSTEMS.map(|target| (target, "firstbyte")).into_iter().chain([STATIC]) {
        if !is_ready(target)? {
            skipped::say(&format!("{package} for {target}: no target; run `rustup target add {target}`"));
            continue;
        }
        let check = ["clippy", "--package", package, "--locked", "--target", target];
        cargo(&[&check[..], &["--", "--deny", "warnings"]].concat(), &[])?;
    }
    Ok(())
}

/// Returns whether the target's libraries are there. Installs them where rustup can.
pub(crate) fn is_ready(target: &str) -> Result<bool, String> {
    let printed = Command::new("rustc")
        .args(["--print", "target-libdir", "--target", target])
        .output()
        .map_err(|error| format!("cannot run rustc: {error}"))?;
    let folder = String::from_utf8_lossy(&printed.stdout);
    if printed.status.success() && Path::new(folder.trim()).is_dir() {
        return Ok(true);
    }
    let status = Command::new("rustup").args(["target", "add", target]).stdin(Stdio::null()).status();
    Ok(status.is_ok_and(|status| status.success()))
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_target_that_does_not_exist_is_not_ready() {
        assert_eq!(super::is_ready("x86_64-unknown-nothing"), Ok(false));
    }
}
