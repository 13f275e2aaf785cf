//! CC: values that limit the growth of windows: remembered thresholds, routes, pauses.
use super::{Act, Change, Found, Kernels, Rule, found};
use crate::finding::{Confidence, Scope, Severity, Step};
use crate::limit::Limit;
use crate::sample::Source::{Paths, Routes, Settings, Sockets};
use crate::sample::state::ESTABLISHED;
use crate::sample::{Route, RouteMetrics, Socket};
use crate::show::routes::changed;
use crate::window::Window;

const SAVE: &str = "net.ipv4.tcp_no_ssthresh_metrics_save";

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "CC-01",
        symptom: "new connections to a peer grow slowly",
        condition: "thresholds are remembered (tcp_no_ssthresh_metrics_save = 0), a peer's is below 64 segments, and its round trip > 10 ms",
        why: "A past loss left a small ssthresh. Every new connection to that peer leaves slow start almost immediately.",
        advice: "Disable remembering, and delete the remembered thresholds.",
        settings: &[(SAVE, Change::To("1"))],
        needs: &[Paths, Settings],
        kernels: Kernels::since(5, 6),
        confidence: Confidence::Certain,
        limits: &[REMEMBERED],
        judge: remembered,
    },
    Rule {
        id: "CC-04",
        symptom: "a route limits the congestion window",
        condition: "a route has cwnd locked (warning), or sets ssthresh (info)",
        why: "\"cwnd lock N\" caps every connection at N segments. ssthresh is ignored unless tcp_no_ssthresh_metrics_save = 0.",
        advice: "Remove the metric from the route.",
        settings: &[],
        needs: &[Routes],
        kernels: Kernels::ALL,
        confidence: Confidence::Certain,
        limits: &[],
        judge: clamped,
    },
    Rule {
        id: "CC-05",
        symptom: "unusual initial window",
        condition: "a route's initcwnd is below 10 (warning) or above 32, or its initrwnd is below 10",
        why: "A connection starts with initcwnd × MSS bytes per round trip. Large values overflow shallow queues.",
        advice: "Remove the metric: the default is 10. On clean paths 20 to 32 help.",
        settings: &[],
        needs: &[Routes],
        kernels: Kernels::ALL,
        confidence: Confidence::Certain,
        limits: &[SMALLEST, LARGEST],
        judge: initial,
    },
    Rule {
        id: "CC-06",
        symptom: "idle connections restart slowly after each pause",
        condition: "tcp_slow_start_after_idle = 1, and at least 3 connections without BBR have been idle longer than their rto, with cwnd > 20 and round trip > 20 ms",
        why: "Linux halves the window for each rto of idle time, down to the initial window. BBR is exempt.",
        advice: "Disable it on servers whose clients keep connections open.",
        settings: &[("net.ipv4.tcp_slow_start_after_idle", Change::To("0"))],
        needs: &[Sockets, Settings],
        kernels: Kernels::ALL,
        confidence: Confidence::Likely,
        limits: &[IDLE],
        judge: idle,
    },
];

const REMEMBERED: Limit = Limit { rule: "CC-01", name: "ssthresh", value: 64.0, unit: "segments" };

fn remembered(window: &Window<'_>) -> Vec<Found> {
    if window.now.number(SAVE) != Some(0) {
        return Vec::new();
    }
    let limit = window.limit(&REMEMBERED);
    let small = window
        .now
        .paths
        .iter()
        .filter(|path| path.ssthresh > 0 && f64::from(path.ssthresh) < limit && path.rtt > 10_000);
    small
        .map(|path| Found {
            severity: Severity::Warning,
            scope: Scope::Peer(path.peer.to_string()),
            evidence: vec![
                window.shown("ssthresh", format!("{} segments", path.ssthresh)),
                window.shown("rtt", format!("{:.1} ms", f64::from(path.rtt) / 1000.0)),
                window.set(SAVE),
            ],
            formula: format!("{} < {limit} segments", path.ssthresh),
            steps: vec![Step { command: "ip tcp_metrics flush all".to_owned(), ..Step::default() }],
            ..Found::default()
        })
        .collect()
}

fn clamped(window: &Window<'_>) -> Vec<Found> {
    of_routes(window, |metrics| {
        let without = RouteMetrics { cwnd: 0, cwnd_locked: false, ssthresh: 0, ..*metrics };
        if metrics.cwnd_locked {
            return Some((Severity::Warning, format!("cwnd lock {}", metrics.cwnd), without));
        }
        (metrics.ssthresh > 0)
            .then(|| (Severity::Info, format!("ssthresh {} > 0", metrics.ssthresh), without))
    })
}

const SMALLEST: Limit = Limit { rule: "CC-05", name: "smallest", value: 10.0, unit: "segments" };
const LARGEST: Limit = Limit { rule: "CC-05", name: "largest", value: 32.0, unit: "segments" };

fn initial(window: &Window<'_>) -> Vec<Found> {
    let (least, most) = (window.limit(&SMALLEST), window.limit(&LARGEST));
    of_routes(window, |metrics| {
        let (sent, received) = (f64::from(metrics.initcwnd), f64::from(metrics.initrwnd));
        let small = |value: f64| value > 0.0 && value < least;
        let severity = match () {
            () if small(sent) => Severity::Warning,
            () if sent > most || small(received) => Severity::Info,
            () => return None,
        };
        let formula = format!("initcwnd {sent}, initrwnd {received} (0: none) outside {least} to {most}");
        Some((severity, formula, RouteMetrics { initcwnd: 0, initrwnd: 0, ..*metrics }))
    })
}

/// Judges each route by its metrics. The closure returns the corrected metrics.
fn of_routes(
    window: &Window<'_>,
    judge: impl Fn(&RouteMetrics) -> Option<(Severity, String, RouteMetrics)>,
) -> Vec<Found> {
    let found = window.now.routes.iter().filter_map(|route| {
        let (severity, formula, better) = judge(&route.metrics)?;
        Some(Found {
            severity,
            scope: match route.device.as_str() {
                // Routes with several next hops, and routes of a Firstbyte stack, have no device.
                "" => Scope::Peer(route.route.split(' ').next().unwrap_or_default().to_owned()),
                device => Scope::Device(device.to_owned()),
            },
            evidence: vec![window.shown("route", changed(route, &route.metrics))],
            formula,
            steps: vec![change(route, &better)],
            ..Found::default()
        })
    });
    found.collect()
}

/// Returns the step that gives a route these metrics and changes nothing else.
pub(super) fn change(route: &Route, metrics: &RouteMetrics) -> Step {
    let undo = format!("ip route change {}", changed(route, &route.metrics));
    Step {
        command: format!("ip route change {}", changed(route, metrics)),
        persist: Some("the same metrics in the file that creates the route".to_owned()),
        undo: Some(undo.clone()),
        act: Act::Route(undo, Box::new(*metrics)),
        ..Step::default()
    }
}

const IDLE: Limit = Limit { rule: "CC-06", name: "sockets", value: 3.0, unit: "sockets" };

fn idle(window: &Window<'_>) -> Vec<Found> {
    const NAME: &str = "net.ipv4.tcp_slow_start_after_idle";
    let idle = |socket: &&Socket| {
        socket.info.is_some_and(|info| {
            &*socket.congestion != "bbr"
                && info.unacked == 0
                && u64::from(info.last_data_sent) * 1000 > u64::from(info.rto)
                && info.snd_cwnd > 20
                && info.min_rtt > 20_000
        })
    };
    let count = window.in_state(ESTABLISHED).filter(idle).count();
    let on = window.now.number(NAME) == Some(1);
    let limit = window.limit(&IDLE);
    let evidence = vec![window.set(NAME), window.shown("connections idle for longer than their rto", count)];
    found(on && count as f64 >= limit, Severity::Info, evidence, format!("{count} >= {limit}"))
}
