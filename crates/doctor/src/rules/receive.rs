//! RX: packets that come in and never reach a socket.
use super::{Change, Found, Rule, found};
use crate::finding::{Scope, Severity};
use crate::sample::Source::{Counters, Settings, Softnet};
use crate::sample::{self, Sample};
use crate::window::Window;

const BACKLOG: &str = "net.core.netdev_max_backlog";

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "RX-01",
        symptom: "packets dropped before IP",
        condition: "softnet_stat's drops grow (critical: more than 100 a second)",
        why: "A CPU's backlog overflowed; all namespaces share it.",
        advice: "Spread the load over CPUs first (RPS, queues), then raise the backlog.",
        settings: &[(BACKLOG, Change::AtLeast(4096))],
        needs: &[Softnet],
        judge: backlog,
    },
    Rule {
        id: "RX-07",
        symptom: "packets arrive and nobody answers",
        condition: "TcpExtIPReversePathFilter grows",
        why: "The reply's route leaves by another interface than the packet came by, and strict rp_filter drops it unseen.",
        advice: "Loosen the filter of that device, or route by source: ip rule add from ADDRESS table TABLE.",
        settings: &[("net.ipv4.conf.all.rp_filter", Change::To("2"))],
        needs: &[Counters, Settings],
        judge: reverse_path,
    },
    Rule {
        id: "RX-09",
        symptom: "rp_filter half switched off",
        condition: "conf.all.rp_filter = 1 and 0 on a device other than lo",
        why: "The larger of the two holds, so the 0 has no effect.",
        advice: "Set both to the value that is meant.",
        settings: &[],
        needs: &[Settings],
        judge: half_off,
    },
];

fn backlog(window: &Window<'_>) -> Vec<Found> {
    let dropped = |sample: &Sample| sample.softnet.iter().map(|row| row.dropped).sum::<u64>();
    // Since boot it says little: one burst of long ago.
    let Some(before) = window.before() else { return Vec::new() };
    let grown = dropped(window.now).saturating_sub(dropped(before));
    let rate = grown as f64 / window.seconds();
    let severity = if rate > 100.0 { Severity::Critical } else { Severity::Warning };
    let value = format!("+{grown}");
    let evidence = vec![sample_of(window, "softnet_stat dropped", value), window.set(BACKLOG)];
    let mut found = found(grown > 0, severity, evidence, format!("{rate:.1} a second > 0"));
    found.iter_mut().for_each(|found| found.scope = Scope::Host);
    found
}

fn sample_of(window: &Window<'_>, name: &str, value: String) -> crate::finding::Evidence {
    crate::finding::Evidence { name: name.to_owned(), value, window: window.name() }
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
