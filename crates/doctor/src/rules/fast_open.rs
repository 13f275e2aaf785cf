//! TFO: TCP Fast Open (RFC 7413), as client and as server.
use super::{Change, Found, Rule, counter, found, percent, setting};
use crate::finding::Severity;
use crate::sample::Source::{Counters, Key, Settings, Sockets};
use crate::window::Window;

const SWITCH: &str = "net.ipv4.tcp_fastopen";
const PAUSE: &str = "net.ipv4.tcp_fastopen_blackhole_timeout_sec";

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "TFO-01",
        symptom: "Fast Open off for clients",
        condition: "bit 0x1 of tcp_fastopen is clear",
        why: "MSG_FASTOPEN and TCP_FASTOPEN_CONNECT then behave as a plain connect.",
        advice: "Set bit 0x1.",
        settings: &[(SWITCH, Change::Set(0x1))],
        needs: &[Settings],
        judge: |window| setting(window, SWITCH, Severity::Info, |value| value & 1 == 0),
    },
    Rule {
        id: "TFO-02",
        symptom: "clients ask for Fast Open, the server refuses",
        condition: "TcpExtTCPFastOpenCookieReqd grows and bit 0x2 of tcp_fastopen is clear",
        why: "Requests for cookies arrive, but the server's half is off by default; the one setting also governs IPv6.",
        advice: "Set bit 0x2; the listener needs TCP_FASTOPEN too.",
        settings: &[(SWITCH, Change::Set(0x2))],
        needs: &[Counters, Settings],
        judge: refused,
    },
    Rule {
        id: "TFO-03",
        symptom: "server half on, no listener uses it",
        condition: "bit 0x2 set, at least 10 requests for cookies, none used",
        why: "The listener did not set TCP_FASTOPEN, or was opened before bit 0x400 was set.",
        advice: "nginx: listen 443 ssl fastopen=256; or the program's own option, and restart it.",
        settings: &[],
        needs: &[Counters, Settings],
        judge: unused,
    },
    Rule {
        id: "TFO-04",
        symptom: "data on the SYN not accepted",
        condition: "TcpExtTCPFastOpenActiveFail > 10 % of attempts, at least 10",
        why: "The data crosses the path twice and nothing is gained.",
        advice: "Look for changed keys at the server, or a middlebox on the path.",
        settings: &[],
        needs: &[Counters],
        judge: |window| share(window, "TcpExtTCPFastOpenActiveFail", "TcpExtTCPFastOpenActive", 10.0),
    },
    Rule {
        id: "TFO-06",
        symptom: "Fast Open queue too short",
        condition: "TcpExtTCPFastOpenListenOverflow grows",
        why: "Requests whose handshake is unfinished reached the listener's qlen; further clients fall back.",
        advice: "Raise qlen of TCP_FASTOPEN to the connections a second times the round trip, and more.",
        settings: &[],
        needs: &[Counters],
        judge: |window| counter(window, "TcpExtTCPFastOpenListenOverflow", Severity::Warning),
    },
    Rule {
        id: "TFO-07",
        symptom: "cookies rejected",
        condition: "TcpExtTCPFastOpenPassiveFail > 5 % of attempts, at least 10",
        why: "The servers of a pool have different keys, keys were changed without a backup, or clients come from changing addresses.",
        advice: "The same key everywhere: sysctl -w net.ipv4.tcp_fastopen_key=NEW,OLD.",
        settings: &[],
        needs: &[Counters],
        judge: |window| share(window, "TcpExtTCPFastOpenPassiveFail", "TcpExtTCPFastOpenPassive", 5.0),
    },
    Rule {
        id: "TFO-08",
        symptom: "Fast Open key unset or without backup",
        condition: "bit 0x2 set and the key is zero, or stands alone",
        why: "Each host draws a random key at first use; behind a load balancer its cookies then fail at the other hosts.",
        advice: "Set a shared key from secret storage and keep the previous one as the second.",
        settings: &[],
        needs: &[Settings, Key],
        judge: key,
    },
    Rule {
        id: "TFO-09",
        symptom: "key rotation in progress",
        condition: "TcpExtTCPFastOpenPassiveAltKey grows",
        why: "Clients still use the backup key; dropping it now costs them a round trip.",
        advice: "Keep NEW,OLD until the counter rests.",
        settings: &[],
        needs: &[Counters],
        judge: |window| counter(window, "TcpExtTCPFastOpenPassiveAltKey", Severity::Info),
    },
    Rule {
        id: "TFO-10",
        symptom: "data accepted without a cookie",
        condition: "bit 0x200 of tcp_fastopen with a listener that others reach (critical), or bit 0x4 (warning)",
        why: "Forged SYNs can make the server work and answer to whoever they name.",
        advice: "Clear the bits; for trusted paths use TCP_FASTOPEN_NO_COOKIE or the route's fastopen_no_cookie.",
        settings: &[(SWITCH, Change::Clear(0x204))],
        needs: &[Settings, Sockets],
        judge: |window| {
            let reached = window.now.listeners().any(|listener| !listener.is_loopback());
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
        symptom: "bits of tcp_fastopen that mean nothing",
        condition: "tcp_fastopen has bits outside 0x607",
        why: "0x100 and 0x800 no longer exist; the kernel stores any number and says nothing.",
        advice: "Remove the bits.",
        settings: &[(SWITCH, Change::Clear(!0x607))],
        needs: &[Settings],
        judge: |window| setting(window, SWITCH, Severity::Info, |value| value & !0x607 != 0),
    },
    Rule {
        id: "TFO-12",
        symptom: "Fast Open forced on all listeners",
        condition: "bit 0x400 of tcp_fastopen",
        why: "Every later listener answers Fast Open, also of programs to which a repeated request does harm.",
        advice: "Prefer the option of each listener.",
        settings: &[(SWITCH, Change::Clear(0x400))],
        needs: &[Settings],
        judge: |window| setting(window, SWITCH, Severity::Info, |value| value & 0x400 != 0),
    },
    Rule {
        id: "TFO-13",
        symptom: "Fast Open paused for all destinations",
        condition: "tcp_fastopen_blackhole_timeout_sec != 0 and TcpExtTCPFastOpenBlackhole grows",
        why: "One bad path pauses Fast Open towards everyone, each time longer.",
        advice: "Mend the path, or switch the pause off (the default since Linux 5.14).",
        settings: &[(PAUSE, Change::To("0"))],
        needs: &[Counters, Settings],
        judge: |window| match window.now.number(PAUSE) {
            Some(1..) => counter(window, "TcpExtTCPFastOpenBlackhole", Severity::Warning),
            _ => Vec::new(),
        },
    },
];

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

/// Failures of one kind among all attempts: more than so many percent, and at least 10.
fn share(window: &Window<'_>, failed: &str, worked: &str, limit: f64) -> Vec<Found> {
    let (bad, good) = (window.grown(failed), window.grown(worked));
    let share = percent(bad, bad + good);
    let formula = format!("{bad} of {} = {share:.1} % > {limit} %, and {bad} >= 10", bad + good);
    let evidence = vec![window.counted(failed), window.counted(worked)];
    found(share > limit && bad >= 10, Severity::Warning, evidence, formula)
}
