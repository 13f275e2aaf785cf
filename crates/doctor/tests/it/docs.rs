//! Compares `docs/doctor.md` with the code: the list of rules and the layout of the JSON.
//! `BLESS=1 cargo test -p firstbyte-doctor docs` rewrites the list.
use crate::shown::{BY_RECORD, Fixed, SHOWINGS};
use doctor::{Evidence, RULES, Record, Report, Rule, Sample};
use std::collections::BTreeSet;
use std::path::Path;

fn document() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/doctor.md")
}

/// Describes how a rule was shown, what fixed it, and by which tests ([`crate::shown`]).
fn shown(id: &str) -> String {
    let tests = SHOWINGS.iter().filter_map(|showing| {
        let (_, fixed) = showing.rules.iter().find(|(other, _)| *other == id)?;
        Some((*fixed, format!("`{}`", showing.test)))
    });
    let (ways, tests): (BTreeSet<Fixed>, BTreeSet<String>) = tests.unzip();
    let reason = BY_RECORD.iter().find(|(other, _)| *other == id).map(|(_, reason)| *reason);
    let ways: Vec<Fixed> = ways.into_iter().collect();
    let tests = tests.into_iter().collect::<Vec<_>>().join(", ");
    match (ways.as_slice(), reason) {
        ([Fixed::Command], None) => format!("on the kernel, fixed by its command: {tests}"),
        ([Fixed::ByHand], None) => format!("on the kernel, fixed by hand: {tests}"),
        ([Fixed::Record], Some(reason)) => format!("on records, because {reason}: {tests}"),
        (ways, reason) => panic!("{id} is shown by {ways:?}, and its reason is {reason:?}"),
    }
}

fn section(rule: &Rule) -> String {
    let limits = rule.limits.iter();
    let limits: Vec<String> =
        limits.map(|limit| format!("`{}` = {} {}", limit.name, limit.value, limit.unit)).collect();
    let thresholds =
        if limits.is_empty() { String::new() } else { format!("; thresholds {}", limits.join(", ")) };
    let items = [
        format!("- **Fires if** {}", rule.condition),
        format!("- **Why** {}", rule.why),
        format!("- **Fix** {}", rule.advice),
        format!("- Kernels {}; confidence {}{thresholds}", rule.kernels, rule.confidence),
        format!("- Tested {}", shown(rule.id)),
    ];
    let mut text = format!("\n### {}: {}\n\n", rule.id, rule.symptom);
    items.iter().for_each(|item| wrap(item, &mut text));
    text
}

/// Writes a list item in lines of at most 100 columns.
fn wrap(item: &str, text: &mut String) {
    let mut column = 0;
    for word in item.split(' ') {
        let width = word.chars().count();
        // At the beginning of a line these would be a quotation or a list in Markdown.
        let is_operator = word.starts_with(['>', '+', '-', '=', '*', '#']);
        if column > 0 && column + 1 + width > 95 && !is_operator {
            text.push_str("\n  ");
            column = 2;
        } else if column > 0 {
            text.push(' ');
            column += 1;
        }
        text.push_str(word);
        column += width;
    }
    text.push('\n');
}

#[test]
fn the_list_of_rules_is_true() {
    assert_eq!(RULES.len(), 93);
    let known = |id: &str| RULES.iter().any(|rule| rule.id == id);
    assert!(SHOWINGS.iter().flat_map(|showing| showing.rules).all(|(id, _)| known(id)));
    assert!(BY_RECORD.iter().all(|(id, _)| known(id)));
    let list: String = RULES.iter().map(|rule| section(rule)).collect();
    held("<!-- rules -->\n", "<!-- /rules -->", &format!("{list}\n"));
}

/// Asserts that the page has this text between its marks. With BLESS, writes the text.
fn held(begin: &str, end: &str, expected: &str) {
    static WRITING: std::sync::Mutex<()> = std::sync::Mutex::new(());
    let _alone = WRITING.lock().unwrap();
    let text = std::fs::read_to_string(document()).unwrap();
    let (head, rest) = text.split_once(begin).unwrap();
    let (present, tail) = rest.split_once(end).unwrap();
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(document(), format!("{head}{begin}{expected}{end}{tail}")).unwrap();
    } else {
        assert!(present == expected, "docs/doctor.md differs from the rules: BLESS=1 rewrites it");
    }
}

/// The list of rules that are not judged for a Firstbyte stack, with the reasons.
#[test]
fn the_list_of_rules_for_our_own_stack_is_true() {
    let mut reasons: std::collections::BTreeMap<String, Vec<&str>> = std::collections::BTreeMap::new();
    let here = RULES.iter().filter(|rule| match rule.elsewhere() {
        None => true,
        Some(reason) => {
            reasons.entry(reason).or_default().push(rule.id);
            false
        }
    });
    let here: Vec<&str> = here.map(|rule| rule.id).collect();
    let mut list = String::new();
    wrap(&format!("Judged ({}): {}.", here.len(), here.join(", ")), &mut list);
    list += "\n| not judged | reason |\n|---|---|\n";
    list.extend(reasons.iter().map(|(reason, ids)| format!("| {} | {reason} |\n", ids.join(", "))));
    held("<!-- own -->\n", "<!-- /own -->", &list);
}

/// Only what the kernel reports directly is certain, not an inferred middlebox, interface or
/// program.
#[test]
fn causes_that_are_inferred_are_not_certain() {
    for id in ["ACC-07", "ACC-12", "CC-07", "CC-12", "CC-14", "RX-04", "RX-07", "WIN-02", "WIN-09", "WIN-11"]
    {
        assert_ne!(Rule::by_id(id).unwrap().confidence, doctor::Confidence::Certain, "{id}");
    }
}

/// A rule that another finding names may not have fired, so each advice stands alone.
#[test]
fn no_rule_points_at_another() {
    for rule in RULES.iter() {
        let words = [rule.symptom, rule.why, rule.advice].join(" ");
        let other = RULES.iter().find(|other| words.contains(other.id));
        assert!(other.is_none(), "{} points at {}", rule.id, other.map_or("", |other| other.id));
    }
}

#[test]
fn every_field_of_the_json_is_described() {
    let mut sample = Sample { kernel: "6.18.0".to_owned(), ..Sample::default() };
    sample.settings.insert("net.ipv4.tcp_window_scaling".to_owned(), "0".to_owned());
    let report = Report::of(&Record::new(None, sample).window());
    assert!(
        report.findings.iter().any(|finding| finding.evidence.iter().any(|e: &Evidence| !e.name.is_empty()))
    );
    let mut report = serde_json::to_value(report).unwrap();
    report["unread"] = serde_json::json!([{"source": "key", "reason": "", "root_would_read": true}]);
    report["not_judged"] = serde_json::json!([{"id": "", "reason": ""}]);
    report["since_boot"] = serde_json::json!([{"id": "", "symptom": ""}]);
    report["silenced"] = serde_json::json!([{"id": "", "count": 1, "reason": ""}]);
    report["slowed"] =
        serde_json::json!({"seconds": 8.0, "asked_seconds": 5.0, "look_seconds": 0.4, "budget_percent": 5.0});
    let _: Report = serde_json::from_value(report.clone()).unwrap();
    let mut names = BTreeSet::new();
    collect(&report, &mut names);
    let text = std::fs::read_to_string(document()).unwrap();
    let missing: Vec<_> = names.iter().filter(|name| !text.contains(&format!("`{name}`"))).collect();
    assert!(missing.is_empty(), "docs/doctor.md does not describe {missing:?}");
}

fn collect(value: &serde_json::Value, names: &mut BTreeSet<String>) {
    match value {
        serde_json::Value::Object(fields) => fields.iter().for_each(|(name, value)| {
            names.insert(name.clone());
            collect(value, names);
        }),
        serde_json::Value::Array(values) => values.iter().for_each(|value| collect(value, names)),
        _ => {}
    }
}
