//! Writes files: a file is replaced whole or not at all.
//!
//! - [`write_whole`] and [`write_with`] write a finished document;
//! - [`write_secret`] writes one that only its owner can read;
//! - [`check_writable`] checks a path before the work begins;
//! - [`OutputFile`] is a file that grows while the command runs.
//!
//! Everything is first written to a temporary file in the same folder, then renamed. If the command
//! is killed or the disk is full, the old file is unchanged. A symbolic link is replaced and never
//! followed. A device, a pipe or a file below /dev or /proc cannot be replaced, and is written in
//! place.
use crate::failure::Failure;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// Access for everybody that the umask of the process allows, the default of open(2).
const USUAL_MODE: u32 = 0o666;

/// Access for the owner only.
const SECRET_MODE: u32 = 0o600;

/// A file that appears under its name when [`place`](OutputFile::place) is called.
///
/// Earlier writes go to a temporary file, later writes to the placed file. Dropping it before it is
/// placed removes the temporary file.
pub(crate) struct OutputFile {
    path: PathBuf,
    state: State,
}

enum State {
    Beside(NamedTempFile),
    Placed(File),
}

impl OutputFile {
    /// Creates the temporary file for `path`. Keeps the access rights of an existing file.
    pub(crate) fn create(path: &Path) -> io::Result<OutputFile> {
        let there = fs::symlink_metadata(path).ok().filter(fs::Metadata::is_file);
        let mode = there.map_or(USUAL_MODE, |there| there.permissions().mode() & 0o777);
        OutputFile::with_mode(path, mode)
    }

    fn with_mode(path: &Path, mode: u32) -> io::Result<OutputFile> {
        let path = path.to_owned();
        if is_written_in_place(&path) {
            // Without O_CREAT: a missing device must not become a file.
            let file = OpenOptions::new().write(true).custom_flags(no_ctty()).open(&path)?;
            return Ok(OutputFile { path, state: State::Placed(file) });
        }
        if path.is_dir() && !path.is_symlink() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        let name = path.file_name().ok_or(io::ErrorKind::InvalidFilename)?.to_owned();
        let mut prefix = std::ffi::OsString::from(".");
        prefix.push(name);
        // The original error names the temporary file, which means nothing to a user.
        let mut code = None;
        let create = |path: &Path| {
            let created = OpenOptions::new().write(true).create_new(true).mode(mode).open(path);
            created.inspect_err(|error| code = error.raw_os_error())
        };
        let beside =
            tempfile::Builder::new().prefix(&prefix).suffix(".tmp").make_in(folder_of(&path), create);
        let beside = beside.map_err(|error| code.map_or(error, io::Error::from_raw_os_error))?;
        Ok(OutputFile { path, state: State::Beside(beside) })
    }

    /// Returns another handle to the same file, for a writer that continues after the file is
    /// placed.
    pub(crate) fn handle(&self) -> io::Result<File> {
        match &self.state {
            State::Beside(beside) => beside.as_file().try_clone(),
            State::Placed(file) => file.try_clone(),
        }
    }

    /// True if the file already has its name, like a file that is written in place.
    pub(crate) fn is_placed(&self) -> bool {
        matches!(self.state, State::Placed(_))
    }

    /// Renames the file once everything written so far is on disk. Later calls do nothing.
    pub(crate) fn place(&mut self) -> io::Result<()> {
        let State::Beside(beside) = &self.state else { return Ok(()) };
        beside.as_file().sync_all()?;
        let file = self.handle()?;
        if let State::Beside(beside) = std::mem::replace(&mut self.state, State::Placed(file)) {
            beside.persist(&self.path).map_err(|failed| failed.error)?;
        }
        Ok(())
    }
}

impl Write for OutputFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.state {
            State::Beside(file) => file.write(bytes),
            State::Placed(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.state {
            State::Beside(file) => file.flush(),
            State::Placed(file) => file.flush(),
        }
    }
}

/// Writes `contents` to `path`.
pub(crate) fn write_whole(path: &Path, contents: impl AsRef<[u8]>) -> Result<(), Failure> {
    write_with(path, |out| out.write_all(contents.as_ref()))
}

/// Writes the output of `write` to `path`. If `write` fails, the old file stays.
pub(crate) fn write_with(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<OutputFile>) -> io::Result<()>,
) -> Result<(), Failure> {
    let written = OutputFile::create(path).and_then(|file| finish(file, write));
    written.map_err(|error| Failure::file("write", path, &error))
}

/// Writes `text` to `path`, readable only by its owner from the start.
pub(crate) fn write_secret(path: &Path, text: &str) -> Result<(), Failure> {
    let written = OutputFile::with_mode(path, SECRET_MODE)
        .and_then(|file| finish(file, |out| out.write_all(text.as_bytes())));
    written.map_err(|error| Failure::file("write", path, &error))
}

/// Checks that `path` can be written, without changing it.
#[cfg(feature = "fleet")]
pub(crate) fn check_writable(path: &Path) -> Result<(), Failure> {
    OutputFile::create(path).map(drop).map_err(|error| Failure::file("write", path, &error))
}

fn finish(
    file: OutputFile,
    write: impl FnOnce(&mut BufWriter<OutputFile>) -> io::Result<()>,
) -> io::Result<()> {
    let mut out = BufWriter::new(file);
    write(&mut out)?;
    out.flush()?;
    out.get_mut().place()
}

/// True if a file cannot be renamed to `path`: a device, a pipe, or an entry of /dev or /proc.
/// /dev/stdout, for example, leads to the file that standard output is.
fn is_written_in_place(path: &Path) -> bool {
    let is_special = fs::metadata(path).is_ok_and(|there| !there.is_file() && !there.is_dir());
    let folder = fs::canonicalize(folder_of(path)).unwrap_or_default();
    is_special || folder.starts_with("/dev") && !folder.starts_with("/dev/shm") || folder.starts_with("/proc")
}

/// Returns the folder of `path`.
fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Prevents a terminal that is opened from becoming the controlling terminal.
fn no_ctty() -> i32 {
    i32::try_from(rustix::fs::OFlags::NOCTTY.bits()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::Permissions;
    use std::os::unix::fs::symlink;

    /// Returns the names in a folder, sorted.
    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_document_that_cannot_be_finished_leaves_the_old_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("page.html");
        write_whole(&path, "old").unwrap();
        let failed = write_with(&path, |out| {
            out.write_all(&[b'x'; 100_000])?;
            Err(io::ErrorKind::StorageFull.into())
        });
        assert_eq!(failed, Err(Failure::file("write", &path, &io::ErrorKind::StorageFull.into())));
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        assert_eq!(names(folder.path()), ["page.html"], "nothing is left behind");
    }

    #[test]
    fn a_link_is_replaced_and_what_it_leads_to_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let (victim, link) = (folder.path().join("victim"), folder.path().join("link"));
        fs::write(&victim, "precious").unwrap();
        symlink(&victim, &link).unwrap();
        write_whole(&link, "new").unwrap();
        assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
        assert!(fs::symlink_metadata(&link).unwrap().is_file());
        assert_eq!(fs::read_to_string(&link).unwrap(), "new");
    }

    #[test]
    fn access_rights_are_kept_and_a_secret_is_its_owners() {
        let folder = tempfile::tempdir().unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let path = folder.path().join("a");
        fs::write(&path, "").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
        write_whole(&path, "x").unwrap();
        assert_eq!(mode(&path), 0o640);
        write_secret(&path, "key").unwrap();
        assert_eq!(mode(&path), 0o600);
    }

    #[test]
    fn a_file_that_grows_replaces_the_old_one_when_it_is_placed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("series");
        fs::write(&path, "old").unwrap();
        let mut file = OutputFile::create(&path).unwrap();
        file.write_all(b"one\n").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        file.place().unwrap();
        file.write_all(b"two\n").unwrap();
        file.place().unwrap();
        drop(file);
        assert_eq!(fs::read_to_string(&path).unwrap(), "one\ntwo\n");
        assert_eq!(names(folder.path()), ["series"]);
    }

    #[test]
    fn devices_are_written_in_place_and_folders_refused() {
        write_whole(Path::new("/dev/null"), "x").unwrap();
        assert!(fs::metadata("/dev/null").is_ok_and(|there| !there.is_file()));
        let folder = tempfile::tempdir().unwrap();
        let refused = Failure::file("write", folder.path(), &io::ErrorKind::IsADirectory.into());
        assert_eq!(write_whole(folder.path(), "x"), Err(refused));
        let missing = Path::new("/nonexistent/x");
        let refused = Failure::file("write", missing, &io::Error::from_raw_os_error(2));
        assert_eq!(write_whole(missing, "x"), Err(refused));
        assert!(write_whole(Path::new("/dev/firstbyte-is-no-device"), "x").is_err());
    }
}
