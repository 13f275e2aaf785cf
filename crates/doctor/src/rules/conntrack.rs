//! RX: the connection tracking table of a firewall.
use super::{Change, Found, Kernels, Rule, Words, percent};
use crate::finding::{Confidence, Severity};
use crate::limit::Limit;
use crate::sample::Conntrack;
use crate::sample::Source;
use crate::window::Window;

const MAX: &str = "net.netfilter.nf_conntrack_max";

pub(super) const RULES: &[Rule] = &[Rule {
    id: "RX-13",
    symptom: "connection tracking table nearly full",
    condition: "nf_conntrack_count > 80 % of nf_conntrack_max; or early_drop grows; or drop grows (critical)",
    why: "While the table is full, packets of new connections are dropped before any program sees them. No TCP counter shows it.",
    advice: "Find out what fills it (conntrack -L): a flood, or connections that never end. Exclude traffic that no rule needs (nft: notrack), shorten nf_conntrack_tcp_timeout_established, or enlarge the table.",
    settings: &[],
    needs: &[Source::Conntrack],
    kernels: Kernels::ALL,
    confidence: Confidence::Certain,
    limits: &[FULL],
    judge: fills,
}];

const FULL: Limit = Limit { rule: "RX-13", name: "share", value: 80.0, unit: "%" };

fn fills(window: &Window<'_>) -> Vec<Found> {
    let Some(now) = window.now.conntrack else { return Vec::new() };
    // The drops since the namespace was created may be old.
    let then = window.before().and_then(|before| before.conntrack);
    let grown = |of: fn(&Conntrack) -> u64| then.map_or(0, |then| of(&now).saturating_sub(of(&then)));
    let (dropped, early) = (grown(|table| table.drop), grown(|table| table.early_drop));
    let (share, limit) = (percent(now.count, now.max), window.limit(&FULL));
    if dropped == 0 && early == 0 && share <= limit {
        return Vec::new();
    }
    let symptom =
        (dropped > 0).then(|| "connection tracking drops new connections: its table is full".to_owned());
    let wanted = i64::try_from(now.max.saturating_mul(2)).unwrap_or(i64::MAX);
    vec![Found {
        severity: if dropped > 0 { Severity::Critical } else { Severity::Warning },
        evidence: vec![
            window.shown("nf_conntrack_count", now.count),
            window.shown("nf_conntrack_max", now.max),
            window.during("nf_conntrack drop", format!("+{dropped}")),
            window.during("nf_conntrack early_drop", format!("+{early}")),
        ],
        formula: format!(
            "{} / {} = {share:.0} % > {limit} %, or drops +{dropped} or early drops +{early} > 0",
            now.count, now.max
        ),
        steps: Change::AtLeast(wanted).step(MAX, window.now).into_iter().collect(),
        words: Words { symptom, ..Words::default() },
        ..Found::default()
    }]
}
