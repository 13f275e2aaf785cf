//! ACC: listening sockets, their accept queues and SYN queues.
use super::flood::flood;
use super::settings::wanted;
use super::{Change, Found, Kernels, Rule, counter, found, holder, setting};
use crate::change::Want;
use crate::finding::{Confidence, Scope, Severity};
use crate::limit::Limit;
use crate::sample::Source::{Counters, Settings, Sockets};
use crate::sample::{Socket, Source};
use crate::window::Window;

const SOMAXCONN: &str = "net.core.somaxconn";
const COOKIES: &str = "net.ipv4.tcp_syncookies";
const LISTENERS: &[Source] = &[Sockets, Counters, Settings];

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "ACC-01",
        symptom: "accept queue full",
        condition: "Recv-Q > Send-Q of a listener now; or the listener's drops grow, and TcpExtListenOverflows grows by more than the full listeners explain",
        why: "The accept queue holds backlog + 1 connections. While it is full, Linux drops new SYNs and final ACKs, and clients retry after 1 s.",
        advice: "Find out why the program accepts too slowly or not at all: a blocked accept loop, too few threads. For bursts, raise the backlog in the program and restart it.",
        settings: &[(SOMAXCONN, Change::AtLeast(4096))],
        needs: LISTENERS,
        kernels: Kernels::ALL,
        confidence: Confidence::Certain,
        limits: &[],
        judge: accept_queue_full,
    },
    Rule {
        id: "ACC-03",
        symptom: "accept queue filling up",
        condition: "in both samples Recv-Q >= 8 and >= 70 % of Send-Q, or Recv-Q = Send-Q",
        why: "The program accepts connections more slowly than they arrive. The next burst overflows the queue.",
        advice: "Add accept threads, use SO_REUSEPORT, or raise the backlog.",
        settings: &[],
        needs: &[Sockets],
        kernels: Kernels::ALL,
        confidence: Confidence::Likely,
        limits: &[FILLING],
        judge: filling,
    },
    Rule {
        id: "ACC-04",
        symptom: "backlog limited by somaxconn",
        condition: "a listener's Send-Q equals somaxconn, and its accept queue is full or overflowed in the window (info: somaxconn < 4096)",
        why: "listen(n) clamps n to somaxconn at the time of the call. Raising somaxconn later changes nothing until the program calls listen() again.",
        advice: "Raise somaxconn, then restart the service.",
        settings: &[(SOMAXCONN, Change::AtLeast(4096))],
        needs: LISTENERS,
        kernels: Kernels::ALL,
        confidence: Confidence::Certain,
        limits: &[],
        judge: clamped,
    },
    Rule {
        id: "ACC-05",
        symptom: "the program asks for a small backlog",
        condition: "a listener's Send-Q <= 128 and < somaxconn, and its accept queue is full or overflowed in the window",
        why: "The program passes a small number to listen(), although the host allows more.",
        advice: "Raise the program's option (nginx: listen … backlog=, Node: listen(port, host, backlog)). If the program asked for more while somaxconn was smaller, restart it.",
        settings: &[],
        needs: LISTENERS,
        kernels: Kernels::ALL,
        confidence: Confidence::Likely,
        limits: &[],
        judge: small,
    },
    Rule {
        id: "ACC-06",
        symptom: "accept queue overflow resets connections",
        condition: "tcp_abort_on_overflow = 1",
        why: "On overflow the client gets \"connection reset\". With the default its retry would succeed after the burst.",
        advice: "Set it to 0.",
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
        id: "ACC-09",
        symptom: "SYN cookies off",
        condition: "tcp_syncookies = 0, a listener is reachable from other hosts, and there is no SYN flood",
        why: "Without SYN cookies a small SYN flood blocks the port.",
        advice: "Enable SYN cookies.",
        settings: &[(COOKIES, Change::To("1"))],
        needs: LISTENERS,
        kernels: Kernels::ALL,
        confidence: Confidence::Certain,
        limits: &[],
        judge: |window| {
            // The finding of a flood enables them.
            let reached = window.listeners().any(|listener| !listener.is_loopback());
            match reached && flood(window).is_none() {
                true => setting(window, COOKIES, Severity::Warning, |value| value == 0),
                false => Vec::new(),
            }
        },
    },
    Rule {
        id: "ACC-10",
        symptom: "SYN cookies sent for every connection",
        condition: "tcp_syncookies = 2",
        why: "The value 2 is for tests: Fast Open never works, and TCP options are lost.",
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
        condition: "tcp_max_syn_backlog is above this host's default while SYN cookies are on",
        why: "Since Linux 4.3 the listener's backlog bounds the SYN queue. tcp_max_syn_backlog matters only if tcp_syncookies = 0.",
        advice: "Remove the setting, and raise the listener's backlog instead.",
        settings: &[],
        needs: &[Settings],
        kernels: Kernels::since(4, 3),
        confidence: Confidence::Certain,
        limits: &[],
        judge: useless,
    },
];

fn accept_queue_full(window: &Window<'_>) -> Vec<Found> {
    let overflows = window.grown("TcpExtListenOverflows");
    let is_full = |listener: &Socket| listener.recv_queue > listener.send_queue;
    let drops = window.listeners().filter(|listener| is_full(listener)).map(|l| window.drops_grown(l));
    let explained: u64 = drops.map(u64::from).sum();
    // Other causes also count as drops. Only drops that the full listeners do not explain count.
    let full =
        |listener: &Socket| is_full(listener) || (overflows > explained && window.drops_grown(listener) > 0);
    let mut by_port = each_listener(window, Severity::Critical, full);
    for found in &mut by_port {
        found.evidence.push(window.counted("TcpExtListenOverflows"));
    }
    if by_port.is_empty() && overflows > 0 && window.needs_before().is_some() {
        return counter(window, "TcpExtListenOverflows", Severity::Critical);
    }
    by_port
}

const FILLING: Limit = Limit { rule: "ACC-03", name: "share", value: 70.0, unit: "%" };

fn filling(window: &Window<'_>) -> Vec<Found> {
    let share = window.limit(&FILLING);
    let filling = |socket: &Socket| {
        let (waiting, backlog) = (socket.recv_queue, socket.send_queue);
        let most = waiting >= 8 && f64::from(waiting) * 100.0 >= share * f64::from(backlog);
        // With one more, the queue is full.
        waiting <= backlog && (most || (waiting > 0 && waiting == backlog))
    };
    each_listener(window, Severity::Warning, |listener| window.holds_in_each(listener, filling))
}

fn clamped(window: &Window<'_>) -> Vec<Found> {
    let Some(somaxconn) = window.now.number(SOMAXCONN) else { return Vec::new() };
    let at_limit = |listener: &&Socket| i64::from(listener.send_queue) == somaxconn;
    let judged =
        window.listeners().filter(at_limit).map(|listener| (listener, is_too_short(window, listener)));
    judged
        .filter(|(_, short)| *short || somaxconn < 4096)
        .map(|(listener, short)| {
            let severity = if short { Severity::Warning } else { Severity::Info };
            let mut found = of_listener(window, listener, severity);
            found.evidence.push(window.set(SOMAXCONN));
            // The usual value is not enough here.
            if short && somaxconn >= 4096 {
                let twice = Change::AtLeast(somaxconn.saturating_mul(2));
                found.steps.extend(twice.step(SOMAXCONN, window.now));
            }
            found
        })
        .collect()
}

/// Returns whether the socket's accept queue is full, or overflowed in the window. `sk_drops` alone
/// says less: it also counts SYNs that clients retransmit.
fn is_too_short(window: &Window<'_>, listener: &Socket) -> bool {
    listener.recv_queue > listener.send_queue
        || (window.grown("TcpExtListenOverflows") > 0 && window.drops_grown(listener) > 0)
}

fn small(window: &Window<'_>) -> Vec<Found> {
    let somaxconn = window.now.number(SOMAXCONN).unwrap_or(0);
    each_listener(window, Severity::Warning, |listener| {
        let own = listener.send_queue <= 128 && somaxconn > i64::from(listener.send_queue);
        own && is_too_short(window, listener)
    })
}

/// Judges ACC-11. The kernel's default is 1/128 of the connection table, and tcp_max_tw_buckets is
/// half of that table (net/ipv4/tcp_ipv4.c).
fn useless(window: &Window<'_>) -> Vec<Found> {
    const NAME: &str = "net.ipv4.tcp_max_syn_backlog";
    let (Some(value), Some(buckets)) =
        (window.now.number(NAME), window.now.number("net.ipv4.tcp_max_tw_buckets"))
    else {
        return Vec::new();
    };
    // If tcp_max_tw_buckets was changed, the most common default is the lower bound.
    let usual = (buckets / 64).max(2048);
    let cookies = window.now.number(COOKIES).is_some_and(|value| value >= 1);
    let evidence = vec![window.set(NAME), window.set(COOKIES)];
    let formula = format!("{value} > {usual}, and tcp_syncookies >= 1");
    let mut found = found(cookies && value > usual, Severity::Info, evidence, formula);
    found.iter_mut().for_each(|found| {
        found.steps.push(wanted(NAME, Want::Value(usual.to_string()), window.now));
    });
    found
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
    let mut found = Found {
        severity,
        scope: Scope::Port(listener.local_port),
        evidence: vec![
            window.shown("Recv-Q", waiting),
            window.shown("Send-Q", backlog),
            window.shown("sk_drops", drops),
            window.during("sk_drops", format!("+{}", window.drops_grown(listener))),
        ],
        formula: format!(
            "{waiting} connections wait, the queue holds {backlog} + 1; {drops} packets dropped"
        ),
        ..Found::default()
    };
    found.evidence.extend(holder(window, listener));
    found
}
