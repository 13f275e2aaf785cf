//! What scripts ask of the system's tools and mean the stack: `ip tcp_metrics flush`.
//!
//! Scripts run shell commands. A folder in front of `PATH` has an `ip` of ours, which leaves a note when the memory of paths is to be
//! flushed, and hands everything on to the real one. The folder lies in `PD_TEST_DIR`, which is the script's own; without it nothing
//! changes.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Where the note is left.
#[derive(Debug)]
pub(crate) struct Notes {
    flush: PathBuf,
}

impl Notes {
    /// Puts our commands in front of the system's.
    pub(crate) fn prepare() -> Option<Notes> {
        let scratch = PathBuf::from(std::env::var_os("PD_TEST_DIR")?);
        let notes = Notes { flush: scratch.join("tcp_metrics.flush") };
        let folder = scratch.join("firstbyte-bin");
        match install(&folder, &notes) {
            Ok(()) => Some(notes),
            Err(error) => {
                eprintln!("libfirstbyte_packetdrill: {}: {error}", folder.display());
                None
            }
        }
    }

    /// Has the memory of paths been flushed since this was last asked?
    pub(crate) fn take_flush(&self) -> bool {
        self.flush.exists() && fs::remove_file(&self.flush).is_ok()
    }
}

fn install(folder: &Path, notes: &Notes) -> std::io::Result<()> {
    fs::create_dir_all(folder)?;
    let path = std::env::var("PATH").unwrap_or_default();
    let command = folder.join("ip");
    let note = notes.flush.display();
    fs::write(
        &command,
        format!(
            "#!/bin/sh\ncase \"$*\" in *tcp_metrics*flush*) : > '{note}' ;; esac\nPATH='{path}' exec ip \"$@\"\n"
        ),
    )?;
    fs::set_permissions(&command, fs::Permissions::from_mode(0o755))?;
    // SAFETY: packetdrill has one thread when it loads us.
    unsafe { std::env::set_var("PATH", format!("{}:{path}", folder.display())) };
    Ok(())
}
