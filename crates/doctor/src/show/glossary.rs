//! The meaning of each name, its usual value, and the rules that use it. The texts are TOML tables
//! beside this file.
use crate::finding::Finding;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::LazyLock;

/// Entries of one kind, by name.
pub type Glossary = BTreeMap<String, Entry>;

/// The explanation of one name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Entry {
    /// The meaning.
    pub is: String,
    /// The usual value. For a setting, its default.
    pub usual: String,
    /// A common misunderstanding.
    pub not: String,
    /// Related names.
    pub with: String,
    /// Rules that use it.
    pub rules: Vec<String>,
}

/// Values of a socket.
pub static SOCKETS: LazyLock<Glossary> = LazyLock::new(|| parse(include_str!("sockets.toml")));

/// Counters of /proc/net/snmp and /proc/net/netstat.
pub static COUNTERS: LazyLock<Glossary> = LazyLock::new(|| parse(include_str!("counters.toml")));
/// Settings below /proc/sys/net.
pub static SETTINGS: LazyLock<Glossary> = LazyLock::new(|| parse(include_str!("settings.toml")));
/// Values and kinds of queueing disciplines.
pub static QUEUES: LazyLock<Glossary> = LazyLock::new(|| parse(include_str!("queues.toml")));
/// Values of remembered paths.
pub static PATHS: LazyLock<Glossary> = LazyLock::new(|| parse(include_str!("paths.toml")));
/// Metrics of routes.
pub static ROUTES: LazyLock<Glossary> = LazyLock::new(|| parse(include_str!("routes.toml")));

fn parse(text: &str) -> Glossary {
    // A test reads each table.
    toml::from_str(text).unwrap_or_default()
}

/// Formats an entry for each name that has one, and marks its rules that fired.
pub(super) fn explain<'a>(
    glossary: &Glossary,
    names: impl Iterator<Item = &'a str>,
    findings: &[Finding],
) -> String {
    let mut text = String::new();
    for name in names {
        let Some(entry) = glossary.get(name) else { continue };
        let _ = writeln!(text, "{name}\n    {}", entry.is);
        for (word, what) in [("usual", &entry.usual), ("not", &entry.not), ("with", &entry.with)] {
            if !what.is_empty() {
                let _ = writeln!(text, "    {word}: {what}");
            }
        }
        let rules = entry.rules.iter().map(|id| match findings.iter().any(|finding| finding.id == *id) {
            true => format!("{id} (fires now)"),
            false => id.clone(),
        });
        let rules: Vec<String> = rules.collect();
        if !rules.is_empty() {
            let _ = writeln!(text, "    rules: {}", rules.join(", "));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::Rule;

    #[test]
    fn tables_can_be_read_and_name_rules_that_exist() {
        for glossary in [&SOCKETS, &COUNTERS, &SETTINGS, &QUEUES, &PATHS, &ROUTES] {
            assert!(!glossary.is_empty());
            for (name, entry) in glossary.iter() {
                assert!(!entry.is.is_empty(), "{name}");
                for id in &entry.rules {
                    assert!(Rule::by_id(id).is_some(), "{name}: {id}");
                }
            }
        }
    }
}
