//! Serial lines: PPP (RFC 1661), Cisco HDLC, Frame Relay (RFC 2427).

use super::layer::{Bytes, Layer};
use crate::packet::NotTcp;

const ADDRESS: u8 = 0xff;
const CONTROL: u8 = 0x03;

/// Decodes PPP in HDLC-like frames. Cisco HDLC is recognized by its address.
pub(super) fn framed(frame: Bytes<'_>) -> Result<Layer<'_>, NotTcp> {
    match frame.array(0)? {
        [0x0f | 0x8f, 0] => cisco(frame),
        // Some systems write the direction in place of the address.
        [0 | 1, CONTROL] => Ok(Layer::Ppp(frame.after(2)?)),
        _ => Ok(Layer::Ppp(frame)),
    }
}

/// Returns the packet of a PPP protocol. Address and control may be left out, and the protocol may
/// be one byte (RFC 1661 section 6).
pub(super) fn inside(frame: Bytes<'_>) -> Result<Layer<'_>, NotTcp> {
    let frame = if frame.data.starts_with(&[ADDRESS, CONTROL]) { frame.after(2)? } else { frame };
    let (protocol, packet) = match frame.u8(0)? {
        short if short & 1 == 1 => (short.into(), frame.after(1)?),
        _ => (frame.u16(0)?, frame.after(2)?),
    };
    match protocol {
        0x0021 | 0x0057 => Ok(Layer::Ip(packet)),
        0x0281 | 0x0283 => Ok(Layer::Mpls(packet)),
        // Bridged (RFC 3518): flags, and the kind of address. 1 is Ethernet.
        0x0031 if packet.u8(1)? == 1 => Ok(Layer::Ethernet(packet.after(2)?)),
        0x003d => multilink(packet),
        _ => Err(NotTcp::Protocol),
    }
}

/// Decodes Multilink with long sequence numbers (RFC 1990). The first fragment has the packet's
/// headers.
fn multilink(packet: Bytes<'_>) -> Result<Layer<'_>, NotTcp> {
    const IS_FIRST: u8 = 0x80;
    if packet.u8(0)? & IS_FIRST == 0 { Err(NotTcp::Fragment) } else { Ok(Layer::Ppp(packet.after(4)?)) }
}

/// Decodes Cisco HDLC: address, control, EtherType.
pub(super) fn cisco(frame: Bytes<'_>) -> Result<Layer<'_>, NotTcp> {
    Ok(Layer::EtherType(frame.u16(2)?, frame.after(4)?))
}

/// Decodes Frame Relay: an address of two to four bytes, then a network layer protocol or Cisco's
/// EtherType.
pub(super) fn frame_relay(frame: Bytes<'_>) -> Result<Layer<'_>, NotTcp> {
    const ADDRESS_MAX: usize = 4;
    const IS_LAST: u8 = 1;
    let mut address_len = 1;
    while frame.u8(address_len - 1)? & IS_LAST == 0 {
        address_len += 1;
        if address_len > ADDRESS_MAX {
            return Err(NotTcp::Malformed);
        }
    }
    let frame = frame.after(address_len)?;
    match frame.array(0)? {
        [CONTROL, 0] => network_layer(frame.after(2)?),
        [CONTROL, _] => network_layer(frame.after(1)?),
        ether_type => Ok(Layer::EtherType(u16::from_be_bytes(ether_type), frame.after(2)?)),
    }
}

/// Decodes a network layer protocol identifier (ISO/IEC TR 9577) and its packet.
pub(super) fn network_layer(bytes: Bytes<'_>) -> Result<Layer<'_>, NotTcp> {
    let packet = bytes.after(1)?;
    match bytes.u8(0)? {
        0xcc | 0x8e => Ok(Layer::Ip(packet)),
        0x80 => snap(packet),
        0xcf => Ok(Layer::Ppp(packet)),
        _ => Err(NotTcp::Protocol),
    }
}

/// Decodes organization and protocol (IEEE 802.2 SNAP).
pub(super) fn snap(bytes: Bytes<'_>) -> Result<Layer<'_>, NotTcp> {
    let [o0, o1, o2, p0, p1] = bytes.array(0)?;
    let packet = bytes.after(5)?;
    match ([o0, o1, o2], u16::from_be_bytes([p0, p1])) {
        ([0, 0, 0] | [0, 0, 0xf8], ether_type) => Ok(Layer::EtherType(ether_type, packet)),
        // Bridged Ethernet (RFC 2684), with or without its frame check sequence.
        ([0, 0x80, 0xc2], 1 | 7) => Ok(Layer::Ethernet(packet)),
        _ => Err(NotTcp::Protocol),
    }
}
