//! Runs every fix of every rule, alone and all together in several orders, and judges the host
//! again: the fixed findings must be gone, and no new ones may appear.
//!
//! - `kernel.rs`: in network and mount namespaces of its own, where the commands run exactly as
//!   printed;
//! - `records.rs`: on samples of hosts that no namespace can be, where `apply.rs` applies the
//!   commands;
//! - `cases.rs`: a sample for each rule that has a command.
//!
//! `cargo xtask doctor-fixes` shows the table.
#![expect(clippy::unwrap_used, reason = "tests")]
extern crate firstbyte_doctor as doctor;

mod apply;
mod cases;
mod kernel;
mod records;

use doctor::{Finding, Report, Sample, Window};
use std::collections::BTreeSet;

/// A rule and a place.
type Found = BTreeSet<(String, String)>;

fn judged(before: &Sample, now: &Sample) -> Vec<Finding> {
    Report::of(&Window::between(before, now)).findings
}

fn places(findings: &[Finding]) -> Found {
    findings.iter().map(|finding| (finding.id.clone(), finding.scope.to_string())).collect()
}

/// Commands that can be run on this host.
fn commands(finding: &Finding) -> Vec<&str> {
    let steps = finding.fix.steps.iter().filter(|step| step.obstacle.is_none());
    steps.map(|step| step.command.as_str()).collect()
}

/// Returns whether the fix needs a restart, and says so.
fn restarts(finding: &Finding) -> bool {
    let steps = &mut finding.fix.steps.iter();
    steps.any(|step| step.effect.as_ref().is_some_and(|effect| effect.contains("restart")))
}

/// A seeded random number generator (Marsaglia's xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % u64::try_from(bound).unwrap()).unwrap()
    }

    fn shuffle<T>(&mut self, values: &mut [T]) {
        for at in (1..values.len()).rev() {
            values.swap(at, self.below(at + 1));
        }
    }
}
