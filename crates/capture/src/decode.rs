//! Finds the TCP segment of a frame: decodes layer by layer until TCP, another protocol, or the end
//! of the captured bytes.
//!
//! | module | layers |
//! |---|---|
//! | `link` | link types of captures |
//! | `ethernet` | Ethernet, its tags, LLC and SNAP, PPPoE, MPLS |
//! | `wifi` | IEEE 802.11, and headers that capture drivers add |
//! | `ppp` | PPP, Cisco HDLC, Frame Relay |
//! | `ip` | IPv4, IPv6 and its extension headers, protocols over IP |
//! | `gre`, `udp` | tunnels over GRE, over UDP |
//! | `icmp` | errors that quote a TCP segment |
//!
//! The decoder is lenient. A host rejects packets with a group address as source, a wrong checksum,
//! an invalid option or a source route. The decoder accepts all of these, and reads a cut header as
//! far as it goes. Only lengths that contradict each other make a frame unreadable.

mod ethernet;
mod gre;
mod icmp;
mod ip;
mod layer;
mod link;
mod ppp;
mod udp;
mod wifi;

use crate::icmp::IcmpError;
use crate::packet::{NotTcp, Packet};
use crate::tunnel::Tunnels;
use core::time::Duration;
use layer::{Bytes, Layer};

/// Most layers of one frame. More make no sense, but a hostile frame may have any number.
const LAYERS_MAX: usize = 64;

/// Returns the segment of a frame. `data` was captured, `original_len` bytes were on the network.
pub(crate) fn tcp(
    at: Duration,
    link_type: u32,
    data: &[u8],
    original_len: usize,
) -> Result<Packet<'_>, NotTcp> {
    let mut tunnels = Tunnels::default();
    match last_layer(link_type, Bytes::new(data, original_len), &mut tunnels)? {
        Layer::Tcp(ip, bytes) => Packet::parse(at, ip, bytes.data, bytes.len, tunnels),
        _ => Err(NotTcp::Protocol),
    }
}

/// Returns the ICMP error of a frame, if it quotes a TCP segment.
pub(crate) fn icmp(at: Duration, link_type: u32, data: &[u8], original_len: usize) -> Option<IcmpError> {
    let mut tunnels = Tunnels::default();
    match last_layer(link_type, Bytes::new(data, original_len), &mut tunnels).ok()? {
        Layer::Icmp(ip, bytes) => icmp::error(at, ip, bytes),
        _ => None,
    }
}

/// Returns TCP or ICMP.
fn last_layer<'a>(link_type: u32, frame: Bytes<'a>, tunnels: &mut Tunnels) -> Result<Layer<'a>, NotTcp> {
    let mut layer = Layer::Link(link_type, frame);
    let mut is_guess = false;
    for _ in 0..LAYERS_MAX {
        let next = match layer {
            Layer::Link(link_type, bytes) => link::inside(link_type, bytes),
            Layer::Ethernet(bytes) => ethernet::inside(bytes, tunnels),
            Layer::EtherType(ether_type, bytes) => ethernet::inside_type(ether_type, bytes, tunnels),
            Layer::Llc(bytes) => ethernet::inside_llc(bytes),
            Layer::Mpls(bytes) => ethernet::inside_mpls(bytes),
            Layer::Nsh(bytes) => ethernet::inside_nsh(bytes),
            Layer::Wifi(header) => wifi::inside(header),
            Layer::Ppp(bytes) => ppp::inside(bytes),
            Layer::Ip(bytes) => ip::inside(bytes),
            Layer::Gre(bytes) => gre::inside(bytes, tunnels),
            Layer::Over(header, protocol, bytes) => ip::over(header, protocol, bytes, tunnels),
            Layer::Udp(bytes) => {
                is_guess = true;
                udp::inside(bytes, tunnels)
            }
            Layer::Tcp(..) | Layer::Icmp(..) => return Ok(layer),
        };
        layer = next.map_err(|why| match why {
            // The port suggested a tunnel, but it is not one.
            NotTcp::Malformed | NotTcp::Short if is_guess => NotTcp::Protocol,
            why => why,
        })?;
    }
    Err(NotTcp::Malformed)
}
