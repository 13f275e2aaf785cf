//! Problems of single connections: WIN-02, WIN-07, CC-03, CC-11.
use super::windows::{Judged, connections};
use super::{Change, Found, Kernels, Rule, Words};
use crate::finding::{Confidence, Scope, Severity};
use crate::limit::Limit;
use crate::sample::Source::{Paths, Routes, Settings, Sockets};
use crate::sample::state::ESTABLISHED;
use crate::sample::{Address, Socket};
use crate::window::Window;
use std::collections::BTreeSet;

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "WIN-02",
        symptom: "connection without window scaling",
        condition: "window scaling is on here, but a connection does not use it, its round trip > 5 ms, and it has carried more than 1 MB",
        why: "Without window scaling a connection carries at most 65535 bytes per round trip.",
        advice: "Check the peer first: net.ipv4.tcp_window_scaling there, or a small or old system. Then compare the SYN at both ends (tcpdump): a SYN proxy, firewall or load balancer may remove the option. A SYN proxy of nftables needs: wscale 7 sack-perm timestamp.",
        settings: &[],
        needs: &[Sockets, Settings],
        kernels: Kernels::ALL,
        confidence: Confidence::Hint,
        limits: &[UNSCALED],
        judge: unscaled,
    },
    Rule {
        id: "WIN-07",
        symptom: "fixed receive buffer too small for the path",
        condition: "a connection's rcvbuf and rcv_ssthresh stay the same while at least half a window arrives in each round trip, rcv_space >= 60 % of rcv_ssthresh (autotuning keeps it at 50 % or less), rcvbuf < 1/8 of the maximum of tcp_rmem, round trip > 5 ms, and tcp_moderate_rcvbuf = 1",
        why: "The program set SO_RCVBUF, which disables autotuning. The rate is limited to window / round trip.",
        advice: "Remove SO_RCVBUF from the program (nginx: rcvbuf=).",
        settings: &[],
        needs: &[Sockets, Settings],
        kernels: Kernels::ALL,
        confidence: Confidence::Likely,
        limits: &[TAKEN],
        judge: |window| connections(window, small_receive_buffer),
    },
    Rule {
        id: "CC-03",
        symptom: "slow growth without loss",
        condition: "ssthresh is below 1000 segments and comes from a route or tcp_metrics, nothing was retransmitted, the application does not limit the rate, and round trip > 10 ms",
        why: "The connection left slow start early, at a threshold that was learned from an older connection or set on a route.",
        advice: "Remove ssthresh from the route, or delete what was remembered: ip tcp_metrics flush all.",
        settings: &[("net.ipv4.tcp_no_ssthresh_metrics_save", Change::To("1"))],
        needs: &[Sockets, Paths, Routes],
        kernels: Kernels::ALL,
        confidence: Confidence::Likely,
        limits: &[THRESHOLD],
        judge: |window| connections(window, old_threshold),
    },
    Rule {
        id: "CC-11",
        symptom: "full-size packets vanish (path MTU black hole)",
        condition: "a connection's handshake passed, but its first full-size segments (MSS > 1200) were retransmitted with at least 3 doubled time-outs, and tcp_mtu_probing = 0",
        why: "A link with a smaller MTU drops them, and its ICMP message does not arrive. The connection hangs after the handshake.",
        advice: "Allow ICMP \"fragmentation needed\", clamp the MSS at the tunnel, or let the kernel probe the MTU.",
        settings: &[("net.ipv4.tcp_mtu_probing", Change::To("1"))],
        needs: &[Sockets, Settings],
        kernels: Kernels::ALL,
        confidence: Confidence::Likely,
        limits: &[BACKED_OFF],
        judge: |window| connections(window, black_hole),
    },
];

const UNSCALED: Limit = Limit { rule: "WIN-02", name: "bytes", value: 1e6, unit: "bytes" };

fn unscaled(window: &Window<'_>) -> Vec<Found> {
    let mut found = Vec::new();
    for socket in window.in_state(ESTABLISHED) {
        let Some(one) = without_scaling(window, socket) else { continue };
        found.push(one);
        if found.len() == SHOWN {
            break;
        }
    }
    found
}

/// TCPI_OPT_TIMESTAMPS, TCPI_OPT_SACK and TCPI_OPT_WSCALE (include/uapi/linux/tcp.h).
const TIMESTAMPS: u8 = 1;
const SACK: u8 = 2;
const SCALING: u8 = 4;

fn without_scaling(window: &Window<'_>, socket: &Socket) -> Option<Found> {
    let info = socket.info?;
    if info.options & SCALING != 0 || info.min_rtt <= 5000 {
        return None;
    }
    let on = window.now.number("net.ipv4.tcp_window_scaling") == Some(1);
    let carried = info.bytes_acked.max(info.bytes_received);
    if !on || carried as f64 <= window.limit(&UNSCALED) {
        return None;
    }
    let most = 65535.0 / f64::from(info.min_rtt);
    let cause = Unscaled::of(window, socket, info.options);
    let (words, evidence) = cause.words();
    Some(Found {
        severity: Severity::Warning,
        scope: Scope::Socket(socket.ends()),
        evidence: vec![
            window.shown("tcpi_options", options(info.options)),
            window.shown("min_rtt", format!("{:.1} ms", f64::from(info.min_rtt) / 1000.0)),
            window.shown("carried", format!("{carried} bytes")),
            window.shown("other connections", evidence),
        ],
        formula: format!("at most 65535 / {} us = {most:.2} MB/s", info.min_rtt),
        words,
        ..Found::default()
    })
}

fn options(bits: u8) -> String {
    let all = [(TIMESTAMPS, "timestamps"), (SACK, "SACK"), (SCALING, "window scaling")];
    let names: Vec<&str> = all.iter().filter(|(bit, _)| bits & bit != 0).map(|(_, name)| *name).collect();
    format!("{bits:#x}: {}", if names.is_empty() { "none".to_owned() } else { names.join(", ") })
}

/// The cause of missing window scaling, as far as other connections show it.
enum Unscaled {
    /// The connection started with a SYN cookie, which keeps options only in timestamps.
    Cookie,
    /// Another connection with this peer has window scaling, so the peer supports it.
    PeerCan,
    /// No connection with another peer has window scaling: the cause is near this host.
    Nobody(usize),
    /// The peer or a middlebox. The samples do not show which.
    Open,
}

impl Unscaled {
    fn of(window: &Window<'_>, socket: &Socket, options: u8) -> Unscaled {
        let others = || {
            let others = window.in_state(ESTABLISHED).filter(|other| other.key() != socket.key());
            let remote = others.filter(|other| !other.is_to_loopback());
            remote.filter_map(|other| Some((other.peer, other.info?.options & SCALING != 0)))
        };
        let serves = window.listeners().any(|listener| listener.local_port == socket.local_port);
        let by_cookie = window.now.counters.get("TcpExtSyncookiesRecv").is_some_and(|count| *count > 0);
        if serves && by_cookie && options & TIMESTAMPS == 0 {
            return Unscaled::Cookie;
        }
        if others().any(|(peer, scales)| scales && peer == socket.peer) {
            return Unscaled::PeerCan;
        }
        let peers: BTreeSet<Address> =
            others().map(|(peer, _)| peer).filter(|peer| *peer != socket.peer).collect();
        match peers.len() {
            MANY.. if !others().any(|(_, scales)| scales) => Unscaled::Nobody(peers.len()),
            _ => Unscaled::Open,
        }
    }

    /// Returns the texts for the cause, and the evidence from other connections.
    fn words(&self) -> (Words, String) {
        let said = |why: &str, advice: &str| Words {
            why: Some(format!("{why} It carries at most 65535 bytes per round trip.")),
            advice: Some(advice.to_owned()),
            confidence: Some(Confidence::Likely),
            ..Words::default()
        };
        match self {
            Unscaled::Cookie => (
                said(
                    "This host answered its SYN with a SYN cookie, which keeps window scaling only for peers that send timestamps.",
                    "Raise the backlog of that listener, so that it needs no cookies. Enable timestamps on the peer.",
                ),
                "SYN cookies were accepted since boot, and the peer sends no timestamps".to_owned(),
            ),
            Unscaled::PeerCan => (
                said(
                    "Another connection with this peer has window scaling, so the peer supports it. A SYN proxy, a load balancer or a SYN cookie at the peer's port removed the option.",
                    "Check the device in front of that port. A SYN proxy of nftables needs: wscale 7 sack-perm timestamp.",
                ),
                "one with the same peer has window scaling".to_owned(),
            ),
            Unscaled::Nobody(peers) => (
                said(
                    "No connection with another peer has window scaling either. A firewall or SYN proxy near this host removes the option.",
                    "Check the firewall or SYN proxy next to this host. A SYN proxy of nftables needs: wscale 7 sack-perm timestamp.",
                ),
                format!("none with {peers} other peers has window scaling"),
            ),
            Unscaled::Open => {
                (Words::default(), "they do not show whether the peer or a middlebox is the cause".to_owned())
            }
        }
    }
}

/// Fewest other peers without window scaling that make a middlebox near this host likely.
const MANY: usize = 2;
/// Most connections named by a finding.
const SHOWN: usize = 10;

const TAKEN: Limit = Limit { rule: "WIN-07", name: "share", value: 60.0, unit: "%" };

/// Detects a fixed receive buffer.
///
/// Autotuning keeps the window at twice what the application read in a round trip, or more
/// (`tcp_rcvbuf_grow`). If the window stays the same and `rcv_space` is above half of it, something
/// holds the buffer. The amount of data is not a sign, because a sender may be slower than the
/// window.
fn small_receive_buffer(window: &Window<'_>, socket: &Socket) -> Judged {
    let (info, memory) = (socket.info?, socket.memory?);
    window.needs_before()?;
    let before = window.earlier(socket)?;
    let (earlier, max) = (before.info?, window.now.nth("net.ipv4.tcp_rmem", 2)?);
    let stands = before.memory?.rcvbuf == memory.rcvbuf && earlier.rcv_ssthresh == info.rcv_ssthresh;
    let tunes = window.now.number("net.ipv4.tcp_moderate_rcvbuf") == Some(1);
    if !stands || !tunes || info.min_rtt <= 5000 || i64::from(memory.rcvbuf) >= max / 8 {
        return None;
    }
    let came = info.bytes_received.saturating_sub(earlier.bytes_received) as f64;
    let each = came / (window.seconds() * 1e6 / f64::from(info.min_rtt));
    let share = super::percent(info.rcv_space.into(), info.rcv_ssthresh.into());
    let holds = each >= 0.5 * f64::from(info.rcv_ssthresh) && share >= window.limit(&TAKEN);
    holds.then(|| {
        let evidence = vec![
            ("rcvbuf".to_owned(), format!("{} bytes", memory.rcvbuf)),
            ("rcv_ssthresh".to_owned(), format!("{} bytes", info.rcv_ssthresh)),
            ("rcv_space".to_owned(), format!("{} bytes", info.rcv_space)),
            ("min_rtt".to_owned(), format!("{:.1} ms", f64::from(info.min_rtt) / 1000.0)),
        ];
        let formula = format!(
            "{each:.0} bytes a round trip >= 0.5 × {}, rcv_space / rcv_ssthresh = {share:.0} % >= {} %, rcvbuf {} < {max} / 8",
            info.rcv_ssthresh,
            window.limit(&TAKEN),
            memory.rcvbuf
        );
        (Severity::Warning, evidence, formula)
    })
}

const THRESHOLD: Limit = Limit { rule: "CC-03", name: "ssthresh", value: 1000.0, unit: "segments" };

fn old_threshold(window: &Window<'_>, socket: &Socket) -> Judged {
    let info = socket.info?;
    let limit = window.limit(&THRESHOLD);
    let holds = f64::from(info.snd_ssthresh) < limit
        && info.total_retrans == 0
        && !info.app_limited
        && info.snd_cwnd >= info.snd_ssthresh
        && info.min_rtt > 10_000;
    if !holds {
        return None;
    }
    let remembered =
        window.now.paths.iter().any(|path| path.peer == socket.peer && path.ssthresh == info.snd_ssthresh);
    let routed = window.now.routes.iter().any(|route| route.metrics.ssthresh == info.snd_ssthresh);
    (remembered || routed).then(|| {
        let source = if remembered { "tcp_metrics" } else { "a route" };
        let evidence = vec![
            ("snd_ssthresh".to_owned(), format!("{} segments, from {source}", info.snd_ssthresh)),
            ("snd_cwnd".to_owned(), format!("{} segments", info.snd_cwnd)),
            ("total_retrans".to_owned(), "0".to_owned()),
            ("min_rtt".to_owned(), format!("{:.1} ms", f64::from(info.min_rtt) / 1000.0)),
        ];
        (Severity::Warning, evidence, format!("{} < {limit} without a loss", info.snd_ssthresh))
    })
}

const BACKED_OFF: Limit = Limit { rule: "CC-11", name: "backoff", value: 3.0, unit: "time-outs" };

fn black_hole(window: &Window<'_>, socket: &Socket) -> Judged {
    let info = socket.info?;
    let limit = window.limit(&BACKED_OFF);
    let holds = f64::from(info.backoff) >= limit
        && info.unacked >= 1
        && socket.send_queue >= info.snd_mss
        && info.snd_mss > 1200
        && info.bytes_acked < 4 * u64::from(info.snd_mss)
        && !socket.probing
        && window.now.number("net.ipv4.tcp_mtu_probing") == Some(0);
    holds.then(|| {
        let evidence = vec![
            ("backoff".to_owned(), info.backoff.to_string()),
            ("snd_mss".to_owned(), format!("{} bytes", info.snd_mss)),
            ("bytes_acked".to_owned(), info.bytes_acked.to_string()),
            ("Send-Q".to_owned(), socket.send_queue.to_string()),
        ];
        (
            Severity::Warning,
            evidence,
            format!("backoff {} >= {limit}, segments of {} bytes > 1200", info.backoff, info.snd_mss),
        )
    })
}
