//! Ethernet and its payloads: tags, LLC, PPPoE, MPLS, and bridges within bridges.

use super::layer::{Bytes, Layer};
use super::ppp;
use crate::packet::NotTcp;
use crate::tunnel::{Tunnel, Tunnels};

pub(super) const PPPOE_SESSION: u16 = 0x8864;

/// Destination, source, type.
const HEADER_LEN: usize = 14;

/// Types of tags: bytes of the tag, then another type follows. VLAN tags do not count as tunnels.
const TAGS: [(u16, usize, Option<Tunnel>); 10] = [
    (0x8100, 2, None),
    (0x88a8, 2, None),
    (0x9100, 2, None),
    (0x9200, 2, None),
    (0x9300, 2, None),
    (0x8909, 6, Some(Tunnel::CiscoMetadata)),
    (0x8926, 4, Some(Tunnel::VnTag)),
    (0x893f, 6, Some(Tunnel::ETag)),
    (0x892f, 4, Some(Tunnel::Hsr)),
    // Marvell's tag in a switch (`LINKTYPE_DSA_TAG_EDSA`).
    (0xdada, 6, None),
];

/// Largest value that is a length and not a type (IEEE 802.3).
const LENGTH_MAX: u16 = 1500;

/// Returns the payload of an Ethernet frame.
pub(super) fn inside<'a>(frame: Bytes<'a>, tunnels: &mut Tunnels) -> Result<Layer<'a>, NotTcp> {
    let ether_type = frame.u16(12)?;
    let payload = frame.after(HEADER_LEN)?;
    if ether_type > LENGTH_MAX {
        return Ok(Layer::EtherType(ether_type, payload));
    }
    // Cisco's inter-switch link, recognized by its group address. A whole frame follows.
    if matches!(frame.array(0)?, [0x01 | 0x03, 0x00, 0x0c, 0x00, 0x00]) {
        const ISL_LEN: usize = 26;
        tunnels.push(Tunnel::Isl);
        return Ok(Layer::Ethernet(frame.after(ISL_LEN)?));
    }
    Ok(Layer::Llc(payload))
}

/// Returns the payload of an EtherType.
pub(super) fn inside_type<'a>(
    ether_type: u16,
    bytes: Bytes<'a>,
    tunnels: &mut Tunnels,
) -> Result<Layer<'a>, NotTcp> {
    let mut wrapped = |tunnel, layer| {
        tunnels.push(tunnel);
        Ok(layer)
    };
    match ether_type {
        0x0800 | 0x86dd => Ok(Layer::Ip(bytes)),
        0x8847 | 0x8848 => wrapped(Tunnel::Mpls, Layer::Mpls(bytes)),
        PPPOE_SESSION => wrapped(Tunnel::Pppoe, Layer::Ppp(bytes.after(6)?)),
        0x88e7 => wrapped(Tunnel::Pbb, Layer::Ethernet(bytes.after(4)?)),
        0x8903 => wrapped(Tunnel::FabricPath, Layer::Ethernet(bytes.after(2)?)),
        0x22f3 => wrapped(Tunnel::Trill, Layer::Ethernet(bytes.after(trill_len(bytes)?)?)),
        0x894f => wrapped(Tunnel::Nsh, Layer::Nsh(bytes)),
        0x88e5 => {
            let len = mac_sec_len(bytes)?;
            wrapped(Tunnel::MacSec, Layer::EtherType(bytes.u16(len)?, bytes.after(len + 2)?))
        }
        0x6558 => Ok(Layer::Ethernet(bytes)),
        0x880b => Ok(Layer::Ppp(bytes)),
        0x8870 => Ok(Layer::Llc(bytes)),
        // Linux cooked captures of loopback and of tunnels also have lengths.
        ..=LENGTH_MAX => Ok(Layer::Llc(bytes)),
        _ => match TAGS.iter().find(|(tag, ..)| *tag == ether_type) {
            Some((_, len, tunnel)) => {
                tunnel.iter().for_each(|tunnel| tunnels.push(*tunnel));
                let (next, payload) = (bytes.u16(*len)?, bytes.after(len + 2)?);
                Ok(if next > LENGTH_MAX { Layer::EtherType(next, payload) } else { Layer::Llc(payload) })
            }
            None => Err(NotTcp::Protocol),
        },
    }
}

/// Returns the length of a TRILL header. The length of its options, in words, crosses a byte
/// boundary.
fn trill_len(bytes: Bytes<'_>) -> Result<usize, NotTcp> {
    Ok(6 + usize::from(bytes.u16(0)? >> 6 & 0x1f) * 4)
}

/// Returns the length of a MACsec tag, unless it encrypts.
fn mac_sec_len(bytes: Bytes<'_>) -> Result<usize, NotTcp> {
    const HAS_CHANNEL: u8 = 0x20;
    const IS_ENCRYPTED: u8 = 0x08;
    let flags = bytes.u8(0)?;
    match flags & IS_ENCRYPTED {
        0 => Ok(if flags & HAS_CHANNEL != 0 { 14 } else { 6 }),
        _ => Err(NotTcp::Encrypted),
    }
}

/// Returns the payload of a frame with LLC.
pub(super) fn inside_llc(bytes: Bytes<'_>) -> Result<Layer<'_>, NotTcp> {
    const UNNUMBERED: u8 = 3;
    let payload = bytes.after(3)?;
    match bytes.array(0)? {
        [0xaa, 0xaa, UNNUMBERED] => ppp::snap(payload),
        [0x06, 0x06, UNNUMBERED] => Ok(Layer::Ip(payload)),
        [0xfe, 0xfe, UNNUMBERED] => ppp::network_layer(payload),
        _ => Err(NotTcp::Protocol),
    }
}

/// Returns the packet behind MPLS labels. No label names its type. IP is recognized by its version.
/// A pseudowire may have a control word (RFC 4385).
pub(super) fn inside_mpls(mut bytes: Bytes<'_>) -> Result<Layer<'_>, NotTcp> {
    const LABEL_LEN: usize = 4;
    const IS_LAST: u8 = 1;
    loop {
        let is_last = bytes.u8(2)? & IS_LAST != 0;
        bytes = bytes.after(LABEL_LEN)?;
        if is_last {
            break;
        }
    }
    match bytes.u8(0)? >> 4 {
        4 | 6 => Ok(Layer::Ip(bytes)),
        // A test channel of the pseudowire.
        1 => Err(NotTcp::Protocol),
        0 if !is_ethernet(bytes) => Ok(Layer::Ethernet(bytes.after(4)?)),
        _ if is_ethernet(bytes) => Ok(Layer::Ethernet(bytes)),
        _ => Err(NotTcp::Protocol),
    }
}

/// Returns whether an Ethernet frame with a known type may start here.
fn is_ethernet(bytes: Bytes<'_>) -> bool {
    let known = |ether_type| {
        matches!(ether_type, 0x0800 | 0x86dd | 0x0806 | 0x8847 | 0x8848 | PPPOE_SESSION)
            || TAGS.iter().any(|(tag, ..)| *tag == ether_type)
    };
    bytes.u16(12).is_ok_and(known)
}

/// Returns the packet behind a network service header, whose fourth byte names the type.
pub(super) fn inside_nsh(bytes: Bytes<'_>) -> Result<Layer<'_>, NotTcp> {
    let len = usize::from(bytes.u16(0)? & 0x3f) * 4;
    let payload = bytes.after(len.max(8))?;
    next_protocol(bytes.u8(3)?, payload)
}

/// Returns the payload that a "next protocol" of NSH or VXLAN-GPE names.
pub(super) fn next_protocol(protocol: u8, payload: Bytes<'_>) -> Result<Layer<'_>, NotTcp> {
    match protocol {
        1 | 2 => Ok(Layer::Ip(payload)),
        3 => Ok(Layer::Ethernet(payload)),
        4 => Ok(Layer::Nsh(payload)),
        5 => Ok(Layer::Mpls(payload)),
        _ => Err(NotTcp::Protocol),
    }
}
