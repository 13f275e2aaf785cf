//! Packets between values and bytes. Payload is zeros.

use crate::ast::{Body, Icmp, Ip, Packet, Segment, Tos};
use crate::options;
use bytes::Bytes;
use core::net::SocketAddr;
use wire::{Addr, Checksum, Ecn, Flags, IpHeader, TCP_CHECKSUM_OFFSET, TCP_HEADER_LEN, protocol};

/// A TCP packet, checksums and all. A missing window is 0.
pub(crate) fn emit(from: SocketAddr, to: SocketAddr, ip: &Ip, segment: &Segment) -> Bytes {
    let options = options::emit(segment.options.as_deref().unwrap_or_default());
    let (src_port, dst_port) = segment.ports.unwrap_or((from.port(), to.port()));
    let header_len = TCP_HEADER_LEN + options.len();
    let mut tcp = Vec::with_capacity(header_len + usize::from(segment.len));
    tcp.extend(src_port.to_be_bytes());
    tcp.extend(dst_port.to_be_bytes());
    tcp.extend(segment.seq.to_be_bytes());
    tcp.extend(segment.ack.unwrap_or(0).to_be_bytes());
    let words = u16::try_from(header_len / 4).unwrap_or(0);
    tcp.extend((words << 12 | segment.flags.bits()).to_be_bytes());
    tcp.extend(segment.window.unwrap_or(0).to_be_bytes());
    tcp.extend([0, 0]);
    tcp.extend(segment.urgent.unwrap_or(0).to_be_bytes());
    tcp.extend(options);
    tcp.resize(header_len + usize::from(segment.len), 0);
    let (src, dst) = (Addr::from(from.ip()), Addr::from(to.ip()));
    let sum = Checksum::pseudo_header(src, dst, protocol::TCP, tcp.len() as u32);
    set_checksum(sum, &mut tcp, TCP_CHECKSUM_OFFSET);
    packet(&header(src, dst, protocol::TCP, ip), &tcp)
}

/// A TCP packet of the stack: its ends and what is in it, all fields given.
pub(crate) fn read(packet: &[u8]) -> Option<(SocketAddr, SocketAddr, Ip, Segment)> {
    let (ip, payload) = IpHeader::parse(packet).ok()?;
    let tcp = packet.get(payload).filter(|_| ip.protocol == protocol::TCP)?;
    let fixed: &[u8; TCP_HEADER_LEN] = tcp.first_chunk()?;
    let [s0, s1, d0, d1, q0, q1, q2, q3, a0, a1, a2, a3, f0, f1, w0, w1, _, _, u0, u1] = *fixed;
    let header_len = usize::from(f0 >> 4) * 4;
    let options = options::read(tcp.get(TCP_HEADER_LEN..header_len)?);
    let segment = Segment {
        ports: None,
        flags: Flags::from_bits_truncate(u16::from_be_bytes([f0, f1])),
        ace: false,
        seq: u32::from_be_bytes([q0, q1, q2, q3]),
        len: u16::try_from(tcp.len() - header_len).ok()?,
        ack: Some(u32::from_be_bytes([a0, a1, a2, a3])),
        window: Some(u16::from_be_bytes([w0, w1])),
        urgent: Some(u16::from_be_bytes([u0, u1])),
        options: Some(options),
    };
    let said = ip_of(&ip);
    let src = SocketAddr::new(ip.src.to_ip(), u16::from_be_bytes([s0, s1]));
    let dst = SocketAddr::new(ip.dst.to_ip(), u16::from_be_bytes([d0, d1]));
    Some((src, dst, said, segment))
}

fn ip_of(ip: &IpHeader) -> Ip {
    Ip {
        tos: Some(Tos::Byte(ip.dscp << 2 | ip.ecn.bits())),
        flow_label: Some(ip.flow_label),
        ttl: Some(ip.hop_limit),
    }
}

/// What is wrong in a TCP packet of the stack whatever a script says of it: its checksum, or payload that nobody wrote.
pub(crate) fn wrong_in(packet: &[u8]) -> Option<&'static str> {
    let (ip, payload) = IpHeader::parse(packet).ok()?;
    let tcp = packet.get(payload)?;
    let mut sum = Checksum::pseudo_header(ip.src, ip.dst, ip.protocol, tcp.len() as u32);
    sum.add(tcp);
    if sum.finish() != 0 {
        return Some("a wrong checksum");
    }
    let header_len = usize::from(tcp.get(12)? >> 4) * 4;
    let written = tcp.get(header_len..)?.iter().all(|byte| *byte == 0);
    (!written).then_some("other bytes than were written: all are 0")
}

/// Could the packet be made, or be expected?
pub(crate) fn check(packet: &Packet, is_v4: bool) -> Result<(), String> {
    match &packet.body {
        Body::Tcp(_) => Ok(()),
        Body::Icmp(icmp) => numbers(icmp, is_v4).map(drop),
    }
}

/// Type and code of a message that says nothing which does not belong to them.
pub(crate) fn numbers(icmp: &Icmp, is_v4: bool) -> Result<(u8, u8), String> {
    let (kind, code) = kind_and_code(icmp, is_v4)?;
    let refused = |what: &str, belongs: &str| Err(format!("`{icmp}`: {what} belongs to {belongs} only"));
    match icmp.mtu {
        Some(_) if (kind, code) != too_big(is_v4) => {
            let name = if is_v4 { "`unreachable frag_needed`" } else { "`packet_too_big`" };
            return refused("`mtu`", name);
        }
        Some(mtu) if is_v4 && mtu > u16::MAX.into() => {
            return Err(format!("`mtu {mtu}` is out of range: ICMP of IPv4 has 16 bits for it"));
        }
        _ => {}
    }
    if icmp.id.is_some() && !is_echo(kind, is_v4) {
        return refused("`id`", "echoes");
    }
    if icmp.quote.is_some() && is_echo(kind, is_v4) {
        return refused("a segment in brackets", "errors");
    }
    Ok((kind, code))
}

/// Of "fragmentation needed" (RFC 792) and "packet too big" (RFC 4443 §3.2).
fn too_big(is_v4: bool) -> (u8, u8) {
    if is_v4 { (3, 4) } else { (2, 0) }
}

/// By its number, whatever it is called.
pub(crate) fn is_echo(kind: u8, is_v4: bool) -> bool {
    let echoes = KINDS.iter().filter(|(name, ..)| name.starts_with("echo"));
    echoes.map(|(_, v4, v6)| if is_v4 { *v4 } else { *v6 }).any(|echo| echo == Some(kind))
}

fn kind_and_code(icmp: &Icmp, is_v4: bool) -> Result<(u8, u8), String> {
    let kind = number(KINDS, is_v4, &icmp.kind, "type_").ok_or(format!("`{}` is no ICMP type", icmp.kind))?;
    let is_unreachable = kind == if is_v4 { 3 } else { 1 };
    let code = match &icmp.code {
        None => 0,
        Some(code) if !is_unreachable && !code.starts_with("code_") => {
            return Err(format!("`{code}`: only `unreachable` has codes by name, others `code_…`"));
        }
        Some(code) => number(CODES, is_v4, code, "code_").ok_or(format!("`{code}` is no ICMP code"))?,
    };
    Ok((kind, code))
}

/// An ICMP message of the stack. It sends no errors.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SeenIcmp {
    kind: u8,
    code: u8,
    /// Or whatever lies there.
    id: u16,
    pub(crate) ip: Ip,
}

pub(crate) fn read_icmp(packet: &[u8]) -> Option<SeenIcmp> {
    let (ip, payload) = IpHeader::parse(packet).ok()?;
    let is_icmp = ip.protocol == protocol::ICMP || ip.protocol == protocol::ICMPV6;
    let [kind, code, _, _, id @ .., _, _] = packet.get(payload).filter(|_| is_icmp)?.first_chunk::<8>()?;
    Some(SeenIcmp { kind: *kind, code: *code, id: u16::from_be_bytes(*id), ip: ip_of(&ip) })
}

/// Is it of this type and code? An identifier that is not said is not compared.
pub(crate) fn is_icmp(wanted: (u8, u8), id: Option<u16>, seen: SeenIcmp) -> bool {
    wanted == (seen.kind, seen.code) && id.is_none_or(|wanted| wanted == seen.id)
}

/// It in the script's words.
pub(crate) fn show_icmp(is_v4: bool, SeenIcmp { kind, code, id, .. }: SeenIcmp) -> Icmp {
    let known = KINDS.iter().find(|(_, v4, v6)| Some(kind) == if is_v4 { *v4 } else { *v6 });
    Icmp {
        kind: known.map_or_else(|| format!("type_{kind}"), |(name, ..)| (*name).to_owned()),
        code: (code != 0).then(|| format!("code_{code}")),
        mtu: None,
        id: is_echo(kind, is_v4).then_some(id),
        quote: None,
    }
}

/// An ICMP message from `remote`: an echo, or an error about a segment from `local`, which begins at `seq` on the wire.
pub(crate) fn emit_icmp(
    local: SocketAddr,
    remote: SocketAddr,
    ip: &Ip,
    icmp: &Icmp,
    seq: u32,
) -> Result<Bytes, String> {
    let is_v4 = local.is_ipv4();
    let (kind, code) = numbers(icmp, is_v4)?;
    let quoted = Segment {
        ports: None,
        flags: Flags::ACK,
        ace: false,
        seq,
        len: 0,
        ack: None,
        window: None,
        urgent: None,
        options: None,
    };
    let mut message = vec![kind, code, 0, 0];
    if is_echo(kind, is_v4) {
        // Its sequence number is 0, as packetdrill's.
        message.extend((u32::from(icmp.id.unwrap_or(0)) << 16).to_be_bytes());
    } else {
        message.extend(icmp.mtu.unwrap_or(0).to_be_bytes());
        message.extend(emit(local, remote, &Ip::default(), &quoted));
    }
    let (src, dst) = (Addr::from(remote.ip()), Addr::from(local.ip()));
    let protocol = if is_v4 { protocol::ICMP } else { protocol::ICMPV6 };
    let sum = if is_v4 {
        Checksum::new()
    } else {
        Checksum::pseudo_header(src, dst, protocol, message.len() as u32)
    };
    set_checksum(sum, &mut message, 2);
    Ok(packet(&header(src, dst, protocol, ip), &message))
}

fn header(src: Addr, dst: Addr, protocol: u8, ip: &Ip) -> IpHeader {
    let tos = match ip.tos {
        None => 0,
        Some(Tos::Ecn(ecn)) => ecn.bits(),
        Some(Tos::Ect01) => Ecn::Ect0.bits(),
        Some(Tos::Byte(byte)) => byte,
    };
    IpHeader {
        dscp: tos >> 2,
        ecn: Ecn::from_bits(tos),
        hop_limit: ip.ttl.unwrap_or(255),
        flow_label: ip.flow_label.unwrap_or(0),
        ..IpHeader::new(src, dst, protocol)
    }
}

fn packet(header: &IpHeader, payload: &[u8]) -> Bytes {
    let mut packet = vec![0; header.emit_len()];
    header.emit(payload.len(), &mut packet);
    packet.extend_from_slice(payload);
    packet.into()
}

fn set_checksum(mut sum: Checksum, message: &mut [u8], at: usize) {
    sum.add(message);
    message[at..at + 2].copy_from_slice(&sum.finish().to_be_bytes());
}

/// Names and their numbers in ICMP and in ICMPv6.
type Names = &'static [(&'static str, Option<u8>, Option<u8>)];

const KINDS: Names = &[
    ("unreachable", Some(3), Some(1)),
    ("packet_too_big", None, Some(2)),
    ("source_quench", Some(4), None),
    ("redirect", Some(5), None),
    ("time_exceeded", Some(11), Some(3)),
    ("parameter_problem", Some(12), Some(4)),
    ("echo_request", Some(8), Some(128)),
    ("echo_reply", Some(0), Some(129)),
];

const CODES: Names = &[
    ("net_unreachable", Some(0), Some(0)),
    ("no_route", None, Some(0)),
    ("host_unreachable", Some(1), None),
    ("admin_prohibited", None, Some(1)),
    ("protocol_unreachable", Some(2), None),
    ("not_neighbour", None, Some(2)),
    ("port_unreachable", Some(3), Some(4)),
    ("address_unreachable", None, Some(3)),
    ("frag_needed", Some(4), None),
    ("source_route_failed", Some(5), None),
    ("net_unknown", Some(6), None),
    ("host_unknown", Some(7), None),
    ("source_host_isolated", Some(8), None),
    ("net_prohibited", Some(9), None),
    ("host_prohibited", Some(10), None),
    ("net_unreachable_for_tos", Some(11), None),
    ("host_unreachable_for_tos", Some(12), None),
    ("packet_filtered", Some(13), None),
    ("precedence_violation", Some(14), None),
    ("precedence_cutoff", Some(15), None),
];

fn number(names: Names, is_v4: bool, text: &str, prefix: &str) -> Option<u8> {
    if let Some(number) = text.strip_prefix(prefix) {
        return number.parse().ok();
    }
    let (_, v4, v6) = names.iter().find(|(name, _, _)| *name == text)?;
    if is_v4 { *v4 } else { *v6 }
}
