//! Cases of those who have no connection, or write into somebody else's: stray segments, guessed
//! numbers, ICMP, headers, fragments.

use super::arena::Arena;
use super::case::Case;
use super::client::{Client, client, end_of_text, packet, usual};
use super::victim::{CLOSED_PORT, HOST, HOST_V6, PORT};
use crate::report::Failure;
use bytes::Bytes;
use core::net::{Ipv4Addr, SocketAddr};
use wire::{Addr, Checksum, Flags, Icmp, IcmpError, IpHeader, SeqNum, TcpHeader, protocol};

const FLOOD: u32 = 20_000;
const KIB: usize = 1024;

pub(super) const CASES: &[Case] = &[
    Case {
        name: "ACK flood without a connection",
        play: acks_to_nobody,
        most_cost: 10.0,
        most_pinned: 256 * KIB,
        most_sent_back: 1.1,
        beside_linux: true,
        bounded_by: "One table lookup. Resets are limited per peer, and no counter is shared by the whole host.",
    },
    Case {
        name: "ACK flood from one address without a connection",
        play: acks_of_one,
        most_cost: 4.0,
        most_pinned: 256 * KIB,
        most_sent_back: 0.2,
        beside_linux: true,
        bounded_by: "About 1,000 resets a second are sent to one peer.",
    },
    Case {
        name: "RST flood without a connection",
        play: resets_to_nobody,
        most_cost: 3.0,
        most_pinned: 256 * KIB,
        most_sent_back: 0.0,
        beside_linux: true,
        bounded_by: "One table lookup. A reset never gets an answer.",
    },
    Case {
        name: "SYN flood to a closed port",
        play: syns_to_closed_port,
        most_cost: 10.0,
        most_pinned: 256 * KIB,
        most_sent_back: 1.0,
        beside_linux: true,
        bounded_by: "As for the ACK flood: at most a reset, limited per peer.",
    },
    Case {
        name: "ACKs outside a connection's window",
        play: live_outside,
        most_cost: 4.0,
        most_pinned: 256 * KIB,
        most_sent_back: 0.2,
        beside_linux: true,
        bounded_by: "One answer per `tcp_invalid_ratelimit` (500 ms) and connection.",
    },
    Case {
        name: "RST flood inside a connection's window",
        play: live_resets,
        most_cost: 4.0,
        most_pinned: 256 * KIB,
        most_sent_back: 0.2,
        beside_linux: true,
        bounded_by: "Challenge ACKs, limited per connection (RFC 5961). No shared counter leaks information (CVE-2016-5696).",
    },
    Case {
        name: "SYN flood inside a connection's window",
        play: live_syns,
        most_cost: 4.0,
        most_pinned: 256 * KIB,
        most_sent_back: 0.2,
        beside_linux: true,
        bounded_by: "As for resets: challenge ACKs, limited per connection.",
    },
    Case {
        name: "data that acknowledges bytes not sent",
        play: live_injection,
        most_cost: 10.0,
        most_pinned: 256 * KIB,
        most_sent_back: 0.2,
        beside_linux: true,
        bounded_by: "Rejected because of the acknowledgement (RFC 5961 §5.2), and answered like a segment outside the window.",
    },
    Case {
        name: "ICMP of every kind, about a connection",
        play: every_icmp,
        most_cost: 4.0,
        most_pinned: 512 * KIB,
        most_sent_back: 0.2,
        beside_linux: true,
        bounded_by: "Only errors that quote a sequence number in flight count (RFC 5927). No error closes an open connection.",
    },
    Case {
        name: "ICMP echo flood from one address",
        play: echoes,
        most_cost: 4.0,
        most_pinned: 256 * KIB,
        most_sent_back: 0.2,
        beside_linux: true,
        bounded_by: "About 1,000 replies a second are sent to one peer, in addition to resets.",
    },
    Case {
        name: "path MTU lowered to the minimum",
        play: lowered_path_mtu,
        most_cost: 6.0,
        most_pinned: 512 * KIB,
        most_sent_back: 1.0,
        beside_linux: true,
        bounded_by: "`min_pmtu` (552) limits the reduction. Packets grow again after `mtu_expires`.",
    },
    Case {
        name: "chains of extension headers",
        play: extension_headers,
        most_cost: 10.0,
        most_pinned: 256 * KIB,
        most_sent_back: 1.1,
        beside_linux: true,
        bounded_by: "Each packet is parsed once, header by header, and nothing is stored.",
    },
    Case {
        name: "endless fragments",
        play: fragments,
        most_cost: 2.0,
        most_pinned: 64 * KIB,
        most_sent_back: 0.0,
        beside_linux: true,
        bounded_by: "Fragments are dropped. There is no reassembly, so nothing is stored.",
    },
    Case {
        name: "local ports guessed",
        play: guessed_ports,
        most_cost: 10.0,
        most_pinned: 256 * KIB,
        most_sent_back: 0.2,
        beside_linux: false,
        bounded_by: "Port and initial sequence number are keyed hashes (RFC 6056, RFC 6528). A correct guess of the port causes at most a reset as the reply, and the connection continues.",
    },
];

/// A header to this port, of which only numbers are filled in.
fn stray(peer: &Client, flags: Flags, port: u16) -> TcpHeader {
    TcpHeader { dst_port: port, ..peer.header(flags) }
}

fn flood(arena: &mut Arena, packet_of: impl FnMut(u32) -> Bytes) -> Result<(), Failure> {
    let packets: Vec<Bytes> = (0..FLOOD).map(packet_of).collect();
    arena.attack(&packets).map(drop)
}

fn acks_to_nobody(arena: &mut Arena) -> Result<(), Failure> {
    flood(arena, |number| {
        let peer = client(number);
        peer.segment(&stray(&peer, Flags::ACK, CLOSED_PORT), &[])
    })
}

fn acks_of_one(arena: &mut Arena) -> Result<(), Failure> {
    flood(arena, |number| {
        let peer = Client { from: client(0).from, ..client(number) };
        peer.segment(&stray(&peer, Flags::ACK, CLOSED_PORT), &[])
    })
}

fn resets_to_nobody(arena: &mut Arena) -> Result<(), Failure> {
    flood(arena, |number| {
        let peer = client(number);
        peer.segment(&stray(&peer, Flags::RST, PORT), &[])
    })
}

fn syns_to_closed_port(arena: &mut Arena) -> Result<(), Failure> {
    flood(arena, |number| {
        let peer = client(number);
        peer.segment(&TcpHeader { options: usual(1460), ..stray(&peer, Flags::SYN, CLOSED_PORT) }, &[])
    })
}

/// A connection at rest, and packets written into it.
fn into_connection(
    arena: &mut Arena,
    flags: Flags,
    text: &[u8],
    numbers: fn(&Client, u32) -> (SeqNum, SeqNum),
) -> Result<(), Failure> {
    let mut peer = client(0);
    peer.open(arena, usual(1460))?;
    flood(arena, |number| {
        let (seq, ack) = numbers(&peer, number);
        peer.segment(&TcpHeader { seq, ack, ..peer.header(flags) }, text)
    })
}

fn live_outside(arena: &mut Arena) -> Result<(), Failure> {
    into_connection(arena, Flags::ACK, &[], |peer, number| (peer.seq + (1 << 30) + number, peer.ack))
}

fn live_resets(arena: &mut Arena) -> Result<(), Failure> {
    into_connection(arena, Flags::RST, &[], |peer, number| (peer.seq + 1 + number, peer.ack))
}

fn live_syns(arena: &mut Arena) -> Result<(), Failure> {
    into_connection(arena, Flags::SYN, &[], |peer, number| (peer.seq + 1 + number, peer.ack))
}

fn live_injection(arena: &mut Arena) -> Result<(), Failure> {
    into_connection(arena, Flags::ACK, &[b'x'; 100], |peer, number| (peer.seq + number, peer.ack + (1 << 30)))
}

/// A connection of which much is in flight, and its first packet that is.
fn in_flight(arena: &mut Arena) -> Result<(Client, Bytes), Failure> {
    let mut peer = client(0);
    let connection = peer.open(arena, usual(1460))?;
    arena.victim.write(connection, 1 << 20)?;
    let sent = arena.prepare(&[])?;
    end_of_text(&sent).ok_or("nothing was sent")?;
    let first = sent.into_iter().next().ok_or("nothing was sent")?;
    Ok((peer, first))
}

/// An ICMP message of any type and code whose body quotes this packet.
fn icmp(from: Ipv4Addr, (kind, code): (u8, u8), word: u32, body: &[u8]) -> Bytes {
    let header = IpHeader::new(from.into(), HOST.into(), protocol::ICMP);
    let mut message = vec![kind, code, 0, 0];
    message.extend(word.to_be_bytes());
    message.extend(body);
    let mut sum = Checksum::new();
    sum.add(&message);
    message[2..4].copy_from_slice(&sum.finish().to_be_bytes());
    let mut packet = vec![0; header.emit_len()];
    header.emit(message.len(), &mut packet);
    packet.extend(message);
    packet.into()
}

fn every_icmp(arena: &mut Arena) -> Result<(), Failure> {
    let (peer, first) = in_flight(arena)?;
    let quote = &first[..first.len().min(48)];
    // Echo requests have a case of their own; of "fragmentation needed" the next one speaks.
    let kinds = (0..=u8::MAX).filter(|kind| *kind != 8);
    let messages = kinds.flat_map(|kind| (0..64).map(move |code| (kind, code)));
    let packets: Vec<Bytes> = messages
        .filter(|message| *message != (3, 4))
        .map(|message| icmp(peer.from, message, 0, quote))
        .collect();
    arena.attack(&packets).map(drop)
}

fn echoes(arena: &mut Arena) -> Result<(), Failure> {
    let from = client(0).from;
    flood(arena, |number| icmp(from, (8, 0), number, &[b'x'; 500]))
}

/// What is told again and again costs no more than the first time.
fn lowered_path_mtu(arena: &mut Arena) -> Result<(), Failure> {
    let (peer, first) = in_flight(arena)?;
    let error = IcmpError::PacketTooBig { mtu: 68 };
    let header = IpHeader::new(peer.from.into(), HOST.into(), protocol::ICMP);
    let told = wire::build_icmp_packet(&header, &Icmp::Error { error, quote: &first[..first.len().min(48)] });
    let answers = arena.attack(&vec![told; FLOOD as usize])?;
    let smallest = answers.iter().map(Bytes::len).min();
    if smallest.is_some_and(|len| len < 256) {
        return Err(format!("packets of {smallest:?} bytes").into());
    }
    Ok(())
}

/// Eight destination options headers before TCP.
fn extension_headers(arena: &mut Arena) -> Result<(), Failure> {
    const DESTINATION_OPTIONS: u8 = 60;
    flood(arena, |number| {
        let from: Addr = core::net::Ipv6Addr::new(0xfd09, 0, 0, number as u16, 0, 0, 1, 1).into();
        let ip = IpHeader::new(from, HOST_V6.into(), protocol::TCP);
        let syn = TcpHeader { flags: Flags::SYN, ..TcpHeader::new(5000, CLOSED_PORT) };
        let plain = wire::build_tcp_packet(&ip, &syn, &[]);
        let segment = &plain[ip.emit_len()..];
        let mut chain = Vec::new();
        for left in (0..8).rev() {
            let next = if left == 0 { protocol::TCP } else { DESTINATION_OPTIONS };
            // PadN over the rest of eight bytes.
            chain.extend([next, 0, 1, 4, 0, 0, 0, 0]);
        }
        chain.extend(segment);
        let outer = IpHeader { protocol: DESTINATION_OPTIONS, ..ip };
        let mut packet = vec![0; outer.emit_len()];
        outer.emit(chain.len(), &mut packet);
        packet.extend(chain);
        packet.into()
    })
}

/// The first fragment of packets whose rest never comes.
fn fragments(arena: &mut Arena) -> Result<(), Failure> {
    flood(arena, |number| {
        let ip = IpHeader {
            dont_fragment: false,
            ident: number as u16,
            ..IpHeader::new(client(number).from.into(), HOST.into(), protocol::TCP)
        };
        let mut packet = vec![0; ip.emit_len()];
        ip.emit(1000, &mut packet);
        packet.resize(1020, b'x');
        // More fragments, at offset 0; the header's sum anew.
        packet[6] = 0x20;
        packet[10..12].fill(0);
        let mut sum = Checksum::new();
        sum.add(&packet[..20]);
        let sum = sum.finish().to_be_bytes();
        packet[10..12].copy_from_slice(&sum);
        packet.into()
    })
}

/// A SYN-ACK to each port that a connection may have.
fn guessed_ports(arena: &mut Arena) -> Result<(), Failure> {
    let server = client(0);
    let ours = arena.ours()?;
    let id = ours.connect(SocketAddr::new(server.from.into(), server.port))?;
    arena.prepare(&[])?;
    let guesses: Vec<Bytes> = (32_768..61_000u16)
        .map(|port| {
            let flags = Flags::SYN | Flags::ACK;
            let header = TcpHeader {
                ack: SeqNum(u32::from(port).wrapping_mul(77_777)),
                flags,
                window: 1000,
                ..TcpHeader::new(server.port, port)
            };
            packet(server.from, &header, &[])
        })
        .collect();
    arena.attack(&guesses)?;
    match arena.ours()?.stack.info(id).map(|info| info.state) {
        Some(proto::State::SynSent) => Ok(()),
        state => Err(format!("the connection is {state:?}").into()),
    }
}
