//! RX: rings, drops, interrupts and offloads of devices.
use super::devices::LINK_RESET;
use super::{Found, Kernels, Rule};
use crate::escape;
use crate::finding::{Confidence, Evidence, Scope, Severity, Step};
use crate::limit::Limit;
use crate::sample::Source::{Devices, Ethtool, Interrupts, Softnet, Sysfs};
use crate::sample::{Device, Interrupt, Pool, Sample};
use crate::window::Window;

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "RX-04",
        symptom: "receive ring overflows",
        condition: "rx_missed_errors, rx_fifo_errors or rx_over_errors of a device grow",
        why: "The CPU did not empty the ring in time. The packets are lost before the kernel sees them.",
        advice: "Enlarge the ring if the device allows it, else spread its interrupts over more CPUs.",
        settings: &[],
        needs: &[Devices],
        kernels: Kernels::ALL,
        confidence: Confidence::Likely,
        limits: &[],
        judge: ring,
    },
    Rule {
        id: "RX-05",
        symptom: "device drops packets before any protocol handles them",
        condition: "rx_dropped or rx_nohandler of a device grow",
        why: "The cause is lack of memory, an unknown protocol, or a drop by tc or XDP. It is not the ring.",
        advice: "Get the reason from the kernel: the tracepoint skb:kfree_skb (perf, dropwatch).",
        settings: &[],
        needs: &[Devices],
        kernels: Kernels::ALL,
        confidence: Confidence::Hint,
        limits: &[],
        judge: dropped,
    },
    Rule {
        id: "RX-06",
        symptom: "one CPU receives everything",
        condition: "all receive interrupts of a device go to one of several CPUs, packet steering is off, and that CPU handles more than 80 % of NET_RX at more than 10000 packets a second",
        why: "The host cannot receive more than this one CPU can handle.",
        advice: "Use more queues, or steer packets to other CPUs (RPS).",
        settings: &[],
        needs: &[Devices, Interrupts, Softnet, Sysfs],
        kernels: Kernels::ALL,
        confidence: Confidence::Likely,
        limits: &[SHARE, RATE],
        judge: one_cpu,
    },
    Rule {
        id: "RX-10",
        symptom: "offloads disabled",
        condition: "tx-tcp-segmentation, tx-generic-segmentation, rx-gro or tx-checksum-ip-generic was disabled on a device of at least 1 Gbit/s, or of unknown speed",
        why: "Disabling them costs several times the CPU. The old latency advice is obsolete since TSO autosizing and BQL.",
        advice: "Enable them.",
        settings: &[],
        needs: &[Devices, Ethtool],
        kernels: Kernels::since(5, 7),
        confidence: Confidence::Certain,
        limits: &[],
        judge: offloads,
    },
];

/// Pairs each device with the same device in the earlier sample.
fn pairs<'a>(window: &Window<'a>) -> impl Iterator<Item = (&'a Device, &'a Device)> {
    let before = window.needs_before();
    let (devices, now) = (before.map(|before| &before.devices), window.now);
    now.devices.iter().filter_map(move |device| {
        devices
            .and_then(|devices| devices.iter().find(|then| then.index == device.index))
            .map(|then| (then, device))
    })
}

fn of_device(device: &Device, severity: Severity, evidence: Vec<Evidence>, formula: String) -> Found {
    Found { severity, scope: Scope::Device(device.name.clone()), evidence, formula, ..Found::default() }
}

fn ring(window: &Window<'_>) -> Vec<Found> {
    let lost = |device: &Device| {
        let missed = device.rx_missed_errors.saturating_add(device.rx_fifo_errors);
        missed.saturating_add(device.rx_over_errors)
    };
    let found = pairs(window).filter_map(|(then, now)| {
        let grown = lost(now).saturating_sub(lost(then));
        let mut evidence =
            vec![window.during("rx_missed_errors + rx_fifo_errors + rx_over_errors", format!("+{grown}"))];
        let mut steps = Vec::new();
        if let Some(rings) = now.rings {
            let Pool { now: size, max } = rings.rx;
            evidence.push(window.shown("receive ring", format!("{size} of at most {max}")));
            let name = escape::word(&now.name);
            steps.push(Step {
                command: format!("ethtool -G {name} rx {max}"),
                persist: Some(
                    "in the device's .link file (systemd): RxBufferSize=".to_owned() + &max.to_string(),
                ),
                undo: Some(format!("ethtool -G {name} rx {size}")),
                obstacle: (size >= max).then(|| "the ring already has its maximum size".to_owned()),
                effect: Some(LINK_RESET.to_owned()),
                ..Step::default()
            });
        }
        let found = of_device(now, Severity::Warning, evidence, format!("+{grown} packets > 0"));
        (grown > 0).then_some(Found { steps, ..found })
    });
    found.collect()
}

fn dropped(window: &Window<'_>) -> Vec<Found> {
    let found = pairs(window).filter_map(|(then, now)| {
        let dropped = now.rx_dropped.saturating_sub(then.rx_dropped);
        let unclaimed = now.rx_nohandler.saturating_sub(then.rx_nohandler);
        let evidence = vec![
            window.during("rx_dropped", format!("+{dropped}")),
            window.during("rx_nohandler", format!("+{unclaimed}")),
        ];
        let formula = format!("+{dropped} and +{unclaimed} packets > 0");
        (dropped > 0 || unclaimed > 0).then(|| of_device(now, Severity::Info, evidence, formula))
    });
    found.collect()
}

const SHARE: Limit = Limit { rule: "RX-06", name: "share", value: 80.0, unit: "%" };
const RATE: Limit = Limit { rule: "RX-06", name: "rate", value: 10_000.0, unit: "packets/s" };

fn one_cpu(window: &Window<'_>) -> Vec<Found> {
    let cpus = window.now.net_rx.len();
    if cpus <= 1 {
        return Vec::new();
    }
    let Some(before) = window.needs_before() else { return Vec::new() };
    let on = |cpu: usize| {
        let of = |sample: &Sample| sample.net_rx.get(cpu).copied().unwrap_or(0);
        of(window.now).saturating_sub(of(before))
    };
    let all = (0..cpus).map(on).fold(0, u64::saturating_add);
    let found = pairs(window).filter_map(|(then, now)| {
        let receiving: Vec<&Interrupt> = receiving(now);
        let cpu: usize = receiving.first()?.cpus.parse().ok()?;
        let same = receiving.iter().all(|interrupt| interrupt.cpus == receiving[0].cpus);
        let share = super::percent(on(cpu), all);
        let rate = now.rx_packets.saturating_sub(then.rx_packets) as f64 / window.seconds();
        let holds = same && !now.rps && share > window.limit(&SHARE) && rate > window.limit(&RATE);
        let evidence = vec![
            window.shown("interrupts that receive", format!("{} on CPU {cpu}", receiving.len())),
            window.during("NET_RX on that CPU", format!("{share:.0} %")),
            window.during("rx_packets", format!("{rate:.0} a second")),
        ];
        let formula = format!(
            "{share:.0} % > {} %, {rate:.0} > {} a second",
            window.limit(&SHARE),
            window.limit(&RATE)
        );
        let steps = vec![spread(now, cpus)];
        holds.then(|| Found { steps, ..of_device(now, Severity::Warning, evidence, formula) })
    });
    found.collect()
}

/// Returns the interrupts whose names say that they receive, or all if no name does.
fn receiving(device: &Device) -> Vec<&Interrupt> {
    let named: Vec<_> = device
        .interrupts
        .iter()
        .filter(|interrupt| ["input", "rx", "Rx"].iter().any(|word| interrupt.name.contains(word)))
        .collect();
    if named.is_empty() { device.interrupts.iter().collect() } else { named }
}

fn spread(device: &Device, cpus: usize) -> Step {
    let name = escape::word(&device.name);
    let queues = device.channels.filter(|channels| channels.now < channels.max);
    if let Some(Pool { now, max }) = queues {
        let wanted = u32::try_from(cpus).unwrap_or(max).min(max);
        return Step {
            command: format!("ethtool -L {name} combined {wanted}"),
            undo: Some(format!("ethtool -L {name} combined {now}")),
            effect: Some(LINK_RESET.to_owned()),
            ..Step::default()
        };
    }
    // A mask of CPUs. Groups of more than 32 would need commas.
    let mask = (1_u64 << cpus.min(32)) - 1;
    let file = format!("/sys/class/net/{}/queues/rx-0/rps_cpus", device.name);
    let file = escape::word(&file);
    Step {
        command: format!("echo {mask:x} > {file}"),
        undo: Some(format!("echo 0 > {file}")),
        ..Step::default()
    }
}

fn offloads(window: &Window<'_>) -> Vec<Found> {
    let fast = |device: &&Device| !device.loopback && device.speed.is_none_or(|speed| speed >= 1000);
    let devices = window.now.devices.iter().filter(|device| device.up).filter(fast);
    devices
        .filter_map(|device| {
            let meant = |name: &str| match device.kind.as_deref() {
                // A veth starts without GRO and does not need it.
                Some("veth") => name == "rx-gro",
                // The program behind it states what it accepts.
                Some("tun") => true,
                _ => false,
            };
            let off = device.features.iter().filter(|(name, on)| !**on && !meant(name));
            let off: Vec<&str> = off.map(|(name, _)| name.as_str()).collect();
            let evidence = off.iter().map(|name| window.shown(*name, "off")).collect();
            let words = |state: &str| {
                off.iter().map(|name| format!("{} {state}", escape::word(name))).collect::<Vec<_>>().join(" ")
            };
            let name = escape::word(&device.name);
            let steps = vec![Step {
                command: format!("ethtool -K {name} {}", words("on")),
                persist: Some("in the device's .link file (systemd), section [Link]".to_owned()),
                undo: Some(format!("ethtool -K {name} {}", words("off"))),
                ..Step::default()
            }];
            let found = of_device(device, Severity::Info, evidence, format!("{} off", off.join(", ")));
            (!off.is_empty()).then_some(Found { steps, ..found })
        })
        .collect()
}
