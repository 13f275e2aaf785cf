//! GRE (RFC 2784, 2890), PPTP's version of it (RFC 2637), ERSPAN and WCCP in it.

use super::layer::{Bytes, Dot11, Layer};
use crate::packet::NotTcp;
use crate::tunnel::{Tunnel, Tunnels};

const HAS_CHECKSUM: u16 = 0x8000;
const HAS_ROUTING: u16 = 0x4000;
const HAS_KEY: u16 = 0x2000;
const HAS_SEQUENCE: u16 = 0x1000;
const HAS_ACKNOWLEDGEMENT: u16 = 0x0080;
const VERSION: u16 = 0x0007;

const ERSPAN_II: u16 = 0x88be;
const ERSPAN_III: u16 = 0x22eb;
const PPP: u16 = 0x880b;
const WCCP: u16 = 0x883e;
/// Wi-Fi frames from Aruba's access points. The number names the queue.
const ARUBA: core::ops::RangeInclusive<u16> = 0x8200..=0x83f0;

/// Returns the payload of a GRE packet.
pub(super) fn inside<'a>(bytes: Bytes<'a>, tunnels: &mut Tunnels) -> Result<Layer<'a>, NotTcp> {
    let (flags, protocol) = (bytes.u16(0)?, bytes.u16(2)?);
    let has = |flag: u16| usize::from(flags & flag != 0);
    if flags & VERSION == 1 {
        tunnels.push(Tunnel::Pptp);
        let len = 8 + 4 * (has(HAS_SEQUENCE) + has(HAS_ACKNOWLEDGEMENT));
        // A pure acknowledgement has no payload.
        return if has(HAS_SEQUENCE) == 0 {
            Err(NotTcp::Protocol)
        } else {
            Ok(Layer::Ppp(bytes.after(len)?))
        };
    }
    let fixed = 4 * (1 + has(HAS_CHECKSUM | HAS_ROUTING) + has(HAS_KEY) + has(HAS_SEQUENCE));
    let routes = if has(HAS_ROUTING) == 1 { routes_len(bytes.after(fixed)?)? } else { 0 };
    let payload = bytes.after(fixed + routes)?;
    tunnels.push(match protocol {
        ERSPAN_II | ERSPAN_III => Tunnel::Erspan,
        WCCP => Tunnel::Wccp,
        _ => Tunnel::Gre,
    });
    match protocol {
        // Type I has no header of its own, and no sequence numbers.
        ERSPAN_II => Ok(Layer::Ethernet(payload.after(8 * has(HAS_SEQUENCE))?)),
        ERSPAN_III => {
            const HAS_MORE: u8 = 1;
            let more = usize::from(payload.u8(11)? & HAS_MORE);
            Ok(Layer::Ethernet(payload.after(12 + 8 * more)?))
        }
        // The second version has a header of four bytes before the packet.
        WCCP => Ok(Layer::Ip(if payload.is_ip() { payload } else { payload.after(4)? })),
        PPP => Ok(Layer::Ppp(payload)),
        protocol if ARUBA.contains(&protocol) => Ok(Layer::Wifi(Dot11 { frame: payload, is_padded: false })),
        protocol => Ok(Layer::EtherType(protocol, payload)),
    }
}

/// Returns the length of source routes (RFC 1701): each has its length, and the last one is empty.
fn routes_len(bytes: Bytes<'_>) -> Result<usize, NotTcp> {
    let mut len = 0;
    loop {
        let route = usize::from(bytes.u8(len + 3)?);
        let is_last = bytes.u16(len)? == 0 && route == 0;
        len += 4 + route;
        if is_last {
            return Ok(len);
        }
    }
}
