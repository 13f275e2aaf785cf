//! Files that hold secrets: keys, passwords, an agent's state.
use crate::failure::{Failure, warn};
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Access rights of the group and of others.
const OTHERS: u32 = 0o077;

/// Reads a secret of at most `len_max` bytes; `what` names it, as in "the key".
pub(crate) fn read(path: &Path, len_max: u64, what: &str) -> Result<String, Failure> {
    let failure = |error: std::io::Error| Failure::file("read", path, &error);
    let mut text = String::new();
    // One byte more reveals that there is more.
    let mut file = File::open(path).map_err(failure)?.take(len_max + 1);
    let read = file.read_to_string(&mut text).map_err(failure)?;
    if read as u64 > len_max {
        return Err(Failure::failed(format!(
            "cannot use {}: it is longer than {len_max} bytes, too long for {what}",
            path.display()
        )));
    }
    Ok(text)
}

/// Warns if others can read the file with a secret.
pub(crate) fn warn_if_shared(path: &Path, what: &str) {
    if fs::metadata(path).is_ok_and(|there| there.permissions().mode() & OTHERS != 0) {
        warn(format!("other users can read {what} in {0}; run `chmod 600 {0}`", path.display()));
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
            "cannot use /dev/zero: it is longer than 100 bytes, too long for the key"
        );
        assert!(read(Path::new("/nonexistent"), 100, "the key").is_err());
    }
}
