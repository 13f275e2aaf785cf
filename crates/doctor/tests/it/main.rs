//! The doctor on a real kernel, in namespaces of the tests' own: each rule provoked, the healthy host silent beside it.
#![expect(clippy::unwrap_used, reason = "tests")]
mod accept;
mod record;
mod settings;
mod states;
mod windows;

use doctor::{Finding, Report, Sample, Severity, Window, sources};

/// What is found while `meanwhile` runs.
fn findings(meanwhile: impl FnOnce()) -> Vec<Finding> {
    let before = sources::here();
    meanwhile();
    judged(&before, &sources::here())
}

fn judged(before: &Sample, now: &Sample) -> Vec<Finding> {
    let report = Report::of(&Window::between(before, now));
    assert!(report.not_judged.is_empty(), "{:?}", report.unread);
    // Of the whole machine, so that other tests may cause it.
    report.findings.into_iter().filter(|finding| finding.id != "RX-01").collect()
}

fn ids(findings: &[Finding]) -> Vec<&str> {
    findings.iter().map(|finding| finding.id.as_str()).collect()
}

fn has(findings: &[Finding], id: &str) -> bool {
    findings.iter().any(|finding| finding.id == id)
}

/// Of a host where nothing is wrong.
fn assert_healthy(findings: &[Finding]) {
    let bad: Vec<_> = findings.iter().filter(|finding| finding.severity > Severity::Info).collect();
    assert!(bad.is_empty(), "{bad:#?}");
}

#[test]
fn a_healthy_namespace_is_silent() {
    testnet::in_namespace(|| assert_healthy(&findings(|| {})));
}
