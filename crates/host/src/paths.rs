//! The memory of paths in a file, so that a restart starts warm.
//!
//! A file is replaced as a whole: written beside its place under a name that nobody can foresee, synced, renamed. Cookies identify this client to servers, so only its owner
//! may read it.

use proto::{Paths, PathsError};
use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, Read, Write};
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
    let refused = |why| LoadError::Io(io::Error::new(io::ErrorKind::InvalidData, why));
    // Before it is opened: that of a pipe would wait for who writes.
    if !fs::metadata(path).map_err(LoadError::Io)?.is_file() {
        return Err(refused("it is no file with contents of its own: a folder, a device or a pipe"));
    }
    let file = fs::File::open(path).map_err(LoadError::Io)?;
    // One more shows that there is more, whatever the file's length is said to be.
    let text = io::read_to_string(file.take(SIZE_MAX + 1)).map_err(LoadError::Io)?;
    if text.len() as u64 > SIZE_MAX {
        return Err(refused("it is larger than 64 MiB"));
    }
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
    let file = create(&beside)?;
    let written = write(file, text.as_bytes()).and_then(|()| fs::rename(&beside, path));
    if written.is_err() {
        // What is half written is of no use; that it cannot be removed either changes nothing.
        let _ = fs::remove_file(&beside);
    }
    written.and_then(|()| sync_folder(path))
}

/// Could [`save`] write to `path` now? Whoever saves at the end asks at the start. Nothing is left behind.
///
/// # Errors
/// What the operating system says.
pub fn check_writable(path: &Path) -> io::Result<()> {
    if fs::symlink_metadata(path).is_ok_and(|there| there.is_dir()) {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    let beside = beside(path);
    create(&beside)?;
    fs::remove_file(beside)
}

/// A file that was not there: with `O_EXCL` no link is followed either (open(2)).
fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

fn write(mut file: File, bytes: &[u8]) -> io::Result<()> {
    file.write_all(bytes)?;
    file.sync_all()
}

/// Makes the new name durable.
fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match File::open(folder)?.sync_all() {
        // A file system that syncs no folders.
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(()),
        synced => synced,
    }
}

/// `.NAME.RANDOM.tmp` in the same folder: a rename works only within one file system.
fn beside(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    // Keyed by the operating system's randomness.
    let random = RandomState::new().build_hasher().finish();
    path.with_file_name(format!(".{name}.{random:016x}.tmp"))
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

    /// A folder that others may write to: a link under the temporary name must not be followed.
    #[test]
    fn no_link_is_followed() {
        let folder = folder("link");
        let file = folder.join("paths");
        let victim = folder.join("victim");
        fs::write(&victim, "precious").unwrap();
        std::os::unix::fs::symlink(&victim, folder.join(format!(".paths.{}.tmp", std::process::id())))
            .unwrap();
        std::os::unix::fs::symlink(&victim, &file).unwrap();
        save(&file, &Paths::default()).unwrap();
        assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
        assert!(fs::symlink_metadata(&file).unwrap().is_file(), "the link is replaced");
        let link = folder.join("link");
        std::os::unix::fs::symlink(&victim, &link).unwrap();
        assert_eq!(create(&link).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_ne!(beside(&file), beside(&file));
        fs::remove_dir_all(folder).unwrap();
    }

    /// Files that others made may be of any kind and length.
    #[test]
    fn what_has_no_end_is_not_read() {
        let folder = folder("endless");
        let link = folder.join("link");
        std::os::unix::fs::symlink("/dev/zero", &link).unwrap();
        let large = folder.join("large");
        File::create(&large).unwrap().set_len(SIZE_MAX + 1).unwrap();
        for (path, said) in [(&link, "a device or a pipe"), (&folder, "a folder"), (&large, "64 MiB")] {
            let error = load(path).unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
        }
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn what_cannot_be_written_is_known_before() {
        let folder = folder("before");
        check_writable(&folder.join("paths")).unwrap();
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0, "nothing is left");
        assert!(check_writable(&folder).is_err(), "a folder is in the way");
        assert!(check_writable(&folder.join("no/such/folder")).is_err());
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
