//! A pcapng file (draft-ietf-opsawg-pcapng): section, interfaces, enhanced packets.
//!
//! The link type is RAW (101: packets begin with the IP header), times are in nanoseconds
//! (`if_tsresol` 9), the direction is in `epb_flags`, and each packet can have comments. Wireshark
//! and tshark read everything; tcpdump reads files with one interface (libpcap 1.10.3 takes a
//! second interface of link type RAW for a different type). The crate `pcap-file` encodes the
//! blocks.
use pcap_file::DataLink;
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption, InterfaceTsResolution,
};
use pcap_file::pcapng::blocks::opt_common::CommonOption;
use pcap_file::pcapng::blocks::section_header::{SectionHeaderBlock, SectionHeaderOption};
use pcap_file::pcapng::{Block, PcapNgBlock, PcapNgWriteError, PcapNgWriter};
use std::borrow::Cow;
use std::io::{self, Write};
use std::time::Duration;

/// Longest option, bytes: its length has 16 bits.
const OPTION_MAX: usize = 65_535;

/// An interface of a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct InterfaceId(u32);

/// Direction of a packet, seen from the interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Received.
    Inbound,
    /// Sent.
    Outbound,
}

/// A record.
#[derive(Clone, Copy, Debug)]
pub struct Captured<'a> {
    /// The interface.
    pub interface: InterfaceId,
    /// Time, nanoseconds since 1970-01-01 00:00 UTC (or since the start, in virtual time).
    pub at: u64,
    /// Direction of the packet, if it has one.
    pub direction: Option<Direction>,
    /// Comments; tools show them with the packet and find them with `frame.comment`. Comments over
    /// 65535 bytes are cut.
    pub comments: &'a [String],
    /// The packet, from the IP header on.
    pub data: &'a [u8],
}

/// Writes a pcapng file.
pub struct PcapngWriter<W: Write> {
    writer: PcapNgWriter<W>,
    interfaces: u32,
    /// The error of a record that was not completely written: a reader could not find the next one.
    broken: Option<(io::ErrorKind, String)>,
}

impl<W: Write> PcapngWriter<W> {
    /// Writes the start of a file. Use a buffered writer, and call [`PcapngWriter::flush`] at the
    /// end.
    ///
    /// # Errors
    /// The writer fails.
    pub fn new(writer: W) -> io::Result<PcapngWriter<W>> {
        let section = SectionHeaderBlock {
            options: vec![SectionHeaderOption::UserApplication(Cow::Borrowed("firstbyte"))],
            ..SectionHeaderBlock::default()
        };
        let writer = PcapNgWriter::with_section_header(writer, section).map_err(into_io)?;
        Ok(PcapngWriter { writer, interfaces: 0, broken: None })
    }

    /// Adds an interface. An empty description is omitted.
    ///
    /// # Errors
    /// The writer fails; `InvalidData` for a name or description longer than 65535 bytes.
    pub fn add_interface(&mut self, name: &str, description: &str) -> io::Result<InterfaceId> {
        let mut options = vec![
            InterfaceDescriptionOption::IfName(Cow::Borrowed(name)),
            InterfaceDescriptionOption::IfTsResol(InterfaceTsResolution::NANO),
        ];
        if !description.is_empty() {
            options.push(InterfaceDescriptionOption::IfDescription(Cow::Borrowed(description)));
        }
        let block = InterfaceDescriptionBlock { linktype: DataLink::RAW, snaplen: 0, options };
        self.write(&block.into_block())?;
        let id = InterfaceId(self.interfaces);
        self.interfaces += 1;
        Ok(id)
    }

    /// Writes one record.
    ///
    /// # Errors
    /// The writer fails; `InvalidData` for an interface of another file.
    pub fn write_packet(&mut self, packet: &Captured<'_>) -> io::Result<()> {
        let comments = packet.comments.iter().map(|text| {
            EnhancedPacketOption::Common(CommonOption::Comment(Cow::Borrowed(cut(text, OPTION_MAX))))
        });
        let flags = packet.direction.map(|direction| {
            EnhancedPacketOption::Flags(match direction {
                Direction::Inbound => 0b01,
                Direction::Outbound => 0b10,
            })
        });
        let block = EnhancedPacketBlock {
            interface_id: packet.interface.0,
            timestamp: Duration::from_nanos(packet.at),
            original_len: packet.data.len() as u32,
            data: Cow::Borrowed(packet.data),
            options: flags.into_iter().chain(comments).collect(),
        };
        self.write(&block.into_block())
    }

    fn write(&mut self, block: &Block<'_>) -> io::Result<()> {
        self.sound()?;
        let written = self.writer.write_block(block).map_err(into_io);
        if let Err(error) = &written {
            self.broken = Some((error.kind(), error.to_string()));
        }
        written.map(|_| ())
    }

    fn sound(&self) -> io::Result<()> {
        self.broken.as_ref().map_or(Ok(()), |(kind, said)| Err(io::Error::new(*kind, said.clone())))
    }

    /// Flushes the writer.
    ///
    /// # Errors
    /// The writer fails, now or at an earlier record, which is missing in the file.
    pub fn flush(&mut self) -> io::Result<()> {
        self.writer.get_mut().flush()?;
        self.sound()
    }

    /// Returns the writer.
    pub fn get_ref(&self) -> &W {
        self.writer.get_ref()
    }

    /// Returns the writer without flushing it.
    pub fn into_inner(self) -> W {
        self.writer.into_inner()
    }
}

/// Returns the longest start of `text` of at most `max` bytes that ends between characters.
fn cut(text: &str, max: usize) -> &str {
    &text[..text.floor_char_boundary(max)]
}

fn into_io(error: PcapNgWriteError) -> io::Error {
    match error {
        PcapNgWriteError::Io(error) => error,
        other => io::Error::new(io::ErrorKind::InvalidData, other),
    }
}
