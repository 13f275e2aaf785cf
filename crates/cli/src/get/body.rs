//! Destinations of replies.
use super::partial::Partial;
use super::progress::Progress;
use crate::failure::Failure;
use crate::output::OutputFile;
use bytes::Bytes;
use hyper::http::response::Parts;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The destination of the page, with the status line and headers before it if requested.
pub(crate) struct Sink {
    to: To,
    head: bool,
    progress: Progress,
}

enum To {
    /// The page is counted and discarded.
    Nowhere,
    Stdout,
    /// A file that replaces the old one when the page is complete.
    File {
        path: PathBuf,
        file: OutputFile,
    },
    /// A file that keeps what has arrived.
    Partial(Partial),
}

/// The treatment of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Page {
    Keep,
    /// The page is not what was asked for.
    Discard,
}

impl Sink {
    pub(crate) fn nowhere() -> Sink {
        Sink { to: To::Nowhere, head: false, progress: Progress::off() }
    }

    pub(crate) fn stdout(head: bool) -> Sink {
        Sink { to: To::Stdout, head, progress: Progress::off() }
    }

    /// Creates the file that will replace `path`. The old one stays until the page is complete.
    pub(crate) fn file(path: &Path, head: bool, progress: Progress) -> Result<Sink, Failure> {
        let file = OutputFile::create(path).map_err(|error| Failure::file("write", path, &error))?;
        Ok(Sink { to: To::File { path: path.to_owned(), file }, head, progress })
    }

    /// Continues a download.
    pub(crate) fn partial(partial: Partial, progress: Progress) -> Sink {
        Sink { to: To::Partial(partial), head: false, progress }
    }

    pub(crate) fn uses_stdout(&self) -> bool {
        matches!(self.to, To::Stdout)
    }

    /// Writes the head of a reply whose page has `len` bytes, if that is known. The page follows.
    pub(crate) fn head(&mut self, head: &Parts, len: Option<u64>) -> Result<Page, Failure> {
        let from = match &mut self.to {
            To::Partial(partial) => match partial.begin(head)? {
                Some(from) => from,
                None => return Ok(Page::Discard),
            },
            _ => 0,
        };
        self.progress.begin(from, len);
        if self.head {
            let mut text = format!("{:?} {}\r\n", head.version, head.status).into_bytes();
            for (name, value) in &head.headers {
                text.extend([name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"].concat());
            }
            text.extend(b"\r\n");
            self.put(&text)?;
        }
        Ok(Page::Keep)
    }

    /// Writes a part of the page.
    pub(crate) fn write(&mut self, bytes: &Bytes) -> Result<(), Failure> {
        self.progress.advance(bytes.len() as u64);
        self.put(bytes)
    }

    fn put(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        match &mut self.to {
            To::Nowhere => Ok(()),
            To::Stdout => {
                let mut stdout = io::stdout().lock();
                match stdout.write_all(bytes).and_then(|()| stdout.flush()) {
                    // A closed pipe (`| head`) is not an error.
                    Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
                    Err(error) => Err(Failure::failed(format!("cannot write to stdout: {error}"))),
                    Ok(()) => Ok(()),
                }
            }
            To::File { path, file } => {
                file.write_all(bytes).map_err(|error| Failure::file("write", path, &error))
            }
            To::Partial(partial) => partial.write(bytes),
        }
    }

    /// True if the server said that nothing is missing from the file.
    pub(crate) fn is_complete(&self) -> bool {
        matches!(&self.to, To::Partial(partial) if partial.is_complete())
    }

    /// Gives a complete page its name.
    pub(crate) fn complete(&mut self) -> Result<(), Failure> {
        self.progress.end();
        match &mut self.to {
            To::File { path, file } => file.place().map_err(|error| Failure::file("write", path, &error)),
            To::Partial(partial) => partial.complete(),
            To::Nowhere | To::Stdout => Ok(()),
        }
    }

    /// Ends an incomplete page. Returns the advice to continue it, if a part of it was kept.
    pub(crate) fn give_up(&mut self) -> Option<String> {
        self.progress.end();
        match &self.to {
            To::Partial(partial) => partial.advice(),
            _ => None,
        }
    }
}
