//! CC: congestion control, loss and the settings around them.
use super::{Change, Found, Kernels, Rule, found, percent, setting};
use crate::finding::{Confidence, Severity};
use crate::limit::Limit;
use crate::sample::Source::{Counters, Settings};
use crate::window::Window;

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "CC-02",
        symptom: "slow-start thresholds remembered per destination",
        condition: "tcp_no_ssthresh_metrics_save = 0 and tcp_no_metrics_save = 0",
        why: "One loss leaves a small ssthresh, and every later connection to that peer starts slowly; off by default since Linux 5.6.",
        advice: "Switch it off and flush: ip tcp_metrics flush all.",
        settings: &[("net.ipv4.tcp_no_ssthresh_metrics_save", Change::To("1"))],
        needs: &[Settings],
        kernels: Kernels::since(5, 6),
        confidence: Confidence::Certain,
        limits: &[],
        judge: |window| match window.now.number("net.ipv4.tcp_no_metrics_save") {
            Some(0) => {
                setting(window, "net.ipv4.tcp_no_ssthresh_metrics_save", Severity::Info, |value| value == 0)
            }
            _ => Vec::new(),
        },
    },
    Rule {
        id: "CC-07",
        symptom: "segments are lost",
        condition: "TcpRetransSegs > 1 % of TcpOutSegs (critical: 5 %), with at least 1000 segments",
        why: "At 1 to 2 % loss, congestion control that reacts to loss carries a small part of what the path could.",
        advice: "Find the link that loses them (TX-01, RX-01); consider BBR.",
        settings: &[],
        needs: &[Counters],
        kernels: Kernels::ALL,
        confidence: Confidence::Hint,
        limits: &[LOSS, LOSS_CRITICAL],
        judge: lost,
    },
    Rule {
        id: "CC-08",
        symptom: "early repair of losses off",
        condition: "tcp_early_retrans = 0 or tcp_recovery = 0",
        why: "A time-out costs 200 ms and more and the whole window; tail loss probes and RACK avoid most of them.",
        advice: "Restore the defaults.",
        settings: &[
            ("net.ipv4.tcp_early_retrans", Change::To("3")),
            ("net.ipv4.tcp_recovery", Change::To("1")),
        ],
        needs: &[Settings],
        kernels: Kernels::ALL,
        confidence: Confidence::Certain,
        limits: &[],
        judge: |window| {
            let mut found =
                setting(window, "net.ipv4.tcp_early_retrans", Severity::Warning, |value| value == 0);
            found.extend(setting(window, "net.ipv4.tcp_recovery", Severity::Warning, |value| value == 0));
            found
        },
    },
    Rule {
        id: "CC-12",
        symptom: "SYNs unanswered",
        condition: "TcpExtTCPSynRetrans > 5 % of TcpActiveOpens, at least 10",
        why: "Peers are dead or filtered, or their accept queues are full.",
        advice: "Look at the destinations in SYN-SENT, and run the doctor at the peer.",
        settings: &[],
        needs: &[Counters],
        kernels: Kernels::ALL,
        confidence: Confidence::Hint,
        limits: &[SYNS],
        judge: unanswered,
    },
];

const LOSS: Limit = Limit { rule: "CC-07", name: "share", value: 1.0, unit: "%" };
const LOSS_CRITICAL: Limit = Limit { rule: "CC-07", name: "critical", value: 5.0, unit: "%" };
const SYNS: Limit = Limit { rule: "CC-12", name: "share", value: 5.0, unit: "%" };

fn lost(window: &Window<'_>) -> Vec<Found> {
    let (again, sent) = (window.grown("TcpRetransSegs"), window.grown("TcpOutSegs"));
    let share = percent(again, sent);
    let limit = window.limit(&LOSS);
    let severity = if share > window.limit(&LOSS_CRITICAL) { Severity::Critical } else { Severity::Warning };
    let evidence = vec![window.counted("TcpRetransSegs"), window.counted("TcpOutSegs")];
    let formula = format!("{again} / {sent} = {share:.2} % > {limit} %");
    found(sent >= 1000 && share > limit, severity, evidence, formula)
}

fn unanswered(window: &Window<'_>) -> Vec<Found> {
    let (again, opened) = (window.grown("TcpExtTCPSynRetrans"), window.grown("TcpActiveOpens"));
    let share = percent(again, opened.max(1));
    let evidence = vec![window.counted("TcpExtTCPSynRetrans"), window.counted("TcpActiveOpens")];
    found(
        again >= 10 && share > window.limit(&SYNS),
        Severity::Warning,
        evidence,
        format!("{again} / {opened} = {share:.0} % > {} %", window.limit(&SYNS)),
    )
}
