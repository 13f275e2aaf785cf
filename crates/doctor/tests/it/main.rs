//! Runs the doctor on a real kernel, in namespaces of the tests' own: each rule is provoked, and a
//! healthy host stays silent.
#![expect(clippy::unwrap_used, reason = "tests")]
extern crate firstbyte_doctor as doctor;

mod accept;
mod bed;
mod counted;
mod cwnd;
mod devices;
mod docs;
mod fast_open;
mod floods;
mod half_open;
mod hosts;
mod mutated;
mod record;
mod settings;
mod show;
mod shown;
mod situations;
mod states;
mod trees;
mod windows;

use doctor::{Finding, Limits, Report, Sample, Scope, Severity, Source, Window, sources};

/// Returns the findings while `meanwhile` runs.
fn findings(meanwhile: impl FnOnce()) -> Vec<Finding> {
    let before = sources::here();
    meanwhile();
    judged(&before, &sources::here())
}

fn judged(before: &Sample, now: &Sample) -> Vec<Finding> {
    judged_by(before, now, Limits::USUAL)
}

fn judged_by(before: &Sample, now: &Sample, limits: &Limits) -> Vec<Finding> {
    // Other tests may cause findings about the whole machine.
    let of_machine = |finding: &Finding| finding.scope == Scope::Host;
    everything(before, now, limits).into_iter().filter(|finding| !of_machine(finding)).collect()
}

/// Returns all findings, including those about the whole machine.
fn everything(before: &Sample, now: &Sample, limits: &Limits) -> Vec<Finding> {
    let report = Report::of(&Window::between(before, now).by(limits));
    // The namespace of a thread has no /sys of its own.
    assert!(report.unread.iter().all(|unread| unread.source == Source::Sysfs), "{:?}", report.unread);
    report.findings
}

/// Returns the findings of one rule.
fn of<'a>(findings: &'a [Finding], id: &str) -> Vec<&'a Finding> {
    findings.iter().filter(|finding| finding.id == id).collect()
}

/// Runs a command in this thread's namespace.
#[track_caller]
fn shell(command: &str) {
    let output = testnet::command("sh").args(["-c", command]).output().unwrap();
    assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
}

fn ids(findings: &[Finding]) -> Vec<&str> {
    findings.iter().map(|finding| finding.id.as_str()).collect()
}

fn has(findings: &[Finding], id: &str) -> bool {
    findings.iter().any(|finding| finding.id == id)
}

/// Asserts that these are the findings of a healthy host.
fn assert_healthy(findings: &[Finding]) {
    let bad: Vec<_> = findings.iter().filter(|finding| finding.severity > Severity::Info).collect();
    assert!(bad.is_empty(), "{bad:#?}");
}

#[test]
fn a_healthy_namespace_is_silent() {
    testnet::in_namespace(|| assert_healthy(&findings(|| {})));
}
