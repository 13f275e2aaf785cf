//! Drops although no queue is full: ACC-02, RX-11, RX-12.
use super::flood::flood;
use super::{Found, Kernels, Rule, Words, found, percent, syn_queue};
use crate::finding::{Confidence, Scope, Severity};
use crate::limit::Limit;
use crate::sample::Socket;
use crate::sample::Source::{Counters, Settings, Sockets, Sockstat};
use crate::window::Window;

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "ACC-02",
        symptom: "listener drops SYNs although no queue is full",
        condition: "TcpExtListenDrops grows by more than full accept queues (ListenOverflows) and full SYN queues (TCPReqQFullDrop) explain; the finding names listeners whose sk_drops grow",
        why: "Clients wait at least 1 s or fail, and no counter shows the reason.",
        advice: "Get the reason from the kernel: the tracepoint skb:kfree_skb (perf, dropwatch). The remaining causes are lack of memory for the request (slab, cgroup), a security module, or SYNs to a broadcast address.",
        settings: &[],
        needs: &[Sockets, Counters, Settings, Sockstat],
        kernels: Kernels::ALL,
        confidence: Confidence::Hint,
        limits: &[],
        judge: unexplained,
    },
    Rule {
        id: "RX-11",
        symptom: "segments with a wrong checksum",
        condition: "TcpInCsumErrors grows by at least 10, and by more than 0.1 % of TcpInSegs",
        why: "The kernel drops them, and TCP treats them as lost. A link, a NIC or a virtual device damages packets, or does not fill in an offloaded checksum.",
        advice: "Find the device that they arrive on (tcpdump -vv). Disable checksum offload at the sender (ethtool -K DEVICE tx off) as a test, then check cables and drivers.",
        settings: &[],
        needs: &[Counters],
        kernels: Kernels::since(3, 10),
        confidence: Confidence::Certain,
        limits: &[DAMAGED],
        judge: damaged,
    },
    Rule {
        id: "RX-12",
        symptom: "segments with a wrong TCP signature",
        condition: "TcpExtTCPMD5NotFound, TCPMD5Unexpected, TCPMD5Failure, TCPAOBad, TCPAOKeyNotFound or TCPAORequired grows",
        why: "TCP MD5 (RFC 2385) or TCP-AO (RFC 5925) is configured differently at the two ends. The kernel drops every such segment without an answer.",
        advice: "Compare the keys, key ids and addresses of both ends. BGP daemons configure them per neighbour.",
        settings: &[],
        needs: &[Counters],
        kernels: Kernels::ALL,
        confidence: Confidence::Certain,
        limits: &[],
        judge: signatures,
    },
];

fn unexplained(window: &Window<'_>) -> Vec<Found> {
    let (drops, overflows) = (window.grown("TcpExtListenDrops"), window.grown("TcpExtListenOverflows"));
    let full = overflows.saturating_add(window.grown("TcpExtTCPReqQFullDrop"));
    let rest = drops.saturating_sub(full);
    if rest == 0 || flood(window).is_some() || syn_queue::is_without_room(window) {
        return Vec::new();
    }
    let cause = Cause::of(window, rest);
    let dropping: Vec<&Socket> =
        window.listeners().filter(|listener| window.drops_grown(listener) > 0).collect();
    // Drops of a full listener are explained.
    let is_full = |listener: &Socket| listener.recv_queue > listener.send_queue;
    let others = dropping.iter().filter(|listener| !is_full(listener));
    let scopes: Vec<Scope> = others.map(|listener| Scope::Port(listener.local_port)).collect();
    let scopes = if scopes.is_empty() { vec![Scope::Namespace] } else { scopes };
    let found = scopes.into_iter().map(|scope| Found {
        severity: Severity::Warning,
        scope,
        evidence: vec![
            window.counted("TcpExtListenDrops"),
            window.counted("TcpExtListenOverflows"),
            window.counted("TcpExtTCPReqQFullDrop"),
            window.counted("IpOutNoRoutes"),
        ],
        formula: format!("ListenDrops +{drops} - {full} by full queues = {rest} > 0"),
        words: cause.words(),
        ..Found::default()
    });
    found.collect()
}

/// The cause of drops that no full queue explains.
enum Cause {
    /// No route to the client, so the SYN-ACK cannot be sent (counted as `IpOutNoRoutes`).
    NoRoute,
    /// Memory above the last value of `tcp_mem`.
    Memory,
    Unknown,
}

impl Cause {
    fn of(window: &Window<'_>, rest: u64) -> Cause {
        let used = window.now.sockstat.get("TCP mem").copied();
        let most = window.now.nth("net.ipv4.tcp_mem", 2).and_then(|pages| u64::try_from(pages).ok());
        // The counter includes packets of this host's own programs.
        if window.grown("IpOutNoRoutes").saturating_mul(2) >= rest {
            return Cause::NoRoute;
        }
        match (used, most) {
            (Some(used), Some(most)) if used > most => Cause::Memory,
            _ => Cause::Unknown,
        }
    }

    fn words(&self) -> Words {
        let (symptom, why, advice) = match self {
            Cause::NoRoute => (
                "listener drops SYNs: no route back to the clients",
                "This host has no route for the SYN-ACK, so it drops the SYN without an answer (IpOutNoRoutes).",
                "Add the return route: `ip route get ADDRESS` says \"unreachable\" for a client's address. Forged addresses need no route.",
            ),
            Cause::Memory => (
                "listener drops SYNs: TCP is out of memory",
                "TCP uses more pages than the last value of tcp_mem.",
                "Find the connections that hold memory (`firstbyte ss -m`), and the program that does not read or send.",
            ),
            Cause::Unknown => return Words::default(),
        };
        let said = |text: &str| Some(text.to_owned());
        Words {
            symptom: said(symptom),
            why: said(why),
            advice: said(advice),
            confidence: Some(Confidence::Likely),
        }
    }
}

const DAMAGED: Limit = Limit { rule: "RX-11", name: "share", value: 0.1, unit: "%" };

fn damaged(window: &Window<'_>) -> Vec<Found> {
    let (wrong, all) = ("TcpInCsumErrors", "TcpInSegs");
    let (errors, segments) = (window.grown(wrong), window.grown(all));
    let (share, limit) = (percent(errors, segments.max(1)), window.limit(&DAMAGED));
    let formula = format!("{errors} / {segments} = {share:.2} % > {limit} %, and {errors} >= 10");
    let evidence = vec![window.counted(wrong), window.counted(all)];
    found(errors >= 10 && share > limit, Severity::Warning, evidence, formula)
}

fn signatures(window: &Window<'_>) -> Vec<Found> {
    const COUNTERS: [&str; 6] = [
        "TcpExtTCPMD5NotFound",
        "TcpExtTCPMD5Unexpected",
        "TcpExtTCPMD5Failure",
        "TcpExtTCPAOBad",
        "TcpExtTCPAOKeyNotFound",
        "TcpExtTCPAORequired",
    ];
    let moved = COUNTERS.iter().filter(|name| window.grown(name) > 0);
    let evidence: Vec<_> = moved.map(|name| window.counted(name)).collect();
    found(!evidence.is_empty(), Severity::Warning, evidence, "any of them > 0".to_owned())
}
