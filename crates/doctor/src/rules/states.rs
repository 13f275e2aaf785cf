//! ST: states that last too long, ports, and what limits them.
use super::{Change, Found, Rule, counter, found, percent};
use crate::finding::{Scope, Severity};
use crate::sample::Source::{Counters, Settings, Sockets};
use crate::sample::state::{CLOSE_WAIT, FIN_WAIT_1, LISTEN, SYN_RECEIVED, TIME_WAIT};
use crate::sample::{Sample, Socket};
use crate::window::Window;
use std::collections::{BTreeMap, BTreeSet};

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "ST-01",
        symptom: "CLOSE-WAIT leak",
        condition: "more than 100 in CLOSE-WAIT, or one that a process has held for more than 60 s (critical: more than 1000)",
        why: "The peer has closed and this program never calls close(): descriptors leak.",
        advice: "Mend the program: it must close what its peer has closed.",
        settings: &[],
        needs: &[Sockets],
        judge: leak,
    },
    Rule {
        id: "ST-02",
        symptom: "clients gave up in the accept queue",
        condition: "CLOSE-WAIT without a process, and connections wait at that port's listener",
        why: "The queue is longer than the service can work off before clients lose patience.",
        advice: "A shorter backlog, or more who accept.",
        settings: &[],
        needs: &[Sockets],
        judge: gave_up,
    },
    Rule {
        id: "ST-03",
        symptom: "closed connections held by a zero window",
        condition: "at least 10 in FIN-WAIT-1 without a process that probe a zero window",
        why: "What was written cannot be sent, and the kernel gives up only after some 343 s.",
        advice: "Lower tcp_orphan_retries or, since Linux 6.15, tcp_rto_max_ms.",
        settings: &[("net.ipv4.tcp_orphan_retries", Change::To("3"))],
        needs: &[Sockets],
        judge: held,
    },
    Rule {
        id: "ST-06",
        symptom: "TIME-WAIT table full",
        condition: "TcpExtTCPTimeWaitOverflow grows",
        why: "Connections skip TIME-WAIT: old duplicates may hit new ones.",
        advice: "Raise the limit.",
        settings: &[("net.ipv4.tcp_max_tw_buckets", Change::AtLeast(262144))],
        needs: &[Counters],
        judge: |window| counter(window, "TcpExtTCPTimeWaitOverflow", Severity::Warning),
    },
    Rule {
        id: "ST-07",
        symptom: "ephemeral ports running out",
        condition: "sockets from one address to one destination and port use > 70 % of ip_local_port_range (critical: 95 %)",
        why: "The limit holds for each destination, and beyond it connect() fails.",
        advice: "Keep connections open and reuse them; widen the range; add source addresses.",
        settings: &[
            ("net.ipv4.ip_local_port_range", Change::To("1024 65535")),
            ("net.ipv4.tcp_tw_reuse", Change::To("1")),
        ],
        needs: &[Sockets, Settings],
        judge: ports,
    },
    Rule {
        id: "ST-09",
        symptom: "programs here reset connections",
        condition: "TcpExtTCPAbortOnClose > 10 % of opens, at least 20",
        why: "close() with unread data, or SO_LINGER of 0, sends a reset, and peers see errors.",
        advice: "Read to the end before close().",
        settings: &[],
        needs: &[Counters],
        judge: resets,
    },
    Rule {
        id: "ST-10",
        symptom: "tcp_fin_timeout lowered",
        condition: "tcp_fin_timeout < 60",
        why: "It governs only FIN-WAIT-2 without a process; TIME-WAIT lasts 60 s whatever it says.",
        advice: "Restore it.",
        settings: &[("net.ipv4.tcp_fin_timeout", Change::To("60"))],
        needs: &[Settings],
        judge: |window| {
            super::setting(window, "net.ipv4.tcp_fin_timeout", Severity::Info, |value| value < 60)
        },
    },
];

fn leak(window: &Window<'_>) -> Vec<Found> {
    let owned = |sample: &Sample| sample.in_state(CLOSE_WAIT).filter(|socket| socket.inode != 0).count();
    let count = owned(window.now);
    let age = |socket: &Socket| socket.info.map_or(0, |info| info.last_ack_recv);
    let oldest =
        window.now.in_state(CLOSE_WAIT).filter(|socket| socket.inode != 0).map(age).max().unwrap_or(0);
    let mut ports: BTreeMap<u16, u32> = BTreeMap::new();
    window.now.in_state(CLOSE_WAIT).for_each(|socket| *ports.entry(socket.local_port).or_default() += 1);
    let severity = if count > 1000 { Severity::Critical } else { Severity::Warning };
    let mut evidence = vec![
        window.shown("CLOSE-WAIT sockets", count),
        window
            .shown("oldest, since its last acknowledgement", format!("{:.1} s", f64::from(oldest) / 1000.0)),
    ];
    if let Some((port, count)) = ports.iter().max_by_key(|(_, count)| **count) {
        evidence.push(window.shown("most of them at", format!("port {port} ({count})")));
    }
    found(
        count > 100 || oldest > 60_000,
        severity,
        evidence,
        format!("{count} > 100, or {} s > 60 s", oldest / 1000),
    )
}

fn gave_up(window: &Window<'_>) -> Vec<Found> {
    let waiting = window.now.listeners().filter(|listener| listener.recv_queue > 0);
    waiting
        .filter_map(|listener| {
            let gone = |socket: &&Socket| socket.inode == 0 && socket.local_port == listener.local_port;
            let count = window.now.in_state(CLOSE_WAIT).filter(gone).count();
            (count > 0).then(|| Found {
                severity: Severity::Warning,
                scope: Scope::Port(listener.local_port),
                evidence: vec![
                    window.shown("CLOSE-WAIT without a process", count),
                    window.shown("Recv-Q", listener.recv_queue),
                ],
                formula: format!("{count} of {} that wait have already gone", listener.recv_queue),
            })
        })
        .collect()
}

fn held(window: &Window<'_>) -> Vec<Found> {
    let held = |socket: &&Socket| socket.inode == 0 && socket.probing;
    let count = window.now.in_state(FIN_WAIT_1).filter(held).count();
    let evidence = vec![window.shown("FIN-WAIT-1 in persist, without a process", count)];
    found(count >= 10, Severity::Warning, evidence, format!("{count} >= 10"))
}

fn ports(window: &Window<'_>) -> Vec<Found> {
    let range = |n| window.now.nth("net.ipv4.ip_local_port_range", n);
    let (Some(low), Some(high)) = (range(0), range(1)) else { return Vec::new() };
    let listening: BTreeSet<u16> = window.now.listeners().map(|socket| socket.local_port).collect();
    let mut used: BTreeMap<(&str, &str, u16), (u64, u64)> = BTreeMap::new();
    for socket in &window.now.sockets {
        let is_client =
            (low..=high).contains(&socket.local_port.into()) && !listening.contains(&socket.local_port);
        if is_client && socket.state != LISTEN && socket.state != SYN_RECEIVED {
            let entry = used.entry((&socket.local, &socket.peer, socket.peer_port)).or_default();
            entry.0 += 1;
            entry.1 += u64::from(socket.state == TIME_WAIT);
        }
    }
    let whole = u64::try_from(high - low + 1).unwrap_or(0);
    used.into_iter()
        .filter_map(|((local, peer, port), (count, waiting))| {
            let share = percent(count, whole);
            (share > 70.0).then(|| Found {
                severity: if share > 95.0 { Severity::Critical } else { Severity::Warning },
                scope: Scope::Peer(format!("{peer}:{port} from {local}")),
                evidence: vec![
                    window.shown("ports in use", count),
                    window.shown("of them in TIME-WAIT", waiting),
                    window.set("net.ipv4.ip_local_port_range"),
                ],
                formula: format!("{count} of {whole} ports = {share:.0} % > 70 %"),
            })
        })
        .collect()
}

fn resets(window: &Window<'_>) -> Vec<Found> {
    let aborts = window.grown("TcpExtTCPAbortOnClose");
    let opens = window.grown("TcpActiveOpens") + window.grown("TcpPassiveOpens");
    let share = percent(aborts, opens.max(1));
    let evidence = vec![
        window.counted("TcpExtTCPAbortOnClose"),
        window.counted("TcpActiveOpens"),
        window.counted("TcpPassiveOpens"),
    ];
    found(
        aborts >= 20 && share > 10.0,
        Severity::Warning,
        evidence,
        format!("{aborts} / {opens} = {share:.0} % > 10 %"),
    )
}
