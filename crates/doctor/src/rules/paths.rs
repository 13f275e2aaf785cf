//! CC: packet order, available congestion controls, and the time-out of connect().
use super::loss::data_again;
use super::settings::wanted;
use super::{Found, Kernels, Rule, found, percent};
use crate::change::Want;
use crate::finding::{Confidence, Severity, Step};
use crate::limit::Limit;
use crate::sample::Source::{Counters, Settings, Sockets};
use crate::sample::state::SYN_SENT;
use crate::window::Window;

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "CC-09",
        symptom: "packets arrive out of order or twice",
        condition: "TcpExtTCPSACKReorder and TCPTSReorder grow by at least 20 (info); TcpExtTCPDSACKRecv > 20 % of the retransmitted data (TcpRetransSegs without TcpExtTCPSynRetrans), at least 20 (warning)",
        why: "The packets were late, not lost, and the retransmissions were unnecessary. RACK hides most of the cost.",
        advice: "Look for per-packet balancing (bonding mode balance-rr, per-packet ECMP), and balance by flow instead.",
        settings: &[],
        needs: &[Counters],
        kernels: Kernels::ALL,
        confidence: Confidence::Likely,
        limits: &[REORDERED, TWICE],
        judge: reordered,
    },
    Rule {
        id: "CC-10",
        symptom: "congestion control not usable by programs",
        condition: "the default is not available, or an available one is not allowed",
        why: "Programs without CAP_NET_ADMIN, other namespaces and containers get \"operation not permitted\" for it.",
        advice: "Add it to the allowed list.",
        settings: &[],
        needs: &[Settings],
        kernels: Kernels::ALL,
        confidence: Confidence::Certain,
        limits: &[],
        judge: not_allowed,
    },
    Rule {
        id: "CC-13",
        symptom: "connect() takes long to fail",
        condition: "a connect has sent its SYN at least three times, and fails only after more than 60 s",
        why: "The program waits that long for a peer that does not answer.",
        advice: "Set a connect time-out in the program. In a data centre, send fewer SYNs.",
        settings: &[("net.ipv4.tcp_syn_retries", super::Change::To("2"))],
        needs: &[Settings, Sockets],
        kernels: Kernels::ALL,
        confidence: Confidence::Certain,
        limits: &[GIVES_UP_AFTER],
        judge: gives_up_late,
    },
];

const REORDERED: Limit = Limit { rule: "CC-09", name: "reorderings", value: 20.0, unit: "events" };
const TWICE: Limit = Limit { rule: "CC-09", name: "share", value: 20.0, unit: "%" };

fn reordered(window: &Window<'_>) -> Vec<Found> {
    let (sack, stamps) = ("TcpExtTCPSACKReorder", "TcpExtTCPTSReorder");
    let (twice, again) = ("TcpExtTCPDSACKRecv", "TcpRetransSegs");
    let reorderings = window.grown(sack).saturating_add(window.grown(stamps));
    let (spurious, data) = (window.grown(twice), data_again(window));
    let share = percent(spurious, data.max(1));
    let limit = window.limit(&TWICE);
    let vain = spurious >= 20 && share > limit;
    let evidence =
        vec![window.counted(sack), window.counted(stamps), window.counted(twice), window.counted(again)];
    let formula = format!(
        "{reorderings} reorderings; {spurious} of {data} retransmitted needlessly = {share:.0} % > {limit} %"
    );
    let severity = if vain { Severity::Warning } else { Severity::Info };
    found(vain || reorderings as f64 >= window.limit(&REORDERED), severity, evidence, formula)
}

fn not_allowed(window: &Window<'_>) -> Vec<Found> {
    const ALLOWED: &str = "net.ipv4.tcp_allowed_congestion_control";
    const AVAILABLE: &str = "net.ipv4.tcp_available_congestion_control";
    const DEFAULT: &str = "net.ipv4.tcp_congestion_control";
    // All namespaces share one list, and only the first can change it.
    if !window.now.settings.is_empty() && !window.now.is_first_namespace() {
        window.lacks("the list is one for the whole host: run the doctor in its first network namespace");
        return Vec::new();
    }
    let list = |name| window.now.setting(name).map(|value| value.split_whitespace().collect::<Vec<_>>());
    let (Some(allowed), Some(available), Some(default)) =
        (list(ALLOWED), list(AVAILABLE), window.now.setting(DEFAULT))
    else {
        return Vec::new();
    };
    let missing: Vec<&str> = available.iter().copied().filter(|name| !allowed.contains(name)).collect();
    let absent = !available.contains(&default);
    let evidence = vec![window.set(DEFAULT), window.set(AVAILABLE), window.set(ALLOWED)];
    let formula = match absent {
        true => format!("{default} is not available"),
        false => format!("{} not allowed", missing.join(", ")),
    };
    let mut found = found(absent || !missing.is_empty(), Severity::Info, evidence, formula);
    found.iter_mut().for_each(|found| {
        let step = wanted(ALLOWED, Want::Value(available.join(" ")), window.now);
        let unloaded = absent.then(|| "its module is not loaded".to_owned());
        found.steps.push(Step { obstacle: unloaded.or(step.obstacle), ..step });
    });
    found
}

const GIVES_UP_AFTER: Limit = Limit { rule: "CC-13", name: "seconds", value: 60.0, unit: "s" };

fn gives_up_late(window: &Window<'_>) -> Vec<Found> {
    let (retries, linear) = ("net.ipv4.tcp_syn_retries", "net.ipv4.tcp_syn_linear_timeouts");
    let Some(tries) = window.now.number(retries).and_then(|value| u32::try_from(value).ok()) else {
        return Vec::new();
    };
    let steady = window.now.number(linear).and_then(|value| u32::try_from(value).ok()).unwrap_or(0);
    let seconds = gives_up(tries, steady);
    let waiting = window.in_state(SYN_SENT).filter(|socket| socket.retransmits >= 2);
    let mut waiting: Vec<String> = waiting.map(|socket| socket.ends()).collect();
    let count = waiting.len();
    waiting.truncate(3);
    let mut evidence = vec![window.set(retries), window.set(linear), window.shown("waiting connects", count)];
    evidence.extend(waiting.into_iter().map(|ends| window.shown("one of them", ends)));
    let limit = window.limit(&GIVES_UP_AFTER);
    found(count > 0 && seconds as f64 > limit, Severity::Info, evidence, format!("{seconds} s > {limit} s"))
}

/// Returns the seconds until connect() fails: the first retransmission after 2^(retries + 1) - 1
/// seconds (retransmits_timed_out() in net/ipv4/tcp_timer.c). The first `linear` SYNs are one
/// second apart, and the distance doubles after that.
fn gives_up(retries: u32, linear: u32) -> u64 {
    let end = (1_u64 << (retries.min(16) + 1)) - 1;
    let (mut at, mut distance, mut sent) = (0, 1, 0);
    while at < end {
        at += distance;
        sent += 1;
        if sent > linear {
            distance = (2 * distance).min(120);
        }
    }
    at
}

#[cfg(test)]
mod tests {
    use super::gives_up;

    #[test]
    fn connects_give_up_when_the_kernel_does() {
        let linear: Vec<u64> = (0..=6).map(|retries| gives_up(retries, 4)).collect();
        assert_eq!(linear, [1, 3, 7, 19, 35, 67, 131]);
        assert_eq!((gives_up(5, 0), gives_up(2, 0)), (63, 7));
    }
}
