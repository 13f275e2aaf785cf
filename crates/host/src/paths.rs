//! The path cache in a file, so that a restarted program has warm paths.
//!
//! A file is replaced as a whole: written beside its place under an unpredictable name, synced,
//! renamed. Cookies identify this client to servers, so only its owner may read the file.

use proto::{Paths, PathsError};
use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Largest file, bytes: 4096 paths take about a megabyte.
const SIZE_MAX: u64 = 64 << 20;

/// Error of reading a cache file. The file and the stack are unchanged.
#[derive(Debug)]
pub enum LoadError {
    /// Error of the operating system; [`NotFound`](io::ErrorKind::NotFound) on the first run.
    Io(io::Error),
    /// The content is invalid; the error names the line.
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

/// Reads a file written by [`save`]. Returns its age by the system's clock (zero if the clock went
/// back).
///
/// # Errors
/// See [`LoadError`].
pub fn load(path: &Path) -> Result<(Paths, Duration), LoadError> {
    let refused = |why| LoadError::Io(io::Error::new(io::ErrorKind::InvalidData, why));
    // Checked before it is opened: opening a pipe would wait for a writer.
    if !fs::metadata(path).map_err(LoadError::Io)?.is_file() {
        return Err(refused("it is not a regular file, but a folder, a device or a pipe"));
    }
    let file = fs::File::open(path).map_err(LoadError::Io)?;
    // One byte more reveals a larger file, independent of its reported length.
    let text = io::read_to_string(file.take(SIZE_MAX + 1)).map_err(LoadError::Io)?;
    if text.len() as u64 > SIZE_MAX {
        return Err(refused("it is larger than 64 MiB"));
    }
    let paths: Paths = text.parse().map_err(LoadError::Content)?;
    let elapsed = paths.saved.map_or(Duration::ZERO, |saved| since_1970().saturating_sub(saved));
    Ok((paths, elapsed))
}

/// Writes `paths`, as of now, to `path`. The old file is replaced only when everything is on disk.
///
/// # Errors
/// An error of the operating system. The old file is unchanged.
pub fn save(path: &Path, paths: &Paths) -> io::Result<()> {
    let text = Paths { saved: Some(since_1970()), ..paths.clone() }.to_string();
    let beside = beside(path);
    let file = create(&beside)?;
    let written = write(file, text.as_bytes()).and_then(|()| fs::rename(&beside, path));
    if written.is_err() {
        // Best effort: a partial file is useless.
        let _ = fs::remove_file(&beside);
    }
    written.and_then(|()| sync_folder(path))
}

/// Checks that [`save`] can write to `path`, to fail at the start instead of the end. Leaves
/// nothing behind.
///
/// # Errors
/// An error of the operating system.
pub fn check_writable(path: &Path) -> io::Result<()> {
    if fs::symlink_metadata(path).is_ok_and(|there| there.is_dir()) {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    let beside = beside(path);
    create(&beside)?;
    fs::remove_file(beside)
}

/// Creates a new file: with `O_EXCL`, links are not followed (open(2)).
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
        // A file system that does not sync folders.
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(()),
        synced => synced,
    }
}

/// Returns `.NAME.RANDOM.tmp` in the same folder: a rename works only within one file system.
fn beside(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    // Seeded with the operating system's randomness.
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

    /// Others may write to the folder: a link under the temporary name must not be followed.
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

    /// Files of others may be of any kind and length.
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
