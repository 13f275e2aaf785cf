//! `docs/doctor.md`: the table of rules and the layout of the JSON, held to the code. `BLESS=1 cargo test -p firstbyte-doctor docs`
//! writes the table anew.
use crate::shown::{BY_RECORD, Mended, SHOWINGS};
use doctor::{Evidence, RULES, Record, Report, Rule, Sample};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;

fn document() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/doctor.md")
}

/// How a rule was shown: on what, what mended it, and by which tests. They hold themselves to it ([`crate::shown`]).
fn shown(id: &str) -> (String, String) {
    let tests = SHOWINGS.iter().filter_map(|showing| {
        let (_, mended) = showing.rules.iter().find(|(other, _)| *other == id)?;
        Some((*mended, showing.test.replace('_', " ")))
    });
    let (ways, tests): (BTreeSet<Mended>, BTreeSet<String>) = tests.unzip();
    let reason = BY_RECORD.iter().find(|(other, _)| *other == id).map(|(_, reason)| *reason);
    let ways: Vec<Mended> = ways.into_iter().collect();
    let by = match (ways.as_slice(), reason) {
        ([Mended::Command], None) => "the kernel; its command".to_owned(),
        ([Mended::ByHand], None) => "the kernel; by hand".to_owned(),
        ([Mended::Record], Some(reason)) => format!("records: {reason}"),
        (ways, reason) => panic!("{id} is shown by {ways:?}, and its reason is {reason:?}"),
    };
    (by, tests.into_iter().collect::<Vec<_>>().join("; "))
}

fn row(rule: &Rule) -> String {
    let (by, tests) = shown(rule.id);
    let limits: Vec<String> = rule
        .limits
        .iter()
        .map(|limit| format!("`{}` = {} {}", limit.name, limit.value, limit.unit))
        .collect();
    let cells = [
        format!("{}: {}", rule.id, rule.symptom),
        rule.condition.to_owned(),
        rule.advice.to_owned(),
        format!("{}; {}", rule.kernels, rule.confidence),
        limits.join(", "),
        by,
        tests,
    ];
    format!("| {} |\n", cells.map(|cell| cell.replace('|', "\\|")).join(" | "))
}

#[test]
fn the_table_of_rules_is_true() {
    assert_eq!(RULES.len(), 93);
    let known = |id: &str| RULES.iter().any(|rule| rule.id == id);
    assert!(SHOWINGS.iter().flat_map(|showing| showing.rules).all(|(id, _)| known(id)));
    assert!(BY_RECORD.iter().all(|(id, _)| known(id)));
    let mut table =
        "| rule | fires when | fix | kernels; sure | thresholds | shown on, mended by | by the test |\n"
            .to_owned();
    let _ = writeln!(table, "|---|---|---|---|---|---|---|");
    table.extend(RULES.iter().map(|rule| row(rule)));
    held("<!-- rules -->\n", "<!-- /rules -->", &table);
}

/// The page has this text between its marks.
fn held(begin: &str, end: &str, expected: &str) {
    static WRITING: std::sync::Mutex<()> = std::sync::Mutex::new(());
    let _alone = WRITING.lock().unwrap();
    let text = std::fs::read_to_string(document()).unwrap();
    let (head, rest) = text.split_once(begin).unwrap();
    let (present, tail) = rest.split_once(end).unwrap();
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(document(), format!("{head}{begin}{expected}{end}{tail}")).unwrap();
    } else {
        assert!(present == expected, "docs/doctor.md is not what the rules say: BLESS=1 writes it anew");
    }
}

/// Of the rules that are not judged over a stack of ours: the reason, and which.
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
    let mut list =
        format!("Judged ({}): {}.\n\n| not judged | why |\n|---|---|\n", here.len(), here.join(", "));
    list.extend(reasons.iter().map(|(reason, ids)| format!("| {} | {reason} |\n", ids.join(", "))));
    held("<!-- own -->\n", "<!-- /own -->", &list);
}

/// Only the kernel's own word is certain: not which box, which interface or which program it was.
#[test]
fn causes_that_are_inferred_are_not_certain() {
    for id in ["ACC-07", "ACC-12", "CC-07", "CC-12", "CC-14", "RX-04", "RX-07", "WIN-02", "WIN-09", "WIN-11"]
    {
        assert_ne!(Rule::by_id(id).unwrap().confidence, doctor::Confidence::Certain, "{id}");
    }
}

/// A rule that a finding names may not have fired: its advice stands alone.
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
