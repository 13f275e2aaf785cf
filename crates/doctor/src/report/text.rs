//! Text for a person: the verdict, then findings by severity. Also writes the fixes as a script.
use super::{Past, Report, counted};
use crate::finding::{Finding, Severity};
use std::collections::BTreeSet;
use std::fmt::Write;

pub(super) fn text(report: &Report) -> String {
    let mut out = verdict(report);
    for finding in &report.findings {
        out.push('\n');
        one(finding, &mut out);
    }
    out
}

/// Most rules since boot that the first line names.
const PAST: usize = 3;

fn verdict(report: &Report) -> String {
    let count = |severity| report.findings.iter().filter(|finding| finding.severity == severity).count();
    let (critical, warning, info) =
        (count(Severity::Critical), count(Severity::Warning), count(Severity::Info));
    let mut out = match report.findings.first() {
        Some(worst) if critical + warning > 0 => {
            format!("{}: {} ({}, {})\n", worst.severity, worst.symptom, worst.scope, worst.id)
        }
        _ if report.since_boot.is_empty() => "no warning\n".to_owned(),
        _ => {
            let names = report.since_boot.iter().map(|Past { id, symptom }| format!("{symptom} ({id})"));
            let names: Vec<String> = names.take(PAST).collect();
            let more = if report.since_boot.len() > PAST { " …" } else { "" };
            format!(
                "no warning in the last {}; since boot: {}{more}; see `firstbyte doctor --since-boot`\n",
                report.window,
                names.join(", ")
            )
        }
    };
    let rules = report.judged;
    let _ = writeln!(
        out,
        "{}, {}: {critical} critical, {}, {info} info; {rules} rules judged",
        if report.kernel.starts_with(|first: char| first.is_ascii_digit()) {
            format!("Linux {}", report.kernel)
        } else {
            report.kernel.clone()
        },
        report.window,
        counted(warning, "warning")
    );
    if let Some(slowed) = &report.slowed {
        let _ = writeln!(out, "{slowed}");
    }
    for unread in &report.unread {
        let root = if unread.root_would_read { " (root could)" } else { "" };
        let _ = writeln!(out, "not read: {}{root}", unread.reason);
    }
    for silenced in &report.silenced {
        let _ = writeln!(
            out,
            "silenced: {} ({}): {}",
            silenced.id,
            counted(silenced.count, "finding"),
            silenced.reason
        );
    }
    for (reason, ids) in report.reasons() {
        let _ = writeln!(out, "not judged: {}: {reason}", ids.join(", "));
    }
    out
}

fn one(finding: &Finding, out: &mut String) {
    let _ = writeln!(out, "{} {}  {}  [{}]", finding.severity, finding.id, finding.symptom, finding.scope);
    for evidence in &finding.evidence {
        let _ = writeln!(out, "    {} = {}  ({})", evidence.name, evidence.value, evidence.window);
    }
    let _ = writeln!(out, "    {}", finding.formula);
    let _ = writeln!(out, "  why  {}", finding.why);
    let _ = writeln!(out, "  fix  {}", finding.fix.advice);
    for step in &finding.fix.steps {
        let _ = writeln!(out, "       {}", step.command);
        if let Some(obstacle) = &step.obstacle {
            let _ = writeln!(out, "         not possible here: {obstacle}");
        }
        if let Some(effect) = &step.effect {
            let _ = writeln!(out, "         takes effect {effect}");
        }
    }
    let _ = writeln!(out, "  confidence {}; kernels {}", finding.confidence, finding.kernels);
}

pub(super) fn script(report: &Report) -> String {
    let mut out = "#!/bin/sh\n# Printed by `firstbyte doctor --fix`, which changed nothing. Read it, then run it as root.\nset -e\n".to_owned();
    let mut seen = BTreeSet::new();
    for finding in &report.findings {
        let fresh: Vec<_> = finding.fix.steps.iter().filter(|step| seen.insert(&step.command)).collect();
        if !fresh.is_empty() || finding.fix.steps.is_empty() {
            let _ = writeln!(
                out,
                "\n# {} {} ({}): {}",
                finding.id, finding.symptom, finding.scope, finding.fix.advice
            );
        } else {
            let (id, symptom, scope) = (&finding.id, &finding.symptom, &finding.scope);
            let _ = writeln!(out, "\n# {id} {symptom} ({scope}): see its commands above.");
        }
        for step in fresh {
            match &step.obstacle {
                None => out.push_str(&step.command),
                Some(obstacle) => {
                    let _ = write!(out, "# not possible on this host ({obstacle}): {}", step.command);
                }
            }
            out.push('\n');
            if let Some(effect) = &step.effect {
                let _ = writeln!(out, "#   takes effect {effect}");
            }
            if let Some(undo) = &step.undo {
                let _ = writeln!(out, "#   undo: {undo}");
            }
            if let Some(persist) = &step.persist {
                let _ = writeln!(out, "#   to make it persistent: {persist}");
            }
        }
    }
    out
}
