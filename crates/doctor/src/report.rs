//! Writes findings for people, programs and monitoring systems.
//!
//! - `report/text.rs`: the verdict, then each finding;
//! - `report/page.rs`: an HTML page;
//! - `report/prometheus.rs`: metrics. The JSON is [`Report`] itself.
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

/// The result of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Version of the layout. It grows when a field changes its meaning.
    pub version: u32,
    /// The release of the kernel that was judged.
    pub kernel: String,
    /// The time that counters cover: "5.0 s", "since boot".
    pub window: String,
    /// The reason why the windows of a watch are longer than requested.
    #[serde(default)]
    pub slowed: Option<Slowed>,
    /// Number of judged rules.
    pub judged: usize,
    /// Rules that could not be judged, with the reasons.
    pub not_judged: Vec<NotJudged>,
    /// Rules that fire on counters since boot, if the window has no warning.
    #[serde(default)]
    pub since_boot: Vec<Past>,
    /// Sources that could not be read.
    pub unread: Vec<Unread>,
    /// Rules that fired and are silenced, with the reason given.
    pub silenced: Vec<Silenced>,
    /// The findings, worst first.
    pub findings: Vec<Finding>,
}

/// Formats a number with its noun: "1 warning", "2 warnings".
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

/// A rule that fired and is silenced.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Silenced {
    /// The id of the rule.
    pub id: String,
    /// Number of findings.
    pub count: usize,
    /// The reason given.
    pub reason: String,
}

impl Report {
    /// Version of the JSON layout.
    pub const VERSION: u32 = 3;

    /// Judges a window by every rule.
    pub fn of(window: &Window<'_>) -> Report {
        Report::by(window, &Policy::default())
    }

    /// Judges a window by every rule, and applies the silenced rules of a policy. The thresholds
    /// are those of the window.
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
        // Worst first. Then certain before likely, and findings with a place before those without.
        report.findings.sort_by_key(|finding| {
            let whole = matches!(finding.scope, Scope::Host | Scope::Namespace);
            (Reverse(finding.severity), finding.confidence, whole)
        });
        report.escape();
        report
    }

    /// Adds rules that fire on counters since boot, if the window has no warning. A problem may
    /// have ended just before the window.
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

    /// Groups the rules that could not be judged by reason.
    fn reasons(&self) -> BTreeMap<&str, Vec<&str>> {
        let mut reasons: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for NotJudged { id, reason } in &self.not_judged {
            reasons.entry(reason).or_default().push(id);
        }
        reasons
    }

    /// Escapes names. Any process or record can contain any name, so they must not
    /// reach a terminal or a script unescaped.
    fn escape(&mut self) {
        // Settings of several numbers contain tabs.
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

    /// Returns the worst severity.
    pub fn worst(&self) -> Option<Severity> {
        self.findings.iter().map(|finding| finding.severity).max()
    }

    /// Returns 0 if nothing is above info, 1 for a warning, 2 for critical.
    pub fn exit_code(&self) -> u8 {
        match self.worst() {
            Some(Severity::Critical) => 2,
            Some(Severity::Warning) => 1,
            _ => 0,
        }
    }

    /// Returns the report as text.
    pub fn text(&self) -> String {
        text::text(self)
    }

    /// Returns the report as one HTML file that loads nothing. `samples` are the samples it was
    /// made from, earliest first. With three or more, evidence is drawn as curves.
    pub fn page(&self, samples: &[Sample]) -> String {
        page::page(self, samples)
    }

    /// Returns the report as OpenMetrics text, which Prometheus reads.
    pub fn prometheus(&self) -> String {
        prometheus::prometheus(self)
    }

    /// Returns a shell script with the commands of all fixes, for a person to read and run. Each
    /// command has its reason above and its undo command below.
    pub fn script(&self) -> String {
        text::script(self)
    }
}
