//! Files that hold secrets: keys, passwords, an agent's state.
use crate::failure::{Failure, warn};
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Access of the group and of others.
const OTHERS: u32 = 0o077;

/// Reads a secret of at most `len_max` bytes. Warns if others can read the file; `what` names the
/// secret, as in "the key".
pub(crate) fn read(path: &Path, len_max: u64, what: &str) -> Result<String, Failure> {
    let (text, mode) = read_with_mode(path, len_max, what)?;
    warn_if_shared(path, mode, what);
    Ok(text)
}

/// Reads a secret that was read before, without another warning.
pub(crate) fn read_again(path: &Path, len_max: u64, what: &str) -> Result<String, Failure> {
    read_with_mode(path, len_max, what).map(|(text, _)| text)
}

fn read_with_mode(path: &Path, len_max: u64, what: &str) -> Result<(String, u32), Failure> {
    let failure = |error: std::io::Error| Failure::file("read", path, &error);
    let file = File::open(path).map_err(failure)?;
    let mode = file.metadata().map_err(failure)?.permissions().mode();
    let mut text = String::new();
    // One byte more shows that there is more.
    let read = file.take(len_max + 1).read_to_string(&mut text).map_err(failure)?;
    if read as u64 > len_max {
        return Err(Failure::failed(format!(
            "cannot use {}: it is longer than {len_max} bytes, and no file with {what} is",
            path.display()
        )));
    }
    Ok((text, mode))
}

/// Warns if this mode lets others read the file.
pub(crate) fn warn_if_shared(path: &Path, mode: u32, what: &str) {
    if mode & OTHERS != 0 {
        warn(format!("others can read {what} in {0}: chmod 600 {0}", path.display()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_has_a_bound() {
        let failure = read(Path::new("/dev/zero"), 100, "the key").unwrap_err();
        assert_eq!(
            failure.message(),
            "cannot use /dev/zero: it is longer than 100 bytes, and no file with the key is"
        );
        assert!(read(Path::new("/nonexistent"), 100, "the key").is_err());
    }
}
