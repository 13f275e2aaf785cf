//! CC: congestion control, loss and related settings.
use super::{Change, Found, Kernels, Rule, found, percent, setting};
use crate::finding::{Confidence, Severity};
use crate::limit::Limit;
use crate::sample::Source::{Counters, Settings, Sockets};
use crate::sample::state::{SYN_RECEIVED, SYN_SENT};
use crate::sample::{Address, Sample, Socket};
use crate::window::Window;
use std::collections::BTreeMap;
use std::net::SocketAddr;

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "CC-02",
        symptom: "slow-start thresholds remembered per destination",
        condition: "tcp_no_ssthresh_metrics_save = 0 and tcp_no_metrics_save = 0",
        why: "One loss leaves a small ssthresh, and every later connection to that peer starts slowly. Off by default since Linux 5.6.",
        advice: "Disable it, and delete what was remembered: ip tcp_metrics flush all.",
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
        condition: "TcpRetransSegs without TcpExtTCPSynRetrans (SYNs and SYN-ACKs) > 1 % of TcpExtTCPOrigDataSent (critical: 5 %), with at least 1000 segments of data",
        why: "At 1 to 2 % loss, loss-based congestion control achieves only a small part of the path's rate.",
        advice: "Find the link or queue that loses them; `firstbyte ss -i` shows the affected peers. BBR does not react to each loss and achieves more until then.",
        settings: &[],
        needs: &[Counters],
        kernels: Kernels::ALL,
        confidence: Confidence::Likely,
        limits: &[LOSS, LOSS_CRITICAL],
        judge: lost,
    },
    Rule {
        id: "CC-08",
        symptom: "early loss recovery off",
        condition: "tcp_early_retrans = 0 or tcp_recovery = 0",
        why: "A retransmission time-out costs at least 200 ms and resets the window. Tail loss probes and RACK avoid most time-outs.",
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
        symptom: "SYNs get no answer",
        condition: "TcpExtTCPSynRetrans > 5 % of TcpActiveOpens, at least 10; on a host that also answers SYNs, whose SYN-ACKs the counter includes, only sockets in SYN-SENT count",
        why: "The peers are down or filtered, or their accept queues are full.",
        advice: "Check the destinations in SYN-SENT, and run the doctor on the peer.",
        settings: &[],
        needs: &[Counters, Sockets],
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
    // TcpOutSegs also counts pure acknowledgements and SYN-ACKs.
    let counts_data = window.now.counters.contains_key("TcpExtTCPOrigDataSent");
    let all = if counts_data { "TcpExtTCPOrigDataSent" } else { "TcpOutSegs" };
    let (again, sent) = (data_again(window), window.grown(all));
    let share = percent(again, sent);
    let limit = window.limit(&LOSS);
    let severity = if share > window.limit(&LOSS_CRITICAL) { Severity::Critical } else { Severity::Warning };
    let evidence =
        vec![window.counted("TcpRetransSegs"), window.counted("TcpExtTCPSynRetrans"), window.counted(all)];
    let formula = format!("{again} / {sent} = {share:.2} % > {limit} %");
    found(sent >= 1000 && share > limit, severity, evidence, formula)
}

/// Returns the retransmitted data segments. `TcpRetransSegs` also counts SYNs and SYN-ACKs.
pub(super) fn data_again(window: &Window<'_>) -> u64 {
    window.grown("TcpRetransSegs").saturating_sub(window.grown("TcpExtTCPSynRetrans"))
}

fn unanswered(window: &Window<'_>) -> Vec<Found> {
    let waiting: Vec<&Socket> = window.in_state(SYN_SENT).filter(|socket| socket.retransmits > 0).collect();
    let again = match is_client_only(window) {
        true => window.grown("TcpExtTCPSynRetrans"),
        false => waiting.iter().map(|socket| u64::from(tries(window, socket))).sum(),
    };
    let opened = window.grown("TcpActiveOpens");
    let share = percent(again, opened.max(waiting.len() as u64).max(1));
    let mut evidence = vec![
        window.counted("TcpExtTCPSynRetrans"),
        window.counted("TcpActiveOpens"),
        window.shown("SYN-SENT sockets that have retransmitted their SYN", waiting.len()),
    ];
    let mut peers: BTreeMap<(Address, u16), u64> = BTreeMap::new();
    waiting.iter().for_each(|socket| *peers.entry((socket.peer, socket.peer_port)).or_default() += 1);
    if let Some(((peer, port), count)) = peers.into_iter().max_by_key(|(_, count)| *count) {
        evidence
            .push(window.shown("most of them to", format!("{} ({count})", SocketAddr::new(peer.0, port))));
    }
    let limit = window.limit(&SYNS);
    let formula =
        format!("{again} SYNs retransmitted >= 10, for {opened} connects: {share:.0} % > {limit} %");
    found(again >= 10 && share > limit, Severity::Warning, evidence, formula)
}

/// Returns whether all SYNs in `TcpExtTCPSynRetrans` belong to this host's connects. The counter
/// also includes SYN-ACKs.
fn is_client_only(window: &Window<'_>) -> bool {
    let serves = [
        "TcpPassiveOpens",
        "TcpExtTCPReqQFullDoCookies",
        "TcpExtTCPReqQFullDrop",
        "TcpExtSyncookiesSent",
        "TcpExtEmbryonicRsts",
    ];
    let half_open = |sample: &Sample| sample.in_state(SYN_RECEIVED).any(|socket| socket.retransmits > 0);
    let answers = half_open(window.now) || window.before().is_some_and(half_open);
    !answers && serves.iter().all(|counter| window.grown(counter) == 0)
}

/// Returns the number of SYNs that a socket has retransmitted in the window.
fn tries(window: &Window<'_>, socket: &Socket) -> u8 {
    let before = window.earlier(socket).filter(|then| then.state == SYN_SENT);
    socket.retransmits.saturating_sub(before.map_or(0, |then| then.retransmits))
}
