//! Prints routes like `ip route`.
use super::glossary;
use crate::escape;
use crate::finding::Finding;
use crate::sample::{Route, RouteMetrics};
use serde_json::{Map, Value, json};

/// RT_TABLE_MAIN.
pub const MAIN: u32 = 254;

/// Returns one line per route, of one table or of all.
pub fn text(routes: &[Route], table: Option<u32>, family: u8) -> String {
    shown(routes, table, family).map(|route| line(route) + "\n").collect()
}

fn shown(routes: &[Route], table: Option<u32>, family: u8) -> impl Iterator<Item = &Route> {
    routes
        .iter()
        .filter(move |route| route.family == family && table.is_none_or(|table| route.table == table))
}

fn line(route: &Route) -> String {
    let (route_words, onlink) = match route.route.strip_suffix(" onlink") {
        Some(words) if !words.contains(" nexthop ") => (words, true),
        _ => (route.route.as_str(), false),
    };
    // The metric comes after the words that the kernel adds.
    let (before, metric) = match route_words.split_once(" metric ") {
        Some((before, metric)) => (before, Some(metric.split(" table ").next().unwrap_or(metric))),
        None => (route_words.split(" table ").next().unwrap_or(route_words), None),
    };
    let mut words = Vec::new();
    if !route.kind.is_empty() {
        words.push(route.kind.clone());
    }
    words.push(before.to_owned());
    let mut add = |name: &str, value: &str| words.push(format!("{name} {value}"));
    if route.table != MAIN {
        add("table", &if route.table == 255 { "local".to_owned() } else { route.table.to_string() });
    }
    // ip(8) leaves out the protocol of routes set by hand.
    if route.protocol != "boot" && !route.protocol.is_empty() {
        add("proto", &route.protocol);
    }
    if !["universe", "global", ""].contains(&route.scope.as_str()) {
        add("scope", &route.scope);
    }
    if let Some(source) = &route.source {
        add("src", &source.to_string());
    }
    if let Some(metric) = metric {
        add("metric", metric);
    }
    if onlink {
        words.push("onlink".to_owned());
    }
    words.extend(metric_words(route, &route.metrics));
    words.join(" ")
}

/// Returns the arguments of `ip route change` that give the route these metrics. `ip route change`
/// drops every attribute that it does not name.
pub(crate) fn changed(route: &Route, metrics: &RouteMetrics) -> String {
    // ip(8) accepts only more next hops after the first one, so they come last. It always locks
    // rto_min, and has no word for that.
    let mut words: Vec<String> = Vec::new();
    let mut hops: Vec<String> = Vec::new();
    let mut in_hop = false;
    for word in route.route.split(' ') {
        in_hop = word == "nexthop" || in_hop && !["metric", "table"].contains(&word);
        if in_hop { &mut hops } else { &mut words }.push(word.to_owned());
    }
    if !route.kind.is_empty() {
        words.insert(0, route.kind.clone());
    }
    let mut add = |name: &str, value: &str| words.push(format!("{name} {value}"));
    if !["boot", ""].contains(&route.protocol.as_str()) {
        add("proto", &route.protocol);
    }
    if !["universe", "global", ""].contains(&route.scope.as_str()) {
        add("scope", &route.scope);
    }
    if let Some(source) = &route.source {
        add("src", &source.to_string());
    }
    words.extend(metric_words(route, metrics));
    words.extend(hops);
    let words = words.iter().flat_map(|words| words.split(' ')).map(escape::word);
    words.collect::<Vec<_>>().join(" ").replace("rto_min lock ", "rto_min ")
}

fn metric_words(route: &Route, values: &RouteMetrics) -> Vec<String> {
    let mut words: Vec<String> =
        metrics(values).into_iter().map(|(name, value)| format!("{name} {value}")).collect();
    if !route.other_metrics.is_empty() {
        words.push(route.other_metrics.clone());
    }
    words
}

/// Returns the metrics that are set, in the order of ip(8).
fn metrics(metrics: &RouteMetrics) -> Vec<(&'static str, String)> {
    // With their number among RTAX_* (include/uapi/linux/rtnetlink.h).
    let all = [
        ("mtu", 2, metrics.mtu, ""),
        ("ssthresh", 6, metrics.ssthresh, ""),
        ("cwnd", 7, metrics.cwnd, ""),
        ("advmss", 8, metrics.advmss, ""),
        ("initcwnd", 11, metrics.initcwnd, ""),
        ("rto_min", 13, metrics.rto_min, "ms"),
        ("initrwnd", 14, metrics.initrwnd, ""),
        ("quickack", 15, metrics.quickack, ""),
    ];
    let set = all.into_iter().filter(|(_, _, value, _)| *value != 0);
    set.map(|(name, number, value, unit)| {
        let is_locked = metrics.locked & (1 << number) != 0 || name == "cwnd" && metrics.cwnd_locked;
        let lock = if is_locked { "lock " } else { "" };
        (name, format!("{lock}{value}{unit}"))
    })
    .collect()
}

/// Returns the routes as JSON.
pub fn json(routes: &[Route], table: Option<u32>, family: u8) -> Value {
    let all = shown(routes, table, family).map(|route| {
        let metrics: Map<String, Value> =
            metrics(&route.metrics).into_iter().map(|(name, value)| (name.to_owned(), value.into())).collect();
        json!({
            "dst": route.route.split(' ').next(), "type": route.kind, "route": route.route, "dev": route.device,
            "table": route.table, "protocol": route.protocol, "scope": route.scope,
            "prefsrc": route.source.map(|source| source.to_string()), "metrics": metrics,
        })
    });
    all.collect()
}

/// Explains each metric that is set, and names its rules that fired.
pub fn explained(routes: &[Route], table: Option<u32>, family: u8, findings: &[Finding]) -> String {
    let mut names: Vec<&str> = Vec::new();
    for (name, _) in shown(routes, table, family).flat_map(|route| metrics(&route.metrics)) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    match names.is_empty() {
        true => "No route has a TCP metric: connections start with the settings.\n".to_owned(),
        false => glossary::explain(&glossary::ROUTES, names.into_iter(), findings),
    }
}
