//! Reads speed, rings, queues and offloads of devices from the generic netlink family ethtool.
use super::generic::{Attributes, Family};
use crate::sample::{Device, Pool, Rings};
use std::io;

// Attributes from include/uapi/linux/ethtool_netlink.h. Attribute 1 of every answer is the header,
// and attribute 1 of the header is the device's index.
const HEADER: u16 = 1;
const DEV_INDEX: u16 = 1;
const LINKMODES_GET: u8 = 4;
const FEATURES_GET: u8 = 11;
const RINGS_GET: u8 = 15;
const CHANNELS_GET: u8 = 17;

/// Offloads that matter to TCP, by their ethtool(8) names.
const OFFLOADS: [&str; 4] =
    ["tx-tcp-segmentation", "tx-generic-segmentation", "rx-gro", "tx-checksum-ip-generic"];

/// Adds the values of ethtool to the devices.
pub(super) fn read(devices: &mut [Device]) -> io::Result<()> {
    let family = Family::find("ethtool", 1)?;
    let mut each = |command, take: fn(&mut Device, &Attributes)| {
        family.dump(command, |answer| {
            let index = answer.nested(HEADER).u32(DEV_INDEX);
            if let Some(device) = devices.iter_mut().find(|device| device.index == index) {
                take(device, answer);
            }
        })
    };
    each(LINKMODES_GET, |device, answer| {
        // SPEED_UNKNOWN is -1.
        device.speed = answer.number(5).and_then(|speed| i32::try_from(speed).ok()?.try_into().ok());
    })?;
    each(RINGS_GET, |device, answer| {
        let pool = |now, max| Pool { now: answer.u32(now), max: answer.u32(max) };
        device.rings = Some(Rings { rx: pool(6, 2), tx: pool(9, 5) });
    })?;
    each(CHANNELS_GET, |device, answer| {
        // Combined queues. If there are none, receive queues.
        let [now, max] = match answer.u32(5) {
            0 => [answer.u32(6), answer.u32(2)],
            most => [answer.u32(9), most],
        };
        device.channels = Some(Pool { now, max });
    })?;
    each(FEATURES_GET, |device, answer| {
        // Supported, requested and active features. A tunnel or bridge cannot have a feature that
        // the device below lacks.
        let [can, wanted, does] = [2, 3, 4].map(|kind| bits(answer, kind));
        let within = |set: &[String], name: &str| set.iter().any(|other| other == name);
        let offered = OFFLOADS.iter().filter(|name| within(&can, name) || within(&does, name));
        let on = |name: &str| within(&wanted, name) || within(&does, name);
        device.features = offered.map(|name| ((*name).to_owned(), on(name))).collect();
    })
}

/// Returns the names in a bit set. ETHTOOL_A_BITSET_BITS is 3; each bit is attribute 1 in it, with
/// its name in attribute 2.
fn bits(answer: &Attributes, kind: u16) -> Vec<String> {
    let bits = answer.nested(kind).nested(3);
    bits.all(1).filter_map(|bit| Attributes::within(bit).text(2)).collect()
}
