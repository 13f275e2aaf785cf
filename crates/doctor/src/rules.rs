//! The rules: one file a family, each rule a value that can be read alone.
//!
//! A rule says what it needs, when it fires and what mends it; its function looks at a [`Window`] and says where.
mod accept;
mod fast_open;
mod loss;
mod receive;
mod states;
mod transmit;
mod windows;

use crate::finding::{Evidence, Finding, Fix, Scope, Severity};
use crate::sample::{Sample, Source};
use crate::window::Window;
use std::fmt;

/// A rule.
#[derive(Debug)]
pub struct Rule {
    /// "ACC-01": the family and a number that stays.
    pub id: &'static str,
    /// What one sees.
    pub symptom: &'static str,
    /// When it fires, in words.
    pub condition: &'static str,
    /// Why it matters, in one sentence.
    pub why: &'static str,
    /// What a person does about it.
    pub advice: &'static str,
    /// Settings that mend it, by their name for sysctl(8).
    pub settings: &'static [(&'static str, Change)],
    /// What must have been read to judge it.
    pub needs: &'static [Source],
    judge: fn(&Window<'_>) -> Vec<Found>,
}

/// What becomes of a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// This value.
    To(&'static str),
    /// At least this number: a larger one stays.
    AtLeast(i64),
    /// These bits are set, the others stay.
    Set(i64),
    /// These bits are cleared, the others stay.
    Clear(i64),
}

impl Change {
    /// The new value, unless the present one is right already.
    fn apply(self, present: &str) -> Option<String> {
        let number = || present.trim().parse::<i64>().ok();
        let value = match self {
            Change::To(value) => value.to_owned(),
            Change::AtLeast(least) => number()?.max(least).to_string(),
            Change::Set(bits) => (number()? | bits).to_string(),
            Change::Clear(bits) => (number()? & !bits).to_string(),
        };
        let same = value.split_whitespace().eq(present.split_whitespace());
        (!same).then_some(value)
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Change::To(value) => write!(f, "= {value}"),
            Change::AtLeast(least) => write!(f, ">= {least}"),
            Change::Set(bits) => write!(f, "with the bits {bits:#x}"),
            Change::Clear(bits) => write!(f, "without the bits {bits:#x}"),
        }
    }
}

/// Where a rule fired.
struct Found {
    severity: Severity,
    scope: Scope,
    evidence: Vec<Evidence>,
    formula: String,
}

impl Rule {
    /// The rule of that id, in any case.
    pub fn by_id(id: &str) -> Option<&'static Rule> {
        RULES.iter().copied().find(|rule| rule.id.eq_ignore_ascii_case(id))
    }

    /// What it finds, or the sources that it lacks.
    ///
    /// # Errors
    /// The sources that could not be read: it was not judged.
    pub fn judge(&self, window: &Window<'_>) -> Result<Vec<Finding>, Vec<Source>> {
        let lacks = |source: &Source| {
            let unread = |sample: &Sample| sample.unread.iter().any(|unread| unread.source == *source);
            unread(window.now) || window.before().is_some_and(unread)
        };
        let missing: Vec<Source> = self.needs.iter().copied().filter(lacks).collect();
        if !missing.is_empty() {
            return Err(missing);
        }
        Ok((self.judge)(window).into_iter().map(|found| self.finding(found, window.now)).collect())
    }

    fn finding(&self, found: Found, now: &Sample) -> Finding {
        // Without those that this kernel lacks, or that are already as they should be.
        let changes: Vec<(&str, String, &str)> = self
            .settings
            .iter()
            .filter_map(|(name, change)| {
                let present = now.setting(name)?;
                Some((*name, change.apply(present)?, present))
            })
            .collect();
        let command = |name: &str, value: &str| format!("sysctl -w {name}=\"{value}\"");
        let fix = Fix {
            advice: self.advice.to_owned(),
            commands: changes.iter().map(|(name, value, _)| command(name, value)).collect(),
            persist: changes.iter().map(|(name, value, _)| format!("{name} = {value}")).collect(),
            undo: changes.iter().map(|(name, _, present)| command(name, present)).collect(),
        };
        Finding {
            id: self.id.to_owned(),
            severity: found.severity,
            scope: found.scope,
            symptom: self.symptom.to_owned(),
            evidence: found.evidence,
            formula: found.formula,
            why: self.why.to_owned(),
            fix,
        }
    }
}

/// All rules, in the order of their ids.
pub static RULES: std::sync::LazyLock<Vec<&'static Rule>> = std::sync::LazyLock::new(|| {
    let families = [
        accept::RULES,
        loss::RULES,
        fast_open::RULES,
        receive::RULES,
        states::RULES,
        transmit::RULES,
        windows::RULES,
    ];
    let mut rules: Vec<&Rule> = families.into_iter().flatten().collect();
    rules.sort_by_key(|rule| rule.id);
    rules
});

/// What a rule finds about the namespace as a whole, if its condition holds.
fn found(holds: bool, severity: Severity, evidence: Vec<Evidence>, formula: String) -> Vec<Found> {
    if holds { vec![Found { severity, scope: Scope::Namespace, evidence, formula }] } else { Vec::new() }
}

/// What a rule finds where a setting has a value it should not have.
fn setting(window: &Window<'_>, name: &str, severity: Severity, bad: impl FnOnce(i64) -> bool) -> Vec<Found> {
    let Some(value) = window.now.number(name) else { return Vec::new() };
    found(bad(value), severity, vec![window.set(name)], format!("{name} = {value}"))
}

/// What a rule finds where a counter has grown.
fn counter(window: &Window<'_>, name: &str, severity: Severity) -> Vec<Found> {
    let grown = window.grown(name);
    found(grown > 0, severity, vec![window.counted(name)], format!("{name} +{grown} > 0"))
}

/// A part in percent, 0 of nothing.
fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 * 100.0 / whole as f64 }
}

#[cfg(test)]
mod tests {
    use super::Change;

    #[test]
    fn a_fix_keeps_larger_values_and_other_bits() {
        assert_eq!(Change::AtLeast(4096).apply("128").as_deref(), Some("4096"));
        assert_eq!(Change::AtLeast(4096).apply("65535"), None);
        assert_eq!(Change::Set(1).apply("2").as_deref(), Some("3"));
        assert_eq!(Change::Clear(0x204).apply("517").as_deref(), Some("1"));
        assert_eq!(Change::To("1024 65535").apply("1024\t65535"), None);
        assert_eq!(Change::AtLeast(1).apply("text"), None);
    }
}
