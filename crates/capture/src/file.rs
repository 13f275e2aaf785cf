//! Frames out of a capture file: pcap and pcapng, both byte orders, gzip and zstd, from any reader.
//!
//! | module | subject |
//! |---|---|
//! | `input` | bytes, decompressed (`zstd`); errors that leave nothing to read |
//! | `pcap` | records, in every variant that Wireshark reads |
//! | `pcapng` | blocks, interfaces; `time` has the units of their time stamps |
//! | `oddity` | [`Oddity`]: what is passed over, and counted |
//!
//! Memory is bounded: one buffer of 8 MB, whatever the file says of its lengths. A file that ends in the middle of a packet, or becomes
//! nonsense, gives every frame before that place; [`CaptureFile::end`] then says how it ended.

mod input;
mod oddity;
mod pcap;
mod pcapng;
mod time;
mod zstd;

pub use input::OpenError;
pub use oddity::Oddity;
pub use time::TIME_MAX;

use crate::decode;
use crate::icmp::IcmpError;
use crate::packet::{NotTcp, Packet};
use core::fmt;
use core::ops::Range;
use core::time::Duration;
use input::Input;
use oddity::Oddities;
use pcap::Pcap;
use pcapng::PcapNg;
use std::io::Read;

/// A capture file that is being read.
pub struct CaptureFile<'a> {
    format: Format<'a>,
    is_compressed: bool,
    end: Option<End>,
    frames: u64,
    oddities: Oddities,
    /// The record or block that was read last.
    data: Vec<u8>,
    last_at: Duration,
}

enum Format<'a> {
    Pcap(Pcap<'a>),
    PcapNg(PcapNg<'a>),
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
    link_type: u32,
}

impl<'a> Frame<'a> {
    /// The TCP segment in it, also inside tunnels.
    ///
    /// # Errors
    /// Why there is none, for the account of what was passed over.
    pub fn tcp(&self) -> Result<Packet<'a>, NotTcp> {
        decode::tcp(self.at, self.link_type, self.data, self.original_len as usize)
    }

    /// The ICMP error in it that says why a TCP segment did not arrive.
    pub fn icmp_error(&self) -> Option<IcmpError> {
        decode::icmp(self.at, self.link_type, self.data, self.original_len as usize)
    }
}

/// The end of a capture file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// Behind a whole packet.
    Whole,
    /// In the middle of one: whoever wrote it was interrupted, or is still writing.
    Truncated,
    /// The next bytes are not a packet, or the reader failed.
    Damaged(String),
}

impl<'a> CaptureFile<'a> {
    /// Recognises the format, by its first bytes.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open(source: impl Read + 'a) -> Result<CaptureFile<'a>, OpenError> {
        let (magic, input, is_compressed) = Input::open(source)?;
        let format = match magic {
            PcapNg::MAGIC => Format::PcapNg(PcapNg::open(input)?),
            _ if Pcap::is_magic(magic) => Format::Pcap(Pcap::open(input)?),
            _ => return Err(OpenError::NoCapture),
        };
        Ok(CaptureFile {
            format,
            is_compressed,
            end: None,
            frames: 0,
            oddities: Oddities::default(),
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
            Format::Pcap(pcap) => pcap.next(&mut self.data, &mut self.oddities),
            Format::PcapNg(pcapng) => pcapng.next(&mut self.data, &mut self.oddities),
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
        let Head { interface, original_len, link_type, data, .. } = head;
        let data = self.data.get(data).unwrap_or(&[]);
        Some(Frame { at, interface, original_len, data, link_type })
    }

    /// Bytes of the capture, decompressed, that the frames read so far are in.
    pub fn bytes_passed(&self) -> u64 {
        match &self.format {
            Format::Pcap(pcap) => pcap.passed(),
            Format::PcapNg(pcapng) => pcapng.passed(),
        }
    }

    /// Departures from the format that were passed over so far, and how often.
    pub fn oddities(&self) -> impl Iterator<Item = (Oddity, u64)> {
        self.oddities.iter()
    }

    /// Returns how the file ended; [`End::Whole`] while there is more to read.
    pub fn end(&self) -> End {
        self.end.clone().unwrap_or(End::Whole)
    }
}

/// A frame as its record or block describes it.
struct Head {
    at: Option<Duration>,
    interface: u32,
    original_len: u32,
    link_type: u32,
    /// Its bytes, in the record or block.
    data: Range<usize>,
}

impl fmt::Debug for CaptureFile<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CaptureFile")
            .field("format", &self.format())
            .field("frames", &self.frames)
            .finish_non_exhaustive()
    }
}
