//! Counters in the format of nstat(8).
use super::{columns, glossary};
use crate::finding::Finding;
use crate::window::Window;
use serde_json::{Map, Value, json};

/// A selection of counters.
#[derive(Clone, Debug, Default)]
pub struct View {
    /// Patterns of names, in any case; empty selects all.
    ///
    /// A pattern with `*`, `?` or `[…]` must match the whole name, as in nstat(8). Other patterns
    /// match any part of it.
    pub patterns: Vec<String>,
    /// True to include counters that did not change.
    pub zeros: bool,
}

/// Names, increments and rates per second.
fn rows<'a>(view: &View, window: &Window<'a>) -> Vec<(&'a str, u64, f64)> {
    let patterns: Vec<String> = view.patterns.iter().map(|pattern| pattern.to_ascii_lowercase()).collect();
    let named = |name: &str| {
        let name = name.to_ascii_lowercase();
        patterns.is_empty() || patterns.iter().any(|pattern| matches(pattern, &name))
    };
    let names = window.now.counters.keys().filter(|name| named(name));
    let rows = names.map(|name| {
        let grown = window.grown(name);
        (name.as_str(), grown, grown as f64 / window.seconds())
    });
    rows.filter(|(_, grown, _)| view.zeros || *grown > 0).collect()
}

/// Returns one line per counter: its name, the increment in the window, the rate per second.
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

/// Explains each counter shown, with the findings of its rules.
pub fn explained(view: &View, window: &Window<'_>, findings: &[Finding]) -> String {
    let names = rows(view, window).into_iter().map(|(name, ..)| name);
    glossary::explain(&glossary::COUNTERS, names, findings)
}

/// Matches a shell pattern against the whole name, any other text against a part of it.
fn matches(pattern: &str, name: &str) -> bool {
    if !pattern.contains(['*', '?', '[']) {
        return name.contains(pattern);
    }
    let (pattern, name): (Vec<char>, Vec<char>) = (pattern.chars().collect(), name.chars().collect());
    glob(&pattern, &name)
}

/// Matches as fnmatch(3) does without flags.
fn glob(pattern: &[char], name: &[char]) -> bool {
    match pattern {
        [] => name.is_empty(),
        ['*', rest @ ..] => (0..=name.len()).any(|skipped| glob(rest, &name[skipped..])),
        ['?', rest @ ..] => !name.is_empty() && glob(rest, &name[1..]),
        ['[', rest @ ..] if rest.iter().skip(1).any(|c| *c == ']') => {
            let end = 1 + rest.iter().skip(1).take_while(|c| **c != ']').count();
            name.first().is_some_and(|c| in_set(&rest[..end], *c)) && glob(&rest[end + 1..], &name[1..])
        }
        [c, rest @ ..] => name.first() == Some(c) && glob(rest, &name[1..]),
    }
}

/// Tests a bracket expression without its brackets: characters, ranges, `!` or `^` to negate.
fn in_set(set: &[char], c: char) -> bool {
    let (negated, mut set) = match set {
        ['!' | '^', rest @ ..] if !rest.is_empty() => (true, rest),
        set => (false, set),
    };
    let mut found = false;
    while let [first, rest @ ..] = set {
        (found, set) = match rest {
            ['-', last, rest @ ..] => (found || (*first..=*last).contains(&c), rest),
            rest => (found || *first == c, rest),
        };
    }
    found != negated
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_pattern_matches_the_whole_name_and_other_text_a_part() {
        let name = "tcpexttcpfastopenactive";
        for pattern in
            ["tcpexttcpfastopen*", "*active", "*fastopen*", "tcp?xt*", "[st]cp*", "[!a-s]*", "fastopen"]
        {
            assert!(matches(pattern, name), "{pattern}");
        }
        for pattern in ["fastopen*", "*fastopen", "tcpext?", "[a-c]*", "[!t]*", "tcp[", "passive"] {
            assert!(!matches(pattern, name), "{pattern}");
        }
    }

    #[test]
    fn patterns_select_counters() {
        let mut now = crate::Sample { uptime: 10.0, ..Default::default() };
        for (name, value) in
            [("TcpExtTCPFastOpenActive", 3), ("TcpExtTCPFastOpenPassive", 0), ("TcpOutSegs", 9)]
        {
            now.counters.insert(name.to_owned(), value);
        }
        let window = Window::since_boot(&now);
        let shown = |pattern: &str, zeros| text(&View { patterns: vec![pattern.to_owned()], zeros }, &window);
        assert_eq!(shown("TcpExtTCPFastOpen*", false).lines().count(), 1);
        assert_eq!(shown("TcpExtTCPFastOpen*", true).lines().count(), 2);
        assert_eq!(shown("segs", false).lines().count(), 1);
    }
}
