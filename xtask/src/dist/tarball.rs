//! A tarball of the command for any Linux of one machine.

use super::build::{Shipped, Target};
use super::files::{Files, PACKAGING, UNITS, listed};
use super::{Release, VERSION, output, place, source_date};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Packs the command with its manual pages, completions and units.
pub(super) fn pack(
    release: &Release,
    target: &Target,
    command: &Shipped,
    files: &Files,
) -> Result<PathBuf, String> {
    let name = format!("firstbyte-{VERSION}-{}", target.name());
    let above = release.empty_folder("tarball")?;
    let folder = above.join(&name);
    place(&command.elf, &folder.join("firstbyte"), 0o755)?;
    for page in listed(&files.man)? {
        place(&page, &folder.join("man/man1").join(page.file_name().unwrap_or_default()), 0o644)?;
    }
    for script in listed(&files.completions)? {
        place(&script, &folder.join("completions").join(script.file_name().unwrap_or_default()), 0o644)?;
    }
    for unit in UNITS {
        let packaging = Path::new(PACKAGING);
        let service = format!("systemd/{unit}.service");
        place(&packaging.join(&service), &folder.join(&service), 0o644)?;
        place(&packaging.join("default").join(unit), &folder.join("default").join(unit), 0o644)?;
    }
    for text in ["README.md", "CHANGELOG.md", "LICENSE"] {
        place(Path::new(text), &folder.join(text), 0o644)?;
    }
    let packed = release.folder.join(format!("{name}.tar.gz"));
    let mut tar = Command::new("tar");
    tar.args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner"]);
    tar.arg(format!("--mtime=@{}", source_date())).args(["--use-compress-program", "gzip -9n"]);
    output(tar.arg("-C").arg(&above).arg("-cf").arg(&packed).arg(&name))?;
    Ok(packed)
}
