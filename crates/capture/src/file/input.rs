//! Decompressed bytes of a capture file, and the number of bytes in whole records or blocks.

use super::End;
use super::zstd::Zstd;
use core::fmt;
use flate2::read::MultiGzDecoder;
use std::error::Error;
use std::io::{self, BufRead, BufReader, Cursor, Read};

type Source<'a> = Box<dyn Read + 'a>;

/// A buffered reader that counts.
pub(super) struct Input<'a> {
    source: BufReader<Source<'a>>,
    passed: u64,
}

/// The reason why a file cannot be read at all.
#[derive(Debug)]
#[non_exhaustive]
pub enum OpenError {
    /// The reader failed.
    Io(io::Error),
    /// The file is empty.
    Empty,
    /// The file does not start like a capture.
    NoCapture,
    /// The file starts like a capture, but its header is invalid.
    Header(String),
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpenError::Io(error) => write!(f, "cannot be read: {error}"),
            OpenError::Empty => f.write_str("is empty"),
            OpenError::NoCapture => f.write_str(
                "is not a capture: it starts neither like pcap nor like pcapng, plain or compressed with gzip or zstd; write one with \
                 `tcpdump -w FILE`, or convert any file that Wireshark reads with `editcap -F pcapng FILE NEW`",
            ),
            OpenError::Header(what) => write!(f, "has a damaged header: {what}"),
        }
    }
}

impl Error for OpenError {}

/// Converts an error at the start of a file that ends within its own header.
fn header_error(error: io::Error) -> OpenError {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => OpenError::Header("the file ends within it".to_owned()),
        _ => OpenError::Io(error),
    }
}

/// Converts a read error into the end of the file.
pub(super) fn end_of(error: &io::Error) -> End {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => End::Truncated,
        _ => End::Damaged(error.to_string()),
    }
}

impl<'a> Input<'a> {
    /// Decompresses the source if it is compressed. Returns the first four bytes of the capture,
    /// which are still to be read, and whether it was compressed.
    pub(super) fn open(source: impl Read + 'a) -> Result<([u8; 4], Input<'a>, bool), OpenError> {
        let (magic, source) = peek(Box::new(source))?;
        let (magic, source, is_compressed) = match magic {
            [0x1f, 0x8b, ..] => {
                let (magic, source) = peek(Box::new(MultiGzDecoder::new(BufReader::new(source))))?;
                (magic, source, true)
            }
            // A frame, or a skippable frame (RFC 8878 §3.1.2), which pzstd writes first.
            [0x28, 0xb5, 0x2f, 0xfd] | [0x50..=0x5f, 0x2a, 0x4d, 0x18] => {
                let (magic, source) = peek(Box::new(Zstd::new(BufReader::new(source))))?;
                (magic, source, true)
            }
            _ => (magic, source, false),
        };
        let source = BufReader::with_capacity(1 << 20, source);
        Ok((magic, Input { source, passed: 0 }, is_compressed))
    }

    /// Returns the bytes of the file header and of whole records or blocks.
    pub(super) fn passed(&self) -> u64 {
        self.passed
    }

    /// Counts bytes of a whole record or block.
    pub(super) fn pass(&mut self, bytes: u64) {
        self.passed += bytes;
    }

    /// Reads a part of the file header.
    pub(super) fn fill_header(&mut self, bytes: &mut [u8]) -> Result<(), OpenError> {
        self.source.read_exact(bytes).map_err(header_error)?;
        self.pass(bytes.len() as u64);
        Ok(())
    }

    /// Returns true if nothing follows.
    pub(super) fn is_at_end(&mut self) -> Result<bool, End> {
        Ok(self.source.fill_buf().map_err(|error| end_of(&error))?.is_empty())
    }

    /// Fills the buffer.
    pub(super) fn fill(&mut self, bytes: &mut [u8]) -> Result<(), End> {
        self.fill_raw(bytes).map_err(|error| end_of(&error))
    }

    /// Fills the buffer, and returns the error unchanged.
    pub(super) fn fill_raw(&mut self, bytes: &mut [u8]) -> io::Result<()> {
        self.source.read_exact(bytes)
    }

    /// Skips bytes.
    pub(super) fn skip(&mut self, bytes: u64) -> Result<(), End> {
        let skipped = io::copy(&mut self.source.by_ref().take(bytes), &mut io::sink());
        if skipped.map_err(|error| end_of(&error))? == bytes { Ok(()) } else { Err(End::Truncated) }
    }
}

/// Returns the first four bytes, and a reader that still returns them.
fn peek<'a>(mut source: Source<'a>) -> Result<([u8; 4], Source<'a>), OpenError> {
    let mut magic = [0; 4];
    let mut len = 0;
    while len < magic.len() {
        match source.read(&mut magic[len..]) {
            Ok(0) if len == 0 => return Err(OpenError::Empty),
            Ok(0) => return Err(OpenError::NoCapture),
            Ok(read) => len += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(OpenError::Io(error)),
        }
    }
    Ok((magic, Box::new(Cursor::new(magic).chain(source))))
}
