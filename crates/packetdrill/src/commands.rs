//! Commands of scripts to the system's tools that mean the stack: `ip tcp_metrics flush`,
//! `ip route …`, `tc qdisc …`.
//!
//! Scripts run shell commands. A folder in front of `PATH` has an `ip` and a `tc` of ours, which
//! leave a note of what they were called with, and hand it on to the real ones; but routes and
//! single paths are the stack's alone, and the system is not asked for them. The folder lies in
//! `PD_TEST_DIR`, which is the script's own; without it nothing changes.

use crate::give_up;
use posix::tools::NetworkCommand;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Where the notes are left, a command a line.
#[derive(Debug)]
pub(crate) struct Notes {
    left: PathBuf,
    taken: PathBuf,
}

impl Notes {
    /// Puts our commands in front of the system's.
    pub(crate) fn prepare() -> Option<Notes> {
        let scratch = PathBuf::from(std::env::var_os("PD_TEST_DIR")?);
        let notes = Notes { left: scratch.join("commands"), taken: scratch.join("commands.taken") };
        let folder = scratch.join("firstbyte-bin");
        match install(&folder, &notes) {
            Ok(()) => Some(notes),
            Err(error) => {
                eprintln!("libfirstbyte_packetdrill: {}: {error}", folder.display());
                None
            }
        }
    }

    /// What was asked for since this was last called. What is not the stack's is left to the real
    /// tool's answer; what is nonsense ends the run, because our `ip` has said already that all is
    /// well.
    pub(crate) fn take(&self) -> Vec<NetworkCommand> {
        if fs::rename(&self.left, &self.taken).is_err() {
            return Vec::new();
        }
        let text = fs::read_to_string(&self.taken).unwrap_or_default();
        text.lines().filter_map(understood).collect()
    }
}

fn understood(line: &str) -> Option<NetworkCommand> {
    let words: Vec<&str> = line.split_whitespace().collect();
    NetworkCommand::parse(&words).unwrap_or_else(|problem| give_up(&format!("`{line}`: {problem}")))
}

fn install(folder: &Path, notes: &Notes) -> std::io::Result<()> {
    fs::create_dir_all(folder)?;
    let path = std::env::var("PATH").unwrap_or_default();
    let note = notes.left.display();
    for tool in ["ip", "tc"] {
        let command = folder.join(tool);
        fs::write(
            &command,
            format!(
                "#!/bin/sh\nprintf '%s\\n' \"{tool} $*\" >> '{note}'\ncase \" $*\" in {OURS}) exit 0 ;; esac\nPATH='{path}' exec {tool} \"$@\"\n"
            ),
        )?;
        fs::set_permissions(&command, fs::Permissions::from_mode(0o755))?;
    }
    // SAFETY: packetdrill has one thread when it loads us.
    unsafe { std::env::set_var("PATH", format!("{}:{path}", folder.display())) };
    Ok(())
}

/// Arguments, as the shell's patterns, of commands that the system is not asked for.
const OURS: &str = "*' route add '*|*' route replace '*|*' route change '*|*' route del'*|\
                    *' tcp_metrics del'*|*' tcp_metrics flush '*[.:]*";
