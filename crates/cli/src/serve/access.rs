//! The access log (`--access-log`): a line per request, in a format of Apache and nginx, or JSON.
//!
//! A thread writes the lines. Lines that find no room while the file does not accept more are
//! dropped, and a line with their number takes their place.
use super::request::Request;
use crate::backlog::Backlog;
use crate::escape;
use crate::failure::Failure;
use chrono::{DateTime, SecondsFormat, Utc};
use clap::ValueEnum;
use serde_json::json;
use std::collections::VecDeque;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, Write};
use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The format of the access log.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// Common Log Format of Apache and nginx
    Common,
    /// Common Log Format with Referer and User-Agent
    Combined,
    /// One JSON object per line
    Json,
}

/// Most bytes of lines that wait to be written.
const WAITING_MAX: usize = 1 << 20;
/// Most time to write the last lines.
const LAST_LINES: Duration = Duration::from_secs(1);

/// Writes lines to a file, and never waits for it.
pub(crate) struct AccessLog {
    format: Format,
    backlog: Backlog<String>,
}

impl AccessLog {
    /// Opens the file, and starts the thread. The thread opens the file again if it was renamed or
    /// removed, as programs that rotate logs do.
    pub(crate) fn start(path: &Path, format: Format) -> Result<AccessLog, Failure> {
        let failure = |error| Failure::file("write", path, &error);
        let mut file = Rotated { file: open(path).map_err(failure)?, path: path.to_owned() };
        let backlog = Backlog::start("access", WAITING_MAX, move |lines: VecDeque<String>, dropped| {
            let mut text = lines.into_iter().collect::<String>();
            if dropped > 0 {
                // A comment: programs that read logs skip it.
                _ = writeln!(text, "# {dropped} lines were dropped: the file did not accept them in time");
            }
            // The server continues if the disk is full.
            let _ = file.write(text.as_bytes());
        });
        Ok(AccessLog { format, backlog: backlog.map_err(failure)? })
    }

    /// Queues the line of a request, or drops it if there is no room.
    pub(crate) fn put(&self, peer: SocketAddr, request: &Request) {
        let mut line = line(self.format, peer, request);
        line.push('\n');
        let len = line.len();
        self.backlog.put(line, len);
    }

    /// Returns the number of lines that found no room.
    pub(crate) fn dropped(&self) -> u64 {
        self.backlog.dropped()
    }

    /// Waits a limited time until the last lines are written.
    pub(crate) fn finish(&self) {
        self.backlog.finish(LAST_LINES);
    }
}

/// A file that may be renamed by others.
struct Rotated {
    path: PathBuf,
    file: File,
}

impl Rotated {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let own = self.file.metadata()?;
        let is_same = |there: &fs::Metadata| (there.dev(), there.ino()) == (own.dev(), own.ino());
        if own.is_file() && !fs::metadata(&self.path).is_ok_and(|there| is_same(&there)) {
            self.file = open(&self.path)?;
        }
        self.file.write_all(bytes)
    }
}

fn open(path: &Path) -> io::Result<File> {
    File::options().append(true).create(true).open(path)
}

/// Formats a request as one line.
pub(crate) fn line(format: Format, peer: SocketAddr, request: &Request) -> String {
    let at = DateTime::<Utc>::from(request.begun);
    let bytes = request.bytes;
    let target = match &request.query {
        Some(query) => format!("{}?{query}", request.path),
        None => request.path.clone(),
    };
    let version = format!("{:?}", request.version);
    match format {
        Format::Json => {
            let object = json!({
                "at": at.to_rfc3339_opts(SecondsFormat::Millis, true), "peer": peer.to_string(),
                "method": request.method, "target": target, "version": version, "status": request.status,
                "bytes": bytes, "referer": request.referer, "user_agent": request.user_agent,
                "early": request.early, "tls": request.tls,
            });
            escape::json(&object, false)
        }
        Format::Common | Format::Combined => {
            let mut line = format!(
                "{} - - [{}] \"{} {} {version}\" {} {}",
                peer.ip().to_canonical(),
                at.format("%d/%b/%Y:%H:%M:%S %z"),
                quoted(&request.method),
                quoted(&target),
                request.status,
                if bytes > 0 { bytes.to_string() } else { "-".to_owned() }
            );
            if format == Format::Combined {
                let field = |value: &Option<String>| value.as_deref().map_or("-".to_owned(), quoted);
                let (referer, agent) = (field(&request.referer), field(&request.user_agent));
                _ = write!(line, " \"{referer}\" \"{agent}\"");
            }
            line
        }
    }
}

/// Escapes quotes, backslashes and everything that is not printable ASCII, as Apache does.
fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' => quoted.extend(['\\', char::from(byte)]),
            b' '..=b'~' => quoted.push(char::from(byte)),
            byte => _ = write!(quoted, "\\x{byte:02x}"),
        }
    }
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::Version;
    use std::time::SystemTime;

    fn request() -> Request {
        Request {
            method: "GET".to_owned(),
            path: "/a\"b\n".to_owned(),
            query: Some("c=\\".to_owned()),
            version: Version::HTTP_11,
            status: 200,
            bytes: 7,
            early: true,
            tls: false,
            referer: None,
            user_agent: Some("curl \u{202e}\"7\"".to_owned()),
            begun: SystemTime::UNIX_EPOCH + Duration::from_millis(784_111_777_123),
        }
    }

    #[test]
    fn the_formats_are_those_of_other_servers() {
        let peer = "[::ffff:192.0.2.1]:5000".parse().unwrap();
        let common = r#"192.0.2.1 - - [06/Nov/1994:08:49:37 +0000] "GET /a\"b\x0a?c=\\ HTTP/1.1" 200 7"#;
        assert_eq!(line(Format::Common, peer, &request()), common);
        let combined = format!(r#"{common} "-" "curl \xe2\x80\xae\"7\"""#);
        assert_eq!(line(Format::Combined, peer, &request()), combined);
        let object: serde_json::Value = serde_json::from_str(&line(Format::Json, peer, &request())).unwrap();
        assert_eq!(object["at"], "1994-11-06T08:49:37.123Z");
        assert_eq!((&object["target"], &object["early"]), (&"/a\"b\n?c=\\".into(), &true.into()));
    }

    #[test]
    fn a_log_that_is_rotated_continues_in_a_new_file() {
        let folder = tempfile::tempdir().unwrap();
        let (path, old) = (folder.path().join("log"), folder.path().join("log.1"));
        let log = AccessLog::start(&path, Format::Common).unwrap();
        let peer = "192.0.2.1:5000".parse().unwrap();
        log.put(peer, &request());
        log.finish();
        fs::rename(&path, &old).unwrap();
        log.put(peer, &request());
        log.finish();
        for file in [path, old] {
            assert_eq!(fs::read_to_string(file).unwrap().lines().count(), 1);
        }
        let failure = AccessLog::start(Path::new("/no/such/log"), Format::Common).err().unwrap();
        assert!(failure.message().starts_with("cannot write /no/such/log"), "{failure:?}");
    }
}
