//! The TCP segment of a frame: one layer after another, until TCP comes, another protocol, or the end of what was captured.
//!
//! | module | layers |
//! |---|---|
//! | `link` | the capture's link types |
//! | `ethernet` | Ethernet, its tags, LLC and SNAP, PPPoE, MPLS |
//! | `wifi` | IEEE 802.11 and what capture cards put before it |
//! | `ppp` | PPP, Cisco HDLC, Frame Relay |
//! | `ip` | IPv4, IPv6 and its extension headers, protocols over IP |
//! | `gre`, `udp` | tunnels over GRE, over UDP |
//!
//! A reader of captures is lenient. A host refuses a packet with a group address as its source, a wrong checksum, an odd option or a
//! source route; here they are as good as any other. A header that was cut is read as far as it goes. Only lengths that contradict one
//! another leave nothing to read.

mod ethernet;
mod gre;
mod ip;
mod layer;
mod link;
mod ppp;
mod udp;
mod wifi;

use crate::packet::{NotTcp, Packet};
use crate::tunnel::Tunnels;
use core::time::Duration;
use layer::{Bytes, Layer};

/// Layers of one frame: more make no sense, and a hostile frame has any number.
const LAYERS_MAX: usize = 64;

/// The segment in a frame of which `data` was captured and `original_len` bytes were on the network.
pub(crate) fn tcp(
    at: Duration,
    link_type: u32,
    data: &[u8],
    original_len: usize,
) -> Result<Packet<'_>, NotTcp> {
    let mut tunnels = Tunnels::default();
    let mut layer = Layer::Link(link_type, Bytes::new(data, original_len));
    let mut is_guess = false;
    for _ in 0..LAYERS_MAX {
        let next = match layer {
            Layer::Link(link_type, bytes) => link::inside(link_type, bytes),
            Layer::Ethernet(bytes) => ethernet::inside(bytes, &mut tunnels),
            Layer::EtherType(ether_type, bytes) => ethernet::inside_type(ether_type, bytes, &mut tunnels),
            Layer::Llc(bytes) => ethernet::inside_llc(bytes),
            Layer::Mpls(bytes) => ethernet::inside_mpls(bytes),
            Layer::Nsh(bytes) => ethernet::inside_nsh(bytes),
            Layer::Wifi(header) => wifi::inside(header),
            Layer::Ppp(bytes) => ppp::inside(bytes),
            Layer::Ip(bytes) => ip::inside(bytes),
            Layer::Gre(bytes) => gre::inside(bytes, &mut tunnels),
            Layer::Over(header, protocol, bytes) => ip::over(header, protocol, bytes, &mut tunnels),
            Layer::Udp(bytes) => {
                is_guess = true;
                udp::inside(bytes, &mut tunnels)
            }
            Layer::Tcp(ip, bytes) => return Packet::parse(at, ip, bytes.data, bytes.len, tunnels),
        };
        layer = next.map_err(|why| match why {
            // The port says that it is a tunnel, and the port was wrong.
            NotTcp::Malformed | NotTcp::Short if is_guess => NotTcp::Protocol,
            why => why,
        })?;
    }
    Err(NotTcp::Malformed)
}
