//! Thresholds of rules: defaults, and values from a policy.
use std::collections::BTreeMap;

/// A threshold of a rule.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limit {
    /// The rule's id.
    pub rule: &'static str,
    /// Name of the threshold within the rule.
    pub name: &'static str,
    /// Default value.
    pub value: f64,
    /// The unit: "%", "s", "sockets".
    pub unit: &'static str,
}

/// Values that replace defaults.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Limits(BTreeMap<(String, String), f64>);

impl Limits {
    /// The default of every threshold.
    pub const USUAL: &'static Limits = &Limits(BTreeMap::new());

    /// Sets a threshold.
    pub fn set(&mut self, limit: &Limit, value: f64) {
        self.0.insert((limit.rule.to_owned(), limit.name.to_owned()), value);
    }

    /// Returns the value of a threshold.
    pub fn of(&self, limit: &Limit) -> f64 {
        let chosen = self.0.iter().find(|((rule, name), _)| rule == limit.rule && name == limit.name);
        chosen.map_or(limit.value, |(_, value)| *value)
    }
}
