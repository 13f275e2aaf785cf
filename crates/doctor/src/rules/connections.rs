//! What single connections suffer from: WIN-02, WIN-07, CC-03, CC-11.
use super::windows::{Judged, connections};
use super::{Change, Kernels, Rule};
use crate::finding::{Confidence, Severity};
use crate::limit::Limit;
use crate::sample::Socket;
use crate::sample::Source::{Paths, Routes, Settings, Sockets};
use crate::window::Window;

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "WIN-02",
        symptom: "a connection without window scaling",
        condition: "window scaling is on here, a connection was agreed without it, its round trip > 5 ms, and it has carried more than 1 MB",
        why: "A SYN proxy, a firewall or a SYN cookie took the option away: at most 65535 bytes a round trip.",
        advice: "Find the box; a SYN proxy of nftables takes: wscale 7 sack-perm timestamp.",
        settings: &[],
        needs: &[Sockets, Settings],
        kernels: Kernels::ALL,
        confidence: Confidence::Certain,
        limits: &[UNSCALED],
        judge: |window| connections(window, unscaled),
    },
    Rule {
        id: "WIN-07",
        symptom: "fixed receive buffer below what the path holds",
        condition: "a connection's rcvbuf and rcv_ssthresh stay the same while at least half a window comes in each round trip, rcv_space >= 60 % of rcv_ssthresh (autotuning keeps it at 50 % or less), rcvbuf < an eighth of the maximum of tcp_rmem, round trip > 5 ms, and tcp_moderate_rcvbuf = 1",
        why: "The program has set SO_RCVBUF, which freezes the window: the rate is window over round trip.",
        advice: "Take SO_RCVBUF out of the program (nginx: rcvbuf=).",
        settings: &[],
        needs: &[Sockets, Settings],
        kernels: Kernels::ALL,
        confidence: Confidence::Likely,
        limits: &[TAKEN],
        judge: |window| connections(window, small_receive_buffer),
    },
    Rule {
        id: "CC-03",
        symptom: "slow growth that no loss explains",
        condition: "ssthresh below 1000 segments that a route or tcp_metrics gave, nothing retransmitted, not limited by the application, round trip > 10 ms",
        why: "The connection left slow start at a threshold of another day or another connection.",
        advice: "Take ssthresh out of the route, or forget what was remembered: ip tcp_metrics flush all.",
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
        condition: "a connection's first full-size segments (MSS > 1200) are backed off at least 3 times while its handshake passed, and tcp_mtu_probing = 0",
        why: "A link with a smaller MTU drops them and its ICMP message does not arrive: the connection hangs after the handshake.",
        advice: "Allow ICMP \"fragmentation needed\", clamp the MSS at the tunnel, or let the kernel probe.",
        settings: &[("net.ipv4.tcp_mtu_probing", Change::To("1"))],
        needs: &[Sockets, Settings],
        kernels: Kernels::ALL,
        confidence: Confidence::Likely,
        limits: &[BACKED_OFF],
        judge: |window| connections(window, black_hole),
    },
];

const UNSCALED: Limit = Limit { rule: "WIN-02", name: "bytes", value: 1e6, unit: "bytes" };

fn unscaled(window: &Window<'_>, socket: &Socket) -> Judged {
    let info = socket.info?;
    // TCPI_OPT_WSCALE is 4.
    if info.options & 4 != 0 || info.min_rtt <= 5000 {
        return None;
    }
    let on = window.now.number("net.ipv4.tcp_window_scaling") == Some(1);
    let carried = info.bytes_acked.max(info.bytes_received);
    let holds = on && carried as f64 > window.limit(&UNSCALED);
    holds.then(|| {
        let most = 65535.0 / f64::from(info.min_rtt);
        let evidence = vec![
            ("tcpi_options".to_owned(), format!("{:#x}", info.options)),
            ("min_rtt".to_owned(), format!("{:.1} ms", f64::from(info.min_rtt) / 1000.0)),
            ("carried".to_owned(), format!("{carried} bytes")),
        ];
        (Severity::Warning, evidence, format!("at most 65535 / {} us = {most:.2} MB/s", info.min_rtt))
    })
}

const TAKEN: Limit = Limit { rule: "WIN-07", name: "share", value: 60.0, unit: "%" };

/// Autotuning makes a window of at least twice what the application took in a round trip (`tcp_rcvbuf_grow`), so that `rcv_space` above half
/// of a window that stands still means that something holds the buffer. How much comes is no sign: a sender may be slower than the window.
fn small_receive_buffer(window: &Window<'_>, socket: &Socket) -> Judged {
    let (info, memory) = (socket.info?, socket.memory?);
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
