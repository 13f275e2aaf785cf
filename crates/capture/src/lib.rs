//! Capture files read and judged: what Fast Open did in each handshake, and what limited each connection.
//!
//! ```text
//!  file ──► decode ──► packet ──► table ──► connection ──► fast_open, limits
//!  pcap,    Ethernet,  TCP        which     both ways      the verdicts
//!  pcapng,  tunnels,   header     one is it
//!  gzip, zstd   IP
//! ```
//!
//! | module | what |
//! |---|---|
//! | [`mod@file`] | [`CaptureFile`]: frames out of pcap and pcapng, compressed or not, from any reader; how the file ended |
//! | `decode` | from a frame to a TCP segment: link types, tags, tunnels, IP, as leniently as a capture needs |
//! | [`tunnel`] | [`Tunnel`]: the tunnels that a segment was found in |
//! | [`packet`] | [`Packet`]: the headers of a TCP segment, also where the capture cut it short or its checksum was left to the device |
//! | [`table`] | [`Table`]: which connection a packet belongs to, in bounded memory |
//! | [`connection`] | [`Connection`]: the handshake, and each direction's sequence numbers, retransmissions, windows and round trips |
//! | [`event`] | [`Event`]: retransmission, keep-alive, window full … of one packet, in Wireshark's words |
//! | [`opening`] | [`Opening`]: how the attempt to open a connection ended, by name |
//! | [`fast_open`] | [`FastOpen`]: what the first flight says about Fast Open (RFC 7413), what it saved or cost |
//! | [`limits`] | [`Limit`]: what a sender waited for, interval by interval, judged at the place of capture |
//!
//! A capture is made at one place. What happens at the other end is known half a round trip later or never; the judgement therefore places
//! every acknowledgement at the sender's end by the round trip between the place of capture and the sender, which the handshake shows.
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
