//! TFO: TCP Fast Open (RFC 7413), as client and as server.
use super::flood::flood;
use super::{Change, Found, Kernels, Rule, counter, found, percent, setting};
use crate::finding::{Confidence, Scope, Severity, Step};
use crate::limit::Limit;
use crate::sample::Source::{Counters, Key, Paths, Settings, Sockets};
use crate::window::Window;

const SWITCH: &str = "net.ipv4.tcp_fastopen";
const PAUSE: &str = "net.ipv4.tcp_fastopen_blackhole_timeout_sec";

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "TFO-01",
        symptom: "Fast Open off for clients",
        condition: "bit 0x1 of tcp_fastopen is clear",
        why: "MSG_FASTOPEN and TCP_FASTOPEN_CONNECT fall back to a plain connect.",
        advice: "Set bit 0x1.",
        settings: &[(SWITCH, Change::Set(0x1))],
        needs: &[Settings],
        kernels: Kernels::since(3, 6),
        confidence: Confidence::Certain,
        limits: &[],
        judge: |window| setting(window, SWITCH, Severity::Info, |value| value & 1 == 0),
    },
    Rule {
        id: "TFO-02",
        symptom: "clients request Fast Open cookies, the server sends none",
        condition: "TcpExtTCPFastOpenCookieReqd grows and bit 0x2 of tcp_fastopen is clear",
        why: "Clients request cookies, but Fast Open for servers is off by default. The setting governs IPv4 and IPv6.",
        advice: "Set bit 0x2. The listener also needs TCP_FASTOPEN. Servers behind one address need the same key.",
        settings: &[(SWITCH, Change::Set(0x2))],
        needs: &[Counters, Settings],
        kernels: Kernels::since(3, 7),
        confidence: Confidence::Certain,
        limits: &[],
        judge: refused,
    },
    Rule {
        id: "TFO-03",
        symptom: "Fast Open enabled for servers, no listener uses it",
        condition: "bit 0x2 of tcp_fastopen is set, and at least 10 cookie requests led to no Fast Open connection",
        why: "The listener did not set TCP_FASTOPEN, or was opened before bit 0x400 was set.",
        advice: "Enable Fast Open in the program and restart it (nginx: listen 443 ssl fastopen=256).",
        settings: &[],
        needs: &[Counters, Settings],
        kernels: Kernels::since(3, 7),
        confidence: Confidence::Likely,
        limits: &[],
        judge: unused,
    },
    Rule {
        id: "TFO-04",
        symptom: "servers do not accept data on the SYN",
        condition: "TcpExtTCPFastOpenActiveFail > 10 % of attempts, at least 10",
        why: "The data crosses the path twice, and the round trip is not saved.",
        advice: "Check whether the server's key changed, and whether a middlebox removes the option or the data.",
        settings: &[],
        needs: &[Counters],
        kernels: Kernels::since(3, 6),
        confidence: Confidence::Hint,
        limits: &[NOT_ACCEPTED],
        judge: |window| {
            share(window, "TcpExtTCPFastOpenActiveFail", "TcpExtTCPFastOpenActive", &NOT_ACCEPTED)
        },
    },
    Rule {
        id: "TFO-05",
        symptom: "a path drops SYNs with data",
        condition: "tcp_metrics counts lost SYNs with data (fo_syn_drops) for a peer",
        why: "The kernel records the losses but keeps trying: each Fast Open connection to that peer waits for one SYN time-out, at least 1 s.",
        advice: "Fix the firewall on the path, or disable Fast Open in the program (or bit 0x1 of tcp_fastopen). The command deletes the record of that peer, including its cookie.",
        settings: &[],
        needs: &[Paths],
        kernels: Kernels::since(3, 6),
        confidence: Confidence::Likely,
        limits: &[SYN_DROPS],
        judge: syn_drops,
    },
    Rule {
        id: "TFO-06",
        symptom: "Fast Open queue too short",
        condition: "TcpExtTCPFastOpenListenOverflow grows",
        why: "The requests with an unfinished handshake reached the listener's qlen. Linux treats further Fast Open SYNs as plain SYNs.",
        advice: "Raise the qlen of TCP_FASTOPEN above connections per second × round trip.",
        settings: &[],
        needs: &[Counters],
        kernels: Kernels::since(3, 7),
        confidence: Confidence::Certain,
        limits: &[],
        judge: |window| counter(window, "TcpExtTCPFastOpenListenOverflow", Severity::Warning),
    },
    Rule {
        id: "TFO-07",
        symptom: "Fast Open cookies rejected",
        condition: "TcpExtTCPFastOpenPassiveFail > 5 % of attempts, at least 10",
        why: "The servers of a pool have different keys, or a key was changed without a backup, or the addresses of clients change.",
        advice: "Set the same keys on all servers, as NEW,OLD, from a file that only root can read: cat keys > /proc/sys/net/ipv4/tcp_fastopen_key.",
        settings: &[],
        needs: &[Counters],
        kernels: Kernels::since(3, 7),
        confidence: Confidence::Hint,
        limits: &[REJECTED],
        judge: |window| share(window, "TcpExtTCPFastOpenPassiveFail", "TcpExtTCPFastOpenPassive", &REJECTED),
    },
    Rule {
        id: "TFO-08",
        symptom: "Fast Open key unset or without backup",
        condition: "bit 0x2 of tcp_fastopen is set, and the key is zero or has no backup key",
        why: "Without a set key each host draws a random one at first use. Behind a load balancer its cookies fail at the other hosts.",
        advice: "Set a shared key from secret storage, and keep the previous key as the second one.",
        settings: &[],
        needs: &[Settings, Key],
        kernels: Kernels::since(3, 7),
        confidence: Confidence::Hint,
        limits: &[],
        judge: key,
    },
    Rule {
        id: "TFO-09",
        symptom: "key rotation in progress",
        condition: "TcpExtTCPFastOpenPassiveAltKey grows",
        why: "Some clients still use cookies of the backup key. If it is removed now, each of them loses one round trip.",
        advice: "Keep NEW,OLD until the counter stops growing.",
        settings: &[],
        needs: &[Counters],
        kernels: Kernels::since(5, 3),
        confidence: Confidence::Certain,
        limits: &[],
        judge: |window| counter(window, "TcpExtTCPFastOpenPassiveAltKey", Severity::Info),
    },
    Rule {
        id: "TFO-10",
        symptom: "data accepted without a cookie",
        condition: "bit 0x200 of tcp_fastopen is set and a listener is reachable from other hosts (critical), or bit 0x4 is set (warning)",
        why: "With forged SYNs an attacker makes the server work and send its answers to any address.",
        advice: "Clear the bits. For trusted paths use TCP_FASTOPEN_NO_COOKIE or the route's fastopen_no_cookie.",
        settings: &[(SWITCH, Change::Clear(0x204))],
        needs: &[Settings, Sockets],
        kernels: Kernels::since(3, 7),
        confidence: Confidence::Certain,
        limits: &[],
        judge: |window| {
            let reached = window.listeners().any(|listener| !listener.is_loopback());
            let server = setting(window, SWITCH, Severity::Critical, |value| value & 0x200 != 0 && reached);
            if server.is_empty() {
                setting(window, SWITCH, Severity::Warning, |value| value & 4 != 0)
            } else {
                server
            }
        },
    },
    Rule {
        id: "TFO-11",
        symptom: "tcp_fastopen has bits without meaning",
        condition: "tcp_fastopen has bits outside 0x607",
        why: "The bits 0x100 and 0x800 no longer exist. The kernel stores any number without an error.",
        advice: "Clear the bits.",
        settings: &[(SWITCH, Change::Clear(!0x607))],
        needs: &[Settings],
        kernels: Kernels::ALL,
        confidence: Confidence::Certain,
        limits: &[],
        judge: |window| setting(window, SWITCH, Severity::Info, |value| value & !0x607 != 0),
    },
    Rule {
        id: "TFO-12",
        symptom: "Fast Open forced on all listeners",
        condition: "bit 0x400 of tcp_fastopen is set",
        why: "Every listener opened after that accepts data on the SYN, including programs for which a repeated request is harmful.",
        advice: "Set TCP_FASTOPEN on each listener that needs it instead.",
        settings: &[(SWITCH, Change::Clear(0x400))],
        needs: &[Settings],
        kernels: Kernels::since(3, 7),
        confidence: Confidence::Certain,
        limits: &[],
        judge: |window| setting(window, SWITCH, Severity::Info, |value| value & 0x400 != 0),
    },
    Rule {
        id: "TFO-13",
        symptom: "Fast Open paused for all destinations",
        condition: "tcp_fastopen_blackhole_timeout_sec != 0 and TcpExtTCPFastOpenBlackhole grows",
        why: "One path that drops Fast Open pauses it for every destination, and each pause lasts longer.",
        advice: "Fix the path, or disable the pause (the default since Linux 5.14).",
        settings: &[(PAUSE, Change::To("0"))],
        needs: &[Counters, Settings],
        kernels: Kernels::since(4, 13),
        confidence: Confidence::Certain,
        limits: &[],
        judge: |window| match window.now.number(PAUSE) {
            Some(1..) => counter(window, "TcpExtTCPFastOpenBlackhole", Severity::Warning),
            _ => Vec::new(),
        },
    },
    Rule {
        id: "TFO-14",
        symptom: "Fast Open ignored while SYN cookies are sent",
        condition: "Fast Open is on for servers; and tcp_syncookies = 2, or TcpExtTCPReqQFullDoCookies grows without a flood",
        why: "Linux ignores Fast Open on a SYN that it answers with a SYN cookie.",
        advice: "Set tcp_syncookies to 1. If the SYN queue overflows, raise the backlog of that listener.",
        settings: &[(COOKIES, Change::To("1"))],
        needs: &[Counters, Settings, Sockets],
        kernels: Kernels::since(3, 7),
        confidence: Confidence::Certain,
        limits: &[],
        judge: without_parsing,
    },
];

const COOKIES: &str = "net.ipv4.tcp_syncookies";
const NOT_ACCEPTED: Limit = Limit { rule: "TFO-04", name: "share", value: 10.0, unit: "%" };
const REJECTED: Limit = Limit { rule: "TFO-07", name: "share", value: 5.0, unit: "%" };
const SYN_DROPS: Limit = Limit { rule: "TFO-05", name: "drops", value: 1.0, unit: "SYNs" };

fn syn_drops(window: &Window<'_>) -> Vec<Found> {
    let least = window.limit(&SYN_DROPS);
    let dropped = window.now.paths.iter().filter(|path| path.fo_syn_drops > 0);
    dropped
        .filter(|path| f64::from(path.fo_syn_drops) >= least)
        .map(|path| Found {
            severity: Severity::Warning,
            scope: Scope::Peer(path.peer.to_string()),
            evidence: vec![
                window.shown("fo_syn_drops", path.fo_syn_drops),
                window.shown("last one", format!("{:.0} s ago", path.fo_syn_drop_age as f64 / 1000.0)),
            ],
            formula: format!("fo_syn_drops = {} >= {least}", path.fo_syn_drops),
            steps: vec![Step {
                command: format!("ip tcp_metrics delete address {}", path.peer),
                ..Step::default()
            }],
            ..Found::default()
        })
        .collect()
}

fn without_parsing(window: &Window<'_>) -> Vec<Found> {
    let full = "TcpExtTCPReqQFullDoCookies";
    let serves = window.now.number(SWITCH).is_some_and(|value| value & 2 != 0);
    let always = window.now.number(COOKIES) == Some(2);
    // The finding of a flood says this too.
    let overflows = window.grown(full) > 0 && flood(window).is_none();
    let evidence = vec![window.set(SWITCH), window.set(COOKIES), window.counted(full)];
    let formula = format!("tcp_syncookies = 2, or TCPReqQFullDoCookies +{} > 0", window.grown(full));
    found(serves && (always || overflows), Severity::Info, evidence, formula)
}

fn refused(window: &Window<'_>) -> Vec<Found> {
    let off = window.now.number(SWITCH).is_some_and(|value| value & 2 == 0);
    let mut found =
        if off { counter(window, "TcpExtTCPFastOpenCookieReqd", Severity::Warning) } else { Vec::new() };
    found.iter_mut().for_each(|found| found.evidence.push(window.set(SWITCH)));
    found
}

fn unused(window: &Window<'_>) -> Vec<Found> {
    let (asked, used) =
        (window.grown("TcpExtTCPFastOpenCookieReqd"), window.grown("TcpExtTCPFastOpenPassive"));
    let on = window.now.number(SWITCH).is_some_and(|value| value & 2 != 0);
    let evidence = vec![
        window.counted("TcpExtTCPFastOpenCookieReqd"),
        window.counted("TcpExtTCPFastOpenPassive"),
        window.set(SWITCH),
    ];
    found(
        on && asked >= 10 && used == 0,
        Severity::Warning,
        evidence,
        format!("{asked} >= 10 requests, {used} used"),
    )
}

fn key(window: &Window<'_>) -> Vec<Found> {
    let serves = window.now.number(SWITCH).is_some_and(|value| value & 2 != 0);
    let key = window.now.setting("net.ipv4.tcp_fastopen_key").unwrap_or("unknown");
    let bad = key == "unset alone" || key == "set alone";
    let evidence = vec![window.shown("net.ipv4.tcp_fastopen_key", key)];
    found(serves && bad, Severity::Info, evidence, format!("the key is {key}"))
}

/// Fires if the failures of one kind exceed the limit among all attempts, and are at least 10.
fn share(window: &Window<'_>, failed: &str, worked: &str, limit: &Limit) -> Vec<Found> {
    let (bad, good) = (window.grown(failed), window.grown(worked));
    let limit = window.limit(limit);
    let all = bad.saturating_add(good);
    let share = percent(bad, all);
    let formula = format!("{bad} of {all} = {share:.1} % > {limit} %, and {bad} >= 10");
    let evidence = vec![window.counted(failed), window.counted(worked)];
    found(share > limit && bad >= 10, Severity::Warning, evidence, formula)
}
