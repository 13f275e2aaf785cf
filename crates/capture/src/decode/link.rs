//! Link types of captures, by tcpdump.org's numbers (`LINKTYPE_`).

use super::layer::{Bytes, Dot11, Layer};
use super::wifi;
use super::{ethernet, ppp};
use crate::packet::NotTcp;

const NULL: u32 = 0;
const ETHERNET: u32 = 1;
const TOKEN_RING: u32 = 6;
const ARCNET: u32 = 7;
const SLIP: u32 = 8;
const PPP: u32 = 9;
const FDDI: u32 = 10;
const PPP_HDLC: u32 = 50;
const PPP_ETHER: u32 = 51;
const ATM_RFC1483: u32 = 100;
const RAW: u32 = 101;
const C_HDLC: u32 = 104;
const WIFI: u32 = 105;
const FRAME_RELAY: u32 = 107;
const LOOP: u32 = 108;
const ENC: u32 = 109;
const COOKED: u32 = 113;
const PFLOG: u32 = 117;
const PRISM: u32 = 119;
const IP_OVER_FC: u32 = 122;
const RADIOTAP: u32 = 127;
const ARCNET_LINUX: u32 = 129;
/// First of the link types for private use. macOS uses it for PKTAP.
const USER2: u32 = 149;
const AVS: u32 = 163;
const PPP_PPPD: u32 = 166;
const JUNIPER_ETHERNET: u32 = 178;
const PPI: u32 = 192;
const PPP_WITH_DIRECTION: u32 = 204;
const C_HDLC_WITH_DIRECTION: u32 = 205;
const FRAME_RELAY_WITH_DIRECTION: u32 = 206;
const IPNET: u32 = 226;
const IPV4: u32 = 228;
const IPV6: u32 = 229;
const NFLOG: u32 = 239;
const NETANALYZER: u32 = 240;
const NETANALYZER_TRANSPARENT: u32 = 241;
const IP_OVER_INFINIBAND: u32 = 242;
const PKTAP: u32 = 258;
const ETHERNET_MPACKET: u32 = 274;
const COOKED_2: u32 = 276;
const BROADCOM_TAG: u32 = 281;
const BROADCOM_TAG_FIRST: u32 = 282;
const MARVELL_TAG: u32 = 284;
const MARVELL_ETHER_TYPE_TAG: u32 = 285;

/// Returns the layer in a frame of this type.
pub(super) fn inside(link_type: u32, frame: Bytes<'_>) -> Result<Layer<'_>, NotTcp> {
    Ok(match link_type {
        ETHERNET | MARVELL_ETHER_TYPE_TAG => Layer::Ethernet(frame),
        // BSD systems write 12 and 14 for raw IP.
        RAW | IPV4 | IPV6 | 12 | 14 => Layer::Ip(frame),
        NULL | LOOP => return loopback(frame),
        COOKED => return cooked(frame, [2, 14, 16]),
        COOKED_2 => return cooked(frame, [8, 0, 20]),
        PPP | PPP_HDLC | PPP_PPPD => return ppp::framed(frame),
        PPP_WITH_DIRECTION => return ppp::framed(frame.after(1)?),
        PPP_ETHER => Layer::EtherType(ethernet::PPPOE_SESSION, frame),
        C_HDLC => return ppp::cisco(frame),
        C_HDLC_WITH_DIRECTION => return ppp::cisco(frame.after(1)?),
        FRAME_RELAY => return ppp::frame_relay(frame),
        FRAME_RELAY_WITH_DIRECTION => return ppp::frame_relay(frame.after(1)?),
        WIFI => Layer::Wifi(Dot11 { frame, is_padded: false }),
        RADIOTAP => return wifi::radiotap(frame),
        PRISM => return wifi::prism(frame),
        AVS => return wifi::avs(frame),
        PPI => return per_packet_information(frame),
        PKTAP | USER2 => return pktap(frame),
        NFLOG => return nflog(frame),
        TOKEN_RING => return token_ring(frame),
        FDDI => Layer::Llc(frame.after(13)?),
        ATM_RFC1483 => Layer::Llc(frame),
        IP_OVER_FC => Layer::Llc(frame.after(16)?),
        ARCNET => return arcnet(frame, 2),
        ARCNET_LINUX => return arcnet(frame, 4),
        SLIP => Layer::Ip(frame.after(16)?),
        ENC => Layer::Ip(frame.after(12)?),
        PFLOG => Layer::Ip(frame.after(usize::from(frame.u8(0)?).next_multiple_of(4))?),
        // A global route header, a type, two reserved bytes.
        IP_OVER_INFINIBAND => Layer::EtherType(frame.u16(40)?, frame.after(44)?),
        JUNIPER_ETHERNET => return juniper(frame),
        IPNET => Layer::Ip(frame.after(24)?),
        NETANALYZER => Layer::Ethernet(frame.after(4)?),
        // Preamble and start of frame delimiter come after the header, as before each Ethernet
        // frame.
        NETANALYZER_TRANSPARENT => Layer::Ethernet(frame.after(12)?),
        ETHERNET_MPACKET => Layer::Ethernet(frame.after(8)?),
        BROADCOM_TAG | MARVELL_TAG => Layer::EtherType(frame.u16(16)?, frame.after(18)?),
        BROADCOM_TAG_FIRST => Layer::Ethernet(frame.after(4)?),
        other => return Err(NotTcp::LinkType(other)),
    })
}

/// Decodes the loopback header: four bytes of an address family. Its numbers and byte order depend
/// on the system, so the IP version decides instead.
fn loopback(frame: Bytes<'_>) -> Result<Layer<'_>, NotTcp> {
    let packet = frame.after(4)?;
    if packet.is_ip() { Ok(Layer::Ip(packet)) } else { Err(NotTcp::Protocol) }
}

/// Decodes a Linux cooked header, with the positions of hardware type, protocol and packet.
fn cooked(frame: Bytes<'_>, [hardware_at, protocol_at, header_len]: [usize; 3]) -> Result<Layer<'_>, NotTcp> {
    const ARPHRD_IEEE80211: u16 = 801;
    const ARPHRD_IEEE80211_RADIOTAP: u16 = 803;
    const ETH_P_802_2: u16 = 4;
    let packet = frame.after(header_len)?;
    match (frame.u16(hardware_at)?, frame.u16(protocol_at)?) {
        (ARPHRD_IEEE80211, _) => Ok(Layer::Wifi(Dot11 { frame: packet, is_padded: false })),
        (ARPHRD_IEEE80211_RADIOTAP, _) => wifi::radiotap(packet),
        (_, ETH_P_802_2) => Ok(Layer::Llc(packet)),
        (_, ether_type) => Ok(Layer::EtherType(ether_type, packet)),
    }
}

/// Decodes a header that names the link type of its payload.
fn per_packet_information(frame: Bytes<'_>) -> Result<Layer<'_>, NotTcp> {
    let header_len = u16::from_le_bytes(frame.array(2)?);
    let link_type = u32::from_le_bytes(frame.array(4)?);
    described(link_type, frame, header_len.into())
}

/// Decodes the header of Juniper's `monitor traffic`: a magic, flags, and extensions of variable
/// length.
fn juniper(frame: Bytes<'_>) -> Result<Layer<'_>, NotTcp> {
    const MAGIC: [u8; 3] = [0x4d, 0x47, 0x43];
    const HAS_EXTENSIONS: u8 = 0x80;
    const HAS_NO_ETHERNET: u8 = 0x02;
    let [m0, m1, m2, flags] = frame.array(0)?;
    let extensions = if flags & HAS_EXTENSIONS != 0 { 2 + usize::from(frame.u16(4)?) } else { 0 };
    let packet = frame.after(4 + extensions)?;
    match [m0, m1, m2] {
        MAGIC if flags & HAS_NO_ETHERNET == 0 => Ok(Layer::Ethernet(packet)),
        // The address family comes first.
        MAGIC => loopback(packet),
        _ => Err(NotTcp::Malformed),
    }
}

/// Decodes the header of macOS's `pktap` interface.
fn pktap(frame: Bytes<'_>) -> Result<Layer<'_>, NotTcp> {
    let header_len = u32::from_le_bytes(frame.array(0)?);
    let link_type = u32::from_le_bytes(frame.array(8)?);
    described(link_type, frame, header_len as usize)
}

fn described(link_type: u32, frame: Bytes<'_>, header_len: usize) -> Result<Layer<'_>, NotTcp> {
    // A header of no bytes would be decoded forever.
    if header_len == 0 {
        Err(NotTcp::Malformed)
    } else {
        Ok(Layer::Link(link_type, frame.after(header_len)?))
    }
}

/// Decodes Netfilter's log: records of length, type and value, in the byte order of the capturing
/// host.
fn nflog(frame: Bytes<'_>) -> Result<Layer<'_>, NotTcp> {
    const PAYLOAD: u16 = 9;
    const HEADER_LEN: usize = 4;
    // Lengths are small, which shows the byte order.
    let is_little = frame.u8(HEADER_LEN + 1)? <= frame.u8(HEADER_LEN)?;
    let read = if is_little { u16::from_le_bytes } else { u16::from_be_bytes };
    let mut records = frame.after(HEADER_LEN)?;
    loop {
        let (len, kind) = (usize::from(read(records.array(0)?)), read(records.array(2)?) & 0x7fff);
        if len < HEADER_LEN {
            return Err(NotTcp::Malformed);
        }
        if kind == PAYLOAD {
            return Ok(Layer::Ip(records.first(len).after(HEADER_LEN)?));
        }
        records = records.after(len.next_multiple_of(HEADER_LEN))?;
    }
}

fn token_ring(frame: Bytes<'_>) -> Result<Layer<'_>, NotTcp> {
    const ADDRESSES_END: usize = 14;
    // The first bit of the source address says that a route follows. Its first byte has its length.
    let has_route = frame.u8(8)? & 0x80 != 0;
    let route_len = if has_route { frame.u8(ADDRESSES_END)? & 0x1f } else { 0 };
    Ok(Layer::Llc(frame.after(ADDRESSES_END + usize::from(route_len))?))
}

/// Decodes ARCNET: a protocol byte after the addresses. In the encapsulation of RFC 1201 sequence
/// numbers follow.
fn arcnet(frame: Bytes<'_>, addresses_len: usize) -> Result<Layer<'_>, NotTcp> {
    match frame.u8(addresses_len)? {
        0xf0 | 0xf1 => Ok(Layer::Ip(frame.after(addresses_len + 1)?)),
        0xd4 => Ok(Layer::Ip(frame.after(addresses_len + 4)?)),
        _ => Err(NotTcp::Protocol),
    }
}
