//! Converts bytes to values and back: IPv4, IPv6, ICMP, TCP and its options; sequence numbers;
//! checksums.
//!
//! The crate has no state, no clock and no OS. Every `parse` accepts any bytes and never panics.
//! Every `emit` writes bytes that `parse` reads back.
//!
//! | module | subject |
//! |---|---|
//! | `addr`, `seq` | [`Addr`]: one type for both IP versions; [`SeqNum`]: arithmetic modulo 2³² |
//! | `checksum` | the Internet checksum over 64-bit words, alone or combined with a copy |
//! | `ip` | [`IpHeader`]: IPv4 and IPv6, with options and extension headers skipped or rejected |
//! | `tcp` | [`TcpHeader`], [`TcpOptions`], [`Cookie`] |
//! | `icmp` | [`Icmp`], and [`QuotedTcp`]: the segment that an ICMP error quotes |
//! | `packet` | [`RxBatch`], [`RxPacket`], [`TxPacket`]: packets of a device, software GSO |
//! | `assemble` | whole packets in one call: [`build_tcp_packet`], [`parse_tcp_packet`] |
//! | `display` | [`Summary`]: any packet in one line, like tcpdump |
//!
//! The crate rejects fragments instead of reassembling them, and knows UDP only by number. The
//! engine interprets the values.
//!
//! ```
//! use firstbyte_wire::{Flags, IpHeader, SeqNum, Summary, TcpHeader, build_tcp_packet, parse_tcp_packet, protocol};
//! let src = core::net::Ipv4Addr::new(10, 0, 0, 1).into();
//! let dst = core::net::Ipv4Addr::new(10, 0, 0, 2).into();
//! let ip = IpHeader::new(src, dst, protocol::TCP);
//! let tcp = TcpHeader { seq: SeqNum(7), flags: Flags::SYN, window: 64240, ..TcpHeader::new(40000, 80) };
//! let packet = build_tcp_packet(&ip, &tcp, b"GET /");
//! assert_eq!(parse_tcp_packet(&packet).map(|(_, tcp, _)| tcp), Ok(tcp));
//! assert_eq!(
//!     Summary(&packet).to_string(),
//!     "IP 10.0.0.1.40000 > 10.0.0.2.80: Flags [S], seq 7:12, win 64240, length 5",
//! );
//! ```
#![no_std]
#![forbid(unsafe_code)]

#[macro_use]
extern crate alloc;
#[cfg(test)]
extern crate std;

mod addr;
mod assemble;
mod checksum;
mod display;
mod icmp;
mod ip;
mod packet;
mod seq;
mod tcp;

pub use addr::Addr;
pub use assemble::{PacketError, build_icmp_packet, build_tcp_packet, parse_tcp_packet, set_checksum};
pub use checksum::Checksum;
pub use display::Summary;
pub use icmp::{Icmp, IcmpError, IcmpParseError, QuotedTcp};
pub use ip::{Ecn, IpError, IpHeader, protocol};
pub use packet::{
    Arrival, Capabilities, GroRun, Layout, MAX_HEADER, PlainSegment, RxBatch, RxChecksum, RxData, RxPacket,
    Segments, TEXT_MOST, TxChecksum, TxPacket, ends_of,
};
pub use seq::SeqNum;
pub(crate) use tcp::lone_timestamps;
pub use tcp::{
    AccurateEcnOption, AccurateEcnOrder, Cookie, FastOpenKind, FastOpenOption, Flags, SIGNATURE_LEN,
    SIGNATURE_OPTION_LEN, SackBlocks, TCP_CHECKSUM_OFFSET, TCP_HEADER_LEN, TCP_OPTIONS_MAX, TcpError,
    TcpHeader, TcpOptions, Timestamps, USUAL_COOKIE_LEN, USUAL_SYN_LEN, UnknownOption, UnknownOptions,
    UsualSyn, accurate_ecn_difference, signature, signature_in,
};
