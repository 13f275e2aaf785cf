//! The memory of paths in a file, so that a restart starts warm.
//!
//! A file is replaced as a whole: written beside its place, synced, renamed. Cookies identify this client to servers, so only its owner
//! may read it.

use proto::{Paths, PathsError};
use std::fmt;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Larger files are refused: 4096 paths take about a megabyte.
const SIZE_MAX: u64 = 64 << 20;

/// Why a file of paths could not be read. The file and the stack are as they were.
#[derive(Debug)]
pub enum LoadError {
    /// The operating system says no; [`NotFound`](io::ErrorKind::NotFound) on the first run.
    Io(io::Error),
    /// The file holds something else; it says on which line.
    Content(PathsError),
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LoadError::Io(error) => error.fmt(f),
            LoadError::Content(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for LoadError {}

/// Reads a file that [`save`] wrote, and how long ago that was by the system's clock (zero if the clock went back).
///
/// # Errors
/// See [`LoadError`].
pub fn load(path: &Path) -> Result<(Paths, Duration), LoadError> {
    let file = fs::File::open(path).map_err(LoadError::Io)?;
    if file.metadata().map_err(LoadError::Io)?.len() > SIZE_MAX {
        return Err(LoadError::Io(io::Error::new(io::ErrorKind::InvalidData, "it is larger than 64 MiB")));
    }
    let text = io::read_to_string(file).map_err(LoadError::Io)?;
    let paths: Paths = text.parse().map_err(LoadError::Content)?;
    let elapsed = paths.saved.map_or(Duration::ZERO, |saved| since_1970().saturating_sub(saved));
    Ok((paths, elapsed))
}

/// Writes `paths`, true now, to `path`; what was there is replaced only when all of it is on disk.
///
/// # Errors
/// What the operating system says. The file that was there is unharmed.
pub fn save(path: &Path, paths: &Paths) -> io::Result<()> {
    let text = Paths { saved: Some(since_1970()), ..paths.clone() }.to_string();
    let beside = beside(path);
    let written = write(&beside, text.as_bytes()).and_then(|()| fs::rename(&beside, path));
    if written.is_err() {
        // What is half written is of no use; that it cannot be removed either changes nothing.
        let _ = fs::remove_file(&beside);
    }
    written
}

fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// `.NAME.PID.tmp` in the same folder: a rename works only within one file system.
fn beside(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.{}.tmp", std::process::id()))
}

fn since_1970() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("firstbyte-paths-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    const LINE: &str = "path 10.0.0.1 10.0.0.2 used 0 mss 1460 age 0\n";

    #[test]
    fn a_file_is_replaced_as_a_whole_and_read_by_its_owner_only() {
        let folder = folder("whole");
        let file = folder.join("paths");
        let paths: Paths = format!("firstbyte paths 1\n{LINE}").parse().unwrap();
        for _ in 0..2 {
            save(&file, &paths).unwrap();
        }
        let (loaded, elapsed) = load(&file).unwrap();
        assert_eq!(loaded.paths, paths.paths);
        assert!(elapsed < Duration::from_secs(100));
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1, "nothing is left beside it");
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn what_cannot_be_written_leaves_the_old_file() {
        let folder = folder("old");
        let file = folder.join("paths");
        fs::create_dir(&file).unwrap();
        fs::write(file.join("something"), "").unwrap();
        assert!(save(&file, &Paths::default()).is_err(), "a folder is in the way");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
        assert!(save(&folder.join("no/such/folder"), &Paths::default()).is_err());
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_bad_file_is_named_by_its_line_and_stays() {
        let folder = folder("bad");
        let file = folder.join("paths");
        let text = format!("firstbyte paths 1\n{LINE}path 10.0.0.1 10.0.0.3 mss lots\n");
        fs::write(&file, &text).unwrap();
        let error = load(&file).unwrap_err().to_string();
        assert!(error.starts_with("line 3: mss: `lots`"), "{error}");
        assert_eq!(fs::read_to_string(&file).unwrap(), text);
        assert!(
            matches!(load(&folder.join("none")), Err(LoadError::Io(error)) if error.kind() == io::ErrorKind::NotFound)
        );
        fs::remove_dir_all(folder).unwrap();
    }
}
