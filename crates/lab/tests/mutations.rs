//! Each check of each scenario can fail: `mutations.txt` names changes of the scenario, and every
//! check fails under one of them.
//!
//! A change removes or alters the subject of the scenario: a setting of the engine, a middlebox, a
//! queueing discipline, a step of a program. A check that no change makes fail would pass whatever
//! the engine does.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking, as tests do")]

use firstbyte_lab::experiment::{Experiment, SHELF};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use toml::{Table, Value};

/// Lines of the form `SCENARIO: KEY = VALUE`. The key is the file's, `run.NAME.KEY` for one run,
/// `event.N.KEY` for the n-th event, counted from 0. The value `-` removes the key. `tc.N =
/// COMMAND` inserts a command before the n-th. ` & ` joins several changes.
const CHANGES: &str = include_str!("mutations.txt");

#[test]
fn every_check_of_every_scenario_can_fail() {
    let mut changes: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for line in CHANGES.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let (scenario, change) = line.split_once(": ").expect("a line is SCENARIO: KEY = VALUE");
        assert!(SHELF.iter().any(|shelved| shelved.name == scenario), "no scenario `{scenario}`");
        changes.entry(scenario).or_default().push(change);
    }
    let (next, wrong) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || {
        while let Some(shelved) = SHELF.get(next.fetch_add(1, Ordering::Relaxed)) {
            let changes = changes.get(shelved.name).map_or(&[][..], Vec::as_slice);
            let told = told(&Scenario::new(shelved.text), changes);
            wrong.lock().unwrap().extend(told.iter().map(|told| format!("{}: {told}", shelved.name)));
        }
    };
    std::thread::scope(|scope| {
        let workers = std::thread::available_parallelism().map_or(1, Into::into);
        (0..workers).for_each(|_| drop(scope.spawn(work)));
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Returns the checks that no change makes fail, and the changes without a failure of their own.
fn told(scenario: &Scenario, changes: &[&str]) -> Vec<String> {
    let mut unfailed: BTreeSet<usize> = (0..scenario.checks.len()).collect();
    let mut told = Vec::new();
    for change in changes {
        let failed = match scenario.failed_under(change) {
            Ok(failed) => failed,
            Err(error) => {
                told.push(format!("`{change}` cannot be played: {error}"));
                continue;
            }
        };
        let before = unfailed.len();
        unfailed.retain(|check| !failed.contains(check));
        if unfailed.len() == before {
            told.push(format!("`{change}` makes no further check fail"));
        }
    }
    told.extend(unfailed.iter().map(|check| format!("nothing makes \"{}\" fail", scenario.checks[*check])));
    told
}

struct Scenario {
    table: Value,
    /// Checks in words; answers of tc come first.
    checks: Vec<String>,
}

impl Scenario {
    fn new(text: &str) -> Scenario {
        let table = Value::Table(toml::from_str(text).unwrap());
        let words = |list: &str, key: &str| {
            let parts = table.get(list).and_then(Value::as_array).cloned().unwrap_or_default();
            parts.iter().map(|part| part[key].as_str().unwrap().to_owned()).collect::<Vec<String>>()
        };
        let checks = [words("tc", "do"), words("expect", "what")].concat();
        Scenario { table, checks }
    }

    /// Returns the numbers of the checks that fail after these changes. A check with nothing to
    /// measure does not count.
    fn failed_under(&self, changes: &str) -> Result<BTreeSet<usize>, String> {
        let mut table = self.table.clone();
        let mut numbers: Vec<Option<usize>> = (0..self.checks.len()).map(Some).collect();
        for change in changes.split(" & ") {
            let (key, value) = change.split_once(" = ").expect("a change is KEY = VALUE");
            match key.strip_prefix("tc.") {
                Some(number) => {
                    let number = number.parse().unwrap();
                    let command = [("do".to_owned(), value.into())].into_iter().collect();
                    table["tc"].as_array_mut().unwrap().insert(number, Value::Table(command));
                    numbers.insert(number, None);
                }
                None => put(&mut table, key, value),
            }
        }
        loop {
            let text = format!("# Q?\n{}", written(&table));
            let error = match Experiment::parse(&text).and_then(|experiment| experiment.run()) {
                Ok(outcome) => {
                    let failed =
                        outcome.findings().iter().zip(&numbers).filter(|(finding, _)| !finding.holds);
                    return Ok(failed.filter_map(|(_, number)| *number).collect());
                }
                Err(error) => error,
            };
            let Some(Value::Array(expects)) = table.get_mut("expect") else { return Err(error) };
            let is_meant =
                |expect: &Value| error.starts_with(&format!("\"{}\": ", expect["what"].as_str().unwrap()));
            let Some(at) = expects.iter().position(is_meant) else { return Err(error) };
            expects.remove(at);
            numbers.remove(numbers.len() - expects.len() - 1 + at);
            if expects.is_empty() {
                return Ok(BTreeSet::new());
            }
        }
    }
}

/// Changes or removes a value.
fn put(table: &mut Value, key: &str, value: &str) {
    if let Some(rest) = key.strip_prefix("run.") {
        for run in table["run"].as_array_mut().unwrap() {
            let name = run["name"].as_str().unwrap().to_owned();
            if let Some(key) = rest.strip_prefix(&format!("{name}.")) {
                return put(run, key, value);
            }
        }
        panic!("`{key}`: no such run");
    }
    // The name of a setting contains dots.
    let (parts, setting) = match key.split_once(".set.") {
        Some((end, setting)) => (format!("{end}.set"), Some(setting)),
        None => (key.to_owned(), None),
    };
    let mut names: Vec<&str> = parts.split('.').chain(setting).collect();
    let last = names.pop().unwrap();
    let inner = names.into_iter().fold(table, |inner, name| match inner {
        Value::Array(list) => &mut list[name.parse::<usize>().unwrap()],
        Value::Table(table) => table.entry(name).or_insert_with(|| Value::Table(Table::new())),
        _ => panic!("`{key}`: `{name}` has no parts"),
    });
    let inner = inner.as_table_mut().unwrap();
    match value {
        "-" => assert!(inner.remove(last).is_some(), "`{key}` is not there"),
        value => {
            let read: Table = toml::from_str(&format!("value = {value}")).unwrap();
            inner.insert(last.to_owned(), read["value"].clone());
        }
    }
}

/// Formats the table as a file, every value on one line.
fn written(table: &Value) -> String {
    table.as_table().unwrap().iter().map(|(key, value)| format!("{key:?} = {}\n", inline(value))).collect()
}

fn inline(value: &Value) -> String {
    match value {
        Value::Array(list) => format!("[{}]", list.iter().map(inline).collect::<Vec<_>>().join(", ")),
        Value::Table(table) => {
            let parts = table.iter().map(|(key, value)| format!("{key:?} = {}", inline(value)));
            format!("{{ {} }}", parts.collect::<Vec<_>>().join(", "))
        }
        Value::String(text) => format!("{text:?}"),
        Value::Integer(number) => number.to_string(),
        Value::Float(number) => number.to_string(),
        Value::Boolean(flag) => flag.to_string(),
        Value::Datetime(_) => panic!("a file has no dates"),
    }
}
