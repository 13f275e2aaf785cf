//! RX: received packets that never reach a socket.
use super::{Change, Found, Kernels, Rule, found};
use crate::finding::{Confidence, Scope, Severity};
use crate::limit::Limit;
use crate::sample::Source::{Counters, Devices, Routes, Settings, Softnet};
use crate::sample::{self, Sample};
use crate::window::Window;

const BACKLOG: &str = "net.core.netdev_max_backlog";

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "RX-01",
        symptom: "packets dropped before IP",
        condition: "softnet_stat's drops grow (critical: more than 100 a second)",
        why: "A CPU's backlog queue overflowed. All namespaces share it.",
        advice: "Spread the load over CPUs first (RPS, queues), then raise the backlog.",
        settings: &[(BACKLOG, Change::AtLeast(4096))],
        needs: &[Softnet],
        kernels: Kernels::ALL,
        confidence: Confidence::Certain,
        limits: &[FLOOD],
        judge: backlog,
    },
    Rule {
        id: "RX-02",
        symptom: "receive processing stops before the ring is empty",
        condition: "softnet_stat's time_squeeze grows by more than 1 % of the packets, at least 10",
        why: "netdev_budget or netdev_budget_usecs was used up. The remaining packets wait in the ring for the next round.",
        advice: "Add receive queues or CPUs that process them. Larger budgets also help.",
        settings: &[
            ("net.core.netdev_budget", Change::AtLeast(600)),
            ("net.core.netdev_budget_usecs", Change::AtLeast(16000)),
        ],
        needs: &[Softnet],
        kernels: Kernels::ALL,
        confidence: Confidence::Certain,
        limits: &[SQUEEZED],
        judge: squeezed,
    },
    Rule {
        id: "RX-03",
        symptom: "packets of one flow dropped to protect others",
        condition: "softnet_stat's flow_limit_count grows",
        why: "One flow exceeded its share of a CPU's backlog queue, and net.core.flow_limit_cpu_bitmap protects the other flows.",
        advice: "Usually nothing. If that flow matters, spread its load over more connections.",
        settings: &[],
        needs: &[Softnet],
        kernels: Kernels::since(3, 11),
        confidence: Confidence::Certain,
        limits: &[],
        judge: |window| {
            let grown = softnet(window, |row| row.flow_limited);
            let evidence = vec![window.during("softnet_stat flow_limit_count", format!("+{grown}"))];
            on_host(found(grown > 0, Severity::Info, evidence, format!("+{grown} > 0")))
        },
    },
    Rule {
        id: "RX-07",
        symptom: "packets arrive and get no answer (rp_filter)",
        condition: "TcpExtIPReversePathFilter grows",
        why: "The reply would leave through another interface than the one the packet arrived on, and strict rp_filter silently drops the packet. Causes are a second uplink, or forged addresses, which the filter is meant to stop.",
        advice: "Use the loose filter (2), or route by source: ip rule add from ADDRESS table TABLE.",
        settings: &[("net.ipv4.conf.all.rp_filter", Change::To("2"))],
        needs: &[Counters, Settings],
        kernels: Kernels::ALL,
        confidence: Confidence::Likely,
        limits: &[],
        judge: reverse_path,
    },
    Rule {
        id: "RX-08",
        symptom: "strict reverse-path filter on a host with several links",
        condition: "the larger of conf.all.rp_filter and the device's value is 1 on at least two devices with addresses, and no rule routes by source",
        why: "rp_filter silently drops every flow whose reply leaves through the other link.",
        advice: "Use the loose filter (2), or route by source: ip rule add from ADDRESS table TABLE.",
        settings: &[("net.ipv4.conf.all.rp_filter", Change::To("2"))],
        needs: &[Settings, Devices, Routes],
        kernels: Kernels::ALL,
        confidence: Confidence::Likely,
        limits: &[],
        judge: strict,
    },
    Rule {
        id: "RX-09",
        symptom: "rp_filter disabled for a device, but not in effect",
        condition: "conf.all.rp_filter = 1, and 0 on a device other than lo",
        why: "The kernel uses the larger of the two values, so the 0 has no effect.",
        advice: "Set both to the intended value.",
        settings: &[],
        needs: &[Settings],
        kernels: Kernels::ALL,
        confidence: Confidence::Certain,
        limits: &[],
        judge: half_off,
    },
];

/// Returns the growth of a column, summed over CPUs, between two samples. The value since boot says
/// little, because one old burst may explain it.
fn softnet(window: &Window<'_>, column: fn(&sample::Softnet) -> u64) -> u64 {
    let sum = |sample: &Sample| sample.softnet.iter().map(column).fold(0, u64::saturating_add);
    window.needs_before().map_or(0, |before| sum(window.now).saturating_sub(sum(before)))
}

fn on_host(mut found: Vec<Found>) -> Vec<Found> {
    found.iter_mut().for_each(|found| found.scope = Scope::Host);
    found
}

const FLOOD: Limit = Limit { rule: "RX-01", name: "critical", value: 100.0, unit: "packets/s" };

fn backlog(window: &Window<'_>) -> Vec<Found> {
    let grown = softnet(window, |row| row.dropped);
    let rate = grown as f64 / window.seconds();
    let severity = if rate > window.limit(&FLOOD) { Severity::Critical } else { Severity::Warning };
    let evidence = vec![window.during("softnet_stat dropped", format!("+{grown}")), window.set(BACKLOG)];
    on_host(found(grown > 0, severity, evidence, format!("{rate:.1} a second > 0")))
}

const SQUEEZED: Limit = Limit { rule: "RX-02", name: "share", value: 1.0, unit: "%" };

fn squeezed(window: &Window<'_>) -> Vec<Found> {
    let (squeezed, processed) = (softnet(window, |row| row.squeezed), softnet(window, |row| row.processed));
    let (share, limit) = (super::percent(squeezed, processed), window.limit(&SQUEEZED));
    let evidence = vec![
        window.during("softnet_stat time_squeeze", format!("+{squeezed}")),
        window.during("softnet_stat processed", format!("+{processed}")),
    ];
    let formula = format!("{squeezed} / {processed} = {share:.1} % > {limit} %, and {squeezed} >= 10");
    on_host(found(squeezed >= 10 && share > limit, Severity::Info, evidence, formula))
}

fn strict(window: &Window<'_>) -> Vec<Found> {
    let filter = |device: &str| window.now.number(&format!("net.ipv4.conf.{device}.rp_filter")).unwrap_or(0);
    let strict: Vec<_> = (window.now.devices.iter())
        .filter(|device| !device.loopback && device.up && device.addresses > 0)
        .filter(|device| filter("all").max(filter(&device.name)) == 1)
        .collect();
    let mut evidence = vec![window.set("net.ipv4.conf.all.rp_filter")];
    evidence
        .extend(strict.iter().map(|device| window.set(&format!("net.ipv4.conf.{}.rp_filter", device.name))));
    let rules = window.now.source_rules;
    let formula = format!("{} devices with 1 >= 2, {rules} rules by source", strict.len());
    found(strict.len() >= 2 && rules == 0, Severity::Warning, evidence, formula)
}

fn reverse_path(window: &Window<'_>) -> Vec<Found> {
    let dropped = window.grown("TcpExtIPReversePathFilter");
    let mut evidence = vec![window.counted("TcpExtIPReversePathFilter")];
    evidence.extend(filters(window.now).filter(|(_, value)| *value == "1").map(|(name, _)| window.set(name)));
    found(dropped > 0, Severity::Critical, evidence, format!("IPReversePathFilter +{dropped} > 0"))
}

fn half_off(window: &Window<'_>) -> Vec<Found> {
    if window.now.number("net.ipv4.conf.all.rp_filter") != Some(1) {
        return Vec::new();
    }
    let meant_off = |name: &str| !["all", "default", "lo"].iter().any(|device| device_of(name) == *device);
    let off: Vec<&str> = filters(window.now)
        .filter(|(name, value)| *value == "0" && meant_off(name))
        .map(|(name, _)| name)
        .collect();
    let evidence = off.iter().map(|name| window.set(name)).collect();
    found(!off.is_empty(), Severity::Info, evidence, "max(all = 1, device = 0) = 1".to_owned())
}

fn filters(sample: &sample::Sample) -> impl Iterator<Item = (&str, &str)> {
    let settings = sample.settings.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    settings.filter(|(name, _)| name.starts_with("net.ipv4.conf.") && name.ends_with(".rp_filter"))
}

fn device_of(name: &str) -> &str {
    name.strip_prefix("net.ipv4.conf.").and_then(|rest| rest.strip_suffix(".rp_filter")).unwrap_or(name)
}
