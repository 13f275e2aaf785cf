//! Queueing disciplines of every device, by rtnetlink.
use super::netlink::dump;
use crate::sample::Queue;
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{LinkAttribute, LinkMessage};
use netlink_packet_route::tc::{TcAttribute, TcMessage, TcStats2};
use netlink_sys::protocols::NETLINK_ROUTE;
use std::collections::BTreeMap;
use std::io;

/// Reads them all.
pub(super) fn read() -> io::Result<Vec<Queue>> {
    let mut devices = BTreeMap::new();
    dump(NETLINK_ROUTE, RouteNetlinkMessage::GetLink(LinkMessage::default()), |answer| {
        if let RouteNetlinkMessage::NewLink(link) = answer {
            let name = link.attributes.into_iter().find_map(|attribute| match attribute {
                LinkAttribute::IfName(name) => Some(name),
                _ => None,
            });
            devices.insert(link.header.index, name.unwrap_or_default());
        }
    })?;
    let mut queues = Vec::new();
    dump(NETLINK_ROUTE, RouteNetlinkMessage::GetQueueDiscipline(TcMessage::default()), |answer| {
        if let RouteNetlinkMessage::NewQueueDiscipline(message) = answer {
            queues.push(queue(&message, &devices));
        }
    })?;
    Ok(queues)
}

fn queue(message: &TcMessage, devices: &BTreeMap<u32, String>) -> Queue {
    let device = u32::try_from(message.header.index).ok().and_then(|index| devices.get(&index)).cloned();
    let handle = (message.header.handle.major, message.header.handle.minor);
    let mut queue = Queue { device: device.unwrap_or_default(), handle, ..Queue::default() };
    for attribute in &message.attributes {
        match attribute {
            TcAttribute::Kind(kind) => queue.kind.clone_from(kind),
            TcAttribute::Stats2(stats) => {
                for stat in stats {
                    match stat {
                        TcStats2::Queue(figures) => {
                            queue.backlog = figures.backlog;
                            queue.drops = figures.drops;
                        }
                        TcStats2::Basic(figures) => queue.bytes = figures.bytes,
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
    queue
}
