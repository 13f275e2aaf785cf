//! Frames out of a capture file: pcap and pcapng, both orders of bytes, gzip and zstd, from any reader.
//!
//! Memory is bounded: one buffer of 8 MB, whatever the file says of its lengths. A file that ends in the middle of a packet, or becomes
//! nonsense, gives every frame before that place; [`CaptureFile::end`] then says how it ended.

use crate::link::{self, NoIp};
use crate::packet::{NotTcp, Packet};
use core::fmt;
use core::time::Duration;
use flate2::read::MultiGzDecoder;
use pcap_file::pcap::{PcapHeader, PcapParser, PcapTsResolution};
use pcap_file::pcapng::{Block, PcapNgReadError, PcapNgReader};
use pcap_file::{DataLink, Endianness};
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};
use std::error::Error;
use std::io::{self, BufRead, BufReader, Cursor, Read};

/// A capture file that is being read.
pub struct CaptureFile<'a> {
    format: Format<'a>,
    is_compressed: bool,
    end: Option<End>,
    frames: u64,
    /// The frame that was read last.
    data: Vec<u8>,
    last_at: Duration,
}

type Source<'a> = Box<dyn Read + 'a>;

enum Format<'a> {
    Pcap(Pcap<'a>),
    PcapNg(PcapNgReader<Source<'a>>),
}

/// One frame of a capture.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// When it was captured, since 1970.
    pub at: Duration,
    /// The capture's interface it was seen at; 0 in pcap.
    pub interface: u32,
    /// Bytes it had on the network; the capture may have cut it.
    pub original_len: u32,
    /// From the link's header on.
    pub data: &'a [u8],
    link: DataLink,
}

impl<'a> Frame<'a> {
    /// The TCP segment in it.
    ///
    /// # Errors
    /// Why there is none, for the account of what was passed over.
    pub fn tcp(&self) -> Result<Packet<'a>, NotTcp> {
        let ip = link::ip(self.link, self.data).map_err(|why| match why {
            NoIp::LinkType(number) => NotTcp::LinkType(number),
            NoIp::Protocol => NotTcp::Protocol,
            NoIp::Short => NotTcp::Short,
        })?;
        // What the capture cut off was at the end.
        let cut = (self.original_len as usize).saturating_sub(self.data.len());
        Packet::parse(self.at, ip, ip.len() + cut)
    }
}

/// How a file ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// Behind a whole packet.
    Whole,
    /// In the middle of one: whoever wrote it was interrupted, or is still writing.
    Truncated,
    /// What follows is no packet, or the reader failed.
    Damaged(String),
}

/// Why a file cannot be read at all.
#[derive(Debug)]
#[non_exhaustive]
pub enum OpenError {
    /// The reader failed.
    Io(io::Error),
    /// It is empty.
    Empty,
    /// It begins like no capture.
    NoCapture,
    /// It begins like a capture, but its header makes no sense.
    Header(String),
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpenError::Io(error) => write!(f, "cannot be read: {error}"),
            OpenError::Empty => f.write_str("is empty"),
            OpenError::NoCapture => f.write_str(
                "is no capture: it begins neither like pcap nor like pcapng (compressed by gzip or zstd or not); write one with \
                 `tcpdump -w FILE`",
            ),
            OpenError::Header(what) => write!(f, "has a damaged header: {what}"),
        }
    }
}

impl Error for OpenError {}

/// Interfaces of one section that are remembered; real captures have a few.
const INTERFACES_MAX: usize = 4096;

impl<'a> CaptureFile<'a> {
    /// Recognises the format, by its first bytes.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open(source: impl Read + 'a) -> Result<CaptureFile<'a>, OpenError> {
        let (magic, source) = peek(Box::new(source))?;
        let (magic, source, is_compressed) = match magic {
            [0x1f, 0x8b, ..] => {
                let (magic, source) = peek(Box::new(MultiGzDecoder::new(BufReader::new(source))))?;
                (magic, source, true)
            }
            // A frame, or one to be skipped (RFC 8878 §3.1.2), as pzstd writes first.
            [0x28, 0xb5, 0x2f, 0xfd] | [0x50..=0x5f, 0x2a, 0x4d, 0x18] => {
                let (magic, source) = peek(Box::new(Zstd::new(BufReader::new(source))))?;
                (magic, source, true)
            }
            _ => (magic, source, false),
        };
        let format = match magic {
            [0x0a, 0x0d, 0x0d, 0x0a] => {
                Format::PcapNg(PcapNgReader::new(source).map_err(|error| match error {
                    PcapNgReadError::Io(error) if error.kind() != io::ErrorKind::UnexpectedEof => {
                        OpenError::Io(error)
                    }
                    error => OpenError::Header(sentence(&error)),
                })?)
            }
            [0xd4 | 0x4d, 0xc3 | 0x3c, 0xb2, 0xa1] | [0xa1, 0xb2, 0xc3 | 0x3c, 0xd4 | 0x4d] => {
                Format::Pcap(Pcap::new(source)?)
            }
            _ => return Err(OpenError::NoCapture),
        };
        Ok(CaptureFile {
            format,
            is_compressed,
            end: None,
            frames: 0,
            data: Vec::new(),
            last_at: Duration::ZERO,
        })
    }

    /// `pcap` or `pcapng`.
    pub fn format(&self) -> &'static str {
        match self.format {
            Format::Pcap(_) => "pcap",
            Format::PcapNg(_) => "pcapng",
        }
    }

    /// By gzip or zstd.
    pub fn is_compressed(&self) -> bool {
        self.is_compressed
    }

    /// Frames read so far.
    pub fn frames(&self) -> u64 {
        self.frames
    }

    /// The next frame; `None` at the end, whichever.
    pub fn next_frame(&mut self) -> Option<Frame<'_>> {
        if self.end.is_some() {
            return None;
        }
        let read = match &mut self.format {
            Format::Pcap(pcap) => pcap.next(&mut self.data),
            Format::PcapNg(reader) => next_of_pcapng(reader, &mut self.data),
        };
        let head = match read {
            Ok(head) => head,
            Err(end) => {
                self.end = Some(end);
                return None;
            }
        };
        self.frames += 1;
        // A simple packet block has no time.
        let at = head.at.unwrap_or(self.last_at);
        self.last_at = at;
        let Head { interface, original_len, link, .. } = head;
        Some(Frame { at, interface, original_len, data: &self.data, link })
    }

    /// Bytes of the capture, decompressed, that the frames read so far are in; `None` where that is not counted, in pcapng.
    pub fn bytes_passed(&self) -> Option<u64> {
        match &self.format {
            Format::Pcap(pcap) => Some(pcap.passed),
            Format::PcapNg(_) => None,
        }
    }

    /// How the file ended; while there is more to read, as if it ended here.
    pub fn end(&self) -> End {
        self.end.clone().unwrap_or(End::Whole)
    }
}

/// What a frame has beside its bytes.
struct Head {
    at: Option<Duration>,
    interface: u32,
    original_len: u32,
    link: DataLink,
}

/// The records of a pcap file.
struct Pcap<'a> {
    source: BufReader<Source<'a>>,
    header: PcapHeader,
    /// Bytes of whole records and of what is before them.
    passed: u64,
}

/// What the file's header takes, and that of a record.
const HEADER_LEN: usize = 24;
const RECORD_HEADER_LEN: usize = 16;

/// The longest record that is read; what it says of its length is not to be allocated otherwise.
const RECORD_MAX: u32 = 8_000_000;

/// The longest record that tcpdump and Wireshark write (`MAXIMUM_SNAPLEN`), if the file's header promises none that are longer.
const RECORD_USUAL_MAX: u32 = 262_144;

impl<'a> Pcap<'a> {
    fn new(source: Source<'a>) -> Result<Pcap<'a>, OpenError> {
        let mut source = BufReader::with_capacity(1 << 20, source);
        let mut header = [0; HEADER_LEN];
        source.read_exact(&mut header).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => OpenError::Header("it ends in it".to_owned()),
            _ => OpenError::Io(error),
        })?;
        let (_, parser) = PcapParser::new(&header).map_err(|error| OpenError::Header(sentence(&error)))?;
        Ok(Pcap { source, header: parser.header(), passed: HEADER_LEN as u64 })
    }

    /// The next record; its length is believed even where it is longer than the file's own snaplen, which writers get wrong for merged
    /// segments.
    fn next(&mut self, data: &mut Vec<u8>) -> Result<Head, End> {
        if self.source.fill_buf().map_err(|error| end_of(&error))?.is_empty() {
            return Err(End::Whole);
        }
        let mut head = [0; RECORD_HEADER_LEN];
        self.source.read_exact(&mut head).map_err(|error| end_of(&error))?;
        let word = |index: usize| {
            let bytes = [0, 1, 2, 3].map(|byte| head[4 * index + byte]);
            match self.header.endianness {
                Endianness::Big => u32::from_be_bytes(bytes),
                Endianness::Little => u32::from_le_bytes(bytes),
            }
        };
        let [seconds, fraction, len, original_len] = [0, 1, 2, 3].map(word);
        let unlikely = || End::Damaged(format!("a record of {len} bytes"));
        if len > RECORD_MAX {
            return Err(unlikely());
        }
        data.resize(len as usize, 0);
        self.source.read_exact(data).map_err(|error| match end_of(&error) {
            End::Truncated if len > self.header.snaplen.max(RECORD_USUAL_MAX) => unlikely(),
            end => end,
        })?;
        let unit = if self.header.ts_resolution == PcapTsResolution::MicroSecond { 1000 } else { 1 };
        let nanos = fraction.checked_mul(unit).filter(|nanos| *nanos < 1_000_000_000);
        let nanos =
            nanos.ok_or_else(|| End::Damaged(format!("a time with {fraction} of a second's parts")))?;
        self.passed += RECORD_HEADER_LEN as u64 + u64::from(len);
        let at = Some(Duration::new(seconds.into(), nanos));
        Ok(Head { at, interface: 0, original_len, link: self.header.datalink })
    }
}

fn next_of_pcapng(reader: &mut PcapNgReader<Source<'_>>, data: &mut Vec<u8>) -> Result<Head, End> {
    loop {
        let (block, state) = reader.next_block().ok_or(End::Whole)?.map_err(|error| match error {
            PcapNgReadError::Io(error) => end_of(&error),
            error => End::Damaged(sentence(&error)),
        })?;
        if state.interfaces().len() > INTERFACES_MAX {
            return Err(End::Damaged(format!("more than {INTERFACES_MAX} interfaces in one section")));
        }
        let (at, interface, original_len, bytes) = match &block {
            Block::EnhancedPacket(packet) => {
                (Some(packet.timestamp), packet.interface_id, packet.original_len, &packet.data)
            }
            Block::Packet(packet) => {
                (Some(packet.timestamp), packet.interface_id.into(), packet.original_len, &packet.data)
            }
            Block::SimplePacket(packet) => (None, 0, packet.original_len, &packet.data),
            _ => continue,
        };
        let Some(interface_of) = state.interfaces().get(interface as usize) else {
            return Err(End::Damaged(format!(
                "a packet of interface {interface}, which the file does not describe"
            )));
        };
        data.clear();
        data.extend_from_slice(bytes);
        return Ok(Head { at, interface, original_len, link: interface_of.linktype });
    }
}

fn end_of(error: &io::Error) -> End {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => End::Truncated,
        _ => End::Damaged(error.to_string()),
    }
}

/// An error and what it says it comes from.
fn sentence(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}

/// The first four bytes, and a reader that begins with them.
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

/// The frames of a zstd file, one after another. What was decoded before an error comes before the error.
struct Zstd<R> {
    source: R,
    decoder: FrameDecoder,
    error: Option<io::Error>,
}

impl<R: BufRead> Zstd<R> {
    fn new(source: R) -> Zstd<R> {
        Zstd { source, decoder: FrameDecoder::new(), error: None }
    }

    /// Decodes one more block, of this frame or the next. False: there is none.
    fn advance(&mut self) -> io::Result<bool> {
        if !self.decoder.is_finished() {
            let one = BlockDecodingStrategy::UptoBlocks(1);
            self.decoder.decode_blocks(&mut self.source, one).map_err(undecoded)?;
            return Ok(true);
        }
        // All of the frame has been collected, or nobody would ask for more.
        let written = self.decoder.get_checksum_from_data();
        if written.is_some() && written != self.decoder.get_calculated_checksum() {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "what the zstd data comes to does not match its checksum, so that some of these packets may be wrong",
            ));
        }
        if self.source.fill_buf()?.is_empty() {
            return Ok(false);
        }
        match self.decoder.init(&mut self.source) {
            Ok(()) => Ok(true),
            Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                length, ..
            })) => {
                let skipped = io::copy(&mut self.source.by_ref().take(length.into()), &mut io::sink())?;
                if skipped == u64::from(length) { Ok(true) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
            }
            Err(error) => Err(undecoded(error)),
        }
    }

    /// The decoder keeps as much as later blocks may refer to until the frame's last one has come: so an empty one comes.
    fn end_frame(&mut self) {
        if !self.decoder.is_finished() {
            // What it says of the error is known.
            let _ = self.decoder.decode_blocks(&LAST_BLOCK[..], BlockDecodingStrategy::All);
        }
    }
}

/// A last block of no bytes, uncompressed (RFC 8878 §3.1.1.2), and room for the frame's checksum.
const LAST_BLOCK: [u8; 7] = [1, 0, 0, 0, 0, 0, 0];

impl<R: BufRead> Read for Zstd<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if self.decoder.can_collect() > 0 || buffer.is_empty() {
                return self.decoder.read(buffer);
            }
            if let Some(error) = self.error.take() {
                return Err(error);
            }
            match self.advance() {
                Ok(true) => {}
                Ok(false) => return Ok(0),
                Err(error) => {
                    self.error = Some(error);
                    self.end_frame();
                }
            }
        }
    }
}

/// What a decoder's error comes to. The end of the source, however deep in it, stays what it is.
fn undecoded(error: FrameDecoderError) -> io::Error {
    let mut cause: Option<&(dyn Error + 'static)> = Some(&error);
    while let Some(one) = cause {
        match one.downcast_ref::<io::Error>() {
            Some(io) if io.kind() == io::ErrorKind::UnexpectedEof => {
                return io::Error::new(io.kind(), "its zstd data ends in the middle of a block");
            }
            Some(io) => return io::Error::new(io.kind(), io.to_string()),
            None => cause = one.source(),
        }
    }
    let what = match error {
        FrameDecoderError::ReadFrameHeaderError(_) | FrameDecoderError::FrameHeaderError(_) => {
            "a zstd frame's header makes no sense"
        }
        FrameDecoderError::WindowSizeTooBig { .. } => "a zstd frame asks for more memory than is given to it",
        FrameDecoderError::FailedToReadBlockHeader(_) => "the header of a zstd block makes no sense",
        FrameDecoderError::DictNotProvided { .. } => "its zstd data needs a dictionary, which is not at hand",
        _ => "a zstd block cannot be decoded",
    };
    io::Error::new(io::ErrorKind::InvalidData, what)
}

impl fmt::Debug for CaptureFile<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CaptureFile")
            .field("format", &self.format())
            .field("frames", &self.frames)
            .finish_non_exhaustive()
    }
}
