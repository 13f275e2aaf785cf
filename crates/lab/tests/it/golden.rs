//! The text of every scenario as printed into a pipe: a change of behavior is a diff of these
//! files.
//!
//! `LAB_BLESS=1 cargo test -p firstbyte-lab --test it golden` rewrites them; read the diff
//! before keeping it.

use lab::report::{Page, PageStyle, Report};
use lab::scenario;
use std::fs;
use std::path::Path;

fn check(name: &str, report: &dyn Report) {
    let mut page = Page::new(PageStyle::default());
    report.render_with_findings(&mut page);
    let misses: Vec<_> = report.findings().into_iter().filter(|finding| !finding.holds).collect();
    assert!(misses.is_empty(), "{name}: {misses:#?}");
    let text = page.into_text();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/golden/{name}.txt"));
    if std::env::var_os("LAB_BLESS").is_some() {
        fs::write(&path, &text).expect("the folder is writable");
    }
    let golden = fs::read_to_string(&path).unwrap_or_default();
    for (number, (now, before)) in text.lines().zip(golden.lines()).enumerate() {
        assert_eq!(now, before, "{}, line {}", path.display(), number + 1);
    }
    assert_eq!(text.lines().count(), golden.lines().count(), "{}: number of lines", path.display());
}

#[test]
fn fast_open() {
    check("fast-open", &scenario::fast_open::run(&Default::default()));
}

#[test]
fn packets() {
    check("packets", &scenario::packets::run(&Default::default()));
}

#[test]
fn fallback() {
    check("fallback", &scenario::fallback::run(&Default::default()));
}

#[test]
fn middlebox() {
    check("middlebox", &scenario::middlebox::run(&Default::default()));
}

#[test]
fn qlen() {
    check("qlen", &scenario::qlen::run(&Default::default()));
}

#[test]
fn big_request() {
    check("big-request", &scenario::big_request::run(&Default::default()));
}

#[test]
fn textbook() {
    check("textbook", &scenario::textbook::run(&Default::default()));
}

#[test]
fn congestion() {
    check("congestion", &scenario::congestion::run(&Default::default()));
}

#[test]
fn flags() {
    check("flags", &scenario::flags::run(&Default::default()));
}

#[test]
fn replay() {
    check("replay", &scenario::replay::run(&Default::default()));
}
