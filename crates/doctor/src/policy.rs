//! Thresholds and silenced rules that a person has chosen, each silenced rule with its reason.
//!
//! The file is TOML, with a table for each rule:
//!
//! ```
//! let policy = firstbyte_doctor::Policy::parse("
//!     [CC-07]
//!     share = 2.5                      # names and units: `firstbyte doctor explain CC-07`
//!     [TX-09]
//!     silent = 'a tunnel, and its peers know the MSS'
//! ").unwrap();
//! assert_eq!(policy.silent("TX-09"), Some("a tunnel, and its peers know the MSS"));
//! ```
use crate::limit::Limits;
use crate::rules::Rule;
use std::collections::BTreeMap;
use toml::Value;

/// Thresholds and silenced rules.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Policy {
    limits: Limits,
    silent: BTreeMap<String, String>,
}

impl Policy {
    /// Parses a policy.
    ///
    /// # Errors
    /// Returns a message that names the table: unknown rule, unknown threshold, not a number, or a
    /// silenced rule without a reason.
    pub fn parse(text: &str) -> Result<Policy, String> {
        let file: BTreeMap<String, BTreeMap<String, Value>> =
            toml::from_str(text).map_err(|error| error.to_string())?;
        let mut policy = Policy::default();
        for (id, entries) in file {
            let rule = Rule::by_id(&id)
                .ok_or_else(|| format!("[{id}]: unknown rule; `firstbyte doctor rules` lists all"))?;
            for (name, value) in entries {
                policy.take(rule, &name, &value)?;
            }
        }
        Ok(policy)
    }

    fn take(&mut self, rule: &Rule, name: &str, value: &Value) -> Result<(), String> {
        let id = rule.id;
        if name == "silent" {
            let reason = value.as_str().map(str::trim).filter(|reason| !reason.is_empty());
            let reason =
                reason.ok_or_else(|| format!("[{id}]: `silent` must be a text that gives the reason"))?;
            self.silent.insert(id.to_owned(), reason.to_owned());
            return Ok(());
        }
        let limit = rule.limits.iter().find(|limit| limit.name == name).ok_or_else(|| {
            let names: Vec<&str> = rule.limits.iter().map(|limit| limit.name).chain(["silent"]).collect();
            format!("[{id}]: unknown key `{name}`; it has {}", names.join(", "))
        })?;
        let number = value.as_float().or_else(|| value.as_integer().map(|value| value as f64));
        let number = number.filter(|number| number.is_finite() && *number >= 0.0);
        let number = number
            .ok_or_else(|| format!("[{id}]: `{name}` must be a number of {}, at least 0", limit.unit))?;
        self.limits.set(limit, number);
        Ok(())
    }

    /// Returns the thresholds.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Returns the reason why this rule is silenced, or `None` if it is not.
    pub fn silent(&self, id: &str) -> Option<&str> {
        self.silent.get(id).map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::Policy;

    #[test]
    fn what_a_file_may_not_say_is_named() {
        for (text, words) in [
            ("[XX-01]\nshare = 1", "unknown rule"),
            ("[CC-07]\nlimit = 1", "unknown key `limit`; it has share, critical, silent"),
            ("[CC-07]\nshare = 'x'", "`share` must be a number of %"),
            ("[CC-07]\nshare = -1", "at least 0"),
            ("[CC-07]\nsilent = ''", "`silent` must be a text"),
            ("[CC-07", "TOML parse error at line 1"),
        ] {
            let error = Policy::parse(text).unwrap_err();
            assert!(error.contains(words), "{text}: {error}");
        }
    }
}
