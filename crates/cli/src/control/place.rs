//! Where control sockets lie: one folder of the user's, a socket for each stack that runs.
use std::ffi::OsStr;
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

/// `$XDG_RUNTIME_DIR/firstbyte`, or /run/firstbyte where there is no such variable (as for root).
pub(super) fn folder() -> PathBuf {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").filter(|value| !value.is_empty());
    Path::new(runtime.as_deref().unwrap_or(OsStr::new("/run"))).join("firstbyte")
}

/// The folder, made for nobody else if it is not there, and the name of a socket that no other process has.
pub(super) fn of_this_process(device: &str) -> io::Result<PathBuf> {
    let folder = folder();
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
    Ok(folder.join(format!("{device}-{}.sock", std::process::id())))
}

/// Sockets of stacks that run. Those that a process left behind when it was killed are removed.
///
/// # Errors
/// The folder is there and cannot be read.
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
            // Nobody listens any more; whether the file can go is nobody's business.
            let _ = std::fs::remove_file(path);
            false
        }
        outcome => outcome.is_ok(),
    }
}
