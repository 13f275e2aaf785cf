//! `docs/rfc9293.md`, `docs/rfcs.md`, `docs/counters.md` and `docs/settings.md` stay true: every requirement, counter and setting once, and
//! every file, function and test they name exists.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// How RFC 9293's Appendix B numbers its requirements.
const KINDS: [(&str, u32); 4] = [("MUST", 69), ("SHLD", 31), ("MAY", 18), ("REC", 1)];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")
}

/// The cells of each row of a page's tables, with the row's line number.
fn rows(page: &str) -> Vec<(usize, Vec<String>)> {
    let text = fs::read_to_string(root().join(page)).unwrap_or_else(|error| panic!("{page}: {error}"));
    let cells = |line: &str| {
        let inner = line.strip_prefix("| ")?.strip_suffix(" |")?;
        Some(inner.split(" | ").map(str::to_owned).collect::<Vec<_>>())
    };
    let numbered = text.lines().enumerate();
    let rows = numbered.filter_map(|(at, line)| Some((at + 1, cells(line)?)));
    rows.filter(|(_, cells)| !["id", "RFC", "file"].contains(&cells[0].as_str())).collect()
}

/// The code spans of a cell that name a file: (path, function).
fn references(cell: &str) -> Vec<(String, Option<String>)> {
    let spans = cell.split('`').skip(1).step_by(2);
    let named = spans.filter_map(|span| {
        let (path, function) = span.split_once(' ').map_or((span, None), |(path, name)| (path, Some(name)));
        path.ends_with(".rs").then(|| (path.to_owned(), function.map(str::to_owned)))
    });
    named.collect()
}

/// What is wrong with the references of a cell. `tests`: each must be a test.
fn broken(cell: &str, tests: bool) -> Vec<String> {
    let mut problems = Vec::new();
    for (path, function) in references(cell) {
        let Ok(text) = fs::read_to_string(root().join("crates").join(&path)) else {
            problems.push(format!("there is no file crates/{path}"));
            continue;
        };
        let Some(function) = function else { continue };
        let lines: Vec<&str> = text.lines().collect();
        let head = format!("fn {function}");
        let begins = |line: &str| {
            let rest = line.split_once(&head).map(|(_, rest)| rest);
            rest.is_some_and(|rest| rest.starts_with(['(', '<']))
        };
        let Some(at) = lines.iter().position(|line| begins(line)) else {
            problems.push(format!("crates/{path} has no function {function}: where is it now?"));
            continue;
        };
        let attributes =
            lines[..at].iter().rev().take_while(|line| line.trim_start().starts_with(['#', '/']));
        let is_test = attributes.into_iter().any(|line| line.contains("#[test]") || line.contains("::test"));
        if tests && !is_test && !lines[..at].iter().rev().take(3).any(|line| line.contains("proptest!")) {
            problems.push(format!("crates/{path}: {function} is not a test"));
        }
    }
    problems
}

#[test]
fn every_requirement_of_rfc_9293_is_there_once_and_what_is_named_exists() {
    let mut problems = Vec::new();
    let mut seen: BTreeMap<String, u32> = BTreeMap::new();
    for (line, cells) in rows("docs/rfc9293.md") {
        let [id, what, code, tests] = &cells[..] else {
            problems.push(format!("docs/rfc9293.md:{line}: not four columns"));
            continue;
        };
        *seen.entry(id.clone()).or_default() += 1;
        let mut wrong = broken(code, false);
        wrong.extend(broken(tests, true));
        let excused = ["Not done: ", "Not applicable: "].iter().any(|excuse| code.starts_with(excuse));
        if !excused && (references(code).is_empty() || references(tests).is_empty()) {
            wrong.push("neither code and test nor a reason".to_owned());
        }
        if what.is_empty() {
            wrong.push("no words".to_owned());
        }
        problems.extend(wrong.into_iter().map(|wrong| format!("docs/rfc9293.md:{line}: {id}: {wrong}")));
    }
    for (kind, last) in KINDS {
        for number in 1..=last {
            match seen.remove(&format!("{kind}-{number}")) {
                Some(1) => {}
                Some(times) => problems.push(format!("{kind}-{number} is there {times} times")),
                None => problems.push(format!("{kind}-{number} is missing")),
            }
        }
    }
    problems.extend(seen.keys().map(|id| format!("{id} is no requirement")));
    assert!(problems.is_empty(), "\n{}", problems.join("\n"));
}

#[test]
fn what_the_list_of_rfcs_names_exists() {
    let rows = rows("docs/rfcs.md");
    assert!(rows.len() >= 40, "{} rows", rows.len());
    let mut problems = Vec::new();
    for (line, cells) in rows {
        let [number, _, code, tests, _] = &cells[..] else {
            problems.push(format!("docs/rfcs.md:{line}: not five columns"));
            continue;
        };
        let mut wrong = broken(code, false);
        wrong.extend(broken(tests, true));
        if references(code).is_empty() || references(tests).is_empty() {
            wrong.push("no code or no test".to_owned());
        }
        problems.extend(wrong.into_iter().map(|wrong| format!("docs/rfcs.md:{line}: {number}: {wrong}")));
    }
    assert!(problems.is_empty(), "\n{}", problems.join("\n"));
}

/// Fields of Linux 6.18's `struct tcp_info`.
const TCP_INFO_FIELDS: usize = 70;

#[test]
fn every_counter_and_field_is_shown_or_has_a_reason() {
    let page = "docs/counters.md";
    let mut problems = Vec::new();
    let mut rows_of: BTreeMap<String, bool> = BTreeMap::new();
    for (line, cells) in rows(page) {
        let [names, place, shown] = &cells[..] else {
            problems.push(format!("{page}:{line}: not three columns"));
            continue;
        };
        let here = place != "–";
        let wrong = broken(shown, true);
        if here && references(shown).is_empty() {
            problems.push(format!("{page}:{line}: no test shows it"));
        }
        problems.extend(wrong.into_iter().map(|wrong| format!("{page}:{line}: {names}: {wrong}")));
        for name in names.split(", ") {
            if rows_of.insert(name.to_owned(), here).is_some() {
                problems.push(format!("{page}:{line}: {name} is there twice"));
            }
        }
    }
    let capabilities = proto::Capabilities { mtu: 1500, gso_max_size: 0, tx_checksum: false };
    for (name, _) in proto::Stack::new(proto::Config::default(), capabilities, [1; 32]).nstat() {
        if rows_of.remove(&name) != Some(true) {
            problems.push(format!("{name} is counted, but {page} does not say so: which test shows it?"));
        }
    }
    let fields = rows_of.keys().filter(|name| name.starts_with("tcpi_")).count();
    assert_eq!(fields, TCP_INFO_FIELDS);
    let gone = rows_of.iter().filter(|(name, here)| **here && !name.starts_with("tcpi_"));
    problems.extend(gone.map(|(name, _)| format!("{page}: {name} is not counted any more")));
    assert!(problems.is_empty(), "\n{}", problems.join("\n"));
}

/// Files `/proc/sys/net/ipv4/tcp_*` of Linux 6.18.
const SETTINGS: usize = 92;

/// A setting is shown where its name stands: in a test, by which it is set, or in a script.
#[test]
fn every_setting_of_linux_is_there_or_has_a_reason() {
    let page = "docs/settings.md";
    let known: Vec<String> =
        proto::Config::default().all().into_iter().map(|(name, _)| name.to_owned()).collect();
    let mut problems = Vec::new();
    let mut seen = BTreeMap::new();
    for (line, cells) in rows(page) {
        let [file, here, shown] = &cells[..] else {
            problems.push(format!("{page}:{line}: not three columns"));
            continue;
        };
        let is_known = known.contains(&format!("net.ipv4.{file}"));
        if is_known != (here == "a setting") {
            problems.push(format!("{page}:{line}: {file}: the engine says otherwise"));
        }
        if seen.insert(file.clone(), line).is_some() {
            problems.push(format!("{page}:{line}: {file} is there twice"));
        }
        let path = shown.trim_matches('`').split(' ').next().unwrap_or_default();
        let named = || fs::read_to_string(root().join("crates").join(path)).unwrap_or_default();
        let short = file.strip_prefix("tcp_").unwrap_or(file);
        match here.as_str() {
            "a setting" if !named().contains(short) => {
                problems.push(format!("{page}:{line}: {file}: `{path}` does not set it"));
            }
            "a setting" => {
                let wrong = broken(shown, true);
                problems.extend(wrong.into_iter().map(|wrong| format!("{page}:{line}: {file}: {wrong}")));
            }
            _ if shown.len() < 20 && shown != "as above" => {
                problems.push(format!("{page}:{line}: {file}: no reason"));
            }
            _ => {}
        }
    }
    let ours = known
        .iter()
        .filter_map(|name| name.strip_prefix("net.ipv4."))
        .filter(|name| name.starts_with("tcp_"));
    problems.extend(ours.filter(|name| !seen.contains_key(*name)).map(|name| format!("{name} is missing")));
    assert_eq!(seen.len(), SETTINGS);
    assert!(problems.is_empty(), "\n{}", problems.join("\n"));
}
