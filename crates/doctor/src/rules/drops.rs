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
        symptom: "a listener drops SYNs though no queue is full",
        condition: "TcpExtListenDrops grows by more than full accept queues (ListenOverflows) and full SYN queues (TCPReqQFullDrop) explain; the listeners whose sk_drops grow are named",
        why: "Their clients wait a second and more, or fail, and no counter says why.",
        advice: "Ask the kernel for the reason: the tracepoint skb:kfree_skb (perf, dropwatch). What is left: no memory for the request (slab, cgroup), a security module, SYNs to a broadcast address.",
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
        why: "They are dropped, and TCP sees loss: a link, a card or a virtual device damages packets, or does not fill in the checksum that was left to it.",
        advice: "Find the device they come by: tcpdump -vv shows them. Try its checksum offload off at the sender (ethtool -K DEVICE tx off), then look at cables and drivers.",
        settings: &[],
        needs: &[Counters],
        kernels: Kernels::since(3, 10),
        confidence: Confidence::Certain,
        limits: &[DAMAGED],
        judge: damaged,
    },
    Rule {
        id: "RX-12",
        symptom: "segments whose signature does not match",
        condition: "TcpExtTCPMD5NotFound, TCPMD5Unexpected, TCPMD5Failure, TCPAOBad, TCPAOKeyNotFound or TCPAORequired grows",
        why: "TCP MD5 (RFC 2385) or TCP-AO (RFC 5925) is set up differently at the two ends: every such segment is dropped without an answer.",
        advice: "Compare the keys, key ids and addresses of both ends; BGP daemons name them per neighbour.",
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
    // One that is full has its reason.
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
    /// No route to the client, so that nothing can be answered (counted as `IpOutNoRoutes`).
    NoRoute,
    /// Memory above the last value of `tcp_mem`.
    Memory,
    Unknown,
}

impl Cause {
    fn of(window: &Window<'_>, rest: u64) -> Cause {
        let used = window.now.sockstat.get("TCP mem").copied();
        let most = window.now.nth("net.ipv4.tcp_mem", 2).and_then(|pages| u64::try_from(pages).ok());
        // A packet that this host itself sends to nowhere is counted as well.
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
                "a listener drops SYNs: there is no route back to their addresses",
                "The SYN-ACK has no way out, so that the SYN is dropped unanswered (IpOutNoRoutes).",
                "Add the route back: `ip route get ADDRESS` says \"unreachable\" for a client's address. SYNs with forged addresses need none.",
            ),
            Cause::Memory => (
                "a listener drops SYNs: TCP is out of memory",
                "TCP takes more pages than the last value of tcp_mem.",
                "Find the connections that hold memory: `firstbyte ss -m`, and the program that does not read or send.",
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
