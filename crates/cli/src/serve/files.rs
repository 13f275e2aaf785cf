//! Serves the files of a folder: content types, conditions, ranges.
//!
//! - `files/beneath.rs`: opens files under the folder, and nothing outside;
//! - `files/listing.rs`: pages of folders; `files/codings.rs`: precompressed files;
//! - `files/conditions.rs`: ETag and conditions (RFC 9110 §13); `files/ranges.rs`: ranges (§14).
//!
//! Only regular files are served, after symbolic links are followed. A small file in the page cache
//! is read immediately, so that it can be on the SYN-ACK. A helper thread does all other work
//! (`serve/disk.rs`).
mod beneath;
mod codings;
mod conditions;
mod listing;
mod ranges;

use super::body::{Body, Piece};
use super::disk::{Disk, Lane, OpenFile};
use super::page::text;
use crate::failure::Failure;
use beneath::{Folder, Patience};
use bytes::Bytes;
use codings::{CODINGS, Coding};
use conditions::{Choice, Version, choose};
use hyper::header::{
    ACCEPT_RANGES, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_RANGE, CONTENT_SECURITY_POLICY, CONTENT_TYPE,
    ETAG, HeaderMap, HeaderName, HeaderValue, LAST_MODIFIED, LOCATION, VARY,
};
use hyper::http::request::Parts;
use hyper::{Method, Response, StatusCode, Uri};
use ranges::{Asked, Multipart, content_range};
use rustix::io::Errno;
use std::borrow::Cow;
use std::ffi::OsStr;
use std::fs::{File, Metadata};
use std::io;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// A folder to serve.
pub(crate) struct Root {
    folder: Folder,
    disk: Disk,
    extras: Extras,
}

/// Replies that are given on request only.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Extras {
    /// Lists a folder without an index.
    pub(crate) listing: bool,
    /// Sends `file.br`, `file.zst` or `file.gz` in place of `file`.
    pub(crate) precompressed: bool,
}

/// Length up to which files are read immediately, bytes.
const SMALL: u64 = 64 * 1024;

impl Root {
    /// Opens the folder. Waits at most `timeout` for any file.
    pub(crate) fn open(path: &Path, timeout: Duration, extras: Extras) -> Result<Root, Failure> {
        let folder = Folder::open(path)
            .map_err(|error| Failure::failed(format!("cannot serve --root {}: {error}", path.display())))?;
        Ok(Root { folder, disk: Disk::new(timeout), extras })
    }

    /// Answers a GET, or a HEAD, whose body is removed later.
    pub(crate) async fn answer(self: &Arc<Self>, request: &Parts) -> Response<Body> {
        let Parts { method, uri, headers, .. } = request;
        let reply = match self.reply(method, uri, headers, Patience::None) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                let root = self.clone();
                let (method, uri, headers) = (method.clone(), uri.clone(), headers.clone());
                let reply = self
                    .lane(uri.path())
                    .run(move || root.reply(&method, &uri, &headers, Patience::Any))
                    .await;
                reply.flatten()
            }
            reply => reply,
        };
        reply.unwrap_or_else(|error| refusal(&error))
    }

    fn reply(
        &self,
        method: &Method,
        uri: &Uri,
        headers: &HeaderMap,
        patience: Patience,
    ) -> io::Result<Response<Body>> {
        let path = path_of(uri);
        match self.find(&path, headers, patience)? {
            Found::File(file) if !uri.path().is_empty() => self.send(*file, method, headers, patience),
            Found::File(_) => Ok(moved("This is a file.\n", &with_query(&on_this_host(&path), uri))),
            Found::Folder => {
                Ok(moved("This is a folder.\n", &with_query(&format!("{}/", on_this_host(&path)), uri)))
            }
            Found::NoIndex(folder) if self.extras.listing => {
                let page = listing::page(&self.folder, &folder.path, &folder.directory, &path)?;
                Ok(html(page))
            }
            Found::NoIndex(_) => {
                Ok(text(StatusCode::NOT_FOUND, "This folder has no index.html; request one of its files.\n"))
            }
        }
    }

    fn find(&self, uri_path: &str, headers: &HeaderMap, patience: Patience) -> io::Result<Found> {
        let decoded = percent_decoded(uri_path).ok_or(io::ErrorKind::NotFound)?;
        let mut path = PathBuf::from(".");
        for part in decoded.split(|byte| *byte == b'/') {
            match part {
                b"" | b"." => {}
                b".." => return Err(io::ErrorKind::NotFound.into()),
                name => path.push(OsStr::from_bytes(name)),
            }
        }
        let mut file = self.folder.open_beneath(&path, patience)?;
        let mut metadata = file.metadata()?;
        if metadata.is_dir() {
            if !decoded.ends_with(b"/") {
                return Ok(Found::Folder);
            }
            let directory = file;
            let index = path.join("index.html");
            file = match self.folder.open_beneath(&index, patience) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    // Reading a folder may wait.
                    if self.extras.listing && patience == Patience::None {
                        return Err(io::ErrorKind::WouldBlock.into());
                    }
                    return Ok(Found::NoIndex(NoIndex { path, directory }));
                }
                opened => opened?,
            };
            path = index;
            metadata = file.metadata()?;
        } else if decoded.ends_with(b"/") {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        if !metadata.is_file() {
            return Err(io::ErrorKind::NotFound.into());
        }
        let (lane, content_type) = (self.lane(uri_path), content_type(&path));
        let mut found = FoundFile { file, metadata, content_type, lane, coding: None, varies: false };
        if self.extras.precompressed {
            self.compress(&mut found, &path, headers, patience)?;
        }
        Ok(Found::File(Box::new(found)))
    }

    /// Replaces a file by a compressed one beside it that the client accepts. An older one is not
    /// used.
    fn compress(
        &self,
        found: &mut FoundFile,
        path: &Path,
        headers: &HeaderMap,
        patience: Patience,
    ) -> io::Result<()> {
        let modified = found.metadata.modified()?;
        let mut best = 0;
        for coding in CODINGS {
            let mut name = path.as_os_str().to_owned();
            name.push(coding.ending);
            let file = match self.folder.open_beneath(Path::new(&name), patience) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Err(error),
                Err(_) => continue,
                Ok(file) => file,
            };
            let metadata = file.metadata()?;
            if !metadata.is_file() || metadata.modified()? < modified {
                continue;
            }
            found.varies = true;
            let weight = codings::weight(headers, coding);
            if weight > best {
                best = weight;
                (found.file, found.metadata, found.coding) = (file, metadata, Some(coding));
            }
        }
        Ok(())
    }

    /// Returns the lane of a path. File systems may be mounted anywhere below, so each name in the
    /// folder counts as one.
    fn lane(&self, uri_path: &str) -> Lane {
        let first = uri_path.split('/').find(|part| !part.is_empty()).unwrap_or_default();
        self.disk.lane(first.as_bytes())
    }

    fn send(
        &self,
        found: FoundFile,
        method: &Method,
        headers: &HeaderMap,
        patience: Patience,
    ) -> io::Result<Response<Body>> {
        let len = found.metadata.len();
        let version = Version::of(&found.metadata, found.coding.map(|coding| coding.name));
        let content_type = found.content_type.clone();
        let mut reply = Response::new(Body::new([]));
        let mut fields = Vec::new();
        fields.extend(found.varies.then(|| (VARY, "Accept-Encoding".to_owned())));
        fields.extend(found.coding.map(|coding| (CONTENT_ENCODING, coding.name.to_owned())));
        *reply.status_mut() = match choose(&version, len, method, headers) {
            Choice::PreconditionFailed => StatusCode::PRECONDITION_FAILED,
            Choice::NotModified => StatusCode::NOT_MODIFIED,
            Choice::Send(Asked::Unsatisfiable) => {
                fields.push((CONTENT_RANGE, format!("bytes */{len}")));
                StatusCode::RANGE_NOT_SATISFIABLE
            }
            Choice::Send(Asked::Whole) => {
                fields.push((CONTENT_TYPE, content_type.into_owned()));
                *reply.body_mut() = self.body(found, vec![Section::Part(0..len)], patience)?;
                StatusCode::OK
            }
            Choice::Send(Asked::Part(part)) => {
                fields.push((CONTENT_TYPE, content_type.into_owned()));
                fields.push((CONTENT_RANGE, content_range(&part, len)));
                *reply.body_mut() = self.body(found, vec![Section::Part(part)], patience)?;
                StatusCode::PARTIAL_CONTENT
            }
            Choice::Send(Asked::Parts(parts)) => {
                let frame = Multipart::new();
                fields.push((CONTENT_TYPE, frame.content_type()));
                *reply.body_mut() =
                    self.body(found, sections(&frame, &parts, &content_type, len), patience)?;
                StatusCode::PARTIAL_CONTENT
            }
        };
        fields.push((ETAG, version.etag));
        fields.push((LAST_MODIFIED, httpdate::fmt_http_date(version.modified)));
        fields.push((ACCEPT_RANGES, "bytes".to_owned()));
        put(&mut reply, fields);
        Ok(reply)
    }

    /// Reads a small body now. Leaves a larger one in the file.
    fn body(&self, found: FoundFile, sections: Vec<Section>, patience: Patience) -> io::Result<Body> {
        let FoundFile { file, lane, .. } = found;
        if sections.iter().map(Section::len).sum::<u64>() <= SMALL {
            let mut bytes = Vec::new();
            for section in sections {
                match section {
                    Section::Text(text) => bytes.extend_from_slice(&text),
                    Section::Part(part) => bytes.append(&mut self.folder.read(&file, &part, patience)?),
                }
            }
            return Ok(Body::whole(bytes.into()));
        }
        let file = Arc::new(OpenFile::new(file, lane));
        Ok(Body::new(sections.into_iter().map(|section| match section {
            Section::Text(text) => Piece::Memory(text),
            Section::Part(part) => Piece::File(file.clone(), part),
        })))
    }
}

enum Found {
    File(Box<FoundFile>),
    /// A folder, requested without the slash at its end.
    Folder,
    /// A folder without an index.
    NoIndex(NoIndex),
}

struct NoIndex {
    path: PathBuf,
    directory: File,
}

struct FoundFile {
    file: File,
    metadata: Metadata,
    content_type: Cow<'static, str>,
    lane: Lane,
    /// The coding of the file, if it was compressed.
    coding: Option<Coding>,
    /// True if there are other codings, so that the reply depends on what the client accepts.
    varies: bool,
}

/// A piece of a body that is not read yet.
enum Section {
    Text(Bytes),
    Part(Range<u64>),
}

impl Section {
    fn len(&self) -> u64 {
        match self {
            Section::Text(text) => text.len() as u64,
            Section::Part(part) => part.end - part.start,
        }
    }
}

/// Returns several parts, with the text between them.
fn sections(frame: &Multipart, parts: &[Range<u64>], content_type: &str, len: u64) -> Vec<Section> {
    let mut sections = Vec::with_capacity(2 * parts.len() + 1);
    for part in parts {
        sections.push(Section::Text(frame.head(sections.is_empty(), content_type, part, len)));
        sections.push(Section::Part(part.clone()));
    }
    sections.push(Section::Text(frame.tail()));
    sections
}

/// Returns a page that we have made. It needs nothing from elsewhere.
fn html(page: String) -> Response<Body> {
    let mut reply = Response::new(Body::whole(page.into()));
    let policy = "default-src 'none'; style-src 'unsafe-inline'";
    put(
        &mut reply,
        vec![
            (CONTENT_TYPE, "text/html; charset=utf-8".to_owned()),
            (CONTENT_SECURITY_POLICY, policy.to_owned()),
            (CACHE_CONTROL, "no-cache".to_owned()),
        ],
    );
    reply
}

fn put(reply: &mut Response<Body>, fields: Vec<(HeaderName, String)>) {
    for (name, value) in fields {
        if let Ok(value) = HeaderValue::try_from(value) {
            reply.headers_mut().insert(name, value);
        }
    }
}

fn moved(what: &'static str, to: &str) -> Response<Body> {
    let mut reply = text(StatusCode::MOVED_PERMANENTLY, what);
    put(&mut reply, vec![(LOCATION, to.to_owned())]);
    reply
}

/// Returns the requested path. `GET name`, which is not a form of a target (RFC 9112 §3.2), asks
/// for `/name`.
fn path_of(uri: &Uri) -> Cow<'_, str> {
    match (uri.path(), uri.authority()) {
        ("", Some(authority)) => format!("/{authority}").into(),
        (path, _) => path.into(),
    }
}

/// Returns a reference that stays on this host. A reference that begins with `//` names another
/// host (RFC 3986 §4.2), and browsers read `\` as `/`.
fn on_this_host(path: &str) -> String {
    format!("/{}", path.trim_start_matches('/').replace('\\', "%5C"))
}

fn with_query(path: &str, uri: &Uri) -> String {
    uri.query().map_or_else(|| path.to_owned(), |query| format!("{path}?{query}"))
}

fn refusal(error: &io::Error) -> Response<Body> {
    match error.raw_os_error().map(Errno::from_raw_os_error) {
        // A link in a circle, a link that leads outside, a socket, a device that is not there.
        Some(Errno::LOOP | Errno::XDEV | Errno::NXIO | Errno::NODEV) => return not_found(),
        Some(Errno::MFILE | Errno::NFILE) => return busy("Too many files are open.\n"),
        _ => {}
    }
    match error.kind() {
        io::ErrorKind::PermissionDenied => text(StatusCode::FORBIDDEN, "No permission to read this file.\n"),
        io::ErrorKind::NotFound
        | io::ErrorKind::NotADirectory
        | io::ErrorKind::InvalidFilename
        | io::ErrorKind::InvalidInput => not_found(),
        io::ErrorKind::TimedOut => busy("The disk does not answer.\n"),
        _ => text(StatusCode::INTERNAL_SERVER_ERROR, "Cannot read this file.\n"),
    }
}

fn not_found() -> Response<Body> {
    text(StatusCode::NOT_FOUND, "There is no such file here.\n")
}

fn busy(why: &'static str) -> Response<Body> {
    text(StatusCode::SERVICE_UNAVAILABLE, why)
}

/// Decodes percent-encoding. Returns `None` for a `%` without two digits, or a NUL.
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

/// Returns the type of a file by its name. Texts are taken for UTF-8.
fn content_type(path: &Path) -> Cow<'static, str> {
    let extension = path.extension().and_then(OsStr::to_str).unwrap_or_default().to_ascii_lowercase();
    match extension.as_str() {
        // Browsers show plain text, and save what they do not know.
        "md" | "log" | "rs" | "toml" | "yaml" | "yml" | "ts" => "text/plain; charset=utf-8".into(),
        // Its own declaration has the encoding.
        "xml" => "application/xml".into(),
        extension => match mime_guess::from_ext(extension).first_raw() {
            Some(text) if text.starts_with("text/") => format!("{text}; charset=utf-8").into(),
            Some(other) => other.into(),
            None => "application/octet-stream".into(),
        },
    }
}

#[cfg(test)]
#[path = "files/tests.rs"]
mod tests;
