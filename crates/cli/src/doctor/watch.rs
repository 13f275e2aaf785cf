//! Window after window: what is found, what came and what has gone.
use super::reading::Looks;
use super::{DoctorArgs, judged, not_done};
use crate::failure::Failure;
use crate::terminal::{is_unread, print};
use doctor::{Finding, Pace, Policy, Report, Slowed, Window};
use std::io::{IsTerminal, stdout};
use std::process::ExitCode;

/// Clears the screen and begins at its top (ECMA-48: ED, CUP).
const CLEAR: &str = "\x1b[2J\x1b[H";

/// Runs until it is interrupted, nobody reads on, or it has judged so many windows; the exit code is that of the last.
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

/// A line where the pace has changed: that it is slower than was asked for, or no longer.
fn pace_changed(said: &mut Option<f64>, slowed: Option<Slowed>, uptime: f64) -> String {
    let seconds = slowed.map(|slowed| slowed.seconds);
    // Each look takes a little more or less than the one before.
    let is_same = match (*said, seconds) {
        (Some(before), Some(now)) => (now / before - 1.0).abs() < 0.5,
        (before, now) => before == now,
    };
    if is_same {
        return String::new();
    }
    *said = seconds;
    match slowed {
        Some(slowed) => format!("{uptime:.1} looks {slowed}\n"),
        None => format!("{uptime:.1} looks as often as was asked for\n"),
    }
}

/// A line for each finding that is new, and each that is gone.
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
