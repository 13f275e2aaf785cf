//! Destinations of replies.
use crate::failure::Failure;
use bytes::Bytes;
use hyper::http::response::Parts;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The destination of the page.
pub(crate) enum Sink {
    /// The page is counted and discarded.
    Nowhere,
    /// To stdout, with the status line and headers if requested.
    Stdout { head: bool },
    /// To a file, with the status line and headers if requested.
    File { path: PathBuf, file: File, head: bool },
}

impl Sink {
    /// Opens or creates the file. Its old content stays until there is a reply.
    pub(crate) fn file(path: &Path, head: bool) -> Result<Sink, Failure> {
        let opened = File::options().write(true).create(true).truncate(false).open(path);
        let file = opened.map_err(|error| Failure::file("write", path, &error))?;
        Ok(Sink::File { path: path.to_owned(), file, head })
    }

    pub(crate) fn uses_stdout(&self) -> bool {
        matches!(self, Sink::Stdout { .. })
    }

    /// Writes the head of the reply. The page follows.
    pub(crate) fn head(&mut self, head: &Parts) -> Result<(), Failure> {
        if let Sink::File { path, file, .. } = self {
            empty(file).map_err(|error| Failure::file("write", path, &error))?;
        }
        if !matches!(self, Sink::Stdout { head: true } | Sink::File { head: true, .. }) {
            return Ok(());
        }
        let mut text = format!("{:?} {}\r\n", head.version, head.status).into_bytes();
        for (name, value) in &head.headers {
            text.extend([name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"].concat());
        }
        text.extend(b"\r\n");
        self.write(&text.into())
    }

    /// Writes a part of the page.
    pub(crate) fn write(&mut self, bytes: &Bytes) -> Result<(), Failure> {
        match self {
            Sink::Nowhere => Ok(()),
            Sink::Stdout { .. } => {
                let mut stdout = io::stdout().lock();
                match stdout.write_all(bytes).and_then(|()| stdout.flush()) {
                    // A closed pipe (`| head`) is not an error.
                    Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
                    Err(error) => Err(Failure::failed(format!("cannot write to stdout: {error}"))),
                    Ok(()) => Ok(()),
                }
            }
            Sink::File { path, file, .. } => {
                file.write_all(bytes).map_err(|error| Failure::file("write", path, &error))
            }
        }
    }
}

/// Empties a regular file. Devices and pipes have no length.
fn empty(file: &File) -> io::Result<()> {
    match file.metadata()?.is_file() {
        true => file.set_len(0),
        false => Ok(()),
    }
}
