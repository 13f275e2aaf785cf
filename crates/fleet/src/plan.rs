//! The keys of all hosts.
use proto::fast_open::{Key, KeyRing};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The keys of all hosts, and the step of a rotation. `Debug` does not show the keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    version: u64,
    step: Step,
    keys: KeyRing,
}

/// A step of a rotation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Step {
    /// One key, and no rotation.
    Settled,
    /// The new key is the backup: hosts accept its cookies, but do not make them yet.
    Announced,
    /// The new key is the primary, the old one the backup.
    Switched,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Step::Settled => "settled",
            Step::Announced => "announced",
            Step::Switched => "switched",
        })
    }
}

impl Plan {
    /// Creates the first plan of a fleet. Keys with a backup are in the middle of a rotation: the
    /// backup is the old key.
    #[must_use]
    pub fn first(keys: KeyRing) -> Plan {
        let step = if keys.backup().is_some() { Step::Switched } else { Step::Settled };
        Plan { version: 1, step, keys }
    }

    /// Returns the version: a later plan has a larger one.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Returns the step of the rotation.
    #[must_use]
    pub fn step(&self) -> Step {
        self.step
    }

    /// Returns the keys.
    #[must_use]
    pub fn keys(&self) -> &KeyRing {
        &self.keys
    }

    /// Returns the version of the plan that ends the current rotation, or the next one.
    #[must_use]
    pub fn settled_at(&self) -> u64 {
        self.version
            + match self.step {
                Step::Settled => 3,
                Step::Announced => 2,
                Step::Switched => 1,
            }
    }

    /// Returns the next plan; calls `new` only for the first step.
    #[must_use]
    pub(crate) fn next(&self, new: impl FnOnce() -> Key) -> Plan {
        let primary = self.keys.primary();
        let (step, keys) = match (self.step, self.keys.backup()) {
            (Step::Announced, Some(new)) => (Step::Switched, KeyRing::with_backup(new, primary)),
            (Step::Settled, None) => (Step::Announced, KeyRing::with_backup(primary, new())),
            // Switched: `read` rejects other combinations.
            _ => (Step::Settled, KeyRing::new(primary)),
        };
        Plan { version: self.version + 1, step, keys }
    }

    /// Formats the plan for the store or a file: JSON, with the keys.
    #[must_use]
    pub fn text(&self) -> String {
        let Plan { version, step, keys } = self;
        serde_json::json!({ "version": version, "step": step, "keys": keys.to_string() }).to_string()
    }

    /// Parses a plan.
    ///
    /// # Errors
    /// The plan is invalid. The message does not show the keys.
    pub fn read(text: &str) -> Result<Plan, String> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Text {
            version: u64,
            step: Step,
            keys: String,
        }
        // The position, but not the text, which may be keys.
        let Text { version, step, keys } = serde_json::from_str(text).map_err(|error| {
            format!("invalid plan of keys (line {}, column {})", error.line(), error.column())
        })?;
        let keys: KeyRing = keys.parse().map_err(|error| format!("invalid plan of keys: {error}"))?;
        if keys.has_zero_key() {
            return Err("invalid plan of keys: a key is all zeros, and everybody can make its \
                cookies"
                .to_owned());
        }
        if keys.backup().is_some() != (step != Step::Settled) {
            return Err(format!("invalid plan of keys: {step} with the wrong number of keys"));
        }
        // Leaves room for future rotations.
        if version == 0 || version > u64::MAX / 2 {
            return Err(format!("invalid plan of keys: version {version}"));
        }
        Ok(Plan { version, step, keys })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Key = Key::from_bytes([0xa; 16]);
    const B: Key = Key::from_bytes([0xb; 16]);

    #[test]
    fn a_rotation_has_three_steps() {
        let settled = Plan::first(KeyRing::new(A));
        let announced = settled.next(|| B);
        let switched = announced.next(|| unreachable!());
        let again = switched.next(|| unreachable!());
        let seen = [&settled, &announced, &switched, &again].map(|plan| {
            (plan.version(), plan.step(), plan.keys().primary() == A, plan.keys().backup(), plan.settled_at())
        });
        assert_eq!(
            seen,
            [
                (1, Step::Settled, true, None, 4),
                (2, Step::Announced, true, Some(B), 4),
                (3, Step::Switched, false, Some(A), 4),
                (4, Step::Settled, false, None, 7),
            ]
        );
        assert_eq!(Plan::first(KeyRing::with_backup(B, A)).step(), Step::Switched);
    }

    #[test]
    fn a_plan_survives_the_store_and_its_keys_are_shown_nowhere_else() {
        let plan = Plan::first(KeyRing::new(A)).next(|| B);
        assert_eq!(Plan::read(&plan.text()), Ok(plan.clone()));
        assert!(!format!("{plan:?}").contains("0a0a"), "{plan:?}");
        for wrong in [
            "",
            "{}",
            "0a0a0a0a-0a0a0a0a-0a0a0a0a-0a0a0a0a",
            r#"{"version":1,"step":"settled","keys":"0a0a0a0a"}"#,
            r#"{"version":1,"step":"announced","keys":"0a0a0a0a-0a0a0a0a-0a0a0a0a-0a0a0a0a"}"#,
            r#"{"version":0,"step":"settled","keys":"0a0a0a0a-0a0a0a0a-0a0a0a0a-0a0a0a0a"}"#,
            r#"{"version":1,"step":"settled","keys":"0-0-0-0"}"#,
            r#"{"version":2,"step":"announced","keys":"0a0a0a0a-0a0a0a0a-0a0a0a0a-0a0a0a0a,0-0-0-0"}"#,
            r#"{"version":1,"step":"0a0a0a0a","keys":"0a0a0a0a-0a0a0a0a-0a0a0a0a-0a0a0a0a"}"#,
        ] {
            let why = Plan::read(wrong).unwrap_err();
            assert!(!why.contains("0a0a"), "{why}");
        }
    }
}
