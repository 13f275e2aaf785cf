//! The Debian package in a root of its own.

use super::super::{empty, output};
use super::{expect, files_below};
use crate::{packages, skipped};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Folders that dpkg itself writes and keeps.
const OF_DPKG: [&str; 2] = ["var/lib/dpkg", "var/log"];

/// An installed package.
pub(super) struct Root {
    folder: PathBuf,
    is_managed: bool,
}

impl Root {
    /// Installs `package`: as root by dpkg, its scripts included, else by unpacking it.
    pub(super) fn install(package: &Path) -> Result<Root, String> {
        // Outside of the checkout, which other users may be unable to read.
        let folder = empty(&std::env::temp_dir().join(format!("firstbyte-root-{}", std::process::id())))?;
        let root = Root { folder, is_managed: packages::is_root() && packages::installed("dpkg") };
        if !root.is_managed {
            skipped::say("dpkg's scripts and the removal of the package: they need root");
            output(Command::new("dpkg-deb").arg("-x").arg(package).arg(&root.folder))?;
            return Ok(root);
        }
        for folder in ["var/lib/dpkg/info", "var/lib/dpkg/updates", "var/log"] {
            let folder = root.path(folder);
            std::fs::create_dir_all(&folder)
                .map_err(|error| format!("cannot create {}: {error}", folder.display()))?;
        }
        let status = root.path("var/lib/dpkg/status");
        std::fs::write(&status, "").map_err(|error| format!("cannot write {}: {error}", status.display()))?;
        root.dpkg(&["--install"], &package.display().to_string())?;
        let state = root.dpkg(&["--status"], "firstbyte")?;
        expect(state.contains("Status: install ok installed"), "dpkg --status firstbyte", &state)?;
        let changed = root.dpkg(&["--verify"], "firstbyte")?;
        expect(changed.is_empty(), "dpkg --verify firstbyte", &changed)?;
        println!("firstbyte.deb: installed");
        Ok(root)
    }

    /// Returns the path of an installed file.
    pub(super) fn path(&self, installed: &str) -> PathBuf {
        self.folder.join(installed)
    }

    /// Returns the installed folder of libraries.
    pub(super) fn libraries(&self) -> Result<PathBuf, String> {
        let multiarch = output(Command::new("dpkg-architecture").args(["-q", "DEB_HOST_MULTIARCH"]))?;
        Ok(self.path("usr/lib").join(multiarch.trim()))
    }

    /// Removes the package with its configuration, and checks that nothing is left.
    pub(super) fn remove(self) -> Result<(), String> {
        if self.is_managed {
            // As a service would have left it.
            let state = self.path("var/lib/firstbyte");
            std::fs::create_dir_all(&state)
                .and_then(|()| std::fs::write(state.join("paths"), ""))
                .map_err(|error| format!("cannot write {}: {error}", state.display()))?;
            self.dpkg(&["--purge"], "firstbyte")?;
            let mut left = files_below(&self.folder)?;
            left.retain(|path| !OF_DPKG.iter().any(|kept| path.starts_with(self.path(kept))));
            expect(left.is_empty(), "files are left after dpkg --purge", &format!("{left:?}"))?;
            println!("firstbyte.deb: removed, nothing is left");
        }
        std::fs::remove_dir_all(&self.folder)
            .map_err(|error| format!("cannot remove {}: {error}", self.folder.display()))
    }

    fn dpkg(&self, arguments: &[&str], of: &str) -> Result<String, String> {
        let mut dpkg = Command::new("dpkg");
        dpkg.arg(format!("--root={}", self.folder.display()));
        // The root is empty: it has no C library and no shell. dpkg's configuration in images of
        // containers may leave out documentation.
        dpkg.args(["--force-depends", "--force-script-chrootless", "--path-include=/usr/share/*"]);
        output(dpkg.args(arguments).arg(of).env("DEBIAN_FRONTEND", "noninteractive"))
    }
}
