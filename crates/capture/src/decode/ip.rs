//! IPv4, IPv6, and the protocols over them.

use super::layer::{Bytes, Layer};
use crate::packet::{IpHeader, NotTcp};
use crate::tunnel::{Tunnel, Tunnels};
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Protocol numbers, and the next-header values of IPv6.
const HOP_BY_HOP: u8 = 0;
const ICMP: u8 = 1;
const IPV4: u8 = 4;
const TCP: u8 = 6;
const UDP: u8 = 17;
const IPV6: u8 = 41;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const GRE: u8 = 47;
const AH: u8 = 51;
const ICMP_V6: u8 = 58;
const DESTINATION_OPTIONS: u8 = 60;
const IPIP: u8 = 94;
const ETHER_IP: u8 = 97;
const MOBILITY: u8 = 135;
const MPLS: u8 = 137;
const HIP: u8 = 139;
const SHIM6: u8 = 140;
const ETHERNET: u8 = 143;

/// Returns the protocol in an IP packet, even if a host would reject its addresses, options or
/// checksum.
pub(super) fn inside(packet: Bytes<'_>) -> Result<Layer<'_>, NotTcp> {
    match packet.u8(0)? >> 4 {
        4 => v4(packet),
        6 => v6(packet),
        _ => Err(NotTcp::Malformed),
    }
}

fn v4(packet: Bytes<'_>) -> Result<Layer<'_>, NotTcp> {
    let header: [u8; 20] = packet.array(0)?;
    let [vi, _, l0, l1, i0, i1, f0, f1, _, protocol, _, _, s0, s1, s2, s3, d0, d1, d2, d3] = header;
    let header_len = usize::from(vi & 0x0f) * 4;
    let len = match usize::from(u16::from_be_bytes([l0, l1])) {
        // Linux writes 0 for segments merged beyond 64 KiB. NICs that split segments get them with
        // 0 too.
        0 => packet.len,
        len => len,
    };
    if header_len < header.len() || len < header_len {
        return Err(NotTcp::Malformed);
    }
    const OFFSET: u16 = 0x1fff;
    if u16::from_be_bytes([f0, f1]) & OFFSET != 0 {
        return Err(NotTcp::Fragment);
    }
    let ip = IpHeader {
        src: IpAddr::V4(Ipv4Addr::new(s0, s1, s2, s3)),
        dst: IpAddr::V4(Ipv4Addr::new(d0, d1, d2, d3)),
        ident: u16::from_be_bytes([i0, i1]),
        len,
    };
    Ok(Layer::Over(ip, protocol, packet.first(len).after(header_len)?))
}

fn v6(packet: Bytes<'_>) -> Result<Layer<'_>, NotTcp> {
    const HEADER_LEN: usize = 40;
    let len = match usize::from(packet.u16(4)?) {
        // A jumbogram, or merged segments.
        0 => packet.len,
        payload => HEADER_LEN + payload,
    };
    let address = |at| packet.array::<16>(at).map(|bytes| IpAddr::V6(Ipv6Addr::from(bytes)));
    let ip = IpHeader { src: address(8)?, dst: address(24)?, ident: 0, len };
    Ok(Layer::Over(ip, packet.u8(6)?, packet.first(len).after(HEADER_LEN)?))
}

/// Returns the layer of a protocol over IP.
pub(super) fn over<'a>(
    ip: IpHeader,
    protocol: u8,
    bytes: Bytes<'a>,
    tunnels: &mut Tunnels,
) -> Result<Layer<'a>, NotTcp> {
    let mut wrapped = |tunnel, layer| {
        tunnels.push(tunnel);
        Ok(layer)
    };
    match (protocol, ip.src) {
        (TCP, _) => Ok(Layer::Tcp(ip, bytes)),
        (ICMP, IpAddr::V4(_)) | (ICMP_V6, IpAddr::V6(_)) => Ok(Layer::Icmp(ip, bytes)),
        (UDP, _) => Ok(Layer::Udp(bytes)),
        (GRE, _) => Ok(Layer::Gre(bytes)),
        (IPV4 | IPIP, IpAddr::V4(_)) => wrapped(Tunnel::Ip4In4, Layer::Ip(bytes)),
        (IPV4 | IPIP, IpAddr::V6(_)) => wrapped(Tunnel::Ip4In6, Layer::Ip(bytes)),
        (IPV6, IpAddr::V4(_)) => wrapped(Tunnel::Ip6In4, Layer::Ip(bytes)),
        (IPV6, IpAddr::V6(_)) => wrapped(Tunnel::Ip6In6, Layer::Ip(bytes)),
        (AH, _) => {
            let len = (usize::from(bytes.u8(1)?) + 2) * 4;
            wrapped(Tunnel::Ah, Layer::Over(ip, bytes.u8(0)?, bytes.after(len)?))
        }
        (ETHER_IP, _) => wrapped(Tunnel::EtherIp, Layer::Ethernet(bytes.after(2)?)),
        (ETHERNET, _) => wrapped(Tunnel::EtherIp, Layer::Ethernet(bytes)),
        (MPLS, _) => wrapped(Tunnel::Mpls, Layer::Mpls(bytes)),
        (HOP_BY_HOP | ROUTING | DESTINATION_OPTIONS | MOBILITY | HIP | SHIM6, IpAddr::V6(_)) => {
            extension(ip, protocol, bytes)
        }
        (FRAGMENT, IpAddr::V6(_)) => {
            const OFFSET: u16 = 0xfff8;
            match bytes.u16(2)? & OFFSET {
                0 => Ok(Layer::Over(ip, bytes.u8(0)?, bytes.after(8)?)),
                _ => Err(NotTcp::Fragment),
            }
        }
        _ => Err(NotTcp::Protocol),
    }
}

/// Skips an IPv6 extension header (RFC 8200 section 4).
fn extension(mut ip: IpHeader, protocol: u8, bytes: Bytes<'_>) -> Result<Layer<'_>, NotTcp> {
    let [next, units] = bytes.array(0)?;
    if protocol == ROUTING
        && let Some(last) = last_stop(bytes, units)
    {
        ip.dst = IpAddr::V6(last);
    }
    Ok(Layer::Over(ip, next, bytes.after((usize::from(units) + 1) * 8)?))
}

/// Returns the final destination of a routing header. Answers come from that address.
fn last_stop(bytes: Bytes<'_>, units: u8) -> Option<Ipv6Addr> {
    const FIRST_AT: usize = 8;
    let [kind, left] = bytes.array(2).ok()?;
    let at = match kind {
        _ if left == 0 => return None,
        // In a source route (RFC 5095) the final destination is last.
        0 if units >= 2 => (usize::from(units) + 1) * 8 - 16,
        // Mobile IPv6 has only one address. In segment routing (RFC 8754) the final destination is
        // first.
        2 | 4 => FIRST_AT,
        _ => return None,
    };
    bytes.array::<16>(at).ok().map(Ipv6Addr::from)
}
