//! Findings as a person, a program or a monitoring system reads them.
//!
//! - `report/text.rs`: one screen first, then each finding;
//! - `report/prometheus.rs`: metrics; JSON is [`Report`] itself.
mod prometheus;
mod text;

use crate::finding::{Finding, Severity};
use crate::rules::RULES;
use crate::sample::Unread;
use crate::window::Window;
use serde::{Deserialize, Serialize};

/// Everything a run has found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Of this layout; it grows when a field changes its meaning.
    pub version: u32,
    /// The kernel that was looked at.
    pub kernel: String,
    /// The time the counters were watched: "5.0 s", "since boot".
    pub window: String,
    /// How many rules were judged.
    pub judged: usize,
    /// Ids of rules that could not be judged.
    pub not_judged: Vec<String>,
    /// What could not be read.
    pub unread: Vec<Unread>,
    /// What was found, the worst first.
    pub findings: Vec<Finding>,
}

impl Report {
    /// The layout of its JSON.
    pub const VERSION: u32 = 2;

    /// Judges a window by every rule.
    pub fn of(window: &Window<'_>) -> Report {
        let mut report = Report {
            version: Report::VERSION,
            kernel: window.now.kernel.clone(),
            window: window.name(),
            judged: 0,
            not_judged: Vec::new(),
            unread: window.now.unread.clone(),
            findings: Vec::new(),
        };
        for rule in RULES.iter() {
            match rule.judge(window) {
                Ok(findings) => {
                    report.judged += 1;
                    report.findings.extend(findings);
                }
                Err(_) => report.not_judged.push(rule.id.to_owned()),
            }
        }
        report.findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
        report
    }

    /// The worst severity.
    pub fn worst(&self) -> Option<Severity> {
        self.findings.iter().map(|finding| finding.severity).max()
    }

    /// 0: nothing above info; 1: a warning; 2: critical.
    pub fn exit_code(&self) -> u8 {
        match self.worst() {
            Some(Severity::Critical) => 2,
            Some(Severity::Warning) => 1,
            _ => 0,
        }
    }

    /// As a person reads it.
    pub fn text(&self) -> String {
        text::text(self)
    }

    /// As a monitoring system reads it: Prometheus' text format.
    pub fn prometheus(&self) -> String {
        prometheus::prometheus(self)
    }

    /// A shell script of every command, for a person to read and apply. Each command has its reason above, its undo beside.
    pub fn script(&self) -> String {
        text::script(self)
    }
}
