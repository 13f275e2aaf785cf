//! Compares the tables of `docs/explain.md` with the tested rows and the verdicts of `probe`.
//! `BLESS=1 cargo test -p firstbyte-cli --test it docs` rewrites them.
use super::rows::{ROWS, Row};
use probe::Cause;
use std::collections::BTreeSet;
use std::path::Path;

fn id(cause: Cause) -> String {
    serde_json::to_value(cause).unwrap().as_str().unwrap().to_owned()
}

/// Checks that the page has this table between its marks.
fn held(name: &str, head: &str, lines: impl Iterator<Item = String>) {
    static WRITING: std::sync::Mutex<()> = std::sync::Mutex::new(());
    let _alone = WRITING.lock().unwrap();
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/explain.md");
    let columns = "---|".repeat(head.matches('|').count() - 1);
    let table = format!("{head}\n|{columns}\n{}", lines.collect::<String>());
    let (begin, end) = (format!("<!-- {name} -->\n"), format!("<!-- /{name} -->"));
    let text = std::fs::read_to_string(&page).unwrap();
    let (before, rest) = text.split_once(&begin).unwrap();
    let (present, after) = rest.split_once(&end).unwrap();
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(page, format!("{before}{begin}{table}{end}{after}")).unwrap();
    } else {
        assert!(
            present == table,
            "docs/explain.md is not what the tests say of {name}: BLESS=1 writes it anew"
        );
    }
}

#[test]
fn the_table_of_rows_is_true() {
    let line = |Row { name, what, kernel, own }: &Row| format!("| {what} | {kernel} | {own} | {name} |\n");
    held("rows", "| what is so | the kernel's sockets | SYNs of our own | test |", ROWS.iter().map(line));
}

#[test]
fn the_table_of_verdicts_is_true() {
    let line = |cause: &Cause| format!("| {} | {} | {} |\n", id(*cause), cause.sentence(), cause.fix());
    held("verdicts", "| verdict | in words | fix |", Cause::ALL.iter().map(line));
}

#[test]
fn every_verdict_has_a_row() {
    let shown: BTreeSet<&str> = ROWS.iter().flat_map(|row| [row.kernel, row.own]).collect();
    let causes: Vec<String> = Cause::ALL.iter().map(|cause| id(*cause)).collect();
    let known: BTreeSet<&str> = causes.iter().map(String::as_str).collect();
    assert_eq!(shown, known);
}
