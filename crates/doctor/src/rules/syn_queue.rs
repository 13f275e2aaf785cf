//! ACC: half-open connections: SYN floods, SYN queues, SYN cookies.
use super::flood::{SOURCES, flood, least};
use super::{Change, Found, Kernels, Rule, Words, found};
use crate::finding::{Confidence, Scope, Severity};
use crate::flood::Flood;
use crate::limit::Limit;
use crate::sample::Source::{Counters, Settings, Sockets};
use crate::sample::state::SYN_RECEIVED;
use crate::window::Window;
use std::collections::BTreeMap;

const SOMAXCONN: &str = "net.core.somaxconn";
const COOKIES: &str = "net.ipv4.tcp_syncookies";
const MAX_SYN_BACKLOG: &str = "net.ipv4.tcp_max_syn_backlog";
const SYNACK_RETRIES: &str = "net.ipv4.tcp_synack_retries";

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "ACC-07",
        symptom: "SYN flood",
        condition: "half-open connections come from at least 16 addresses, with few per address; more than half have retransmitted their SYN-ACK, and these outnumber completed connections; and the SYN queue overflows (TcpExtTCPReqQFullDoCookies, TCPReqQFullDrop) or is more than half full",
        why: "SYNs from forged or unreachable addresses fill the SYN queue. Nobody answers the SYN-ACKs.",
        advice: "Drop or rate-limit the SYNs before this host (provider, firewall, SYN proxy). A longer SYN queue does not stop a flood. If the addresses belong to your clients, this is not an attack: the return path to them is broken.",
        settings: &[(COOKIES, Change::To("1")), (SYNACK_RETRIES, Change::To("2"))],
        needs: &[Sockets, Counters, Settings],
        kernels: Kernels::ALL,
        confidence: Confidence::Likely,
        limits: &[SOURCES],
        judge: flooded,
    },
    Rule {
        id: "ACC-08",
        symptom: "SYNs dropped, SYN queue full",
        condition: "there is no flood, and TcpExtTCPReqQFullDrop grows; or, without SYN cookies, TcpExtListenDrops grows while a listener has more half-open connections than 3/4 of tcp_max_syn_backlog",
        why: "Without SYN cookies Linux drops every SYN that the queue cannot hold, and the client retries after 1 s.",
        advice: "Enable SYN cookies and raise the backlog.",
        settings: &[(COOKIES, Change::To("1"))],
        needs: &[Counters, Settings, Sockets],
        kernels: Kernels::ALL,
        confidence: Confidence::Certain,
        limits: &[],
        judge: syns_dropped,
    },
    Rule {
        id: "ACC-12",
        symptom: "half-open connections pile up",
        condition: "there is no flood, and more than half of a port's SYN-RECEIVED sockets have retransmitted their SYN-ACK, and there are more than half of max(8, backlog); or in the window at least 16 have retransmitted it and fewer connections were completed",
        why: "SYN-ACKs or their ACKs are lost, or the SYNs are forged. Above half of the queue, Linux times half-open connections out sooner.",
        advice: "Check the return path to these clients: firewall, routes, rp_filter on both sides. Under attack, fewer SYN-ACK retries free the queue sooner.",
        settings: &[(SYNACK_RETRIES, Change::To("2"))],
        needs: &[Sockets, Counters],
        kernels: Kernels::ALL,
        confidence: Confidence::Likely,
        limits: &[UNANSWERED],
        judge: half_open,
    },
    Rule {
        id: "ACC-13",
        symptom: "clients are connected, but the server has no connection",
        condition: "TcpExtSyncookiesRecv and TcpExtListenOverflows grow together",
        why: "A client completed its handshake with a SYN cookie while the accept queue was full. The server dropped the connection, and the client's data gets no answer.",
        advice: "Find out why the program accepts too slowly. For bursts, raise the backlog in the program and restart it.",
        settings: &[(SOMAXCONN, Change::AtLeast(4096))],
        needs: &[Counters],
        kernels: Kernels::ALL,
        confidence: Confidence::Likely,
        limits: &[],
        judge: ghosts,
    },
    Rule {
        id: "ACC-14",
        symptom: "SYN queue overflows, SYN cookies are sent",
        condition: "there is no flood, tcp_syncookies is not 2, and TcpExtTCPReqQFullDoCookies grows",
        why: "More connections are half open than the backlog allows: the backlog is below arrival rate × round trip, or SYN-ACKs get no answer. Connections that start with a SYN cookie lose Fast Open and, without timestamps, window scaling and SACK.",
        advice: "Raise the backlog of that listener in the program, and restart it.",
        settings: &[(SOMAXCONN, Change::AtLeast(4096))],
        needs: &[Counters, Sockets, Settings],
        kernels: Kernels::since(3, 0),
        confidence: Confidence::Certain,
        limits: &[],
        judge: cookies_sent,
    },
];

fn flooded(window: &Window<'_>) -> Vec<Found> {
    let Some(flood) = flood(window) else { return Vec::new() };
    let &Flood { port, half_open, unanswered, cookies, dropped, completed, .. } = flood;
    let mut evidence = vec![
        window.shown("SYN-RECEIVED sockets", half_open),
        window.shown("with their SYN-ACK retransmitted", unanswered),
        window.shown("source addresses", sources(flood)),
        window.counted("TcpExtTCPReqQFullDoCookies"),
        window.counted("TcpExtSyncookiesRecv"),
        window.counted("TcpExtTCPReqQFullDrop"),
        window.counted("TcpPassiveOpens"),
    ];
    if !flood.others.is_empty() {
        let others: Vec<String> = flood.others.iter().take(SHOWN).map(u16::to_string).collect();
        evidence.push(window.shown("other flooded ports", others.join(", ")));
    }
    // The reason depends on who is affected.
    let why = match (dropped, cookies) {
        (1.., _) => {
            "SYNs from forged or unreachable addresses fill the SYN queue, and Linux drops SYNs of real clients too. New clients wait 1 s or more, or fail."
        }
        (_, 1..) => {
            "SYNs from forged or unreachable addresses fill the SYN queue. Clients still connect with SYN cookies, but without Fast Open. Clients that send no timestamps also lose window scaling and SACK."
        }
        _ => {
            "SYNs from forged or unreachable addresses fill the SYN queue. No client is affected yet. Once it is full, clients connect with SYN cookies; if those are off, they cannot connect."
        }
    };
    vec![Found {
        severity: if dropped > 0 { Severity::Critical } else { Severity::Warning },
        scope: Scope::Port(port),
        evidence,
        formula: format!(
            "{half_open} half-open from {} addresses, {unanswered} unanswered; {cookies} cookies sent, {dropped} SYNs dropped, {completed} connections completed",
            flood.sources.len()
        ),
        words: Words { why: Some(why.to_owned()), ..Words::default() },
        ..Found::default()
    }]
}

/// Most sources and ports that evidence names.
const SHOWN: usize = 3;

fn sources(flood: &Flood) -> String {
    let named: Vec<String> = flood.sources.iter().take(SHOWN).map(ToString::to_string).collect();
    format!("{} ({} …)", flood.sources.len(), named.join(", "))
}

fn syns_dropped(window: &Window<'_>) -> Vec<Found> {
    if flood(window).is_some() {
        return Vec::new();
    }
    let (full, drops) = ("TcpExtTCPReqQFullDrop", "TcpExtListenDrops");
    let evidence = vec![
        window.counted(full),
        window.counted(drops),
        window.counted("TcpExtListenOverflows"),
        window.shown("SYN-RECEIVED sockets, of the port with most", most_half_open(window)),
        window.set(COOKIES),
    ];
    let formula = format!(
        "TCPReqQFullDrop +{} > 0, or the SYN queue has no room and cookies are off",
        window.grown(full)
    );
    let holds = window.grown(full) > 0 || is_without_room(window);
    found(holds, Severity::Critical, evidence, formula)
}

/// Returns whether Linux drops SYNs because it reserves the last quarter of the SYN queue for known
/// peers. Linux does this only without SYN cookies, and no counter shows it (`tcp_conn_request`).
pub(super) fn is_without_room(window: &Window<'_>) -> bool {
    let Some(most) = window.now.number(MAX_SYN_BACKLOG).and_then(|most| u64::try_from(most).ok()) else {
        return false;
    };
    let others = window.grown("TcpExtListenDrops").saturating_sub(window.grown("TcpExtListenOverflows"));
    window.now.number(COOKIES) == Some(0) && others > 0 && most_half_open(window) >= most - most / 4
}

fn most_half_open(window: &Window<'_>) -> u64 {
    let mut ports: BTreeMap<u16, u64> = BTreeMap::new();
    window.in_state(SYN_RECEIVED).for_each(|socket| *ports.entry(socket.local_port).or_default() += 1);
    ports.into_values().max().unwrap_or(0)
}

const UNANSWERED: Limit = Limit { rule: "ACC-12", name: "unanswered", value: 50.0, unit: "%" };

/// Fewest unanswered handshakes that count as a problem. Fewer may be clients that left, or a scan.
const FAILING: u64 = 16;

fn half_open(window: &Window<'_>) -> Vec<Found> {
    if flood(window).is_some() {
        return Vec::new();
    }
    let completed = window.grown("TcpPassiveOpens");
    let mut ports: BTreeMap<u16, (u64, u64)> = BTreeMap::new();
    for socket in window.in_state(SYN_RECEIVED) {
        let (all, again) = ports.entry(socket.local_port).or_default();
        *all += 1;
        *again += u64::from(socket.retransmits >= 1);
    }
    let piled = ports.into_iter().filter_map(|(port, (all, again))| {
        let least = least(window, port);
        let share = super::percent(again, all);
        let limit = window.limit(&UNANSWERED);
        // A long queue may be far from full although almost no handshake succeeds.
        let fails = window.before().is_some() && again >= FAILING && again > completed;
        ((all > least || fails) && share > limit).then(|| Found {
            severity: Severity::Warning,
            scope: Scope::Port(port),
            evidence: vec![
                window.shown("SYN-RECEIVED sockets", all),
                window.shown("with their SYN-ACK retransmitted", again),
                window.counted("TcpPassiveOpens"),
            ],
            formula: format!(
                "{again} / {all} = {share:.0} % > {limit} %, and {all} > {least}, or {again} > {completed} completed"
            ),
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

fn cookies_sent(window: &Window<'_>) -> Vec<Found> {
    // With 2 the kernel counts every SYN here, whatever the length of the queue.
    if flood(window).is_some() || window.now.number(COOKIES) == Some(2) {
        return Vec::new();
    }
    super::counter(window, "TcpExtTCPReqQFullDoCookies", Severity::Warning)
}
