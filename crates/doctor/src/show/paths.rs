//! Prints the kernel's remembered paths like `ip tcp_metrics`.
use super::glossary;
use crate::finding::Finding;
use crate::sample::PathMetrics;
use serde_json::{Map, Value};

/// Returns one line per path.
pub fn text(paths: &[PathMetrics]) -> String {
    let line = |path: &PathMetrics| {
        let words = figures(path).into_iter().map(|(name, value)| format!(" {name} {value}"));
        format!("{}{}\n", path.peer, words.collect::<String>())
    };
    paths.iter().map(line).collect()
}

/// Returns the paths as JSON.
pub fn json(paths: &[PathMetrics]) -> Value {
    let one = |path: &PathMetrics| {
        let mut object = Map::from_iter([("dst".to_owned(), Value::from(path.peer.to_string()))]);
        object.extend(figures(path).into_iter().map(|(name, value)| {
            let number = value.trim_end_matches("us").trim_end_matches("sec").parse::<f64>();
            (
                name.to_owned(),
                number.ok().filter(|_| name != "fo_cookie").map_or_else(|| value.into(), Value::from),
            )
        }));
        Value::from(object)
    };
    paths.iter().map(one).collect()
}

/// Returns the known values of a path, by name.
fn figures(path: &PathMetrics) -> Vec<(&'static str, String)> {
    let mut figures = vec![("age", seconds(path.age) + "sec")];
    let mut add = |name, known: bool, value: String| figures.extend(known.then_some((name, value)));
    add("ssthresh", path.ssthresh > 0, path.ssthresh.to_string());
    add("cwnd", path.cwnd > 0, path.cwnd.to_string());
    add("reordering", path.reordering > 0, path.reordering.to_string());
    add("rtt", path.rtt > 0, format!("{}us", path.rtt));
    add("rttvar", path.rttvar > 0, format!("{}us", path.rttvar));
    add("fo_mss", path.fo_mss > 0, path.fo_mss.to_string());
    add(
        "fo_syn_drops",
        path.fo_syn_drops > 0,
        format!("{}/{}sec ago", path.fo_syn_drops, seconds(path.fo_syn_drop_age)),
    );
    let cookie = path.cookie.iter().map(|byte| format!("{byte:02x}")).collect();
    add("fo_cookie", path.fo_cookie, if path.cookie.is_empty() { "yes".to_owned() } else { cookie });
    add("source", !path.source.0.is_unspecified(), path.source.to_string());
    figures
}

fn seconds(milliseconds: u64) -> String {
    format!("{}.{:03}", milliseconds / 1000, milliseconds % 1000)
}

/// Explains each value that is shown, and names its rules that fired.
pub fn explained(paths: &[PathMetrics], findings: &[Finding]) -> String {
    let mut names: Vec<&str> = Vec::new();
    for (name, _) in paths.iter().flat_map(figures) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    glossary::explain(&glossary::PATHS, names.into_iter(), findings)
}
