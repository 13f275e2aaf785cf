//! Paths of control sockets: one folder per user, one socket per running stack.
use std::ffi::OsStr;
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

/// Returns `$XDG_RUNTIME_DIR/firstbyte`, or /run/firstbyte if the variable is not set (as for
/// root).
pub(super) fn folder() -> PathBuf {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").filter(|value| !value.is_empty());
    Path::new(runtime.as_deref().unwrap_or(OsStr::new("/run"))).join("firstbyte")
}

/// Creates the folder with mode 0700 if necessary, and returns a socket path that no other process
/// uses.
pub(super) fn of_this_process(device: &str) -> io::Result<PathBuf> {
    let folder = folder();
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
    Ok(folder.join(format!("{device}-{}.sock", std::process::id())))
}

/// Returns the sockets of running stacks. Removes sockets that killed processes left behind.
///
/// # Errors
/// The folder exists but cannot be read.
pub(super) fn running() -> io::Result<Vec<PathBuf>> {
    let entries = match std::fs::read_dir(folder()) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?.flatten(),
    };
    let mut found: Vec<PathBuf> = entries
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_socket()))
        .map(|entry| entry.path())
        .filter(|path| path.extension() == Some(OsStr::new("sock")))
        .collect();
    found.sort();
    found.retain(|path| is_alive(path));
    Ok(found)
}

fn is_alive(path: &Path) -> bool {
    match UnixStream::connect(path) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            // Best effort: the socket has no listener any more.
            let _ = std::fs::remove_file(path);
            false
        }
        outcome => outcome.is_ok(),
    }
}
