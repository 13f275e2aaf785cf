//! The wheel in a virtual environment.

use super::super::{empty, output};
use super::{expect, files_below, says_its_version};
use crate::skipped;
use std::path::Path;
use std::process::Command;

/// Installs the wheel, runs the command, and removes it.
pub(super) fn install_and_remove(wheel: &Path) -> Result<(), String> {
    let folder = std::env::temp_dir().join(format!("firstbyte-venv-{}", std::process::id()));
    let environment = empty(&folder)?;
    if let Err(why) = output(Command::new("python3").args(["-m", "venv"]).arg(&environment)) {
        let why = why.lines().nth(1).unwrap_or_default().to_owned();
        skipped::say(&format!("the wheel is not installed: no virtual environment (python3-venv): {why}"));
        return Ok(());
    }
    let before = files_below(&environment)?;
    let pip = |arguments: &[&str]| {
        let mut pip = Command::new(environment.join("bin/python"));
        pip.args(["-m", "pip", "--disable-pip-version-check", "--quiet"]).args(arguments);
        output(pip.env("PYTHONDONTWRITEBYTECODE", "1"))
    };
    pip(&["install", "--no-index", "--no-compile", &wheel.display().to_string()])?;
    says_its_version(&environment.join("bin/firstbyte"))?;
    println!("the wheel: installed, the command runs");
    pip(&["uninstall", "--yes", "firstbyte"])?;
    let mut left = files_below(&environment)?;
    left.retain(|path| {
        !before.contains(path) && !path.components().any(|part| part.as_os_str() == "__pycache__")
    });
    expect(left.is_empty(), "files are left after pip uninstall", &format!("{left:?}"))?;
    println!("the wheel: removed, nothing is left");
    std::fs::remove_dir_all(&environment)
        .map_err(|error| format!("cannot remove {}: {error}", folder.display()))
}
