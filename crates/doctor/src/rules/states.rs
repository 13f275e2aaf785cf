//! ST: connection states that last too long, ports, and their limits.
use super::{Change, Found, Kernels, OF_HOST, Rule, counter, found, percent};
use crate::finding::{Confidence, Scope, Severity, Step};
use crate::limit::Limit;
use crate::sample::Source::{Counters, Settings, Sockets, Sockstat};
use crate::sample::state::{CLOSE_WAIT, FIN_WAIT_1, FIN_WAIT_2, LISTEN, SYN_RECEIVED, TIME_WAIT};
use crate::sample::{Address, Socket};
use crate::window::Window;
use std::collections::{BTreeMap, BTreeSet};

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "ST-01",
        symptom: "CLOSE-WAIT leak: the program does not close",
        condition: "more than 100 in CLOSE-WAIT, or one that a process has held for more than 60 s (critical: more than 1000)",
        why: "The peer has closed the connection, but the program never calls close(). It leaks file descriptors.",
        advice: "Fix the program: it must close a connection after its peer has closed it.",
        settings: &[],
        needs: &[Sockets],
        kernels: Kernels::ALL,
        confidence: Confidence::Likely,
        limits: &[LEAKED, LEAK_AGE, LEAK_CRITICAL],
        judge: leak,
    },
    Rule {
        id: "ST-02",
        symptom: "clients gave up in the accept queue",
        condition: "CLOSE-WAIT sockets without a process, while connections wait at that port's listener",
        why: "Clients time out before the service accepts their connections.",
        advice: "Lower the backlog, or add threads that accept.",
        settings: &[],
        needs: &[Sockets],
        kernels: Kernels::ALL,
        confidence: Confidence::Likely,
        limits: &[],
        judge: gave_up,
    },
    Rule {
        id: "ST-03",
        symptom: "zero window holds closed connections",
        condition: "at least 10 in FIN-WAIT-1 without a process that probe a zero window",
        why: "The kernel cannot send the remaining data. It gives up only after 1023 retransmission time-outs and tcp_rto_max_ms (120 s), at least 325 s.",
        advice: "On Linux 6.15 or later, lower tcp_rto_max_ms and restart the service: the kernel gives up once probes are that far apart, whatever tcp_orphan_retries is. The commands close the present ones.",
        settings: &[("net.ipv4.tcp_rto_max_ms", Change::AtMost(10_000))],
        needs: &[Sockets],
        kernels: Kernels::ALL,
        confidence: Confidence::Likely,
        limits: &[HELD],
        judge: held,
    },
    Rule {
        id: "ST-04",
        symptom: "FIN-WAIT-2 without a time-out",
        condition: "more than 10 in FIN-WAIT-2 that a process holds, without a timer, idle for more than 60 s",
        why: "After shutdown() without close(), tcp_fin_timeout does not apply. The connection waits for its peer indefinitely.",
        advice: "Call close() in the program, or set TCP_LINGER2.",
        settings: &[],
        needs: &[Sockets],
        kernels: Kernels::ALL,
        confidence: Confidence::Certain,
        limits: &[ENDLESS_AGE, ENDLESS],
        judge: endless,
    },
    Rule {
        id: "ST-05",
        symptom: "many connections without a process (orphans)",
        condition: "TCP orphan of sockstat > 25 % of tcp_max_orphans (critical: 50 %)",
        why: "Above the limit, the kernel resets closed connections instead of finishing them. For orphans without progress the limit is a half or a quarter.",
        advice: "Raise the limit (each orphan takes up to 64 KiB), or let orphans time out sooner.",
        settings: &[("net.ipv4.tcp_orphan_retries", Change::To("3"))],
        needs: &[Sockstat, Settings],
        kernels: Kernels::ALL,
        confidence: Confidence::Certain,
        limits: &[ORPHANS, ORPHANS_CRITICAL],
        judge: orphans,
    },
    Rule {
        id: "ST-06",
        symptom: "TIME-WAIT table full",
        condition: "TcpExtTCPTimeWaitOverflow grows",
        why: "Connections skip TIME-WAIT, so old duplicate segments may reach new connections.",
        advice: "Raise the limit.",
        settings: &[],
        needs: &[Counters],
        kernels: Kernels::ALL,
        confidence: Confidence::Certain,
        limits: &[],
        judge: |window| {
            const MAX: &str = "net.ipv4.tcp_max_tw_buckets";
            let mut found = counter(window, "TcpExtTCPTimeWaitOverflow", Severity::Warning);
            for found in &mut found {
                let twice = window.now.number(MAX).unwrap_or(0).saturating_mul(2);
                found.steps.extend(Change::AtLeast(twice.max(262_144)).step(MAX, window.now));
            }
            found
        },
    },
    Rule {
        id: "ST-07",
        symptom: "ephemeral ports running out",
        condition: "sockets from one address to one destination and port use > 70 % of ip_local_port_range (critical: 95 %)",
        why: "The limit applies to each destination. Above it connect() fails.",
        advice: "Keep connections open and reuse them, widen the range, or add source addresses.",
        settings: &[
            ("net.ipv4.ip_local_port_range", Change::To("1024 65535")),
            ("net.ipv4.tcp_tw_reuse", Change::To("1")),
        ],
        needs: &[Sockets, Settings],
        kernels: Kernels::ALL,
        confidence: Confidence::Certain,
        limits: &[PORTS, PORTS_CRITICAL],
        judge: ports,
    },
    Rule {
        id: "ST-08",
        symptom: "ports in TIME-WAIT are not reused",
        condition: "tcp_tw_reuse is not 1, and TIME-WAIT sockets to one destination take > 50 % of ip_local_port_range",
        why: "The default 2 covers loopback only. With 1 Linux reuses a port after one second, protected by timestamps.",
        advice: "Set it to 1. A connection pool is better.",
        settings: &[("net.ipv4.tcp_tw_reuse", Change::To("1"))],
        needs: &[Sockets, Settings],
        kernels: Kernels::ALL,
        confidence: Confidence::Certain,
        limits: &[WAITING],
        judge: waiting,
    },
    Rule {
        id: "ST-09",
        symptom: "programs here reset connections",
        condition: "TcpExtTCPAbortOnClose > 10 % of opens, at least 20",
        why: "close() with unread data, or SO_LINGER of 0, sends a reset. The peer sees an error.",
        advice: "Read all data before close().",
        settings: &[],
        needs: &[Counters],
        kernels: Kernels::ALL,
        confidence: Confidence::Likely,
        limits: &[ABORTS],
        judge: resets,
    },
    Rule {
        id: "ST-10",
        symptom: "tcp_fin_timeout lowered",
        condition: "tcp_fin_timeout < 60",
        why: "It applies only to FIN-WAIT-2 without a process. TIME-WAIT lasts 60 s in any case.",
        advice: "Restore the default.",
        settings: &[("net.ipv4.tcp_fin_timeout", Change::To("60"))],
        needs: &[Settings],
        kernels: Kernels::ALL,
        confidence: Confidence::Certain,
        limits: &[],
        judge: |window| {
            super::setting(window, "net.ipv4.tcp_fin_timeout", Severity::Info, |value| value < 60)
        },
    },
];

const LEAKED: Limit = Limit { rule: "ST-01", name: "sockets", value: 100.0, unit: "sockets" };
const LEAK_AGE: Limit = Limit { rule: "ST-01", name: "age", value: 60.0, unit: "s" };
const LEAK_CRITICAL: Limit = Limit { rule: "ST-01", name: "critical", value: 1000.0, unit: "sockets" };
const HELD: Limit = Limit { rule: "ST-03", name: "sockets", value: 10.0, unit: "sockets" };
/// Most peers that the commands name. A host with more of them is under attack.
const PEERS: usize = 10;
const PORTS: Limit = Limit { rule: "ST-07", name: "share", value: 70.0, unit: "%" };
const PORTS_CRITICAL: Limit = Limit { rule: "ST-07", name: "critical", value: 95.0, unit: "%" };
const ABORTS: Limit = Limit { rule: "ST-09", name: "share", value: 10.0, unit: "%" };

fn leak(window: &Window<'_>) -> Vec<Found> {
    let count = window.in_state(CLOSE_WAIT).filter(|socket| socket.inode != 0).count();
    let (most, age) = (window.limit(&LEAKED), window.limit(&LEAK_AGE));
    let silent = |socket: &Socket| socket.info.map_or(0, |info| info.last_ack_recv);
    let oldest =
        window.in_state(CLOSE_WAIT).filter(|socket| socket.inode != 0).map(silent).max().unwrap_or(0);
    let mut ports: BTreeMap<u16, u32> = BTreeMap::new();
    window.in_state(CLOSE_WAIT).for_each(|socket| *ports.entry(socket.local_port).or_default() += 1);
    let severity =
        if count as f64 > window.limit(&LEAK_CRITICAL) { Severity::Critical } else { Severity::Warning };
    let mut evidence = vec![
        window.shown("CLOSE-WAIT sockets", count),
        window
            .shown("oldest, since its last acknowledgement", format!("{:.1} s", f64::from(oldest) / 1000.0)),
    ];
    if let Some((port, count)) = ports.iter().max_by_key(|(_, count)| **count) {
        evidence.push(window.shown("most of them at", format!("port {port} ({count})")));
    }
    let mut owners: BTreeMap<(&str, u32), u32> = BTreeMap::new();
    for owner in window.in_state(CLOSE_WAIT).filter_map(|socket| window.now.owners.get(&socket.inode)) {
        *owners.entry((&owner.name, owner.pid)).or_default() += 1;
    }
    if let Some(((name, pid), count)) = owners.iter().max_by_key(|(_, count)| **count) {
        evidence.push(window.shown("most of them held by", format!("{name}, process {pid} ({count})")));
    }
    found(
        count as f64 > most || f64::from(oldest) > age * 1000.0,
        severity,
        evidence,
        format!("{count} > {most}, or {} s > {age} s", oldest / 1000),
    )
}

fn gave_up(window: &Window<'_>) -> Vec<Found> {
    let waiting = window.listeners().filter(|listener| listener.recv_queue > 0);
    waiting
        .filter_map(|listener| {
            let gone = |socket: &&Socket| socket.inode == 0 && socket.local_port == listener.local_port;
            let count = window.in_state(CLOSE_WAIT).filter(gone).count();
            (count > 0).then(|| Found {
                severity: Severity::Warning,
                scope: Scope::Port(listener.local_port),
                evidence: vec![
                    window.shown("CLOSE-WAIT without a process", count),
                    window.shown("Recv-Q", listener.recv_queue),
                ],
                formula: format!("{count} clients have left, {} connections wait", listener.recv_queue),
                ..Found::default()
            })
        })
        .collect()
}

fn held(window: &Window<'_>) -> Vec<Found> {
    let held: Vec<&Socket> =
        window.in_state(FIN_WAIT_1).filter(|socket| socket.inode == 0 && socket.probing).collect();
    let (count, limit) = (held.len(), window.limit(&HELD));
    let evidence = vec![window.shown("FIN-WAIT-1 in persist, without a process", count)];
    let mut found = found(count as f64 >= limit, Severity::Warning, evidence, format!("{count} >= {limit}"));
    if let Some(found) = found.first_mut().filter(|_| !window.now.of_stack) {
        let peers: BTreeSet<String> = held.iter().map(|socket| socket.peer.to_string()).collect();
        let close = |peer| Step { command: format!("ss -K state fin-wait-1 dst {peer}"), ..Step::default() };
        found.steps.extend(peers.into_iter().take(PEERS).map(close));
    }
    found
}

const ENDLESS_AGE: Limit = Limit { rule: "ST-04", name: "age", value: 60.0, unit: "s" };
const ENDLESS: Limit = Limit { rule: "ST-04", name: "sockets", value: 10.0, unit: "sockets" };

fn endless(window: &Window<'_>) -> Vec<Found> {
    let (age, limit) = (window.limit(&ENDLESS_AGE), window.limit(&ENDLESS));
    let endless = |socket: &&Socket| {
        let silent = socket.info.map_or(0, |info| info.last_ack_recv.min(info.last_data_recv));
        socket.inode != 0 && !socket.timed && f64::from(silent) >= age * 1000.0
    };
    let count = window.in_state(FIN_WAIT_2).filter(endless).count();
    let evidence = vec![window.shown("FIN-WAIT-2 that a process holds", count)];
    found(count as f64 > limit, Severity::Info, evidence, format!("{count} > {limit}, each idle for {age} s"))
}

const ORPHANS: Limit = Limit { rule: "ST-05", name: "share", value: 25.0, unit: "%" };
const ORPHANS_CRITICAL: Limit = Limit { rule: "ST-05", name: "critical", value: 50.0, unit: "%" };

fn orphans(window: &Window<'_>) -> Vec<Found> {
    const MAX: &str = "net.ipv4.tcp_max_orphans";
    let (Some(orphans), Some(most)) = (window.now.sockstat.get("TCP orphan"), window.now.number(MAX)) else {
        window.lacks(OF_HOST);
        return Vec::new();
    };
    let share = percent(*orphans, u64::try_from(most).unwrap_or(0));
    let limit = window.limit(&ORPHANS);
    let severity =
        if share > window.limit(&ORPHANS_CRITICAL) { Severity::Critical } else { Severity::Warning };
    let evidence = vec![window.shown("TCP orphan", orphans), window.set(MAX)];
    let mut found =
        found(share > limit, severity, evidence, format!("{orphans} / {most} = {share:.0} % > {limit} %"));
    found.iter_mut().for_each(|found| {
        found.scope = Scope::Host;
        // Double the limit, or raise it until the share is below the threshold.
        let enough = (*orphans as f64 * 100.0 / limit.max(1.0)).ceil() as i64;
        found.steps.extend(Change::AtLeast(most.saturating_mul(2).max(enough)).step(MAX, window.now));
    });
    found
}

/// Returns the number of ports in a range.
fn width(low: i64, high: i64) -> u64 {
    u64::try_from(high.saturating_sub(low)).map_or(0, |width| width.saturating_add(1))
}

const WAITING: Limit = Limit { rule: "ST-08", name: "share", value: 50.0, unit: "%" };

fn waiting(window: &Window<'_>) -> Vec<Found> {
    const REUSE: &str = "net.ipv4.tcp_tw_reuse";
    let range = |n| window.now.nth("net.ipv4.ip_local_port_range", n);
    let (Some(low), Some(high), Some(0 | 2)) = (range(0), range(1), window.now.number(REUSE)) else {
        return Vec::new();
    };
    let mut waiting: BTreeMap<(Address, Address, u16), u64> = BTreeMap::new();
    let clients = window
        .in_state(TIME_WAIT)
        .filter(|socket| (low..=high).contains(&socket.local_port.into()) && !socket.peer.0.is_loopback());
    clients
        .for_each(|socket| *waiting.entry((socket.local, socket.peer, socket.peer_port)).or_default() += 1);
    let whole = width(low, high);
    let limit = window.limit(&WAITING);
    let used = waiting.into_iter().filter_map(|((local, peer, port), count)| {
        let share = percent(count, whole);
        (share > limit).then(|| Found {
            severity: Severity::Info,
            scope: Scope::Peer(format!("{peer}:{port} from {local}")),
            evidence: vec![window.shown("ports in TIME-WAIT", count), window.set(REUSE)],
            formula: format!("{count} of {whole} ports = {share:.0} % > {limit} %"),
            ..Found::default()
        })
    });
    used.collect()
}

fn ports(window: &Window<'_>) -> Vec<Found> {
    let range = |n| window.now.nth("net.ipv4.ip_local_port_range", n);
    let (Some(low), Some(high)) = (range(0), range(1)) else { return Vec::new() };
    let listening: BTreeSet<u16> = window.listeners().map(|socket| socket.local_port).collect();
    let mut used: BTreeMap<(Address, Address, u16), (u64, u64)> = BTreeMap::new();
    for socket in &window.now.sockets {
        let is_client =
            (low..=high).contains(&socket.local_port.into()) && !listening.contains(&socket.local_port);
        if is_client && socket.state != LISTEN && socket.state != SYN_RECEIVED {
            let entry = used.entry((socket.local, socket.peer, socket.peer_port)).or_default();
            entry.0 += 1;
            entry.1 += u64::from(socket.state == TIME_WAIT);
        }
    }
    let whole = width(low, high);
    used.into_iter()
        .filter_map(|((local, peer, port), (count, waiting))| {
            let share = percent(count, whole);
            (share > window.limit(&PORTS)).then(|| Found {
                severity: if share > window.limit(&PORTS_CRITICAL) {
                    Severity::Critical
                } else {
                    Severity::Warning
                },
                scope: Scope::Peer(format!("{peer}:{port} from {local}")),
                evidence: vec![
                    window.shown("ports in use", count),
                    window.shown("of them in TIME-WAIT", waiting),
                    window.set("net.ipv4.ip_local_port_range"),
                ],
                formula: format!("{count} of {whole} ports = {share:.0} % > {} %", window.limit(&PORTS)),
                ..Found::default()
            })
        })
        .collect()
}

fn resets(window: &Window<'_>) -> Vec<Found> {
    let aborts = window.grown("TcpExtTCPAbortOnClose");
    let opens = window.grown("TcpActiveOpens").saturating_add(window.grown("TcpPassiveOpens"));
    let share = percent(aborts, opens.max(1));
    let evidence = vec![
        window.counted("TcpExtTCPAbortOnClose"),
        window.counted("TcpActiveOpens"),
        window.counted("TcpPassiveOpens"),
    ];
    found(
        aborts >= 20 && share > window.limit(&ABORTS),
        Severity::Warning,
        evidence,
        format!("{aborts} / {opens} = {share:.0} % > {} %", window.limit(&ABORTS)),
    )
}
