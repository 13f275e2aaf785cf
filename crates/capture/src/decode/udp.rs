//! Tunnels over UDP, recognized by their registered ports. A payload that does not match its port
//! is not treated as a tunnel.

use super::ethernet;
use super::layer::{Bytes, Dot11, Layer};
use crate::packet::NotTcp;
use crate::tunnel::{Tunnel, Tunnels};

/// Decodes the payload of one kind of tunnel.
type Reader = for<'a> fn(Bytes<'a>) -> Result<Layer<'a>, NotTcp>;

/// Ports and their tunnels. 8472 is Linux's default for VXLAN.
const PORTS: [(u16, Tunnel, Reader); 15] = [
    (4789, Tunnel::Vxlan, vxlan),
    (8472, Tunnel::Vxlan, vxlan),
    (4790, Tunnel::VxlanGpe, vxlan_gpe),
    (6081, Tunnel::Geneve, geneve),
    (2152, Tunnel::GtpU, gtp),
    (3386, Tunnel::GtpU, gtp),
    (1701, Tunnel::L2tp, l2tp),
    (3544, Tunnel::Teredo, teredo),
    (6635, Tunnel::Mpls, mpls),
    (4341, Tunnel::Lisp, lisp),
    (5247, Tunnel::Capwap, capwap),
    (5072, Tunnel::Ayiya, ayiya),
    (6080, Tunnel::Gue, gue),
    (37008, Tunnel::Tzsp, tzsp),
    (0x9090, Tunnel::Tzsp, tzsp),
];

const GRE_IN_UDP: u16 = 4754;

/// Returns the payload of a UDP packet that is a tunnel.
pub(super) fn inside<'a>(bytes: Bytes<'a>, tunnels: &mut Tunnels) -> Result<Layer<'a>, NotTcp> {
    const HEADER_LEN: usize = 8;
    let ports = [bytes.u16(2)?, bytes.u16(0)?];
    // The GRE decoder records GRE in UDP (RFC 8086).
    if ports.contains(&GRE_IN_UDP) {
        return Ok(Layer::Gre(bytes.after(HEADER_LEN)?));
    }
    let tunnel = PORTS.iter().find(|(port, ..)| ports.contains(port));
    let (_, tunnel, read) = tunnel.ok_or(NotTcp::Protocol)?;
    tunnels.push(*tunnel);
    read(bytes.after(HEADER_LEN)?)
}

fn vxlan(bytes: Bytes<'_>) -> Result<Layer<'_>, NotTcp> {
    const HAS_NETWORK: u8 = 0x08;
    match bytes.u8(0)? & HAS_NETWORK {
        0 => Err(NotTcp::Protocol),
        _ => Ok(Layer::Ethernet(bytes.after(8)?)),
    }
}

fn vxlan_gpe(bytes: Bytes<'_>) -> Result<Layer<'_>, NotTcp> {
    const HAS_PROTOCOL: u8 = 0x04;
    match bytes.u8(0)? & HAS_PROTOCOL {
        0 => vxlan(bytes),
        _ => ethernet::next_protocol(bytes.u8(3)?, bytes.after(8)?),
    }
}

fn geneve(bytes: Bytes<'_>) -> Result<Layer<'_>, NotTcp> {
    const OPTIONS_LEN: u8 = 0x3f;
    match bytes.u8(0)? {
        first if first & !OPTIONS_LEN == 0 => {
            let options_len = usize::from(first & OPTIONS_LEN) * 4;
            Ok(Layer::EtherType(bytes.u16(2)?, bytes.after(8 + options_len)?))
        }
        _ => Err(NotTcp::Protocol),
    }
}

/// Decodes GTP-U version 1 with its extension headers (3GPP TS 29.281 section 5.2), and the first
/// version of GTP (TS 09.60).
fn gtp(bytes: Bytes<'_>) -> Result<Layer<'_>, NotTcp> {
    const PACKET: u8 = 255;
    const HAS_MORE: u8 = 0x07;
    const HAS_EXTENSION: u8 = 0x04;
    let [flags, message] = bytes.array(0)?;
    if message != PACKET || flags & 0x10 == 0 {
        return Err(NotTcp::Protocol);
    }
    let mut len = match flags >> 5 {
        0 => 20,
        1 if flags & HAS_MORE != 0 => 12,
        1 => 8,
        _ => return Err(NotTcp::Protocol),
    };
    let mut has_extension = flags >> 5 == 1 && flags & HAS_EXTENSION != 0;
    while has_extension && bytes.u8(len - 1)? != 0 {
        let words = usize::from(bytes.u8(len)?);
        has_extension = words > 0;
        len += words * 4;
    }
    let packet = bytes.after(len)?;
    match packet.is_ip() {
        true => Ok(Layer::Ip(packet)),
        false => Err(NotTcp::Protocol),
    }
}

/// Decodes data messages of L2TP version 2, which carry PPP.
fn l2tp(bytes: Bytes<'_>) -> Result<Layer<'_>, NotTcp> {
    const IS_CONTROL: u16 = 0x8000;
    const HAS_LENGTH: u16 = 0x4000;
    const HAS_SEQUENCE: u16 = 0x0800;
    const HAS_OFFSET: u16 = 0x0200;
    let flags = bytes.u16(0)?;
    if flags & IS_CONTROL != 0 || flags & 0x0f != 2 {
        return Err(NotTcp::Protocol);
    }
    let has = |flag: u16| usize::from(flags & flag != 0);
    let mut len = 6 + 2 * has(HAS_LENGTH) + 4 * has(HAS_SEQUENCE);
    if has(HAS_OFFSET) == 1 {
        len += 2 + usize::from(bytes.u16(len)?);
    }
    Ok(Layer::Ppp(bytes.after(len)?))
}

/// Decodes Teredo. Authentication and the client's address may come before the packet (RFC 4380
/// section 5.1.1).
fn teredo(mut bytes: Bytes<'_>) -> Result<Layer<'_>, NotTcp> {
    if let [0, 1, id_len, value_len] = bytes.array(0)? {
        bytes = bytes.after(13 + usize::from(id_len) + usize::from(value_len))?;
    }
    if bytes.u16(0)? == 0 {
        bytes = bytes.after(8)?;
    }
    match bytes.u8(0)? >> 4 {
        6 => Ok(Layer::Ip(bytes)),
        _ => Err(NotTcp::Protocol),
    }
}

fn mpls(bytes: Bytes<'_>) -> Result<Layer<'_>, NotTcp> {
    Ok(Layer::Mpls(bytes))
}

fn lisp(bytes: Bytes<'_>) -> Result<Layer<'_>, NotTcp> {
    let packet = bytes.after(8)?;
    if packet.is_ip() { Ok(Layer::Ip(packet)) } else { Err(NotTcp::Protocol) }
}

/// Decodes Wi-Fi or Ethernet frames between an access point and its controller.
fn capwap(bytes: Bytes<'_>) -> Result<Layer<'_>, NotTcp> {
    const IS_ENCRYPTED: u8 = 1;
    const IS_WIFI: u8 = 0x01;
    const IS_FRAGMENT: u8 = 0x80;
    let [preamble, len, _, flags] = bytes.array(0)?;
    let frame = bytes.after(usize::from(len >> 3) * 4)?;
    match flags {
        _ if preamble & 0x0f == IS_ENCRYPTED => Err(NotTcp::Encrypted),
        _ if flags & IS_FRAGMENT != 0 && bytes.u16(6)? >> 3 != 0 => Err(NotTcp::Fragment),
        _ if bytes.u8(2)? & IS_WIFI != 0 => Ok(Layer::Wifi(Dot11 { frame, is_padded: false })),
        _ => Ok(Layer::Ethernet(frame)),
    }
}

/// Decodes AYIYA: an identity and a signature, whose lengths are in the first bytes, then the
/// packet.
fn ayiya(bytes: Bytes<'_>) -> Result<Layer<'_>, NotTcp> {
    const IPV4: u8 = 4;
    const IPV6: u8 = 41;
    const IS_FORWARD: u8 = 1;
    let [identity, signature, operation, next] = bytes.array(0)?;
    let len = 8 + (1 << (identity >> 4)) + usize::from(signature >> 4) * 4;
    match (operation & 0x0f, next) {
        (IS_FORWARD, IPV4 | IPV6) => Ok(Layer::Ip(bytes.after(len)?)),
        _ => Err(NotTcp::Protocol),
    }
}

/// Decodes Generic UDP encapsulation: an IP protocol, or an IP packet without a GUE header (variant
/// 1).
fn gue(bytes: Bytes<'_>) -> Result<Layer<'_>, NotTcp> {
    const IPV4: u8 = 4;
    const IPV6: u8 = 41;
    let [first, protocol] = bytes.array(0)?;
    match (first >> 6, protocol) {
        (0, IPV4 | IPV6) => Ok(Layer::Ip(bytes.after(4 + usize::from(first & 0x1f) * 4)?)),
        (1, _) => Ok(Layer::Ip(bytes)),
        _ => Err(NotTcp::Protocol),
    }
}

/// Decodes a sniffer's frames: tags up to an end tag, then Ethernet or Wi-Fi.
fn tzsp(bytes: Bytes<'_>) -> Result<Layer<'_>, NotTcp> {
    const PADDING: u8 = 0;
    const END: u8 = 1;
    let protocol = bytes.u16(2)?;
    let mut at = 4;
    loop {
        at += match bytes.u8(at)? {
            END => break,
            PADDING => 1,
            _ => 2 + usize::from(bytes.u8(at + 1)?),
        };
    }
    let frame = bytes.after(at + 1)?;
    match protocol {
        1 => Ok(Layer::Ethernet(frame)),
        18 => Ok(Layer::Wifi(Dot11 { frame, is_padded: false })),
        _ => Err(NotTcp::Protocol),
    }
}
