//! Files beside the command: manual pages and completions, which it writes itself, and units.

use super::build::Shipped;
use super::{Release, empty, output, write};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Sources of packages that are files already.
pub(super) const PACKAGING: &str = "packaging";

/// The systemd units, each with its file of arguments in packaging/default.
pub(super) const UNITS: [&str; 3] = ["firstbyte-doctor", "firstbyte-serve", "firstbyte-fleet-agent"];

/// A shell, and the name that its script has in a tarball.
pub(super) const SHELLS: [(&str, &str); 3] =
    [("bash", "firstbyte.bash"), ("zsh", "_firstbyte"), ("fish", "firstbyte.fish")];

/// Manual pages and completions.
pub(super) struct Files {
    /// The folder of the manual pages.
    pub(super) man: PathBuf,
    /// The folder of the completions.
    pub(super) completions: PathBuf,
}

/// Lets the command write them.
pub(super) fn written(release: &Release, command: &Shipped) -> Result<Files, String> {
    let folder = release.folder.join("files");
    let files = Files { man: empty(&folder.join("man1"))?, completions: empty(&folder.join("completions"))? };
    output(Command::new(&command.elf).arg("man").arg(&files.man))?;
    for (shell, name) in SHELLS {
        let script = output(Command::new(&command.elf).args(["completions", shell]))?;
        write(&files.completions.join(name), script, 0o644)?;
    }
    Ok(files)
}

/// Returns the files of a folder, sorted.
pub(super) fn listed(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let entries =
        fs::read_dir(folder).map_err(|error| format!("cannot read {}: {error}", folder.display()))?;
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    files.sort();
    Ok(files)
}
