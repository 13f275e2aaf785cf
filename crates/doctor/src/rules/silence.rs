//! CC: connections whose peers stopped answering.
use super::{Found, Kernels, Rule};
use crate::finding::{Confidence, Scope, Severity};
use crate::limit::Limit;
use crate::sample::Source::Sockets;
use crate::sample::state::{CLOSE_WAIT, ESTABLISHED, FIN_WAIT_1};
use crate::sample::{Address, Socket};
use crate::window::Window;
use std::collections::BTreeMap;

pub(super) const RULES: &[Rule] = &[Rule {
    id: "CC-14",
    symptom: "peer stopped answering, data is unacknowledged",
    condition: "connections that were acknowledged before have retransmitted at least 3 times with doubled time-outs, and their peers acknowledge nothing",
    why: "The path or the peer is down, or a firewall or NAT has dropped the connection's state. The program waits about 15 minutes (tcp_retries2), then gets an error.",
    advice: "Check the path in both directions: tcpdump at the peer shows whether the data arrives and its acknowledgement leaves. TCP_USER_TIMEOUT, or keepalive below the time-out of the NAT, limits the wait.",
    settings: &[],
    needs: &[Sockets],
    kernels: Kernels::ALL,
    confidence: Confidence::Likely,
    limits: &[BACKED_OFF],
    judge: silent,
}];

const BACKED_OFF: Limit = Limit { rule: "CC-14", name: "backoff", value: 3.0, unit: "time-outs" };

/// Number of silent peers above which the cause is this host's link or the network behind it.
const PEERS: usize = 3;

fn silent(window: &Window<'_>) -> Vec<Found> {
    let limit = window.limit(&BACKED_OFF);
    let states = [ESTABLISHED, FIN_WAIT_1, CLOSE_WAIT];
    let sockets = states.into_iter().flat_map(|state| window.in_state(state));
    let mut peers: BTreeMap<Address, Vec<&Socket>> = BTreeMap::new();
    for socket in sockets.filter(|socket| is_silent(socket, limit)) {
        peers.entry(socket.peer).or_default().push(socket);
    }
    if peers.len() > PEERS {
        let all: Vec<&Socket> = peers.values().flatten().copied().collect();
        let mut found = of_peer(window, Scope::Namespace, &all, limit);
        found.evidence.push(window.shown("peers", peers.len()));
        return vec![found];
    }
    peers
        .into_iter()
        .map(|(peer, sockets)| of_peer(window, Scope::Peer(peer.to_string()), &sockets, limit))
        .collect()
}

/// Returns whether a peer that answered before no longer does. Ignores connections that never
/// carried a full segment, because these may have met a smaller MTU.
fn is_silent(socket: &Socket, limit: f64) -> bool {
    socket.info.is_some_and(|info| {
        let small = info.snd_mss <= 1200 || info.bytes_acked >= 4 * u64::from(info.snd_mss);
        let first = small || socket.send_queue < info.snd_mss;
        f64::from(info.backoff) >= limit && info.unacked > 0 && !socket.probing && first
    })
}

fn of_peer(window: &Window<'_>, scope: Scope, sockets: &[&Socket], limit: f64) -> Found {
    let backoff = |socket: &&&Socket| socket.info.map_or(0, |info| info.backoff);
    let worst = sockets.iter().max_by_key(backoff);
    let info = worst.and_then(|socket| socket.info).unwrap_or_default();
    let mut evidence = vec![
        window.shown("connections", sockets.len()),
        window.shown("backoff", info.backoff),
        window.shown(
            "since the last acknowledgement",
            format!("{:.1} s", f64::from(info.last_ack_recv) / 1000.0),
        ),
    ];
    evidence.extend(worst.map(|socket| window.shown("one of them", socket.ends())));
    Found {
        severity: Severity::Warning,
        scope,
        evidence,
        formula: format!("{} time-outs in a row >= {limit}", info.backoff),
        ..Found::default()
    }
}
