//! Reads the queueing disciplines of every device from rtnetlink.
mod options;

use super::generic::Attributes;
use super::netlink::dump;
use crate::sample::{Device, Queue};
use netlink_packet_core::{Emitable, Nla};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::tc::{TcAttribute, TcHandle, TcMessage, TcOption, TcStats2};
use netlink_sys::protocols::NETLINK_ROUTE;
use std::io;

/// Reads all queueing disciplines.
pub(super) fn read(devices: &[Device]) -> io::Result<Vec<Queue>> {
    let mut queues = Vec::new();
    dump(NETLINK_ROUTE, RouteNetlinkMessage::GetQueueDiscipline(TcMessage::default()), |answer| {
        if let RouteNetlinkMessage::NewQueueDiscipline(message) = answer {
            let index = u32::try_from(message.header.index).unwrap_or(0);
            if let Some(device) = devices.iter().find(|device| device.index == index) {
                queues.push(queue(&message, &device.name));
            }
        }
    })?;
    Ok(queues)
}

fn queue(message: &TcMessage, device: &str) -> Queue {
    let handle = (message.header.handle.major, message.header.handle.minor);
    let root = message.header.parent == TcHandle::ROOT;
    let parent = if root { (0, 0) } else { (message.header.parent.major, message.header.parent.minor) };
    let references = message.header.info;
    let mut queue = Queue { device: device.to_owned(), handle, parent, root, references, ..Queue::default() };
    let mut raw = Vec::new();
    for attribute in &message.attributes {
        match attribute {
            TcAttribute::Kind(kind) => queue.kind.clone_from(kind),
            TcAttribute::Options(options) => {
                raw = bytes(options);
                queue.rate = options.iter().filter_map(token_bucket_rate).max();
            }
            TcAttribute::Stats2(stats) => {
                for stat in stats {
                    match stat {
                        TcStats2::Queue(figures) => {
                            queue.backlog = figures.backlog;
                            queue.length = figures.qlen;
                            queue.drops = figures.drops;
                            queue.requeues = figures.requeues;
                            queue.overlimits = figures.overlimits;
                        }
                        TcStats2::Basic(figures) => {
                            (queue.bytes, queue.packets) = (figures.bytes, figures.packets)
                        }
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
    queue.options = options::words(&queue.kind, &raw);
    if queue.kind != "tbf" {
        queue.rate = None;
    }
    queue
}

/// Returns the rate of a tbf: `rate` of struct tc_tbf_qopt (TCA_TBF_PARMS), or TCA_TBF_RATE64
/// (include/uapi/linux/pkt_sched.h).
fn token_bucket_rate(option: &TcOption) -> Option<u64> {
    let TcOption::Other(options) = option else { return None };
    let mut bytes = vec![0; options.value_len()];
    options.emit_value(&mut bytes);
    let options = Attributes::within(&bytes);
    let rate = options.bytes(1).and_then(|parameters| parameters.get(8..12)?.try_into().ok());
    options.number(4).or_else(|| rate.map(|rate| u32::from_ne_bytes(rate).into()))
}

/// Returns the options as the kernel sent them: attributes, or one structure.
fn bytes(options: &[TcOption]) -> Vec<u8> {
    let mut all = Vec::new();
    for option in options {
        // For kinds that the crate does not know, the whole value.
        let whole = matches!(option, TcOption::Other(_));
        let mut one = vec![0; if whole { option.value_len() } else { option.buffer_len() }];
        if whole {
            option.emit_value(&mut one);
        } else {
            option.emit(&mut one);
        }
        all.append(&mut one);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sources::netlink::tests::mutated;

    #[test]
    fn mutated_queues_do_not_panic() {
        mutated(NETLINK_ROUTE, RouteNetlinkMessage::GetQueueDiscipline(TcMessage::default()), |answer| {
            if let RouteNetlinkMessage::NewQueueDiscipline(message) = answer {
                queue(&message, "lo");
            }
        });
    }
}
