//! The rules. A module contains the rules of one subject. The letters of an id name the family.
//!
//! A rule states its needs, its condition and its fix. Its function judges a [`Window`] and returns
//! the places where the condition holds.
mod accept;
mod agreement;
mod buffers;
mod configured;
mod connections;
mod conntrack;
mod cwnd;
mod devices;
mod drops;
mod fast_open;
mod flood;
mod kernels;
mod lines;
mod loss;
mod nics;
mod own;
mod paths;
mod readers;
mod receive;
mod settings;
mod silence;
mod states;
mod syn_queue;
mod transmit;
mod trial;
mod windows;

use crate::change::Act;
pub use crate::change::Change;
pub(crate) use agreement::agree;
pub use kernels::Kernels;

use crate::finding::{Confidence, Evidence, Finding, Fix, Scope, Severity, Step};
use crate::limit::Limit;
use crate::sample::{Owner, Sample, Socket, Source};
use crate::window::Window;

/// A rule.
#[derive(Debug)]
pub struct Rule {
    /// Family and number, like "ACC-01". Never reused.
    pub id: &'static str,
    /// The visible symptom.
    pub symptom: &'static str,
    /// The condition under which it fires, in words.
    pub condition: &'static str,
    /// Why it matters, in one sentence.
    pub why: &'static str,
    /// The advice to the operator.
    pub advice: &'static str,
    /// Settings that fix the problem, by their sysctl(8) names.
    pub settings: &'static [(&'static str, Change)],
    /// Sources that must have been read before the rule can be judged.
    pub needs: &'static [Source],
    /// Kernel versions it applies to. It is not judged on others.
    pub kernels: Kernels,
    /// Confidence that the numbers mean what the finding says.
    pub confidence: Confidence,
    /// Thresholds, which a policy file can set.
    pub limits: &'static [Limit],
    judge: fn(&Window<'_>) -> Vec<Found>,
}

/// A place where a rule fired.
struct Found {
    severity: Severity,
    scope: Scope,
    evidence: Vec<Evidence>,
    formula: String,
    /// Commands that depend on the numbers.
    steps: Vec<Step>,
    /// Texts that replace the rule's own where the numbers allow better ones.
    words: Words,
}

impl Default for Found {
    fn default() -> Found {
        Found {
            severity: Severity::Info,
            scope: Scope::Namespace,
            evidence: Vec::new(),
            formula: String::new(),
            steps: Vec::new(),
            words: Words::default(),
        }
    }
}

/// Texts and confidence that replace the rule's own. `None` keeps the rule's.
#[derive(Default)]
struct Words {
    symptom: Option<String>,
    why: Option<String>,
    advice: Option<String>,
    confidence: Option<Confidence>,
}

impl Rule {
    /// Finds the rule with this id, ignoring case.
    pub fn by_id(id: &str) -> Option<&'static Rule> {
        RULES.iter().copied().find(|rule| rule.id.eq_ignore_ascii_case(id))
    }

    /// Returns the findings of the rule.
    ///
    /// # Errors
    /// Returns the reason if the rule was not judged: a source could not be read, or one sample is
    /// not enough.
    pub fn judge(&self, window: &Window<'_>) -> Result<Vec<Finding>, String> {
        if !self.kernels.hold(window.now.version()) {
            return Err(format!("it applies to Linux {}", self.kernels));
        }
        let lacks = |source: &Source| {
            let unread = |sample: &Sample| sample.unread.iter().any(|unread| unread.source == *source);
            unread(window.now) || window.before().is_some_and(unread)
        };
        let missing: Vec<&str> =
            self.needs.iter().filter(|source| lacks(source)).map(|source| source.name()).collect();
        if !missing.is_empty() {
            return Err(format!("not read: {}", missing.join(", ")));
        }
        let _of_another_rule = window.take_lacking();
        let found = (self.judge)(window);
        match window.take_lacking() {
            Some(reason) if found.is_empty() => Err(reason.to_owned()),
            _ => Ok(found.into_iter().map(|found| self.finding(found, window.now)).collect()),
        }
    }

    fn finding(&self, found: Found, now: &Sample) -> Finding {
        let settings = self.settings.iter().filter_map(|(name, change)| change.step(name, now));
        let steps = settings.chain(found.steps).map(|step| own::words(step, now)).collect();
        let words = found.words;
        Finding {
            id: self.id.to_owned(),
            severity: found.severity,
            scope: found.scope,
            symptom: words.symptom.unwrap_or_else(|| self.symptom.to_owned()),
            evidence: found.evidence,
            formula: found.formula,
            why: words.why.unwrap_or_else(|| self.why.to_owned()),
            fix: Fix { advice: words.advice.unwrap_or_else(|| self.advice.to_owned()), steps },
            kernels: self.kernels.to_string(),
            confidence: words.confidence.unwrap_or(self.confidence),
        }
    }
}

/// All rules, ordered by id.
pub static RULES: std::sync::LazyLock<Vec<&'static Rule>> = std::sync::LazyLock::new(|| {
    let families = [
        accept::RULES,
        buffers::RULES,
        configured::RULES,
        connections::RULES,
        conntrack::RULES,
        cwnd::RULES,
        devices::RULES,
        drops::RULES,
        fast_open::RULES,
        loss::RULES,
        nics::RULES,
        paths::RULES,
        readers::RULES,
        silence::RULES,
        receive::RULES,
        states::RULES,
        syn_queue::RULES,
        transmit::RULES,
        windows::RULES,
    ];
    let mut rules: Vec<&Rule> = families.into_iter().flatten().collect();
    rules.sort_by_key(|rule| rule.id);
    rules
});

/// Returns one finding about the whole namespace if the condition holds.
fn found(holds: bool, severity: Severity, evidence: Vec<Evidence>, formula: String) -> Vec<Found> {
    let found = Found { severity, scope: Scope::Namespace, evidence, formula, ..Found::default() };
    holds.then_some(found).into_iter().collect()
}

/// Returns a finding if the value of a setting is bad.
fn setting(window: &Window<'_>, name: &str, severity: Severity, bad: impl FnOnce(i64) -> bool) -> Vec<Found> {
    let Some(value) = window.now.number(name) else { return Vec::new() };
    found(bad(value), severity, vec![window.set(name)], format!("{name} = {value}"))
}

/// Returns a finding if a counter has grown.
fn counter(window: &Window<'_>, name: &str, severity: Severity) -> Vec<Found> {
    let grown = window.grown(name);
    found(grown > 0, severity, vec![window.counted(name)], format!("{name} +{grown} > 0"))
}

/// The reason why a host-wide setting is not judged in another network namespace.
const OF_HOST: &str = "a setting of the whole host, which this network namespace does not show";

/// Returns the process that owns a socket, as evidence, if this user may see it.
fn holder(window: &Window<'_>, socket: &Socket) -> Option<Evidence> {
    let Owner { pid, name } = window.now.owners.get(&socket.inode)?;
    Some(window.shown("held by", format!("{name}, process {pid}")))
}

/// Returns `part` as a percentage of `whole`, or 0 if `whole` is 0.
fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 * 100.0 / whole as f64 }
}
