//! Prints counters like nstat(8).
use super::{columns, glossary};
use crate::finding::Finding;
use crate::window::Window;
use serde_json::{Map, Value, json};

/// Selects counters.
#[derive(Clone, Debug, Default)]
pub struct View {
    /// Only names that contain one of these, ignoring case. Empty: all names.
    pub patterns: Vec<String>,
    /// Includes counters that have not grown.
    pub zeros: bool,
}

/// Returns name, growth, and growth per second.
fn rows<'a>(view: &View, window: &Window<'a>) -> Vec<(&'a str, u64, f64)> {
    let patterns: Vec<String> = view.patterns.iter().map(|pattern| pattern.to_ascii_lowercase()).collect();
    let named = |name: &str| {
        let name = name.to_ascii_lowercase();
        patterns.is_empty() || patterns.iter().any(|pattern| name.contains(pattern))
    };
    let names = window.now.counters.keys().filter(|name| named(name));
    let rows = names.map(|name| {
        let grown = window.grown(name);
        (name.as_str(), grown, grown as f64 / window.seconds())
    });
    rows.filter(|(_, grown, _)| view.zeros || *grown > 0).collect()
}

/// Returns one line per counter: name, growth in the window, and growth per second.
pub fn text(view: &View, window: &Window<'_>) -> String {
    let lines: Vec<[String; 3]> = rows(view, window)
        .into_iter()
        .map(|(name, grown, rate)| [format!("{name:<31}"), format!("{grown:<18}"), format!("{rate:.1}")])
        .collect();
    columns(&lines, [false; 3])
}

/// Returns the counters as JSON.
pub fn json(view: &View, window: &Window<'_>) -> Value {
    let rows = rows(view, window);
    let counters: Map<String, Value> =
        rows.iter().map(|(name, grown, _)| ((*name).to_owned(), (*grown).into())).collect();
    json!({ "window": window.name(), "seconds": window.seconds(), "counters": counters })
}

/// Explains each counter that is shown, and names its rules that fired.
pub fn explained(view: &View, window: &Window<'_>, findings: &[Finding]) -> String {
    let names = rows(view, window).into_iter().map(|(name, ..)| name);
    glossary::explain(&glossary::COUNTERS, names, findings)
}
