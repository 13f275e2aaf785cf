//! Repeats the check and shows new and cleared findings.
use super::reading::Looks;
use super::{DoctorArgs, judged, not_done};
use crate::failure::Failure;
use crate::terminal::{is_unread, print};
use doctor::{Finding, Pace, Policy, Report, Slowed, Window};
use std::io::{IsTerminal, stdout};
use std::process::ExitCode;

/// Clears the screen and moves to its top (ECMA-48: ED, CUP).
const CLEAR: &str = "\x1b[2J\x1b[H";

/// Runs until interrupted, until its output is closed, or for the given number of windows. Returns
/// the exit code of the last window.
pub(super) fn run(args: &DoctorArgs, policy: &Policy) -> Result<ExitCode, Failure> {
    let whole = stdout().is_terminal() && !args.json;
    let mut pace = Pace::new(args.interval, args.budget);
    let mut looks = Looks::new(args);
    let mut before = looks.next()?;
    let mut present: Vec<Finding> = Vec::new();
    let mut said = None;
    for count in 1_u64.. {
        std::thread::sleep(pace.rest());
        let now = looks.next()?;
        let mut report = judged(args, policy, &Window::between(&before, &now));
        report.slowed = pace.slowed();
        let text = match () {
            () if args.json => line(&report)?,
            () if whole => format!("{CLEAR}{}", report.text()),
            () => {
                pace_changed(&mut said, report.slowed, now.uptime) + &changes(&present, &report, now.uptime)
            }
        };
        print(&text)?;
        if args.times.is_some_and(|times| count >= u64::from(times)) || is_unread() {
            return Ok(ExitCode::from(report.exit_code()));
        }
        (before, present) = (now, report.findings);
    }
    Ok(ExitCode::SUCCESS)
}

fn line(report: &Report) -> Result<String, Failure> {
    let text = serde_json::to_string(report);
    text.map(|text| text + "\n").map_err(|error| not_done(Failure::failed(error.to_string())))
}

/// Returns a line if the sampling interval has changed: longer than requested, or back to normal.
fn pace_changed(said: &mut Option<f64>, slowed: Option<Slowed>, uptime: f64) -> String {
    let seconds = slowed.map(|slowed| slowed.seconds);
    // Small differences between samples are not a change.
    let is_same = match (*said, seconds) {
        (Some(before), Some(now)) => (now / before - 1.0).abs() < 0.5,
        (before, now) => before == now,
    };
    if is_same {
        return String::new();
    }
    *said = seconds;
    match slowed {
        Some(slowed) => format!("{uptime:.1} sampling {slowed}\n"),
        None => format!("{uptime:.1} sampling at the requested interval\n"),
    }
}

/// Returns a line for each new finding and each cleared one.
fn changes(before: &[Finding], report: &Report, uptime: f64) -> String {
    let same = |one: &Finding, other: &Finding| one.id == other.id && one.scope == other.scope;
    let line = |sign: char, finding: &Finding| {
        let Finding { severity, id, symptom, scope, formula, .. } = finding;
        format!("{uptime:.1} {sign} {severity} {id}  {symptom}  [{scope}]  {formula}\n")
    };
    let come = report.findings.iter().filter(|new| !before.iter().any(|old| same(old, new)));
    let gone = before.iter().filter(|old| !report.findings.iter().any(|new| same(old, new)));
    come.map(|finding| line('+', finding)).chain(gone.map(|finding| line('-', finding))).collect()
}
