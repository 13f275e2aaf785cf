//! Links and routing table of a host: the device and the next hop of a packet.

use core::fmt;
use core::net::{IpAddr, Ipv4Addr};
use std::collections::BTreeMap;

/// A routing table with longest-prefix match. A route leads to a link with the next hop, or is
/// unreachable.
#[derive(Clone, Debug, Default)]
pub(super) struct Table {
    links: BTreeMap<usize, Link>,
    /// Networks and their routes, by prefix length; `None` is unreachable.
    routes: BTreeMap<u8, BTreeMap<u32, Option<Hop>>>,
}

/// The network at one of a host's devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Link {
    network: Ipv4Addr,
    prefix_len: u8,
}

/// The target of a route. Without `via` the destination itself is on the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Hop {
    device: usize,
    via: Option<Ipv4Addr>,
}

/// The reason why a route is invalid.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NextHopError {
    /// The next hop is in no network of the host's links.
    NotOnLink {
        /// The next hop.
        via: Ipv4Addr,
        /// Each device with the network of its link.
        links: Vec<(usize, Ipv4Addr, u8)>,
    },
    /// The next hop is in the network of another device than the named one.
    OtherDevice {
        /// The next hop.
        via: Ipv4Addr,
        /// The device of that network.
        on: usize,
        /// The named device.
        named: usize,
    },
    /// There is no such device.
    NoDevice {
        /// Its number.
        device: usize,
        /// The existing devices.
        devices: Vec<usize>,
    },
    /// The route has neither a next hop nor a device.
    Nowhere,
}

impl fmt::Display for NextHopError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NextHopError::NotOnLink { via, links } => {
                write!(f, "the next hop {via} is not on a link; ")?;
                let links =
                    links.iter().map(|(device, network, len)| format!("eth{device} is on {network}/{len}"));
                f.write_str(&listed(links))
            }
            NextHopError::OtherDevice { via, on, named } => {
                write!(f, "the next hop {via} is on the link of eth{on}, not of eth{named}")
            }
            NextHopError::NoDevice { device, devices } => {
                let devices = listed(devices.iter().map(|device| format!("eth{device}")));
                write!(f, "there is no eth{device}; the host has {devices}")
            }
            NextHopError::Nowhere => f.write_str("a route needs `via ADDRESS` or `dev DEVICE`"),
        }
    }
}

impl core::error::Error for NextHopError {}

fn listed(words: impl Iterator<Item = String>) -> String {
    words.collect::<Vec<_>>().join(", ")
}

impl Table {
    /// Adds the device of a link. Its network is that of the neighbor's address.
    pub(super) fn add_link(&mut self, device: usize, neighbour: Ipv4Addr, prefix_len: u8) {
        let prefix_len = prefix_len.min(32);
        let network = network_of(neighbour, prefix_len);
        self.links.insert(device, Link { network: Ipv4Addr::from_bits(network), prefix_len });
        self.routes.entry(prefix_len).or_default().insert(network, Some(Hop { device, via: None }));
    }

    /// Adds a route. It replaces another one to the same network.
    pub(super) fn replace(
        &mut self,
        (network, prefix_len): (Ipv4Addr, u8),
        via: Option<Ipv4Addr>,
        device: Option<usize>,
    ) -> Result<(), NextHopError> {
        let hop = Hop { device: self.device_of(via, device)?, via };
        self.put(network, prefix_len, Some(hop));
        Ok(())
    }

    /// Makes a network unreachable.
    pub(super) fn reject(&mut self, (network, prefix_len): (Ipv4Addr, u8)) {
        self.put(network, prefix_len, None);
    }

    fn put(&mut self, network: Ipv4Addr, prefix_len: u8, hop: Option<Hop>) {
        let len = prefix_len.min(32);
        self.routes.entry(len).or_default().insert(network_of(network, len), hop);
    }

    /// Checks that a device of this number exists.
    pub(super) fn check_device(&self, device: usize) -> Result<(), NextHopError> {
        match self.links.contains_key(&device) {
            true => Ok(()),
            false => Err(NextHopError::NoDevice { device, devices: self.links.keys().copied().collect() }),
        }
    }

    fn device_of(&self, via: Option<Ipv4Addr>, named: Option<usize>) -> Result<usize, NextHopError> {
        named.map_or(Ok(()), |device| self.check_device(device))?;
        let Some(via) = via else { return named.ok_or(NextHopError::Nowhere) };
        let mut on_link = self.links.iter().filter(|(_, link)| link.holds(via)).map(|(device, _)| *device);
        match (on_link.next(), named) {
            (Some(on), None) => Ok(on),
            (Some(on), Some(named)) if on == named || on_link.any(|on| on == named) => Ok(named),
            (Some(on), Some(named)) => Err(NextHopError::OtherDevice { via, on, named }),
            (None, _) => {
                let links = self.links.iter().map(|(device, link)| (*device, link.network, link.prefix_len));
                Err(NextHopError::NotOnLink { via, links: links.collect() })
            }
        }
    }

    /// Returns the device to a destination, and the next hop on its link.
    pub(super) fn next_hop(&self, destination: IpAddr) -> Option<(usize, Ipv4Addr)> {
        let IpAddr::V4(destination) = destination else { return None };
        let mut from_the_longest = self.routes.iter().rev();
        let found = from_the_longest
            .find_map(|(len, routes)| routes.get(&network_of(destination, *len)))
            .copied()
            .flatten();
        found.map(|Hop { device, via }| (device, via.unwrap_or(destination)))
    }
}

impl Link {
    fn holds(&self, address: Ipv4Addr) -> bool {
        network_of(address, self.prefix_len) == self.network.to_bits()
    }
}

fn network_of(address: Ipv4Addr, prefix_len: u8) -> u32 {
    address.to_bits() & u32::MAX.checked_shl(32 - u32::from(prefix_len)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEFAULT: (Ipv4Addr, u8) = (Ipv4Addr::UNSPECIFIED, 0);

    fn address(text: &str) -> Ipv4Addr {
        text.parse().unwrap()
    }

    fn two_links() -> Table {
        let mut table = Table::default();
        table.add_link(0, address("198.51.100.254"), 24);
        table.add_link(1, address("198.18.0.254"), 24);
        table
    }

    #[test]
    fn the_longest_prefix_says_where_a_packet_goes() {
        let mut table = two_links();
        let gateway = address("198.18.0.254");
        assert_eq!(table.next_hop(address("192.0.2.1").into()), None, "no route leads there");
        assert_eq!(table.replace(DEFAULT, Some(gateway), None), Ok(()));
        assert_eq!(table.next_hop(address("192.0.2.1").into()), Some((1, gateway)));
        let neighbour = address("198.51.100.254");
        assert_eq!(table.next_hop(neighbour.into()), Some((0, neighbour)), "it is on the link itself");
        assert_eq!(table.replace((address("192.0.2.0"), 24), Some(neighbour), Some(0)), Ok(()));
        assert_eq!(table.next_hop(address("192.0.2.1").into()), Some((0, neighbour)));
        assert_eq!(table.next_hop(address("192.0.3.1").into()), Some((1, gateway)));
        table.reject((address("192.0.2.1"), 32));
        assert_eq!(table.next_hop(address("192.0.2.1").into()), None, "unreachable");
        assert_eq!(table.next_hop(address("192.0.2.2").into()), Some((0, neighbour)));
    }

    #[test]
    fn a_next_hop_is_on_a_link() {
        let mut table = two_links();
        let mut told = |via: Option<&str>, device| {
            let refused = table.replace(DEFAULT, via.map(address), device);
            refused.map_err(|error| error.to_string())
        };
        for (via, device, part) in [
            (
                Some("203.0.113.1"),
                None,
                "203.0.113.1 is not on a link; eth0 is on 198.51.100.0/24, eth1 is on 198.18.0.0/24",
            ),
            (Some("198.18.0.254"), Some(0), "on the link of eth1, not of eth0"),
            (None, Some(2), "there is no eth2; the host has eth0, eth1"),
            (None, None, "needs `via ADDRESS`"),
        ] {
            let error = told(via, device).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
        assert_eq!(told(Some("198.18.0.9"), Some(1)), Ok(()), "whether anybody has it is another matter");
        assert_eq!(told(None, Some(1)), Ok(()));
    }
}
