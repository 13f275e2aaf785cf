//! CPUs that serve a device: /proc/interrupts, /proc/irq and /proc/softirqs.
use crate::sample::{Device, Interrupt};
use std::path::Path;
use std::{fs, io};

/// Adds interrupts to the devices. Returns the packets received in software interrupts, per CPU.
pub(super) fn read(root: &Path, devices: &mut [Device]) -> io::Result<Vec<u64>> {
    let text = fs::read_to_string(root.join("proc/interrupts"))?;
    let mut lines = text.lines();
    let cpus = lines.next().unwrap_or_default().split_whitespace().count();
    for line in lines {
        let Some((number, rest)) = line.split_once(':') else { continue };
        let Ok(number) = number.trim().parse() else { continue };
        let name = rest.split_whitespace().skip(cpus).last().unwrap_or_default();
        for device in devices.iter_mut().filter(|device| belongs(name, device)) {
            let cpus = root.join(format!("proc/irq/{number}/effective_affinity_list"));
            let cpus = fs::read_to_string(cpus).unwrap_or_default().trim().to_owned();
            device.interrupts.push(Interrupt { number, name: name.to_owned(), cpus });
        }
    }
    let text = fs::read_to_string(root.join("proc/softirqs"))?;
    let row = text.lines().find_map(|line| line.trim_start().strip_prefix("NET_RX:"));
    Ok(row.into_iter().flat_map(str::split_whitespace).filter_map(|count| count.parse().ok()).collect())
}

/// Returns whether an interrupt belongs to a device. Drivers name their interrupts after the device
/// ("eth0-rx-0") or after the hardware ("virtio2-input.0").
fn belongs(interrupt: &str, device: &Device) -> bool {
    let named = |name: &str| {
        interrupt.split_once(name).is_some_and(|(_, rest)| !rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    let setup = ["config", "control"].iter().any(|word| interrupt.contains(word));
    !device.name.is_empty() && !setup && (named(&device.name) || device.parent.as_deref().is_some_and(named))
}
