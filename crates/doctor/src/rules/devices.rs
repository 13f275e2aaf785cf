//! TX: queues below the queueing discipline, and settings that do not survive a boot.
use super::cwnd::change;
use super::settings::wanted;
use super::{Found, Kernels, Rule, Words};
use crate::change::Want;
use crate::escape;
use crate::finding::{Confidence, Evidence, Scope, Severity, Step};
use crate::limit::Limit;
use crate::sample::Source::{Counters, Devices, Ethtool, Queues, Routes, Sysfs};
use crate::sample::{Device, Queue, RouteMetrics, Sample};
use crate::window::Window;

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "TX-03",
        symptom: "deep FIFO on a slow link",
        condition: "the root queue is pfifo_fast, pfifo or bfifo, and the link needs more than 100 ms to send a full queue (its limit, else txqueuelen × MTU)",
        why: "One bulk transfer fills the queue, and every other packet waits behind it.",
        advice: "Use a discipline that separates flows, if the kernel has one.",
        settings: &[],
        needs: &[Queues, Devices, Ethtool],
        kernels: Kernels::ALL,
        confidence: Confidence::Likely,
        limits: &[FIFO],
        judge: deep_fifo,
    },
    Rule {
        id: "TX-04",
        symptom: "byte queue limits missing or wrong",
        condition: "a hardware device has none (info); a limit_max is below two packets, or stall_cnt grows (warning)",
        why: "Byte queue limits keep the ring short, so that the queueing discipline controls the queue. A leftover limit_max throttles the device.",
        advice: "Restore limit_max. If the driver has no byte queue limits, no setting helps.",
        settings: &[],
        needs: &[Devices, Sysfs],
        kernels: Kernels::since(3, 3),
        confidence: Confidence::Certain,
        limits: &[],
        judge: byte_limits,
    },
    Rule {
        id: "TX-05",
        symptom: "deep transmit ring without byte queue limits",
        condition: "a device has no byte queue limits, its transmit ring holds more than 64 full packets, and the link needs more than 10 ms to send a full ring",
        why: "The ring is one more FIFO, below the queueing discipline.",
        advice: "Shorten the ring.",
        settings: &[],
        needs: &[Devices, Ethtool, Sysfs],
        kernels: Kernels::ALL,
        confidence: Confidence::Likely,
        limits: &[RING],
        judge: deep_ring,
    },
    Rule {
        id: "TX-07",
        symptom: "queueing discipline set by hand",
        condition: "a device's root queue has a handle, so tc or a program has set it; and it is not the kernel's default (net.core.default_qdisc)",
        why: "The setting is lost at the next boot, or when the device is removed.",
        advice: "Let systemd-networkd, NetworkManager or a unit set it again.",
        settings: &[],
        needs: &[Queues],
        kernels: Kernels::ALL,
        confidence: Confidence::Hint,
        limits: &[],
        judge: by_hand,
    },
    Rule {
        id: "TX-08",
        symptom: "bond with a failed member, or reordering packets",
        condition: "a member is down (critical); round-robin while packets arrive reordered, or 802.3ad without a partner (warning)",
        why: "Round-robin sends packets of one flow over several links, where they overtake one another.",
        advice: "Use mode 802.3ad with xmit_hash_policy layer3+4, and repair the link that is down.",
        settings: &[],
        needs: &[Counters],
        kernels: Kernels::ALL,
        confidence: Confidence::Certain,
        limits: &[],
        judge: bonds,
    },
    Rule {
        id: "TX-09",
        symptom: "MTU below 1500 on the default route",
        condition: "the device of a default route has an MTU below 1500, or the route has an MTU below the device's",
        why: "The host is behind a tunnel or in a cloud network. Peers learn the MTU only from ICMP or from the MSS.",
        advice: "Let ICMP pass, or advertise a smaller MSS with the route's advmss.",
        settings: &[],
        needs: &[Devices, Routes],
        kernels: Kernels::ALL,
        confidence: Confidence::Hint,
        limits: &[USUAL_MTU],
        judge: small_mtu,
    },
];

const FIFO: Limit = Limit { rule: "TX-03", name: "milliseconds", value: 100.0, unit: "ms" };
const RING: Limit = Limit { rule: "TX-05", name: "milliseconds", value: 10.0, unit: "ms" };
const USUAL_MTU: Limit = Limit { rule: "TX-09", name: "mtu", value: 1500.0, unit: "bytes" };

/// Returns the time that the link needs for this many bytes.
fn milliseconds(window: &Window<'_>, device: &Device, bytes: f64) -> Option<f64> {
    // A TUN device reports an invented speed.
    let speed = device.speed.filter(|speed| *speed > 0 && device.kind.as_deref() != Some("tun"));
    if speed.is_none() && device.parent.is_some() {
        window.lacks("its device does not report its speed");
    }
    let speed = speed?;
    Some(bytes * 8.0 / (f64::from(speed) * 1000.0))
}

fn full_packets(device: &Device, packets: u32) -> f64 {
    f64::from(packets) * f64::from(device.mtu)
}

/// Returns the capacity of a FIFO in bytes, and a text for it. The limit of `pfifo` is in packets,
/// that of `bfifo` in bytes.
fn depth(queue: &Queue, device: &Device) -> (f64, String) {
    let limit = queue.options.iter().find(|(name, _)| name == "limit");
    let limit = limit.and_then(|(_, value)| value.trim_end_matches(['p', 'b']).parse::<u32>().ok());
    match (queue.kind.as_str(), limit) {
        ("bfifo", Some(bytes)) => (f64::from(bytes), format!("{bytes} bytes")),
        (_, limit) => {
            let packets = limit.unwrap_or(device.tx_queue_len);
            (full_packets(device, packets), format!("{packets} × {} bytes", device.mtu))
        }
    }
}

/// Returns the steps that replace this discipline, and make the new one the default for later
/// devices.
pub(super) fn other_discipline(sample: &Sample, queue: &Queue) -> Vec<Step> {
    let has = |kind: &&str| sample.queue_kinds.iter().any(|other| other == kind);
    let kind = KEEP_SHORT.into_iter().find(has);
    let obstacle = match kind {
        None if !sample.queue_kinds.is_empty() => {
            Some("this kernel has none of fq_codel, cake and fq: choose a smaller limit".to_owned())
        }
        _ => None,
    };
    let kind = kind.unwrap_or(KEEP_SHORT[0]);
    let device = escape::word(&queue.device);
    let (place, undo) = match queue {
        // Replacing a shaper would move the queue to the next slow link. The new discipline belongs
        // into the shaper's class.
        Queue { root: true, rate: Some(_), handle: (handle, _), .. } => {
            (format!("parent {handle:x}:1"), None)
        }
        Queue { root: false, parent: (class, minor), .. } if *class > 0 => {
            (format!("parent {class:x}:{minor:x}"), None)
        }
        _ => ("root".to_owned(), Some(format!("tc qdisc del dev {device} root"))),
    };
    let default = (place == "root" && obstacle.is_none() && sample.settings.contains_key(DEFAULT))
        .then(|| wanted(DEFAULT, Want::Value(kind.to_owned()), sample));
    let persist =
        default.is_none().then(|| "the same command in the script that creates the device".to_owned());
    let command = format!("tc qdisc replace dev {device} {place} {kind}");
    let step = Step { command, persist, undo, obstacle, ..Step::default() };
    default.into_iter().chain([step]).collect()
}

/// Disciplines that keep their queue short, best first.
const KEEP_SHORT: [&str; 3] = ["fq_codel", "cake", "fq"];

/// The default discipline of devices. Only the first namespace shows it.
const DEFAULT: &str = "net.core.default_qdisc";

fn of_device(device: &str, severity: Severity, evidence: Vec<Evidence>, formula: String) -> Found {
    Found { severity, scope: Scope::Device(device.to_owned()), evidence, formula, ..Found::default() }
}

fn deep_fifo(window: &Window<'_>) -> Vec<Found> {
    let fifos = window
        .now
        .queues
        .iter()
        .filter(|queue| queue.root && ["pfifo_fast", "pfifo", "bfifo"].contains(&queue.kind.as_str()));
    let found = fifos.filter_map(|queue| {
        let device = window.now.device(&queue.device)?;
        let (bytes, words) = depth(queue, device);
        let (time, limit) = (milliseconds(window, device, bytes)?, window.limit(&FIFO));
        let evidence = vec![
            window.shown("queue", &queue.kind),
            window.shown("holds at most", &words),
            window.shown("speed", format!("{} Mbit/s", device.speed.unwrap_or(0))),
        ];
        let formula = format!("{words} at that speed = {time:.0} ms > {limit} ms");
        let steps = other_discipline(window.now, queue);
        (device.up && time > limit)
            .then(|| Found { steps, ..of_device(&device.name, Severity::Info, evidence, formula) })
    });
    found.collect()
}

fn byte_limits(window: &Window<'_>) -> Vec<Found> {
    let mut found = Vec::new();
    for device in window.now.devices.iter().filter(|device| device.up) {
        if device.byte_limits.is_empty() && device.parent.is_some() {
            let evidence = vec![window.shown("byte_queue_limits", "absent")];
            found.push(of_device(&device.name, Severity::Info, evidence, "none in sysfs".to_owned()));
        }
        for limit in &device.byte_limits {
            let before = window
                .before()
                .and_then(|before| before.device(&device.name))
                .and_then(|device| device.byte_limits.iter().find(|other| other.queue == limit.queue));
            let stalls = limit.stall_cnt.saturating_sub(before.map_or(0, |before| before.stall_cnt));
            let least = 2 * u64::from(device.mtu);
            if limit.limit_max >= least && stalls == 0 {
                continue;
            }
            let evidence = vec![
                window.shown(format!("limit_max of {}", limit.queue), limit.limit_max),
                window.during(format!("stall_cnt of {}", limit.queue), format!("+{stalls}")),
            ];
            let formula = format!("limit_max {} < {least}, or stall_cnt +{stalls} > 0", limit.limit_max);
            let file =
                format!("/sys/class/net/{}/queues/{}/byte_queue_limits/limit_max", device.name, limit.queue);
            let file = escape::word(&file);
            let step = Step {
                command: format!("echo {DQL_MAX_LIMIT} > {file}"),
                undo: Some(format!("echo {} > {file}", limit.limit_max)),
                ..Step::default()
            };
            let steps = if limit.limit_max < least { vec![step] } else { Vec::new() };
            found.push(Found { steps, ..of_device(&device.name, Severity::Warning, evidence, formula) });
        }
    }
    found
}

/// The kernel's default of limit_max (include/linux/dynamic_queue_limits.h).
const DQL_MAX_LIMIT: u64 = 1_879_048_192;

fn deep_ring(window: &Window<'_>) -> Vec<Found> {
    let devices = window.now.devices.iter().filter(|device| device.up && device.byte_limits.is_empty());
    let found = devices.filter_map(|device| {
        let ring = device.rings?.tx.now;
        let (time, limit) = (milliseconds(window, device, full_packets(device, ring))?, window.limit(&RING));
        let evidence = vec![
            window.shown("transmit ring", ring),
            window.shown("speed", format!("{} Mbit/s", device.speed.unwrap_or(0))),
        ];
        let formula = format!("{ring} × {} bytes at that speed = {time:.0} ms > {limit} ms", device.mtu);
        let name = escape::word(&device.name);
        let steps = vec![Step {
            command: format!("ethtool -G {name} tx {SMALL_RING}"),
            persist: Some(format!("in the device's .link file (systemd): TxBufferSize={SMALL_RING}")),
            effect: Some(LINK_RESET.to_owned()),
            undo: Some(format!("ethtool -G {name} tx {ring}")),
            ..Step::default()
        }];
        (time > limit && ring > SMALL_RING)
            .then(|| Found { steps, ..of_device(&device.name, Severity::Info, evidence, formula) })
    });
    found.collect()
}

/// Size of a small ring, in packets. Every driver allows it, and interrupts still keep it filled.
const SMALL_RING: u32 = 64;

/// When a change of rings or channels takes effect.
pub(super) const LINK_RESET: &str = "immediately; most drivers take the link down for a moment";

fn by_hand(window: &Window<'_>) -> Vec<Found> {
    // The kernel's default, or a discipline that this crate advises.
    let is_usual = |queue: &&Queue| match window.now.setting(DEFAULT) {
        Some(default) => queue.kind == default,
        None => KEEP_SHORT.contains(&queue.kind.as_str()),
    };
    let roots = window.now.queues.iter().filter(|queue| queue.root && queue.handle.0 != 0);
    let roots = roots.filter(|queue| !is_usual(queue));
    let found = roots.map(|queue| {
        let handle = format!("{:x}:", queue.handle.0);
        let evidence = vec![window.shown("root queue", format!("{} {handle}", queue.kind))];
        of_device(&queue.device, Severity::Info, evidence, format!("handle {handle} is not 0:"))
    });
    found.collect()
}

fn bonds(window: &Window<'_>) -> Vec<Found> {
    let reordered = window.grown("TcpExtTCPSACKReorder").saturating_add(window.grown("TcpExtTCPTSReorder"));
    let found = window.now.bonds.iter().filter_map(|bond| {
        let alone = bond.partner.as_deref().is_some_and(|partner| partner.chars().all(|c| "0:".contains(c)));
        let (severity, formula) = match () {
            () if !bond.down.is_empty() => (Severity::Critical, format!("{} down", bond.down.join(", "))),
            () if bond.mode.contains("round-robin") && reordered > 0 => {
                (Severity::Warning, format!("round-robin, and {reordered} reorderings > 0"))
            }
            () if alone => (Severity::Warning, "802.3ad without a partner".to_owned()),
            () => return None,
        };
        let evidence =
            vec![window.shown("mode", &bond.mode), window.during("reorderings", format!("+{reordered}"))];
        // Reordering has other causes too.
        let reorders = bond.down.is_empty() && bond.mode.contains("round-robin");
        let confidence = reorders.then_some(Confidence::Likely);
        let words = Words { confidence, ..Words::default() };
        Some(Found { words, ..of_device(&bond.name, severity, evidence, formula) })
    });
    found.collect()
}

fn small_mtu(window: &Window<'_>) -> Vec<Found> {
    let usual = window.limit(&USUAL_MTU);
    let found =
        window.now.routes.iter().filter(|route| route.default && !route.route.contains(':')).filter_map(
            |route| {
                let device = window.now.device(&route.device)?;
                let below = route.metrics.mtu > 0 && route.metrics.mtu < device.mtu;
                let mtu = if below { route.metrics.mtu } else { device.mtu };
                // Minus the headers of IPv4 and TCP without options.
                let mss = mtu.saturating_sub(40);
                let evidence = vec![
                    window.shown("MTU", mtu),
                    window.shown("route", &route.route),
                    window.shown("advmss", route.metrics.advmss),
                ];
                let steps = vec![change(route, &RouteMetrics { advmss: mss, ..route.metrics })];
                let told = route.metrics.advmss > 0 && route.metrics.advmss <= mss;
                let formula = match below {
                    true => format!("the route's {mtu} < the device's {}", device.mtu),
                    false => format!("{mtu} < {usual}"),
                };
                let holds = (below || f64::from(device.mtu) < usual) && !told;
                holds.then(|| Found { steps, ..of_device(&device.name, Severity::Info, evidence, formula) })
            },
        );
    found.collect()
}
