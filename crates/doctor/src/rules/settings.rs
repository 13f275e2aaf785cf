//! Settings of sysctl(8) that mend a finding.
use super::{Rule, own};
use crate::escape;
use crate::finding::{Finding, Step};
use crate::sample::Sample;
use std::collections::BTreeMap;
use std::fmt;

/// What becomes of a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// This value.
    To(&'static str),
    /// At least this number: a larger one stays.
    AtLeast(i64),
    /// At most this number: a smaller one stays.
    AtMost(i64),
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
            Change::AtMost(most) => number()?.min(most).to_string(),
            Change::Set(bits) => (number()? | bits).to_string(),
            Change::Clear(bits) => (number()? & !bits).to_string(),
        };
        let same = value.split_whitespace().eq(present.split_whitespace());
        (!same).then_some(value)
    }
}

impl Change {
    /// The step that makes it so, unless it is so already.
    pub(super) fn step(self, name: &str, now: &Sample) -> Option<Step> {
        let Some(present) = now.setting(name) else {
            let value = match self {
                Change::To(value) => value.to_owned(),
                Change::AtLeast(number) | Change::AtMost(number) => number.to_string(),
                Change::Set(_) | Change::Clear(_) => return None,
            };
            // What a kernel does not have it does not need.
            let obstacle = Some(obstacle(name, now)?);
            return Some(Step { command: command(name, &value), obstacle, ..Step::default() });
        };
        let value = self.apply(present)?;
        Some(set_to(name, &value, now))
    }
}

/// Gives a setting that several findings change one new value, which is right for all of them: each of their steps begins with the present
/// one, and the last that was run would undo the others.
pub(crate) fn merge(findings: &mut [Finding], now: &Sample) {
    let mut wanted: BTreeMap<&str, Vec<Change>> = BTreeMap::new();
    for rule in findings.iter().filter_map(|finding| Rule::by_id(&finding.id)) {
        for (name, change) in rule.settings {
            let changes = wanted.entry(name).or_default();
            if !changes.contains(change) {
                changes.push(*change);
            }
        }
    }
    for (name, changes) in wanted.into_iter().filter(|(_, changes)| changes.len() > 1) {
        let Some(present) = now.setting(name) else { continue };
        let after = |value: String, change: &Change| change.apply(&value).unwrap_or(value);
        let value = changes.iter().fold(present.to_owned(), after);
        let alone: Vec<Step> = changes
            .iter()
            .filter_map(|change| change.step(name, now))
            .map(|step| own::words(step, now))
            .collect();
        let merged = own::words(set_to(name, &value, now), now);
        for step in findings.iter_mut().flat_map(|finding| &mut finding.fix.steps) {
            if alone.contains(step) {
                *step = merged.clone();
            }
        }
    }
}

/// The step that gives a setting this value.
pub(super) fn set_to(name: &str, value: &str, now: &Sample) -> Step {
    Step {
        command: command(name, value),
        persist: Some(format!("a line in /etc/sysctl.d/: {name} = {value}")),
        undo: Some(command(name, now.setting(name).unwrap_or_default())),
        obstacle: obstacle(name, now),
    }
}

/// The command that gives a setting this value.
pub(super) fn command(name: &str, value: &str) -> String {
    format!("sysctl -w {}={}", escape::word(name), escape::value(value))
}

fn obstacle(name: &str, now: &Sample) -> Option<String> {
    let whole_host =
        !now.of_stack && !now.is_first_namespace() && WHOLE_HOST.iter().any(|known| name.starts_with(known));
    whole_host.then(|| "a setting of the whole host: change it in its first network namespace".to_owned())
}

/// What is changed only in the namespace that the host booted with, and hidden from others or read-only there.
const WHOLE_HOST: [&str; 6] = [
    "net.core.rmem_",
    "net.core.wmem_",
    "net.core.netdev_",
    "net.ipv4.tcp_mem",
    "net.ipv4.tcp_max_orphans",
    "net.ipv4.tcp_allowed_congestion_control",
];

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Change::To(value) => write!(f, "= {value}"),
            Change::AtLeast(least) => write!(f, ">= {least}"),
            Change::AtMost(most) => write!(f, "<= {most}"),
            Change::Set(bits) => write!(f, "with the bits {bits:#x}"),
            Change::Clear(bits) => write!(f, "without the bits {bits:#x}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Change;
    use crate::{Report, Sample, Window};

    #[test]
    fn a_fix_keeps_larger_values_and_other_bits() {
        assert_eq!(Change::AtLeast(4096).apply("128").as_deref(), Some("4096"));
        assert_eq!(Change::AtLeast(4096).apply("65535"), None);
        assert_eq!(Change::AtMost(10_000).apply("120000").as_deref(), Some("10000"));
        assert_eq!(Change::AtMost(10_000).apply("1000"), None);
        assert_eq!(Change::Set(1).apply("2").as_deref(), Some("3"));
        assert_eq!(Change::Clear(0x204).apply("517").as_deref(), Some("1"));
        assert_eq!(Change::To("1024 65535").apply("1024\t65535"), None);
        assert_eq!(Change::AtLeast(1).apply("text"), None);
    }

    #[test]
    fn what_several_findings_ask_of_one_setting_is_one_value() {
        let mut sample = Sample { kernel: "6.18.0".into(), ..Sample::default() };
        sample.settings.insert("net.ipv4.tcp_fastopen".into(), "1799".into());
        let commands = |sample: &Sample| {
            let report = Report::of(&Window::since_boot(sample));
            let of_switch = report.findings.iter().filter(|finding| finding.id.starts_with("TFO-1"));
            of_switch.map(|finding| finding.fix.steps[0].command.clone()).collect::<Vec<_>>()
        };
        assert_eq!(commands(&sample), ["sysctl -w net.ipv4.tcp_fastopen=\"3\""; 3]);
        sample.of_stack = true;
        assert_eq!(commands(&sample), ["firstbyte sysctl --stack -w net.ipv4.tcp_fastopen=\"3\""; 3]);
    }
}
