//! WIN: windows, buffers and memory.
use super::{Change, Found, Kernels, OF_HOST, Rule, found, setting};
use crate::finding::{Confidence, Scope, Severity};
use crate::limit::Limit;
use crate::sample::Source::{Counters, Settings, Sockets};
use crate::sample::state::ESTABLISHED;
use crate::sample::{Memory, Socket};
use crate::window::Window;

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "WIN-01",
        symptom: "window scaling off",
        condition: "tcp_window_scaling = 0",
        why: "Each connection carries at most 65535 bytes per round trip.",
        advice: "Enable it.",
        settings: &[("net.ipv4.tcp_window_scaling", Change::To("1"))],
        needs: &[Settings],
        kernels: Kernels::ALL,
        confidence: Confidence::Certain,
        limits: &[],
        judge: |window| {
            setting(window, "net.ipv4.tcp_window_scaling", Severity::Critical, |value| value == 0)
        },
    },
    Rule {
        id: "WIN-03",
        symptom: "sender waits for the receiver's window",
        condition: "rwnd_limited > 20 % of busy_time in the window; the connection was busy for at least 10 % of the window, and for more than 1 s in total; and at most 1 % of its segments were retransmitted",
        why: "The peer's buffer or its application limits the rate, not the network.",
        advice: "At the peer, raise the maximum of tcp_rmem, or make the application read faster.",
        settings: &[],
        needs: &[Sockets],
        kernels: Kernels::since(4, 10),
        confidence: Confidence::Likely,
        limits: &[WAITING],
        judge: |window| connections(window, waits_for_window),
    },
    Rule {
        id: "WIN-06",
        symptom: "fixed send buffer too small for the path",
        condition: "wmem_queued >= 90 % of sndbuf, segments in flight < cwnd, sndbuf < 2 × cwnd, and sndbuf < the maximum of tcp_wmem",
        why: "The program set SO_SNDBUF, which disables autotuning. The rate is limited to sndbuf / round trip.",
        advice: "Remove SO_SNDBUF from the program (MySQL and JDBC: socketSendBuffer).",
        settings: &[],
        needs: &[Sockets, Settings],
        kernels: Kernels::ALL,
        confidence: Confidence::Likely,
        limits: &[],
        judge: |window| connections(window, small_send_buffer),
    },
    Rule {
        id: "WIN-08",
        symptom: "receive buffer autotuning off",
        condition: "tcp_moderate_rcvbuf = 0",
        why: "Receive buffers stay at the middle value of tcp_rmem.",
        advice: "Enable it.",
        settings: &[("net.ipv4.tcp_moderate_rcvbuf", Change::To("1"))],
        needs: &[Settings],
        kernels: Kernels::ALL,
        confidence: Confidence::Certain,
        limits: &[],
        judge: |window| {
            setting(window, "net.ipv4.tcp_moderate_rcvbuf", Severity::Warning, |value| value == 0)
        },
    },
    Rule {
        id: "WIN-11",
        symptom: "receive buffers out of memory",
        condition: "PruneCalled, TCPRcvCollapsed, OfoPruned or TCPZeroWindowDrop grows (warning); RcvPruned, TCPRcvQDrop or TCPBacklogDrop (critical)",
        why: "The buffers' memory is used up although the window allowed the data. Causes are a slow reader, many small segments, or TCP short of memory.",
        advice: "Make the program read faster, or raise the maximum of tcp_rmem.",
        settings: &[],
        needs: &[Counters],
        kernels: Kernels::ALL,
        confidence: Confidence::Likely,
        limits: &[],
        judge: pruning,
    },
    Rule {
        id: "WIN-12",
        symptom: "SACK or timestamps off",
        condition: "tcp_sack = 0 or tcp_timestamps = 0",
        why: "Recovery from several losses in one window needs SACK. PAWS and TIME-WAIT reuse need timestamps.",
        advice: "Enable them.",
        settings: &[("net.ipv4.tcp_sack", Change::To("1")), ("net.ipv4.tcp_timestamps", Change::To("1"))],
        needs: &[Settings],
        kernels: Kernels::ALL,
        confidence: Confidence::Certain,
        limits: &[],
        judge: |window| {
            let mut found = setting(window, "net.ipv4.tcp_sack", Severity::Warning, |value| value == 0);
            found.extend(setting(window, "net.ipv4.tcp_timestamps", Severity::Warning, |value| value == 0));
            found
        },
    },
    Rule {
        id: "WIN-16",
        symptom: "SO_SNDBUF or SO_RCVBUF clamped",
        condition: "a socket's buffer is exactly twice wmem_max or rmem_max",
        why: "The program asked for a larger buffer than the host allows. setsockopt() clamps it without an error.",
        advice: "Raise net.core.wmem_max or rmem_max, or remove the option and let autotuning set the size.",
        settings: &[],
        needs: &[Sockets, Settings],
        kernels: Kernels::ALL,
        confidence: Confidence::Likely,
        limits: &[],
        judge: |window| {
            let twice = |name: &str| window.now.number(name).map(|value| value.saturating_mul(2));
            let most = (twice("net.core.wmem_max"), twice("net.core.rmem_max"));
            if most == (None, None) {
                window.lacks(OF_HOST);
            }
            connections(window, |_, socket| clamped(most, socket))
        },
    },
];

pub(super) type Judged = Option<(Severity, Vec<(String, String)>, String)>;

/// Judges each established connection.
pub(super) fn connections(window: &Window<'_>, judge: impl Fn(&Window<'_>, &Socket) -> Judged) -> Vec<Found> {
    let found = window.in_state(ESTABLISHED).filter_map(|socket| {
        let (severity, evidence, formula) = judge(window, socket)?;
        let evidence = evidence.into_iter().map(|(name, value)| window.shown(name, value)).collect();
        Some(Found { severity, scope: Scope::Socket(socket.ends()), evidence, formula, ..Found::default() })
    });
    found.take(SHOWN).collect()
}

/// Most connections named by one rule.
const SHOWN: usize = 10;

/// Percentage of retransmitted segments above which losses, not the reader, fill the window.
const LOSSY: f64 = 1.0;
/// Share of the window in which a connection must have had data to send.
const BUSY: f64 = 0.1;
const WAITING: Limit = Limit { rule: "WIN-03", name: "share", value: 20.0, unit: "%" };

fn waits_for_window(window: &Window<'_>, socket: &Socket) -> Judged {
    let info = socket.info?;
    let then = window.earlier(socket).and_then(|then| then.info).unwrap_or_default();
    // Limits before the window no longer matter.
    let busy_time = info.busy_time.saturating_sub(then.busy_time);
    let rwnd_limited = info.rwnd_limited.saturating_sub(then.rwnd_limited);
    // Behind a lost segment, later segments fill the window.
    let sent = info.data_segs_out.saturating_sub(then.data_segs_out);
    let again = info.total_retrans.saturating_sub(then.total_retrans);
    if super::percent(again.into(), sent.into()) > LOSSY {
        return None;
    }
    let is_busy = window.before().is_none() || busy_time as f64 >= BUSY * window.seconds() * 1e6;
    let share = super::percent(rwnd_limited, busy_time);
    (is_busy && info.busy_time > 1_000_000 && share > window.limit(&WAITING)).then(|| {
        let evidence = vec![
            ("busy_time".to_owned(), format!("{} ms", busy_time / 1000)),
            ("rwnd_limited".to_owned(), format!("{} ms", rwnd_limited / 1000)),
        ];
        (
            Severity::Warning,
            evidence,
            format!("rwnd_limited / busy_time = {share:.1} % > {} %", window.limit(&WAITING)),
        )
    })
}

fn small_send_buffer(window: &Window<'_>, socket: &Socket) -> Judged {
    let (info, Memory { sndbuf, wmem_queued, .. }) = (socket.info?, socket.memory?);
    let full = |socket: &Socket| {
        socket.memory.is_some_and(|memory| {
            memory.sndbuf == sndbuf && u64::from(memory.wmem_queued) * 10 >= u64::from(sndbuf) * 9
        })
    };
    let room = u64::from(info.snd_cwnd) * u64::from(info.snd_mss);
    let waits = info.unacked > 0 && info.unacked < info.snd_cwnd && full(socket);
    let small = waits
        && u64::from(sndbuf) < 2 * room
        && i64::from(sndbuf) < window.now.nth("net.ipv4.tcp_wmem", 2)?;
    (small && window.holds_in_each(socket, full)).then(|| {
        let evidence = vec![
            ("sndbuf".to_owned(), format!("{sndbuf} bytes")),
            ("wmem_queued".to_owned(), format!("{wmem_queued} bytes")),
            ("unacked".to_owned(), format!("{} segments", info.unacked)),
            ("snd_cwnd".to_owned(), format!("{} segments", info.snd_cwnd)),
        ];
        let formula = format!(
            "{wmem_queued} >= 0.9 × {sndbuf}, {} < {} segments in flight, {sndbuf} < 2 × {room}",
            info.unacked, info.snd_cwnd
        );
        (Severity::Warning, evidence, formula)
    })
}

fn clamped((sent_most, received_most): (Option<i64>, Option<i64>), socket: &Socket) -> Judged {
    let memory = socket.memory?;
    let sent = sent_most == Some(i64::from(memory.sndbuf));
    let received = received_most == Some(i64::from(memory.rcvbuf));
    (sent || received).then(|| {
        let evidence = vec![
            ("sndbuf".to_owned(), format!("{} bytes", memory.sndbuf)),
            ("rcvbuf".to_owned(), format!("{} bytes", memory.rcvbuf)),
        ];
        (Severity::Info, evidence, "buffer = 2 × the host's maximum".to_owned())
    })
}

fn pruning(window: &Window<'_>) -> Vec<Found> {
    let grown = |names: &[&str]| {
        names.iter().filter(|name| window.grown(name) > 0).map(|name| window.counted(name)).collect()
    };
    let mut evidence: Vec<_> = grown(&["TcpExtRcvPruned", "TcpExtTCPRcvQDrop", "TcpExtTCPBacklogDrop"]);
    let severity = if evidence.is_empty() { Severity::Warning } else { Severity::Critical };
    evidence.extend(grown(&[
        "TcpExtPruneCalled",
        "TcpExtTCPRcvCollapsed",
        "TcpExtOfoPruned",
        "TcpExtTCPZeroWindowDrop",
    ]));
    found(!evidence.is_empty(), severity, evidence, "any of them > 0".to_owned())
}
