//! Handmade packets and captures for tests that need no engine, and the expected packets of
//! outcomes.

use crate::capture::{Capture, HostId, PacketId, Place};
use crate::exchange::{Answer, Verdict};
use crate::segment::Segment;
use bytes::Bytes;
use core::net::SocketAddr;
use proto::{Instant, Outcome};
use wire::{Addr, Cookie, FastOpenKind, FastOpenOption, Flags, IpHeader, SeqNum, TcpHeader, protocol};

pub(crate) const CLIENT: HostId = HostId(0);
pub(crate) const SERVER: HostId = HostId(1);
pub(crate) const CLIENT_ISN: u32 = 1000;
pub(crate) const SERVER_ISN: u32 = u32::MAX - 10;

pub(crate) fn client_addr() -> SocketAddr {
    "192.0.2.1:40000".parse().unwrap()
}

pub(crate) fn server_addr() -> SocketAddr {
    "198.51.100.1:80".parse().unwrap()
}

/// Builds a segment between two addresses; `seq` and `ack` are relative to the ISNs above.
fn segment(src: SocketAddr, dst: SocketAddr, flags: Flags, seq: u32, ack: u32, len: usize) -> Segment {
    let (own, peer) = if src == server_addr() { (SERVER_ISN, CLIENT_ISN) } else { (CLIENT_ISN, SERVER_ISN) };
    let mut tcp = TcpHeader::new(src.port(), dst.port());
    tcp.seq = SeqNum(own) + seq;
    tcp.flags = flags;
    tcp.window = 64_240;
    if flags.contains(Flags::ACK) {
        tcp.ack = SeqNum(peer) + ack;
    }
    if flags.contains(Flags::SYN) {
        tcp.options.mss = Some(1460);
    }
    let ip = IpHeader::new(Addr::from(src.ip()), Addr::from(dst.ip()), protocol::TCP);
    Segment { ip, tcp, payload: Bytes::from(vec![b'x'; len]) }
}

pub(crate) fn from_client(flags: Flags, seq: u32, ack: u32, len: usize) -> Segment {
    segment(client_addr(), server_addr(), flags, seq, ack, len)
}

pub(crate) fn from_server(flags: Flags, seq: u32, ack: u32, len: usize) -> Segment {
    segment(server_addr(), client_addr(), flags, seq, ack, len)
}

pub(crate) fn a_cookie() -> Cookie {
    Cookie::new(&[0x1d, 0x0a, 0xa2, 0x46, 0xd0, 0x60, 0xbf, 0xfa]).unwrap()
}

impl Segment {
    pub(crate) fn with_fast_open(mut self, cookie: Option<Cookie>) -> Segment {
        self.tcp.options.fast_open = Some(FastOpenOption { kind: FastOpenKind::Standard, cookie });
        self
    }
}

/// A capture written packet by packet; each packet takes 20 ms.
#[derive(Default)]
pub(crate) struct Tape {
    seen: Vec<(u64, PacketId, Place, Bytes)>,
    packets: u64,
}

pub(crate) const ONE_WAY_MS: u64 = 20;

impl Tape {
    /// Adds a packet that arrives.
    pub(crate) fn packet(mut self, at_ms: u64, segment: Segment) -> Tape {
        let (from, to) = ends(&segment);
        let bytes = segment.emit();
        let id = self.next();
        self.seen.push((at_ms, id, Place::Left(from), bytes.clone()));
        self.seen.push((at_ms + ONE_WAY_MS, id, Place::Arrived(to), bytes));
        self
    }

    /// Adds a packet that is lost halfway.
    pub(crate) fn lost(mut self, at_ms: u64, by: &str, segment: Segment) -> Tape {
        let (from, _) = ends(&segment);
        let bytes = segment.emit();
        let id = self.next();
        self.seen.push((at_ms, id, Place::Left(from), bytes.clone()));
        self.seen.push((at_ms + ONE_WAY_MS / 2, id, Place::Lost { by: by.into() }, bytes));
        self
    }

    /// Adds a packet that arrives changed.
    pub(crate) fn changed(mut self, at_ms: u64, sent: Segment, received: Segment) -> Tape {
        let (from, to) = ends(&sent);
        let id = self.next();
        self.seen.push((at_ms, id, Place::Left(from), sent.emit()));
        self.seen.push((at_ms + ONE_WAY_MS, id, Place::Arrived(to), received.emit()));
        self
    }

    pub(crate) fn capture(mut self) -> Capture {
        self.seen.sort_by_key(|(at, ..)| *at);
        let mut capture = Capture::new();
        for (at_ms, id, place, bytes) in self.seen {
            capture.push(Instant::from_nanos(at_ms * 1_000_000), id, place, bytes);
        }
        capture
    }

    fn next(&mut self) -> PacketId {
        self.packets += 1;
        PacketId(self.packets)
    }
}

fn ends(segment: &Segment) -> (HostId, HostId) {
    if segment.src() == server_addr() { (SERVER, CLIENT) } else { (CLIENT, SERVER) }
}

/// A repeat visit to a server that puts the whole reply on the SYN-ACK: four packets.
pub(crate) fn four_packets() -> Capture {
    let fin_ack = Flags::FIN | Flags::ACK;
    Tape::default()
        .packet(0, from_client(Flags::SYN, 0, 0, 27).with_fast_open(Some(a_cookie())))
        .packet(20, from_server(Flags::SYN | Flags::ACK | Flags::FIN, 0, 28, 43))
        .packet(40, from_client(fin_ack, 28, 45, 0))
        .packet(60, from_server(Flags::ACK, 45, 29, 0))
        .capture()
}

/// Returns whether the stack's outcome of Fast Open agrees with its packets.
pub(crate) fn agrees(outcome: Outcome, verdict: Verdict) -> bool {
    use proto::NotAcknowledged as Why;
    let refused = |answer| verdict == Verdict::NotAcknowledged { answer };
    match outcome {
        Outcome::Accepted => verdict == Verdict::Accepted,
        Outcome::CookieRequested { granted } => verdict == Verdict::CookieRequested { granted },
        Outcome::Skipped(_) => verdict == Verdict::Plain,
        Outcome::NotAcknowledged(Why::StaleCookie) => refused(Answer::NewCookie),
        Outcome::NotAcknowledged(Why::Busy) => refused(Answer::SameCookie),
        Outcome::NotAcknowledged(Why::Ignored) => refused(Answer::NoOption),
        Outcome::NotAcknowledged(Why::Partial) => verdict == Verdict::Partial,
        Outcome::NotAcknowledged(Why::Lost | Why::TooBig | Why::OldConnection) => verdict == Verdict::Lost,
        // Our stack never reports the others.
        Outcome::NotAcknowledged(Why::Reset | Why::Unknown) => false,
        Outcome::Pending | Outcome::CookieAsked | Outcome::Unknown => false,
    }
}
