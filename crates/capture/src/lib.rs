//! Reads capture files, and judges each connection: what Fast Open did in its handshake, and what
//! limited its rate.
//!
//! ```text
//!  file ──► decode ──► packet ──► table ──► connection ──► fast_open, limits
//!  pcap,    Ethernet,  TCP        finds the  both          verdicts
//!  pcapng,  tunnels,   header     connection directions
//!  gzip, zstd   IP
//! ```
//!
//! | module | subject |
//! |---|---|
//! | [`mod@file`] | [`CaptureFile`]: frames of pcap and pcapng files, compressed or not, from any reader |
//! | `decode` | finds the TCP segment of a frame: link types, tags, tunnels, IP |
//! | [`tunnel`] | [`Tunnel`]: the tunnels around a segment |
//! | [`packet`] | [`Packet`]: the headers of a TCP segment, even if cut short or without a checksum |
//! | [`table`] | [`Table`]: finds the connection of a packet, in bounded memory |
//! | [`connection`] | [`Connection`]: handshake, sequence numbers, retransmissions, windows, round trips |
//! | [`event`] | [`Event`]: retransmission, keep-alive, window full … of one packet, named like Wireshark |
//! | [`opening`] | [`Opening`]: how the attempt to open a connection ended |
//! | [`fast_open`] | [`FastOpen`]: the outcome of Fast Open (RFC 7413), and the time it saved or cost |
//! | [`limits`] | [`Limit`]: the limit of a sender in each interval |
//!
//! A capture shows one place on the path. An acknowledgement reaches the sender later than the
//! place of capture, or earlier. The judgement shifts each acknowledgement by the round trip
//! between the place of capture and the sender, which the handshake shows.
//!
//! ```
//! use firstbyte_capture::{CaptureFile, End, Table};
//!
//! let empty_pcap = [0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 101, 0, 0, 0];
//! let mut file = CaptureFile::open(&empty_pcap[..]).unwrap();
//! let mut table = Table::default();
//! while let Some(frame) = file.next_frame() {
//!     if let Ok(packet) = frame.tcp() {
//!         table.handle(&packet, &mut |connection| println!("{}", connection.fast_open()));
//!     }
//! }
//! assert!(matches!(file.end(), End::Whole));
//! ```
#![forbid(unsafe_code)]

pub mod connection;
mod decode;
pub mod event;
pub mod fast_open;
pub mod file;
pub mod icmp;
pub mod limits;
pub mod opening;
pub mod packet;
pub mod table;
pub mod tunnel;

pub use connection::{Connection, Endpoint, Side};
pub use event::{Event, Events};
pub use fast_open::{Answer, Effect, FastOpen};
pub use file::{CaptureFile, End, Frame, Oddity, OpenError};
pub use icmp::{IcmpError, Unreachable};
pub use limits::{Limit, Sender};
pub use opening::Opening;
pub use packet::{NotTcp, Packet};
pub use table::Table;
pub use tunnel::{Tunnel, Tunnels};
