//! Programs and libraries of this workspace that a test starts or loads, which cargo does not build
//! for tests.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

/// In the environment: whoever runs the tests has built the whole workspace, and nothing is built
/// again.
const IS_BUILT: &str = "FIRSTBYTE_BUILT";

/// Builds `package` if it is not up to date, by the profile of the running test, and gives the
/// folder of what is built.
///
/// # Panics
/// If it cannot be built.
pub fn built(package: &str) -> PathBuf {
    built_with(package, &[])
}

/// Builds an example of `package` if it is not up to date, and returns its program.
///
/// # Panics
/// If it cannot be built.
pub fn built_example(package: &str, example: &str) -> PathBuf {
    built_with(package, &["--example", example]).join("examples").join(example)
}

fn built_with(package: &str, targets: &[&str]) -> PathBuf {
    // One at a time: the second finds it done.
    static BUILDING: Mutex<()> = Mutex::new(());
    let _one = BUILDING.lock().unwrap_or_else(PoisonError::into_inner);
    let test = std::env::current_exe().expect("this program");
    let profile = test.ancestors().nth(2).expect("target/<profile>/deps/<test>");
    if std::env::var_os(IS_BUILT).is_none() {
        build(package, targets, profile);
    }
    profile.to_owned()
}

fn build(package: &str, targets: &[&str], profile: &Path) {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["build", "--quiet", "--package", package, "--target-dir"]);
    cargo.arg(profile.parent().expect("target/")).current_dir(env!("CARGO_MANIFEST_DIR"));
    cargo.args(["--profile", profile_in(profile)]).args(targets);
    let status = cargo.status().expect("cargo runs");
    assert!(status.success(), "{cargo:?}: {status}");
}

/// The name of the profile that builds into this folder.
fn profile_in(folder: &Path) -> &str {
    match folder.file_name().and_then(|name| name.to_str()) {
        Some("debug") | None => "dev",
        Some(profile) => profile,
    }
}
