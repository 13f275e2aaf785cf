//! Reads frames from a capture file: pcap and pcapng, both byte orders, gzip and zstd, from any
//! reader.
//!
//! | module | subject |
//! |---|---|
//! | `input` | bytes, decompressed (`zstd`), and errors that end the reading |
//! | `pcap` | records, in every variant that Wireshark reads |
//! | `pcapng` | blocks and interfaces; `time` has the units of their time stamps |
//! | `oddity` | [`Oddity`]: violations of the format that are tolerated and counted |
//!
//! Memory is bounded by one buffer of 8 MB, whatever lengths the file claims. If a file ends within
//! a packet or becomes invalid, all frames before that place are returned. [`CaptureFile::end`]
//! then tells how the file ended.

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

/// A reader of a capture file.
pub struct CaptureFile<'a> {
    format: Format<'a>,
    is_compressed: bool,
    end: Option<End>,
    frames: u64,
    oddities: Oddities,
    /// The last record or block.
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
    /// Time of capture, since 1970.
    pub at: Duration,
    /// Number of the interface in the capture. 0 for pcap.
    pub interface: u32,
    /// Length on the network. The capture may have fewer bytes.
    pub original_len: u32,
    /// The bytes, starting with the link header.
    pub data: &'a [u8],
    link_type: u32,
}

impl<'a> Frame<'a> {
    /// Returns the TCP segment of the frame, also inside tunnels.
    ///
    /// # Errors
    /// Returns the reason why there is no segment.
    pub fn tcp(&self) -> Result<Packet<'a>, NotTcp> {
        decode::tcp(self.at, self.link_type, self.data, self.original_len as usize)
    }

    /// Returns the ICMP error of the frame, if it reports that a TCP segment did not arrive.
    pub fn icmp_error(&self) -> Option<IcmpError> {
        decode::icmp(self.at, self.link_type, self.data, self.original_len as usize)
    }
}

/// The end of a capture file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// After a whole packet.
    Whole,
    /// Within a packet: the writer was interrupted, or is still writing.
    Truncated,
    /// With bytes that are not a packet, or with a read error.
    Damaged(String),
}

impl<'a> CaptureFile<'a> {
    /// Opens a capture. Detects the format from the first bytes.
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

    /// Returns `pcap` or `pcapng`.
    pub fn format(&self) -> &'static str {
        match self.format {
            Format::Pcap(_) => "pcap",
            Format::PcapNg(_) => "pcapng",
        }
    }

    /// Returns true for gzip or zstd.
    pub fn is_compressed(&self) -> bool {
        self.is_compressed
    }

    /// Returns the number of frames read so far.
    pub fn frames(&self) -> u64 {
        self.frames
    }

    /// Returns the next frame, or `None` at the end.
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

    /// Returns the decompressed bytes of the capture up to the last frame.
    pub fn bytes_passed(&self) -> u64 {
        match &self.format {
            Format::Pcap(pcap) => pcap.passed(),
            Format::PcapNg(pcapng) => pcapng.passed(),
        }
    }

    /// Returns violations of the format that were tolerated so far, with their numbers.
    pub fn oddities(&self) -> impl Iterator<Item = (Oddity, u64)> {
        self.oddities.iter()
    }

    /// Returns how the file ended. [`End::Whole`] while there is more to read.
    pub fn end(&self) -> End {
        self.end.clone().unwrap_or(End::Whole)
    }
}

/// The description of a frame in its record or block.
struct Head {
    at: Option<Duration>,
    interface: u32,
    original_len: u32,
    link_type: u32,
    /// Position of the bytes in the record or block.
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
