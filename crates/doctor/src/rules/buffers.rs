//! WIN: maximum buffer sizes, memory of all of TCP, and settings without effect.
use super::settings::wanted;
use super::windows::connections;
use super::{Act, Change, Found, Kernels, OF_HOST, Rule, Words, found, setting};
use crate::change::Want;
use crate::finding::{Confidence, Scope, Severity, Step};
use crate::limit::Limit;
use crate::sample::Source::{Counters, Devices, Ethtool, Paths, Settings, Sockets, Sockstat};
use crate::sample::{Memory, Sample, Socket};
use crate::window::Window;

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "WIN-04",
        symptom: "maximum receive buffer too small for a path",
        condition: "the maximum of tcp_rmem < 2 × link speed × round trip of a peer (a warning if a connection has reached it); if no link reports its speed or no path is remembered, a connection with a round trip above 5 ms has reached it and fills its window in each round trip",
        why: "Autotuning stops at this maximum, and only about half of the buffer holds payload.",
        advice: "Raise the maximum to twice the bandwidth-delay product.",
        settings: &[],
        needs: &[Settings, Devices, Ethtool, Paths, Sockets],
        kernels: Kernels::ALL,
        confidence: Confidence::Likely,
        limits: &[],
        judge: |window| {
            let name = "net.ipv4.tcp_rmem";
            below_path(window, name, |memory| memory.rcvbuf)
                .unwrap_or_else(|| held(window, name, receives_all))
        },
    },
    Rule {
        id: "WIN-05",
        symptom: "maximum send buffer too small for a path",
        condition: "the maximum of tcp_wmem < 2 × link speed × round trip of a peer (a warning if a connection has reached it); if no link reports its speed or no path is remembered, a connection with a round trip above 5 ms has reached it and keeps its buffer full while cwnd and the peer's window have room",
        why: "The send buffer holds unacknowledged data and unsent data. A smaller buffer limits the rate.",
        advice: "Raise the maximum to twice the bandwidth-delay product.",
        settings: &[],
        needs: &[Settings, Devices, Ethtool, Paths, Sockets],
        kernels: Kernels::ALL,
        confidence: Confidence::Likely,
        limits: &[],
        judge: |window| {
            let name = "net.ipv4.tcp_wmem";
            below_path(window, name, |memory| memory.sndbuf).unwrap_or_else(|| held(window, name, sends_all))
        },
    },
    Rule {
        id: "WIN-13",
        symptom: "settings without effect",
        condition: "tcp_adv_win_scale is not 1 on Linux 6.6 or later; or tcp_fack or tcp_low_latency is set",
        why: "Linux now computes the window from the measured share of payload. tcp_fack and tcp_low_latency exist only for old scripts.",
        advice: "Remove the lines from sysctl.d.",
        settings: &[
            ("net.ipv4.tcp_adv_win_scale", Change::To("1")),
            ("net.ipv4.tcp_fack", Change::To("0")),
            ("net.ipv4.tcp_low_latency", Change::To("0")),
        ],
        needs: &[Settings],
        kernels: Kernels::since(4, 15),
        confidence: Confidence::Certain,
        limits: &[],
        judge: without_effect,
    },
    Rule {
        id: "WIN-14",
        symptom: "TCP is short of memory",
        condition: "TCP mem of sockstat > the second value of tcp_mem (critical: 90 % of the third, or TcpExtTCPAbortOnMemory grows)",
        why: "The values are pages. Above the third, allocations fail and connections are reset.",
        advice: "Find the sockets that use most memory (ss -tm), or raise tcp_mem.",
        settings: &[],
        needs: &[Sockstat, Settings, Counters],
        kernels: Kernels::ALL,
        confidence: Confidence::Certain,
        limits: &[MEMORY],
        judge: memory,
    },
];

/// Compares the maximum with the fastest link and the longest path, if both are known.
fn below_path(window: &Window<'_>, name: &str, limit_of: fn(&Memory) -> u32) -> Option<Vec<Found>> {
    let (max, (speed, device)) = (window.now.nth(name, 2)?, fastest(window.now)?);
    let path =
        window.now.paths.iter().filter(|path| !path.peer.0.is_loopback()).max_by_key(|path| path.rtt)?;
    let holds = u64::from(speed) * u64::from(path.rtt) / 8;
    let at_limit = |memory: Memory| i64::from(limit_of(&memory)) >= max;
    let reached = window.now.sockets.iter().any(|socket| socket.memory.is_some_and(at_limit));
    let severity = if reached { Severity::Warning } else { Severity::Info };
    let evidence = vec![
        window.set(name),
        window.shown(format!("speed of {device}"), format!("{speed} Mbit/s")),
        window.shown(format!("round trip to {}", path.peer), format!("{} us", path.rtt)),
        window.shown("a connection has reached the maximum", if reached { "yes" } else { "no" }),
    ];
    let formula = format!("{max} < 2 × {speed} Mbit/s × {} us = {}", path.rtt, 2 * holds);
    let mut found = found(max.unsigned_abs() < 2 * holds, severity, evidence, formula);
    found.iter_mut().for_each(|found| {
        found.scope = Scope::Peer(path.peer.to_string());
        found.steps.push(raise(window.now, name, 2 * holds));
    });
    Some(found)
}

/// Returns the step that raises the third value of a setting.
fn raise(now: &Sample, name: &str, bytes: u64) -> Step {
    let step = wanted(name, Want::Nth(2, i64::try_from(bytes).unwrap_or(i64::MAX)), now);
    // The kernel accepts no more than an int. Half of it keeps sums in range.
    let too_much =
        (bytes > 1 << 30).then(|| "larger than a buffer may be: use several connections".to_owned());
    let act = if too_much.is_some() { Act::Own } else { step.act };
    Step { obstacle: too_much.or(step.obstacle), act, ..step }
}

/// Finds connections that the maximum limits, where the link or the path is unknown, as in a
/// container. The size that they need is unknown too, so the fix multiplies the maximum by four.
fn held(
    window: &Window<'_>,
    name: &str,
    uses_all: fn(&Window<'_>, &Socket, i64) -> Option<String>,
) -> Vec<Found> {
    let Some(max) = window.now.nth(name, 2) else { return Vec::new() };
    let mut found = connections(window, |window, socket| {
        let formula = uses_all(window, socket, max)?;
        let round_trip = format!("{:.1} ms", f64::from(socket.info?.min_rtt) / 1000.0);
        Some((Severity::Warning, vec![("min_rtt".to_owned(), round_trip)], formula))
    });
    for found in &mut found {
        found.evidence.push(window.set(name));
        found.steps.push(raise(window.now, name, max.unsigned_abs().saturating_mul(4)));
    }
    found
}

/// Round trip below which buffer sizes hardly matter, in microseconds.
const SHORT: u32 = 5000;

fn receives_all(window: &Window<'_>, socket: &Socket, max: i64) -> Option<String> {
    let at_most = |socket: &Socket| socket.memory.is_some_and(|memory| i64::from(memory.rcvbuf) >= max);
    window.needs_before()?;
    let (info, earlier) = (socket.info?, window.earlier(socket)?.info?);
    let came = info.bytes_received.saturating_sub(earlier.bytes_received) as f64;
    let each = came / (window.seconds() * 1e6 / f64::from(info.min_rtt));
    let fills = each >= 0.5 * f64::from(info.rcv_ssthresh);
    (info.min_rtt > SHORT && fills && window.holds_in_each(socket, at_most))
        .then(|| format!("rcvbuf >= {max}, and {each:.0} bytes a round trip >= 0.5 × {}", info.rcv_ssthresh))
}

fn sends_all(window: &Window<'_>, socket: &Socket, max: i64) -> Option<String> {
    let waits = |socket: &Socket| {
        let (Some(info), Some(memory)) = (socket.info, socket.memory) else { return false };
        // Both windows must have room for two more segments.
        let more = info.unacked.saturating_add(2);
        let room =
            more <= info.snd_cwnd && u64::from(more) * u64::from(info.snd_mss) <= u64::from(info.snd_wnd);
        let full = u64::from(memory.wmem_queued) * 10 >= u64::from(memory.sndbuf) * 9;
        i64::from(memory.sndbuf) >= max && info.min_rtt > SHORT && info.unacked > 0 && room && full
    };
    let (info, memory) = (socket.info?, socket.memory?);
    window.holds_in_each(socket, waits).then(|| {
        format!(
            "sndbuf >= {max}, {} >= 0.9 × {}, {} < {} segments in flight",
            memory.wmem_queued, memory.sndbuf, info.unacked, info.snd_cwnd
        )
    })
}

/// Returns the fastest physical link that is up. It bounds the rate of every path.
fn fastest(sample: &Sample) -> Option<(u32, &str)> {
    let up = sample.devices.iter().filter(|device| device.up && device.parent.is_some());
    up.filter_map(|device| Some((device.speed?, device.name.as_str()))).max()
}

fn without_effect(window: &Window<'_>) -> Vec<Found> {
    let obsolete = window.now.version().is_some_and(|version| version >= (6, 6));
    let mut found =
        setting(window, "net.ipv4.tcp_adv_win_scale", Severity::Info, |value| obsolete && value != 1);
    for name in ["net.ipv4.tcp_fack", "net.ipv4.tcp_low_latency"] {
        found.extend(setting(window, name, Severity::Info, |value| value != 0));
    }
    found
}

/// Finds connections that were reset although TCP has memory now. The counter includes connections
/// closed because there were too many orphans (`tcp_check_oom`).
fn resets(window: &Window<'_>) -> Vec<Found> {
    let mut found = super::counter(window, "TcpExtTCPAbortOnMemory", Severity::Critical);
    for found in &mut found {
        let orphans = window.now.sockstat.get("TCP orphan");
        found.evidence.extend(orphans.map(|orphans| window.shown("TCP orphan", orphans)));
        let said = |text: &str| Some(text.to_owned());
        found.words = Words {
            symptom: said("connections are reset: too many orphans, or no memory"),
            why: said(
                "The kernel resets orphans, connections that no process owns any more, above tcp_max_orphans. For orphans without progress the limit is a half or a quarter of that. It also resets connections while TCP is short of memory.",
            ),
            advice: said(
                "List the orphans: `firstbyte ss` shows them in FIN-WAIT-1 and LAST-ACK, with peers that do not answer. Compare TCP orphan with tcp_max_orphans, and TCP mem with tcp_mem.",
            ),
            confidence: Some(Confidence::Likely),
        };
    }
    found
}

const MEMORY: Limit = Limit { rule: "WIN-14", name: "critical", value: 90.0, unit: "%" };

fn memory(window: &Window<'_>) -> Vec<Found> {
    const NAME: &str = "net.ipv4.tcp_mem";
    let pages = |n| window.now.nth(NAME, n).and_then(|pages| u64::try_from(pages).ok());
    let aborts = window.grown("TcpExtTCPAbortOnMemory");
    let (Some(pressure), Some(max), Some(used)) = (pages(1), pages(2), window.now.sockstat.get("TCP mem"))
    else {
        window.lacks(OF_HOST);
        return resets(window);
    };
    if *used <= pressure {
        return resets(window);
    }
    let critical = aborts > 0 || super::percent(*used, max) > window.limit(&MEMORY);
    let severity = if critical { Severity::Critical } else { Severity::Warning };
    let evidence = vec![
        window.shown("TCP mem", format!("{used} pages")),
        window.set(NAME),
        window.counted("TcpExtTCPAbortOnMemory"),
    ];
    let formula = format!("{used} > {pressure} pages, or TCPAbortOnMemory +{aborts} > 0");
    let mut found = found(true, severity, evidence, formula);
    found.iter_mut().for_each(|found| {
        found.scope = Scope::Host;
        // Double it until it is below the pressure threshold.
        let is_enough = |times: u64| {
            *used <= pressure.saturating_mul(times)
                && super::percent(*used, max.saturating_mul(times)) <= window.limit(&MEMORY)
        };
        let times = (1..=10).map(|power| 1 << power).find(|times| is_enough(*times)).unwrap_or(1 << 10);
        let more: Vec<String> =
            (0..3).filter_map(pages).map(|pages| pages.saturating_mul(times).to_string()).collect();
        found.steps.push(wanted(NAME, Want::Value(more.join(" ")), window.now));
    });
    found
}
