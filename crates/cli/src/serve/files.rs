//! Answers from the files of a folder: content types, ETag and conditions (RFC 9110 §13), one range (§14).
//!
//! Only regular files under the folder are served, after symbolic links have been followed; no listings. A small file is read at
//! once, so that it can ride on the SYN-ACK; a larger one by a helper thread.
use super::body::Body;
use super::page::text;
use crate::failure::Failure;
use hyper::header::{
    ACCEPT_RANGES, CONTENT_RANGE, CONTENT_TYPE, ETAG, HeaderMap, HeaderName, HeaderValue, IF_MATCH,
    IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE, IF_UNMODIFIED_SINCE, LAST_MODIFIED, LOCATION, RANGE,
};
use hyper::{Method, Request, Response, StatusCode, Uri};
use std::ffi::OsStr;
use std::fs::{File, Metadata};
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// A folder that is served.
pub(crate) struct Root {
    /// Without symbolic links.
    path: PathBuf,
}

/// Files up to this length are read at once, bytes.
const SMALL: u64 = 64 * 1024;

impl Root {
    pub(crate) fn open(path: &Path) -> Result<Root, Failure> {
        let failure = |error: io::Error| Failure::failed(format!("--root {}: {error}", path.display()));
        let path = path.canonicalize().map_err(failure)?;
        std::fs::read_dir(&path).map_err(failure)?;
        Ok(Root { path })
    }

    /// The answer to a GET, or to a HEAD, whose body is left out later.
    pub(crate) fn answer<T>(&self, request: &Request<T>) -> Response<Body> {
        match self.find(request.uri().path()) {
            Ok(Found::File(path)) => send(&path, request).unwrap_or_else(|error| refusal(&error)),
            Ok(Found::Folder) => {
                let mut reply = text(StatusCode::MOVED_PERMANENTLY, "This is a folder.\n");
                if let Ok(location) = HeaderValue::try_from(with_slash(request.uri())) {
                    reply.headers_mut().insert(LOCATION, location);
                }
                reply
            }
            Ok(Found::NoIndex) => {
                text(StatusCode::NOT_FOUND, "This folder has no index.html; ask for one of its files.\n")
            }
            Err(error) => refusal(&error),
        }
    }

    fn find(&self, uri_path: &str) -> io::Result<Found> {
        let decoded = percent_decoded(uri_path).ok_or(io::ErrorKind::NotFound)?;
        let mut path = self.path.clone();
        for part in decoded.split(|byte| *byte == b'/') {
            match part {
                b"" | b"." => {}
                b".." => return Err(io::ErrorKind::NotFound.into()),
                name => path.push(OsStr::from_bytes(name)),
            }
        }
        let mut path = path.canonicalize()?;
        if path.is_dir() {
            if !decoded.ends_with(b"/") {
                return self.inside(path).map(|_| Found::Folder);
            }
            path = match self.inside(path)?.join("index.html").canonicalize() {
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Found::NoIndex),
                found => found?,
            };
        } else if decoded.ends_with(b"/") {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        self.inside(path).map(Found::File)
    }

    /// `path` if it is under the folder, else it is not found.
    fn inside(&self, path: PathBuf) -> io::Result<PathBuf> {
        if path.starts_with(&self.path) { Ok(path) } else { Err(io::ErrorKind::NotFound.into()) }
    }
}

enum Found {
    File(PathBuf),
    /// A folder whose name lacks the slash at its end.
    Folder,
    /// A folder with nothing to show of itself.
    NoIndex,
}

/// The path of a folder with the slash that it lacked, as a reference that stays on this host: one that begins with `//` names
/// another (RFC 3986 §4.2), and browsers read `\` as `/`.
fn with_slash(uri: &Uri) -> String {
    let path = uri.path().trim_start_matches('/').replace('\\', "%5C");
    let query = uri.query().map_or(String::new(), |query| format!("?{query}"));
    format!("/{path}/{query}")
}

fn refusal(error: &io::Error) -> Response<Body> {
    match error.kind() {
        io::ErrorKind::PermissionDenied => text(StatusCode::FORBIDDEN, "This file may not be read.\n"),
        io::ErrorKind::NotFound
        | io::ErrorKind::NotADirectory
        | io::ErrorKind::InvalidFilename
        | io::ErrorKind::InvalidInput => text(StatusCode::NOT_FOUND, "There is no such file here.\n"),
        _ => text(StatusCode::INTERNAL_SERVER_ERROR, "This file cannot be read.\n"),
    }
}

/// `None`: a `%` without two digits, or a NUL.
fn percent_decoded(text: &str) -> Option<Vec<u8>> {
    let mut bytes = text.bytes();
    let mut decoded = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        let byte = match byte {
            b'%' => {
                let mut digit = || bytes.next().and_then(|digit| char::from(digit).to_digit(16));
                let (high, low) = (digit()?, digit()?);
                (high * 16 + low) as u8
            }
            byte => byte,
        };
        if byte == 0 {
            return None;
        }
        decoded.push(byte);
    }
    Some(decoded)
}

fn send<T>(path: &Path, request: &Request<T>) -> io::Result<Response<Body>> {
    // What is no regular file may block when opened.
    if !std::fs::metadata(path)?.is_file() {
        return Err(io::ErrorKind::NotFound.into());
    }
    let file = File::open(path)?;
    let metadata = file.metadata()?;
    let version = Version::of(&metadata);
    let (status, part) = match choose(&version, metadata.len(), request.method(), request.headers()) {
        Choice::PreconditionFailed => (StatusCode::PRECONDITION_FAILED, 0..0),
        Choice::NotModified => (StatusCode::NOT_MODIFIED, 0..0),
        Choice::Unsatisfiable => (StatusCode::RANGE_NOT_SATISFIABLE, 0..0),
        Choice::Whole => (StatusCode::OK, 0..metadata.len()),
        Choice::Part(part) => (StatusCode::PARTIAL_CONTENT, part),
    };
    let mut reply = Response::new(read(file, &part)?);
    *reply.status_mut() = status;
    let mut put = |name: HeaderName, value: String| {
        if let Ok(value) = HeaderValue::try_from(value) {
            reply.headers_mut().insert(name, value);
        }
    };
    put(ETAG, version.etag);
    put(LAST_MODIFIED, httpdate::fmt_http_date(version.modified));
    put(ACCEPT_RANGES, "bytes".to_owned());
    match status {
        StatusCode::PARTIAL_CONTENT => {
            put(CONTENT_RANGE, format!("bytes {}-{}/{}", part.start, part.end - 1, metadata.len()));
        }
        StatusCode::RANGE_NOT_SATISFIABLE => put(CONTENT_RANGE, format!("bytes */{}", metadata.len())),
        _ => {}
    }
    if status.is_success() {
        put(CONTENT_TYPE, content_type(path).to_owned());
    }
    Ok(reply)
}

fn read(mut file: File, part: &Range<u64>) -> io::Result<Body> {
    let len = part.end - part.start;
    if part.start > 0 {
        file.seek(SeekFrom::Start(part.start))?;
    }
    if len > SMALL {
        return Ok(Body::file(file, len));
    }
    let mut bytes = Vec::with_capacity(len as usize);
    file.take(len).read_to_end(&mut bytes)?;
    Ok(Body::whole(bytes.into()))
}

/// What tells one content of a file from another.
struct Version {
    etag: String,
    /// In whole seconds, as HTTP's dates.
    modified: SystemTime,
}

impl Version {
    fn of(metadata: &Metadata) -> Version {
        let since = metadata
            .modified()
            .ok()
            .and_then(|modified| modified.duration_since(SystemTime::UNIX_EPOCH).ok())
            .unwrap_or_default();
        let seconds = std::time::Duration::from_secs(since.as_secs());
        Version {
            etag: format!("\"{:x}-{:x}\"", metadata.len(), since.as_nanos()),
            modified: SystemTime::UNIX_EPOCH + seconds,
        }
    }

    /// Is it named by the ETags of these fields? Strong comparison knows no weak one (RFC 9110 §8.8.3.2).
    fn is_in(&self, headers: &HeaderMap, name: HeaderName, comparison: Comparison) -> bool {
        let is_own = |etag: &[u8]| match comparison {
            Comparison::Strong => etag == self.etag.as_bytes(),
            Comparison::Weak => etag.strip_prefix(b"W/").unwrap_or(etag) == self.etag.as_bytes(),
        };
        let fields = headers.get_all(name).iter().map(HeaderValue::as_bytes);
        let mut etags = fields.flat_map(|list| list.split(|byte| *byte == b',')).map(<[u8]>::trim_ascii);
        etags.any(|etag| etag == b"*" || is_own(etag))
    }
}

#[derive(Clone, Copy)]
enum Comparison {
    Strong,
    Weak,
}

#[derive(Debug, PartialEq, Eq)]
enum Choice {
    PreconditionFailed,
    NotModified,
    Unsatisfiable,
    Whole,
    Part(Range<u64>),
}

/// RFC 9110 §13.2.2, for GET and HEAD; a range is for GET alone (§14.2).
fn choose(version: &Version, len: u64, method: &Method, headers: &HeaderMap) -> Choice {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let date = |name| text(name).and_then(|value| httpdate::parse_http_date(value).ok());
    let is_expected = match headers.contains_key(IF_MATCH) {
        true => version.is_in(headers, IF_MATCH, Comparison::Strong),
        false => date(IF_UNMODIFIED_SINCE).is_none_or(|since| version.modified <= since),
    };
    if !is_expected {
        return Choice::PreconditionFailed;
    }
    let is_fresh = match headers.contains_key(IF_NONE_MATCH) {
        true => version.is_in(headers, IF_NONE_MATCH, Comparison::Weak),
        false => date(IF_MODIFIED_SINCE).is_some_and(|since| version.modified <= since),
    };
    if is_fresh {
        return Choice::NotModified;
    }
    let is_same = match text(IF_RANGE) {
        Some(etag) if etag.starts_with('"') => etag == version.etag,
        Some(_) => date(IF_RANGE) == Some(version.modified),
        None => true,
    };
    match text(RANGE).filter(|_| is_same && method == Method::GET) {
        Some(range) => part_of(len, range),
        None => Choice::Whole,
    }
}

/// One range of bytes. What is no such range, or is several, is answered with the whole, as RFC 9110 §14.2 allows.
fn part_of(len: u64, range: &str) -> Choice {
    let Some((first, last)) = range.strip_prefix("bytes=").and_then(|range| range.split_once('-')) else {
        return Choice::Whole;
    };
    // `parse` would take a sign.
    let number =
        |text: &str| text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse::<u64>().ok())?;
    let part = match (number(first), number(last)) {
        (Some(first), Some(last)) if first <= last => first..len.min(last.saturating_add(1)),
        (Some(first), None) if last.is_empty() => first..len,
        (None, Some(suffix)) if first.is_empty() => len.saturating_sub(suffix)..len,
        _ => return Choice::Whole,
    };
    if part.start < part.end { Choice::Part(part) } else { Choice::Unsatisfiable }
}

fn content_type(path: &Path) -> &'static str {
    let extension = path.extension().and_then(OsStr::to_str).unwrap_or_default().to_ascii_lowercase();
    match extension.as_str() {
        "html" | "htm" => "text/html; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "js" | "mjs" => "text/javascript; charset=utf-8",
        "txt" | "md" | "log" | "rs" | "toml" => "text/plain; charset=utf-8",
        "csv" => "text/csv; charset=utf-8",
        "json" => "application/json",
        "xml" => "application/xml",
        "pdf" => "application/pdf",
        "wasm" => "application/wasm",
        "gz" => "application/gzip",
        "zip" => "application/zip",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "gif" => "image/gif",
        "webp" => "image/webp",
        "avif" => "image/avif",
        "ico" => "image/x-icon",
        "woff2" => "font/woff2",
        "woff" => "font/woff",
        "mp3" => "audio/mpeg",
        "mp4" => "video/mp4",
        "webm" => "video/webm",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
#[path = "files/tests.rs"]
mod tests;
