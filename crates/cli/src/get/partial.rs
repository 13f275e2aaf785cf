//! Downloads that continue (`--continue`): FILE.part has the bytes so far, and FILE.part.id the
//! validator of their version, for `If-Range` (RFC 9110 §13.1.5).
use super::request::Rest;
use crate::failure::Failure;
use crate::output;
use hyper::StatusCode;
use hyper::header::{CONTENT_RANGE, DATE, ETAG, HeaderMap, HeaderValue, LAST_MODIFIED};
use hyper::http::response::Parts;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A file in progress.
pub(crate) struct Partial {
    path: PathBuf,
    part: PathBuf,
    id: PathBuf,
    file: File,
    /// Bytes in the file.
    len: u64,
    /// The part that the request asks for.
    rest: Option<Rest>,
    /// True if the file has all bytes.
    is_complete: bool,
}

/// Longest validator, bytes.
const ID_MAX: u64 = 4096;

impl Partial {
    /// Opens the part of `path`, or begins one. A part without a validator begins again.
    pub(crate) fn open(path: &Path) -> Result<Partial, Failure> {
        if path.is_dir() {
            return Err(Failure::file("write", path, &io::ErrorKind::IsADirectory.into()));
        }
        let beside = |end: &str| {
            let mut name = OsString::from(path);
            name.push(end);
            PathBuf::from(name)
        };
        let (part, id) = (beside(".part"), beside(".part.id"));
        let failure = |error| Failure::file("write", &part, &error);
        let file = File::options().read(true).append(true).create(true).open(&part).map_err(failure)?;
        let len = file.metadata().map_err(failure)?.len();
        let validator = crate::input::text(&id, ID_MAX).ok();
        let validator = validator.and_then(|text| HeaderValue::try_from(text.trim()).ok());
        let rest = validator
            .filter(|validator| len > 0 && !validator.is_empty())
            .map(|validator| Rest { from: len, validator });
        Ok(Partial { path: path.to_owned(), part, id, file, len, rest, is_complete: false })
    }

    pub(crate) fn rest(&self) -> Option<&Rest> {
        self.rest.as_ref()
    }

    /// Prepares the file for the page of this reply. Returns the number of bytes before it, or
    /// `None` if the page is not a part of the file.
    pub(crate) fn begin(&mut self, head: &Parts) -> Result<Option<u64>, Failure> {
        let range = head.headers.get(CONTENT_RANGE).and_then(|value| value.to_str().ok());
        match head.status {
            StatusCode::PARTIAL_CONTENT => {
                let is_rest = self.rest.is_some() && range.and_then(first_byte) == Some(self.len);
                is_rest.then_some(Some(self.len)).ok_or_else(|| {
                    Failure::failed(format!(
                        "cannot continue {}: the server sent another part, `Content-Range: {}`; delete \
                         {} and start again",
                        self.path.display(),
                        range.unwrap_or_default(),
                        self.part.display(),
                    ))
                })
            }
            StatusCode::RANGE_NOT_SATISFIABLE if range.and_then(whole_len) == Some(self.len) => {
                self.is_complete = true;
                Ok(None)
            }
            status if status.is_success() => self.restart(&head.headers).map(|()| Some(0)),
            _ => Ok(None),
        }
    }

    fn restart(&mut self, headers: &HeaderMap) -> Result<(), Failure> {
        let emptied = self.file.set_len(0).and_then(|()| self.file.seek(SeekFrom::Start(0)));
        emptied.map_err(|error| Failure::file("write", &self.part, &error))?;
        self.len = 0;
        match validator(headers) {
            Some(validator) => output::write_whole(&self.id, validator.as_bytes()),
            None => {
                // There may be none.
                let _ = fs::remove_file(&self.id);
                Ok(())
            }
        }
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.file.write_all(bytes).map_err(|error| Failure::file("write", &self.part, &error))?;
        self.len += bytes.len() as u64;
        Ok(())
    }

    /// Gives the file its name, if a page of it has arrived.
    pub(crate) fn complete(&mut self) -> Result<(), Failure> {
        let named = self.file.sync_all().and_then(|()| fs::rename(&self.part, &self.path));
        named.map_err(|error| Failure::file("write", &self.path, &error))?;
        // There may be none.
        let _ = fs::remove_file(&self.id);
        Ok(())
    }

    /// True if the server says that nothing is missing.
    pub(crate) fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// Tells what was kept. Removes an empty part.
    pub(crate) fn advice(&self) -> Option<String> {
        if self.len == 0 {
            let _ = (fs::remove_file(&self.part), fs::remove_file(&self.id));
            return None;
        }
        Some(format!("kept {} bytes in {}; the same command continues there", self.len, self.part.display()))
    }
}

/// Returns the validator of a reply for `If-Range`: a strong ETag, or a date that is at least a
/// second before the reply (RFC 9110 §8.8.2.2).
fn validator(headers: &HeaderMap) -> Option<HeaderValue> {
    if let Some(etag) = headers.get(ETAG) {
        return etag.as_bytes().starts_with(b"\"").then(|| etag.clone());
    }
    let date = |name| httpdate::parse_http_date(headers.get(name)?.to_str().ok()?).ok();
    let is_strong = date(DATE)?.duration_since(date(LAST_MODIFIED)?).ok()? >= Duration::from_secs(1);
    headers.get(LAST_MODIFIED).filter(|_| is_strong).cloned()
}

/// Returns the first byte of `bytes 5-9/10`.
fn first_byte(range: &str) -> Option<u64> {
    range.strip_prefix("bytes ")?.split_once('-')?.0.parse().ok()
}

/// Returns the length of the whole file, of `bytes */10`.
fn whole_len(range: &str) -> Option<u64> {
    range.strip_prefix("bytes */")?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::Response;

    fn head(status: u16, fields: &[(&str, &str)]) -> Parts {
        let builder = fields
            .iter()
            .fold(Response::builder().status(status), |builder, (name, value)| builder.header(*name, *value));
        builder.body(()).unwrap().into_parts().0
    }

    #[test]
    fn a_part_is_kept_continued_and_named_at_its_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let mut partial = Partial::open(&path).unwrap();
        assert_eq!(partial.rest(), None);
        assert_eq!(partial.begin(&head(200, &[("etag", "\"v1\"")])), Ok(Some(0)));
        partial.write(b"hel").unwrap();
        assert!(partial.advice().unwrap().starts_with("kept 3 bytes in "));
        drop(partial);

        let mut partial = Partial::open(&path).unwrap();
        let rest = Rest { from: 3, validator: HeaderValue::from_static("\"v1\"") };
        assert_eq!(partial.rest(), Some(&rest));
        assert_eq!(partial.begin(&head(404, &[])), Ok(None));
        assert!(partial.begin(&head(206, &[("content-range", "bytes 2-4/5")])).is_err());
        assert_eq!(partial.begin(&head(206, &[("content-range", "bytes 3-4/5")])), Ok(Some(3)));
        partial.write(b"lo").unwrap();
        partial.complete().unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "hello");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn another_version_begins_anew() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let mut partial = Partial::open(&path).unwrap();
        partial.begin(&head(200, &[("etag", "\"v1\"")])).unwrap();
        partial.write(b"old old").unwrap();
        let mut partial = Partial::open(&path).unwrap();
        assert_eq!(partial.begin(&head(200, &[("etag", "W/\"v2\"")])), Ok(Some(0)));
        partial.write(b"new").unwrap();
        assert_eq!(fs::read_to_string(folder.path().join("file.part")).unwrap(), "new");
        // A weak ETag does not tell versions apart byte by byte.
        assert_eq!(Partial::open(&path).unwrap().rest(), None);
    }

    #[test]
    fn a_file_that_lacks_nothing_is_complete() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let mut partial = Partial::open(&path).unwrap();
        partial.begin(&head(200, &[("etag", "\"v1\"")])).unwrap();
        partial.write(b"all").unwrap();
        let mut partial = Partial::open(&path).unwrap();
        assert_eq!(partial.begin(&head(416, &[("content-range", "bytes */4")])), Ok(None));
        assert!(!partial.is_complete());
        assert_eq!(partial.begin(&head(416, &[("content-range", "bytes */3")])), Ok(None));
        assert!(partial.is_complete());
    }

    #[test]
    fn a_date_is_a_validator_if_it_is_not_too_recent() {
        let of = |etag: Option<&str>, date: &str| {
            let modified = "Sun, 06 Nov 1994 08:49:37 GMT";
            let mut fields = vec![("last-modified", modified), ("date", date)];
            fields.extend(etag.map(|etag| ("etag", etag)));
            validator(&head(200, &fields).headers).map(|value| value.to_str().unwrap().to_owned())
        };
        assert_eq!(of(Some("\"a\""), "x").as_deref(), Some("\"a\""));
        assert_eq!(of(None, "Sun, 06 Nov 1994 08:49:37 GMT"), None);
        assert_eq!(
            of(None, "Sun, 06 Nov 1994 08:49:38 GMT").as_deref(),
            Some("Sun, 06 Nov 1994 08:49:37 GMT")
        );
    }
}
