//! Reads byte queue limits and receive packet steering from /sys/class/net.
use crate::sample::{ByteLimit, Device};
use std::collections::BTreeSet;
use std::path::Path;
use std::{fs, io};

/// Adds the values of sysfs to the devices.
pub(super) fn read(root: &Path, devices: &mut [Device]) -> io::Result<()> {
    let folder = root.join("sys/class/net");
    // The mounted sysfs may belong to another network namespace than the one that is read.
    let mut here = BTreeSet::new();
    for entry in fs::read_dir(&folder)?.flatten() {
        if let Ok(index) = fs::read_to_string(entry.path().join("ifindex")) {
            here.insert((entry.file_name().to_string_lossy().into_owned(), index.trim().to_owned()));
        }
    }
    let there = devices.iter().map(|device| (device.name.clone(), device.index.to_string())).collect();
    if here != there {
        return Err(io::Error::other("mounted for another network namespace"));
    }
    for device in devices {
        one(&folder.join(&device.name).join("queues"), device);
    }
    Ok(())
}

fn one(queues: &Path, device: &mut Device) {
    for entry in fs::read_dir(queues).into_iter().flatten().flatten() {
        let queue = entry.file_name().to_string_lossy().into_owned();
        let number = |name: &str| {
            let path = entry.path().join("byte_queue_limits").join(name);
            fs::read_to_string(path).ok().and_then(|text| text.trim().parse::<u64>().ok())
        };
        if let (Some(limit), Some(limit_max)) = (number("limit"), number("limit_max")) {
            let stall_cnt = number("stall_cnt").unwrap_or(0);
            device.byte_limits.push(ByteLimit { queue, limit, limit_max, stall_cnt });
        } else if let Ok(cpus) = fs::read_to_string(entry.path().join("rps_cpus")) {
            device.rps |= cpus.chars().any(|digit| digit.is_ascii_hexdigit() && digit != '0');
        }
    }
    device.byte_limits.sort_by(|a, b| a.queue.cmp(&b.queue));
}
