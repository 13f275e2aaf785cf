//! Hosts with several devices: routing of outgoing packets, and source filters for incoming ones
//! (`rp_filter`).
//!
//! The n-th path of a host is at its n-th device, starting with `eth0`. Other hosts have no table:
//! their packets go towards the holder of the address.

use super::table::{NextHopError, Table};
use core::net::{IpAddr, Ipv4Addr};
use std::collections::BTreeMap;
use wire::{Flags, IpHeader, protocol};

/// The routing table and the filters of a host.
#[derive(Clone, Debug, Default)]
pub struct Ways {
    table: Table,
    /// `net.ipv4.conf.NAME.rp_filter` and `….log_martians`, including `all`.
    settings: BTreeMap<String, (u8, bool)>,
    filtered: u64,
    martians: Vec<String>,
}

impl Ways {
    pub(super) fn add_link(&mut self, device: usize, neighbour: Ipv4Addr, prefix_len: u8) {
        self.table.add_link(device, neighbour, prefix_len);
    }

    /// Adds a route by a next hop on one of the host's links, or by a device that has the
    /// destination on its link. It replaces another one to the same network.
    ///
    /// # Errors
    /// The next hop is not on a link, or there is no such device.
    pub fn replace_route(
        &mut self,
        network: (Ipv4Addr, u8),
        via: Option<Ipv4Addr>,
        device: Option<usize>,
    ) -> Result<(), NextHopError> {
        self.table.replace(network, via, device)
    }

    /// Makes a network unreachable. It replaces another route to the same network.
    pub fn reject_route(&mut self, network: (Ipv4Addr, u8)) {
        self.table.reject(network);
    }

    /// Changes `net.ipv4.conf.NAME.rp_filter` or `….log_martians`. Returns false for another
    /// setting or an invalid value.
    ///
    /// # Errors
    /// The host has no device of this name.
    pub fn set(&mut self, name: &str, value: &str) -> Result<bool, NextHopError> {
        let Some((device, setting)) =
            name.strip_prefix("net.ipv4.conf.").and_then(|name| name.rsplit_once('.'))
        else {
            return Ok(false);
        };
        let number = device.strip_prefix("eth").and_then(|number| number.parse::<usize>().ok());
        let is_device = device == "all" || number.is_some();
        let (Some(value), true) = (value.parse::<u8>().ok().filter(|value| *value <= 2), is_device) else {
            return Ok(false);
        };
        number.map_or(Ok(()), |number| self.table.check_device(number))?;
        match setting {
            "rp_filter" => self.settings.entry(device.to_owned()).or_default().0 = value,
            "log_martians" => self.settings.entry(device.to_owned()).or_default().1 = value > 0,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Returns the number of packets that the filter dropped (`IPReversePathFilter`).
    pub fn filtered(&self) -> u64 {
        self.filtered
    }

    /// Returns the lines written by `log_martians`.
    pub fn martians(&self) -> &[String] {
        &self.martians
    }

    /// Returns the device to a destination, and the next hop on its link.
    pub(super) fn next_hop(&self, destination: IpAddr) -> Option<(usize, Ipv4Addr)> {
        self.table.next_hop(destination)
    }

    /// Returns whether the packet may arrive at that device. Linux filters packets that belong to
    /// no connection yet, because early demultiplexing comes first. So only SYNs are filtered here.
    pub(super) fn admits(&mut self, packet: &[u8], device: usize) -> bool {
        if self.settings.is_empty() {
            return true;
        }
        let Some((source, destination)) = ends_of_syn(packet) else { return true };
        let all = self.settings.get("all").copied().unwrap_or_default();
        let own = self.settings.get(&format!("eth{device}")).copied().unwrap_or_default();
        let back = self.next_hop(source).map(|(device, _)| device);
        // `IN_DEV_RPFILTER` is the maximum of both, `IN_DEV_LOG_MARTIANS` is either.
        let admits = match all.0.max(own.0) {
            0 => true,
            1 => back == Some(device),
            _ => back.is_some(),
        };
        if !admits {
            self.filtered += 1;
            if all.1 || own.1 {
                self.martians.push(format!("martian source {destination} from {source}, on dev eth{device}"));
            }
        }
        admits
    }
}

fn ends_of_syn(packet: &[u8]) -> Option<(IpAddr, IpAddr)> {
    let (ip, text) = IpHeader::parse(packet).ok()?;
    let tcp = packet.get(text)?;
    let flags = Flags::from_bits_truncate(u16::from(*tcp.get(13)?));
    let is_syn = ip.protocol == protocol::TCP && flags & (Flags::SYN | Flags::ACK) == Flags::SYN;
    is_syn.then(|| (ip.src.to_ip(), ip.dst.to_ip()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::from_client;

    /// Sends the client's SYN to a host with these values for all and for `eth0`. The host reaches
    /// the client by `eth1`, or not at all.
    fn admits(all: &str, own: &str, way_back: bool) -> bool {
        let mut ways = Ways::default();
        for (device, network) in [[198, 51, 100], [198, 18, 0]].into_iter().enumerate() {
            ways.add_link(device, Ipv4Addr::new(network[0], network[1], network[2], 254), 24);
        }
        if way_back {
            let next = Some(Ipv4Addr::new(198, 18, 0, 254));
            ways.replace_route((Ipv4Addr::UNSPECIFIED, 0), next, None).unwrap();
        }
        assert!(
            ways.set("net.ipv4.conf.all.rp_filter", all) == Ok(true)
                && ways.set("net.ipv4.conf.eth0.rp_filter", own) == Ok(true)
        );
        let syn = from_client(Flags::SYN, 0, 0, 0).emit();
        assert!(ways.admits(&from_client(Flags::ACK, 1, 1, 0).emit(), 0), "of no connection's packets");
        ways.admits(&syn, 0)
    }

    #[test]
    fn the_larger_of_both_values_holds() {
        let strict = [("0", "1"), ("1", "0"), ("1", "1")];
        let open = [("0", "0"), ("0", "2"), ("1", "2"), ("2", "0"), ("2", "1"), ("2", "2")];
        assert!(strict.iter().all(|(all, own)| !admits(all, own, true)));
        assert!(open.iter().all(|(all, own)| admits(all, own, true)));
        assert!(!admits("2", "0", false), "a loose filter asks for some way back");
        assert!(admits("0", "0", false));
    }

    #[test]
    fn what_is_no_filter_is_not_taken() {
        let mut ways = Ways::default();
        ways.add_link(1, Ipv4Addr::new(198, 18, 0, 254), 24);
        for (name, value) in [
            ("net.ipv4.conf.eth1.rp_filter", "3"),
            ("net.ipv4.conf.wlan0.rp_filter", "1"),
            ("net.ipv4.conf.eth1.forwarding", "1"),
            ("net.ipv4.tcp_sack", "1"),
        ] {
            assert_eq!(ways.set(name, value), Ok(false), "{name}");
        }
        assert_eq!(ways.set("net.ipv4.conf.eth1.log_martians", "1"), Ok(true));
        let error = ways.set("net.ipv4.conf.eth0.log_martians", "1");
        assert_eq!(error, Err(NextHopError::NoDevice { device: 0, devices: vec![1] }));
    }
}
