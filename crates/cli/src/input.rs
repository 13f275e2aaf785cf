//! Reads whole files, each with a size limit: an endless device must not fill the memory.
use crate::failure::Failure;
use std::fs::File;
use std::io::{self, BufRead, Read};
use std::path::Path;

/// Size limit of files written by people, bytes: settings, scenarios, scripts, lists.
pub(crate) const WRITTEN_MAX: u64 = 16 << 20;

/// Size limit of files written by programs, bytes: records of a host with hundreds of thousands of
/// sockets.
pub(crate) const RECORDED_MAX: u64 = 1 << 30;

/// Reads all of a file of at most `max` bytes.
pub(crate) fn bytes(path: &Path, max: u64) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    let failure = |error: io::Error| Failure::file("read", path, &error);
    // One byte more reveals that there is more.
    File::open(path).map_err(failure)?.take(max + 1).read_to_end(&mut bytes).map_err(failure)?;
    if bytes.len() as u64 > max {
        return Err(too_long(path, max));
    }
    Ok(bytes)
}

/// Reads all of a text file of at most `max` bytes.
pub(crate) fn text(path: &Path, max: u64) -> Result<String, Failure> {
    let not_text = |_| Failure::file("read", path, &io::ErrorKind::InvalidData.into());
    String::from_utf8(bytes(path, max)?).map_err(not_text)
}

/// Reads the next line of at most `max` bytes, without its end; `None` at the end of the file.
#[cfg_attr(
    not(any(test, feature = "watch")),
    expect(dead_code, reason = "only `watch` reads a file by lines")
)]
pub(crate) fn line(path: &Path, file: &mut impl BufRead, max: u64) -> Result<Option<String>, Failure> {
    let mut line = String::new();
    let read = file.take(max + 1).read_line(&mut line);
    match read.map_err(|error| Failure::file("read", path, &error))? {
        0 => Ok(None),
        len if len as u64 > max => Err(too_long(path, max)),
        _ => Ok(Some(line.trim_end_matches(['\r', '\n']).to_owned())),
    }
}

fn too_long(path: &Path, max: u64) -> Failure {
    Failure::failed(format!("cannot use {}: it is larger than {} MiB", path.display(), max >> 20))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::BufReader;

    #[test]
    fn a_file_without_an_end_is_refused() {
        let zero = Path::new("/dev/zero");
        let said = "cannot use /dev/zero: it is larger than 16 MiB";
        assert_eq!(bytes(zero, WRITTEN_MAX).unwrap_err().message(), said);
        assert_eq!(text(zero, WRITTEN_MAX).unwrap_err().message(), said);
        let mut file = BufReader::new(File::open(zero).unwrap());
        assert_eq!(line(zero, &mut file, WRITTEN_MAX).unwrap_err().message(), said);
        assert_eq!(text(Path::new("/dev/null"), 0), Ok(String::new()));
    }

    #[test]
    fn lines_come_one_by_one() {
        let mut file = &b"one\r\n\ntwo"[..];
        let mut next = || line(Path::new("a"), &mut file, 5).unwrap();
        assert_eq!(next().as_deref(), Some("one"));
        assert_eq!(next().as_deref(), Some(""));
        assert_eq!(next().as_deref(), Some("two"));
        assert_eq!(next(), None);
    }
}
