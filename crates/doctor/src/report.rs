//! Findings as a person, a program or a monitoring system reads them.
//!
//! - `report/text.rs`: one screen first, then each finding;
//! - `report/page.rs`: a page for a browser;
//! - `report/prometheus.rs`: metrics; JSON is [`Report`] itself.
mod page;
mod prometheus;
mod text;

use crate::escape;
use crate::finding::{Finding, Scope, Severity, Step};
use crate::pace::Slowed;
use crate::policy::Policy;
use crate::rules::{self, RULES};
use crate::sample::{Sample, Unread};
use crate::window::Window;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Everything a run has found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Of this layout; it grows when a field changes its meaning.
    pub version: u32,
    /// The kernel that was looked at.
    pub kernel: String,
    /// The time the counters were watched: "5.0 s", "since boot".
    pub window: String,
    /// Of a watch: why its windows are longer than was asked for.
    #[serde(default)]
    pub slowed: Option<Slowed>,
    /// How many rules were judged.
    pub judged: usize,
    /// Rules that could not be judged, with the reasons.
    pub not_judged: Vec<NotJudged>,
    /// Rules that fire on counters since boot, if the window has no warning.
    #[serde(default)]
    pub since_boot: Vec<Past>,
    /// What could not be read.
    pub unread: Vec<Unread>,
    /// Rules that fired and were to be silent, with the reason given.
    pub silenced: Vec<Silenced>,
    /// What was found, the worst first.
    pub findings: Vec<Finding>,
}

/// "1 warning", "2 warnings".
fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// A rule that could not be judged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotJudged {
    /// The id of the rule.
    pub id: String,
    /// The reason.
    pub reason: String,
}

/// A rule that fires on counters since boot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Past {
    /// The id of the rule.
    pub id: String,
    /// The symptom of the rule, in words.
    pub symptom: String,
}

/// A rule that fired and was to be silent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Silenced {
    /// Its id.
    pub id: String,
    /// How often it fired.
    pub count: usize,
    /// The reason given.
    pub reason: String,
}

impl Report {
    /// The layout of its JSON.
    pub const VERSION: u32 = 3;

    /// Judges a window by every rule.
    pub fn of(window: &Window<'_>) -> Report {
        Report::by(window, &Policy::default())
    }

    /// Judges a window by every rule and what a person has decided; thresholds are those of the window.
    pub fn by(window: &Window<'_>, policy: &Policy) -> Report {
        let mut report = Report {
            version: Report::VERSION,
            kernel: window.now.kernel.clone(),
            window: window.name(),
            slowed: None,
            judged: 0,
            not_judged: Vec::new(),
            since_boot: Vec::new(),
            unread: window.now.unread.clone(),
            silenced: Vec::new(),
            findings: Vec::new(),
        };
        let of_stack = window.now.of_stack;
        for rule in RULES.iter().filter(|rule| !of_stack || rule.elsewhere().is_none()) {
            match rule.judge(window) {
                Ok(findings) => {
                    report.judged += 1;
                    report.take(rule.id, findings, policy.silent(rule.id));
                }
                Err(reason) => report.not_judged.push(NotJudged { id: rule.id.to_owned(), reason }),
            }
        }
        rules::agree(&mut report.findings, window);
        // The worst first; of these what is sure before what is only likely, and what names a place before what does not.
        report.findings.sort_by_key(|finding| {
            let whole = matches!(finding.scope, Scope::Host | Scope::Namespace);
            (Reverse(finding.severity), finding.confidence, whole)
        });
        report.escape();
        report
    }

    /// Adds rules that fire on counters since boot, if nothing in the window is a warning. A
    /// problem may have ended just before the window.
    #[must_use]
    pub fn look_back(mut self, now: &Sample, policy: &Policy) -> Report {
        let is_window = self.window != Window::since_boot(now).name();
        if is_window && self.exit_code() == 0 {
            let all = Report::by(&Window::since_boot(now).by(policy.limits()), policy).findings;
            let bad = all.into_iter().filter(|finding| finding.severity > Severity::Info);
            let mut past: Vec<Past> = bad.map(|Finding { id, symptom, .. }| Past { id, symptom }).collect();
            past.dedup_by(|one, other| one.id == other.id);
            self.since_boot = past;
        }
        self
    }

    /// Rules that could not be judged, grouped by the reason.
    fn reasons(&self) -> BTreeMap<&str, Vec<&str>> {
        let mut reasons: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for NotJudged { id, reason } in &self.not_judged {
            reasons.entry(reason).or_default().push(id);
        }
        reasons
    }

    /// Names are chosen by whoever starts a process or sends a record: none may reach a terminal as a command, or a script as another line.
    fn escape(&mut self) {
        // Settings of several numbers have tabs between them.
        let is_unsafe = |c| c != '\t' && escape::is_unsafe(c);
        let escape = |text: &mut String| {
            if text.contains(is_unsafe) {
                *text = escape::escaped(text, is_unsafe);
            }
        };
        escape(&mut self.kernel);
        self.unread.iter_mut().for_each(|unread| escape(&mut unread.reason));
        for finding in &mut self.findings {
            if let Scope::Peer(name) | Scope::Socket(name) | Scope::Device(name) = &mut finding.scope {
                escape(name);
            }
            let Finding { symptom, formula, why, fix, .. } = finding;
            [symptom, formula, why, &mut fix.advice].into_iter().for_each(escape);
            for evidence in &mut finding.evidence {
                [&mut evidence.name, &mut evidence.value].into_iter().for_each(escape);
            }
            for Step { command, persist, undo, obstacle, effect, .. } in &mut finding.fix.steps {
                let words = std::iter::once(command).chain(persist).chain(undo);
                words.chain(obstacle).chain(effect).for_each(escape);
            }
        }
    }

    fn take(&mut self, id: &str, findings: Vec<Finding>, silent: Option<&str>) {
        match silent {
            None => self.findings.extend(findings),
            Some(_) if findings.is_empty() => {}
            Some(reason) => {
                let (id, reason) = (id.to_owned(), reason.to_owned());
                self.silenced.push(Silenced { id, count: findings.len(), reason });
            }
        }
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

    /// As a browser shows it: one file that fetches nothing. `samples` are those that it was made of, the earliest first: from three on,
    /// evidence is drawn over them.
    pub fn page(&self, samples: &[Sample]) -> String {
        page::page(self, samples)
    }

    /// As a monitoring system reads it: OpenMetrics, which Prometheus' own format is a part of.
    pub fn prometheus(&self) -> String {
        prometheus::prometheus(self)
    }

    /// A shell script of every command, for a person to read and apply. Each command has its reason above, its undo beside.
    pub fn script(&self) -> String {
        text::script(self)
    }
}
