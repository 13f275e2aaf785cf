//! ACC: listening sockets, their accept queues and SYN queues.
use super::{Change, Found, Kernels, Rule, counter, found, setting};
use crate::finding::{Confidence, Scope, Severity, Step};
use crate::limit::Limit;
use crate::sample::Source::{Counters, Settings, Sockets};
use crate::sample::state::SYN_RECEIVED;
use crate::sample::{Socket, Source};
use crate::window::Window;
use std::collections::BTreeMap;

const SOMAXCONN: &str = "net.core.somaxconn";
const COOKIES: &str = "net.ipv4.tcp_syncookies";
const LISTENERS: &[Source] = &[Sockets, Counters, Settings];

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "ACC-01",
        symptom: "accept queue full",
        condition: "Recv-Q > Send-Q of a listener now, or its drops and TcpExtListenOverflows grow",
        why: "The accept queue holds backlog + 1 connections; when it is full Linux drops new SYNs and final ACKs, so clients retry after 1 s.",
        advice: "Raise the backlog in the program and listen again; look for an accept loop that is blocked.",
        settings: &[(SOMAXCONN, Change::AtLeast(4096))],
        needs: LISTENERS,
        kernels: Kernels::ALL,
        confidence: Confidence::Certain,
        limits: &[],
        judge: accept_queue_full,
    },
    Rule {
        id: "ACC-02",
        symptom: "a listener drops packets",
        condition: "sk_drops of a listener grows",
        why: "Host-wide counters name no port; the listener's own counter does.",
        advice: "See ACC-01 and ACC-08 for that port.",
        settings: &[],
        needs: &[Sockets],
        kernels: Kernels::ALL,
        confidence: Confidence::Certain,
        limits: &[],
        judge: |window| each_listener(window, Severity::Warning, |listener| window.drops_grown(listener) > 0),
    },
    Rule {
        id: "ACC-03",
        symptom: "accept queue filling up",
        condition: "Recv-Q >= 8 and >= 70 % of Send-Q in both samples",
        why: "The application accepts too slowly; the next burst overflows.",
        advice: "More accept threads or SO_REUSEPORT; a larger backlog.",
        settings: &[],
        needs: &[Sockets],
        kernels: Kernels::ALL,
        confidence: Confidence::Likely,
        limits: &[FILLING],
        judge: filling,
    },
    Rule {
        id: "ACC-04",
        symptom: "backlog cut to somaxconn",
        condition: "a listener's Send-Q equals somaxconn, and it drops or somaxconn < 4096",
        why: "listen(n) is clamped to somaxconn when it is called; raising the setting later changes nothing until listen() is called again.",
        advice: "Set it, then restart the service.",
        settings: &[(SOMAXCONN, Change::AtLeast(4096))],
        needs: &[Sockets, Settings],
        kernels: Kernels::ALL,
        confidence: Confidence::Certain,
        limits: &[],
        judge: clamped,
    },
    Rule {
        id: "ACC-05",
        symptom: "small backlog of the program's own",
        condition: "a listener's Send-Q <= 128 and < somaxconn, and it has dropped",
        why: "The program passes its own small number to listen(); the host's limit is larger.",
        advice: "Raise the program's option (nginx: listen … backlog=, Node: listen(port, host, backlog)).",
        settings: &[],
        needs: &[Sockets, Settings],
        kernels: Kernels::ALL,
        confidence: Confidence::Likely,
        limits: &[],
        judge: small,
    },
    Rule {
        id: "ACC-06",
        symptom: "overflow answered by reset",
        condition: "tcp_abort_on_overflow = 1",
        why: "A burst that would heal by a retry becomes \"connection reset\".",
        advice: "Switch it off.",
        settings: &[("net.ipv4.tcp_abort_on_overflow", Change::To("0"))],
        needs: &[Settings],
        kernels: Kernels::ALL,
        confidence: Confidence::Certain,
        limits: &[],
        judge: |window| {
            setting(window, "net.ipv4.tcp_abort_on_overflow", Severity::Warning, |value| value == 1)
        },
    },
    Rule {
        id: "ACC-07",
        symptom: "SYN queue overflows, cookies are sent",
        condition: "TcpExtTCPReqQFullDoCookies grows",
        why: "A SYN flood, or a backlog smaller than arrivals times round trip; connections by cookie lose Fast Open and, without timestamps, window scaling and SACK.",
        advice: "Raise the backlog of that listener; limit the rate if it is an attack.",
        settings: &[(SOMAXCONN, Change::AtLeast(4096))],
        needs: &[Counters],
        kernels: Kernels::since(3, 0),
        confidence: Confidence::Certain,
        limits: &[],
        judge: |window| counter(window, "TcpExtTCPReqQFullDoCookies", Severity::Warning),
    },
    Rule {
        id: "ACC-08",
        symptom: "SYNs dropped, SYN queue full",
        condition: "TcpExtTCPReqQFullDrop grows, or without cookies TcpExtListenDrops grows faster than ListenOverflows",
        why: "Without SYN cookies every SYN beyond the queue is lost, and its client waits a second.",
        advice: "Switch SYN cookies on and raise the backlog.",
        settings: &[(COOKIES, Change::To("1")), ("net.ipv4.tcp_max_syn_backlog", Change::AtLeast(8192))],
        needs: &[Counters, Settings],
        kernels: Kernels::ALL,
        confidence: Confidence::Certain,
        limits: &[],
        judge: syns_dropped,
    },
    Rule {
        id: "ACC-09",
        symptom: "SYN cookies off",
        condition: "tcp_syncookies = 0 and a listener that others reach",
        why: "A trivial SYN flood blocks the port.",
        advice: "Switch them on.",
        settings: &[(COOKIES, Change::To("1"))],
        needs: &[Sockets, Settings],
        kernels: Kernels::ALL,
        confidence: Confidence::Certain,
        limits: &[],
        judge: |window| match window.listeners().any(|listener| !listener.is_loopback()) {
            true => setting(window, COOKIES, Severity::Warning, |value| value == 0),
            false => Vec::new(),
        },
    },
    Rule {
        id: "ACC-10",
        symptom: "every connection by SYN cookie",
        condition: "tcp_syncookies = 2",
        why: "A value for tests: Fast Open never works, and options are lost.",
        advice: "Set it to 1.",
        settings: &[(COOKIES, Change::To("1"))],
        needs: &[Settings],
        kernels: Kernels::ALL,
        confidence: Confidence::Certain,
        limits: &[],
        judge: |window| setting(window, COOKIES, Severity::Warning, |value| value == 2),
    },
    Rule {
        id: "ACC-11",
        symptom: "tcp_max_syn_backlog raised without effect",
        condition: "tcp_max_syn_backlog above this host's default while SYN cookies are on",
        why: "Since Linux 4.3 the SYN queue is bounded by the listener's backlog; tcp_max_syn_backlog matters only with tcp_syncookies = 0.",
        advice: "Take the line out, and raise the listener's backlog instead.",
        settings: &[],
        needs: &[Settings],
        kernels: Kernels::since(4, 3),
        confidence: Confidence::Certain,
        limits: &[],
        judge: useless,
    },
    Rule {
        id: "ACC-12",
        symptom: "half-open connections pile up",
        condition: "more than half of a port's SYN-RECEIVED sockets have sent their SYN-ACK again, and there are more than half of max(8, backlog)",
        why: "SYN-ACKs or their ACKs are lost, or the SYNs are forged; above half full Linux gives half-open connections less time.",
        advice: "Look at the way back: rp_filter, firewall, routes. Under attack fewer retries free the queue sooner.",
        settings: &[("net.ipv4.tcp_synack_retries", Change::To("2"))],
        needs: &[Sockets],
        kernels: Kernels::ALL,
        confidence: Confidence::Likely,
        limits: &[UNANSWERED],
        judge: half_open,
    },
    Rule {
        id: "ACC-13",
        symptom: "clients connected that the server does not know",
        condition: "TcpExtSyncookiesRecv and TcpExtListenOverflows grow together",
        why: "A handshake by cookie ended at the client while the accept queue was full: it sends data into nothing.",
        advice: "As ACC-01.",
        settings: &[(SOMAXCONN, Change::AtLeast(4096))],
        needs: &[Counters],
        kernels: Kernels::ALL,
        confidence: Confidence::Likely,
        limits: &[],
        judge: ghosts,
    },
];

fn accept_queue_full(window: &Window<'_>) -> Vec<Found> {
    let overflows = window.grown("TcpExtListenOverflows");
    let full = |listener: &Socket| {
        listener.recv_queue > listener.send_queue || (overflows > 0 && window.drops_grown(listener) > 0)
    };
    let mut by_port = each_listener(window, Severity::Critical, full);
    for found in &mut by_port {
        found.evidence.push(window.counted("TcpExtListenOverflows"));
    }
    if by_port.is_empty() && overflows > 0 && window.before().is_some() {
        return counter(window, "TcpExtListenOverflows", Severity::Critical);
    }
    by_port
}

const FILLING: Limit = Limit { rule: "ACC-03", name: "share", value: 70.0, unit: "%" };

fn filling(window: &Window<'_>) -> Vec<Found> {
    let share = window.limit(&FILLING);
    let filling = |socket: &Socket| {
        socket.recv_queue >= 8 && f64::from(socket.recv_queue) * 100.0 >= share * f64::from(socket.send_queue)
    };
    each_listener(window, Severity::Warning, |listener| window.holds_in_each(listener, filling))
}

fn clamped(window: &Window<'_>) -> Vec<Found> {
    let Some(somaxconn) = window.now.number(SOMAXCONN) else { return Vec::new() };
    let at_limit = |listener: &&Socket| i64::from(listener.send_queue) == somaxconn;
    let judged = window.listeners().filter(at_limit).filter(|l| l.drops() > 0 || somaxconn < 4096);
    judged
        .map(|listener| {
            let severity = if listener.drops() > 0 { Severity::Warning } else { Severity::Info };
            let mut found = of_listener(window, listener, severity);
            found.evidence.push(window.set(SOMAXCONN));
            found
        })
        .collect()
}

fn small(window: &Window<'_>) -> Vec<Found> {
    let somaxconn = window.now.number(SOMAXCONN).unwrap_or(0);
    each_listener(window, Severity::Warning, |listener| {
        listener.send_queue <= 128 && somaxconn > i64::from(listener.send_queue) && listener.drops() > 0
    })
}

fn syns_dropped(window: &Window<'_>) -> Vec<Found> {
    let (full, drops) = ("TcpExtTCPReqQFullDrop", "TcpExtListenDrops");
    let others = window.grown(drops).saturating_sub(window.grown("TcpExtListenOverflows"));
    let without_cookies = window.now.number(COOKIES) == Some(0) && others > 0;
    let half_open = window.in_state(SYN_RECEIVED).count();
    let evidence =
        vec![window.counted(full), window.counted(drops), window.shown("SYN-RECEIVED sockets", half_open)];
    let formula = format!(
        "TCPReqQFullDrop +{} > 0, or without cookies ListenDrops - ListenOverflows = {others} > 0",
        window.grown(full)
    );
    found(window.grown(full) > 0 || without_cookies, Severity::Critical, evidence, formula)
}

/// The kernel's own default: a 128th of the table of connections, whose half is tcp_max_tw_buckets (net/ipv4/tcp_ipv4.c).
fn useless(window: &Window<'_>) -> Vec<Found> {
    const NAME: &str = "net.ipv4.tcp_max_syn_backlog";
    let (Some(value), Some(buckets)) =
        (window.now.number(NAME), window.now.number("net.ipv4.tcp_max_tw_buckets"))
    else {
        return Vec::new();
    };
    // Of a host whose tcp_max_tw_buckets was changed, at least what most have.
    let usual = (buckets / 64).max(2048);
    let cookies = window.now.number(COOKIES).is_some_and(|value| value >= 1);
    let evidence = vec![window.set(NAME), window.set(COOKIES)];
    let formula = format!("{value} > {usual}, and tcp_syncookies >= 1");
    let mut found = found(cookies && value > usual, Severity::Info, evidence, formula);
    found.iter_mut().for_each(|found| {
        found.steps.push(Step {
            command: format!("sysctl -w {NAME}=\"{usual}\""),
            undo: Some(format!("sysctl -w {NAME}=\"{value}\"")),
            ..Step::default()
        });
    });
    found
}

const UNANSWERED: Limit = Limit { rule: "ACC-12", name: "unanswered", value: 50.0, unit: "%" };

fn half_open(window: &Window<'_>) -> Vec<Found> {
    let mut ports: BTreeMap<u16, (u64, u64)> = BTreeMap::new();
    for socket in window.in_state(SYN_RECEIVED) {
        let (all, again) = ports.entry(socket.local_port).or_default();
        *all += 1;
        *again += u64::from(socket.retransmits >= 1);
    }
    let backlog = |port| window.listeners().find(|l| l.local_port == port).map_or(0, |l| l.send_queue);
    let piled = ports.into_iter().filter_map(|(port, (all, again))| {
        let least = u64::from(backlog(port)).max(8) / 2;
        let share = super::percent(again, all);
        let limit = window.limit(&UNANSWERED);
        (all > least && share > limit).then(|| Found {
            severity: Severity::Warning,
            scope: Scope::Port(port),
            evidence: vec![
                window.shown("SYN-RECEIVED sockets", all),
                window.shown("with their SYN-ACK retransmitted", again),
            ],
            formula: format!("{again} / {all} = {share:.0} % > {limit} %, and {all} > {least}"),
            ..Found::default()
        })
    });
    piled.collect()
}

fn ghosts(window: &Window<'_>) -> Vec<Found> {
    let (received, overflows) = ("TcpExtSyncookiesRecv", "TcpExtListenOverflows");
    let evidence = vec![window.counted(received), window.counted(overflows)];
    let formula = format!(
        "SyncookiesRecv +{} > 0 and ListenOverflows +{} > 0",
        window.grown(received),
        window.grown(overflows)
    );
    found(window.grown(received) > 0 && window.grown(overflows) > 0, Severity::Critical, evidence, formula)
}

fn each_listener(window: &Window<'_>, severity: Severity, holds: impl Fn(&Socket) -> bool) -> Vec<Found> {
    window
        .listeners()
        .filter(|listener| holds(listener))
        .map(|listener| of_listener(window, listener, severity))
        .collect()
}

fn of_listener(window: &Window<'_>, listener: &Socket, severity: Severity) -> Found {
    let (waiting, backlog, drops) = (listener.recv_queue, listener.send_queue, listener.drops());
    Found {
        severity,
        scope: Scope::Port(listener.local_port),
        evidence: vec![
            window.shown("Recv-Q", waiting),
            window.shown("Send-Q", backlog),
            window.shown(
                "sk_drops",
                format!("{drops} (+{} in {})", window.drops_grown(listener), window.name()),
            ),
        ],
        formula: format!(
            "{waiting} connections wait, the queue holds {backlog} + 1; {drops} packets dropped"
        ),
        ..Found::default()
    }
}
