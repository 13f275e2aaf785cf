//! Reads network devices with their statistics and addresses from rtnetlink.
use super::netlink::dump;
use crate::sample::Device;
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::address::{AddressAttribute, AddressMessage};
use netlink_packet_route::link::{LinkAttribute, LinkFlags, LinkInfo, LinkMessage};
use netlink_sys::protocols::NETLINK_ROUTE;
use std::io;
use std::net::IpAddr;

/// Reads all devices.
pub(super) fn read() -> io::Result<Vec<Device>> {
    let mut devices = Vec::new();
    dump(NETLINK_ROUTE, RouteNetlinkMessage::GetLink(LinkMessage::default()), |answer| {
        if let RouteNetlinkMessage::NewLink(link) = answer {
            devices.push(device(&link));
        }
    })?;
    dump(NETLINK_ROUTE, RouteNetlinkMessage::GetAddress(AddressMessage::default()), |answer| {
        let RouteNetlinkMessage::NewAddress(message) = answer else { return };
        let reached = |attribute: &AddressAttribute| matches!(attribute, AddressAttribute::Address(IpAddr::V4(address)) if !address.is_loopback());
        let device = devices.iter_mut().find(|device| device.index == message.header.index);
        if let Some(device) = device.filter(|_| message.attributes.iter().any(reached)) {
            device.addresses += 1;
        }
    })?;
    Ok(devices)
}

fn device(link: &LinkMessage) -> Device {
    let flags = link.header.flags;
    let mut device = Device {
        index: link.header.index,
        up: flags.contains(LinkFlags::Up),
        loopback: flags.contains(LinkFlags::Loopback),
        ..Device::default()
    };
    for attribute in &link.attributes {
        match attribute {
            LinkAttribute::IfName(name) => device.name.clone_from(name),
            LinkAttribute::Mtu(bytes) => device.mtu = *bytes,
            LinkAttribute::TxQueueLen(packets) => device.tx_queue_len = *packets,
            LinkAttribute::ParentDevName(name) => device.parent = Some(name.clone()),
            LinkAttribute::LinkInfo(info) => {
                device.kind = info.iter().find_map(|info| match info {
                    LinkInfo::Kind(kind) => Some(kind.to_string()),
                    _ => None,
                });
            }
            LinkAttribute::Stats64(stats) => {
                device.rx_packets = stats.rx_packets;
                device.rx_dropped = stats.rx_dropped;
                device.rx_missed_errors = stats.rx_missed_errors;
                device.rx_fifo_errors = stats.rx_fifo_errors;
                device.rx_over_errors = stats.rx_over_errors;
                device.rx_nohandler = stats.rx_nohandler;
                device.tx_dropped = stats.tx_dropped;
            }
            _ => {}
        }
    }
    device
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sources::netlink::tests::mutated;

    #[test]
    fn mutated_devices_do_not_panic() {
        mutated(NETLINK_ROUTE, RouteNetlinkMessage::GetLink(LinkMessage::default()), |answer| {
            if let RouteNetlinkMessage::NewLink(link) = answer {
                device(&link);
            }
        });
    }
}
