//! Thresholds of rules: their usual values, and those that a person has chosen.
use std::collections::BTreeMap;

/// A threshold of a rule.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limit {
    /// The rule's id.
    pub rule: &'static str,
    /// Its name within the rule.
    pub name: &'static str,
    /// Its usual value.
    pub value: f64,
    /// The unit: "%", "s", "sockets".
    pub unit: &'static str,
}

/// Values in place of usual ones.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Limits(BTreeMap<(String, String), f64>);

impl Limits {
    /// Every threshold at its usual value.
    pub const USUAL: &'static Limits = &Limits(BTreeMap::new());

    /// Sets one.
    pub fn set(&mut self, limit: &Limit, value: f64) {
        self.0.insert((limit.rule.to_owned(), limit.name.to_owned()), value);
    }

    /// The value of one.
    pub fn of(&self, limit: &Limit) -> f64 {
        let chosen = self.0.iter().find(|((rule, name), _)| rule == limit.rule && name == limit.name);
        chosen.map_or(limit.value, |(_, value)| *value)
    }
}
