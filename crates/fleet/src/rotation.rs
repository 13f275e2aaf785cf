//! Decides whether the plan may advance, or which host blocks it.
use crate::plan::{Plan, Step};
use proto::fast_open::Key;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// A snapshot of a fleet.
#[derive(Clone, Debug, PartialEq)]
pub struct Fleet {
    /// The plan for all hosts.
    pub plan: Plan,
    /// Its hosts, by name.
    pub members: BTreeMap<String, Member>,
}

/// A member host, until an operator removes it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Member {
    /// Version of the plan that it has applied; 0 before the first.
    pub applied: u64,
    /// Its last report; `None` if there is none.
    pub report: Option<Report>,
    /// True if an agent acts for the host now.
    pub is_live: bool,
    /// True if the host's entry in the store is not one of ours. Its agent rewrites it.
    pub is_unreadable: bool,
}

/// The periodic report of a host.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Report {
    /// The version of the plan in use.
    pub version: u64,
    /// Time since the last cookie of the backup key while that version is in use, seconds.
    pub quiet_seconds: f64,
    /// Cookies of the backup key since the counter started.
    pub backup_uses: u64,
}

/// The next step of an operator.
#[derive(Clone, Debug, PartialEq)]
pub enum Move {
    /// Replace the plan that was read by this one, unless it has changed.
    Advance(Plan),
    /// Wait for these hosts; an empty list waits for the first host.
    Wait(Vec<Waiting>),
    /// The rotation is complete: every host has only the new key.
    Complete,
}

/// A host that the plan waits for.
#[derive(Clone, Debug, PartialEq)]
pub struct Waiting {
    /// Name of the host.
    pub host: String,
    /// Reason for waiting.
    pub why: Why,
}

/// Reason for waiting.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Why {
    /// It has not applied the plan: it has this version, or 0 for none.
    Applies(u64),
    /// It has a later plan than the store, which was restored to an older state.
    Ahead(u64),
    /// No agent is running there, so the use of the old key is unknown.
    Away,
    /// The agent is running, and has not reported the use of the old key yet.
    Unreported,
    /// The host's entry in the store cannot be read.
    Unreadable,
    /// A cookie of the old key arrived this many seconds ago, or none arrived since the count began
    /// this many seconds ago.
    Used(f64),
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Why::Applies(0) => f.write_str("has no keys yet"),
            Why::Applies(version) => write!(f, "still has version {version}"),
            Why::Ahead(version) => write!(f, "has version {version}, which is not in the store any more"),
            Why::Away => f.write_str("is away: its agent is not running"),
            Why::Unreported => f.write_str("is running, and has not reported yet"),
            Why::Unreadable => f.write_str(
                "has an unreadable entry in the store: start its agent, or remove it with \
                `firstbyte fleet forget`",
            ),
            Why::Used(seconds) => write!(f, "has seen no cookie of the old key for {seconds:.0} s"),
        }
    }
}

/// A rotation, started or continued by an operator.
#[derive(Clone, Copy, Debug)]
pub struct Rotation {
    quiet: Duration,
    ends_at: Option<u64>,
}

impl Rotation {
    /// Creates a rotation that removes the old key when no host has seen a cookie of it for
    /// `quiet`.
    #[must_use]
    pub fn new(quiet: Duration) -> Rotation {
        Rotation { quiet, ends_at: None }
    }

    /// Returns the next step for the current fleet. `new` makes the new key when a rotation begins.
    pub fn next(&mut self, fleet: &Fleet, new: impl FnOnce() -> Key) -> Move {
        let ends_at = *self.ends_at.get_or_insert(fleet.plan.settled_at());
        let version = fleet.plan.version();
        let waiting = self.waiting(fleet);
        // Another operator may have started the next rotation.
        if version > ends_at || (version == ends_at && waiting.is_empty()) {
            return Move::Complete;
        }
        if fleet.members.is_empty() || !waiting.is_empty() {
            return Move::Wait(waiting);
        }
        Move::Advance(fleet.plan.next(new))
    }

    /// Returns the hosts that block the plan.
    #[must_use]
    pub fn waiting(&self, fleet: &Fleet) -> Vec<Waiting> {
        let held = |(host, member): (&String, &Member)| {
            self.why(&fleet.plan, member).map(|why| Waiting { host: host.clone(), why })
        };
        fleet.members.iter().filter_map(held).collect()
    }

    fn why(&self, plan: &Plan, member: &Member) -> Option<Why> {
        match member.applied {
            _ if member.is_unreadable => return Some(Why::Unreadable),
            applied if applied < plan.version() => return Some(Why::Applies(applied)),
            applied if applied > plan.version() => return Some(Why::Ahead(applied)),
            _ => {}
        }
        // Only the last step removes a key.
        if plan.step() != Step::Switched {
            return None;
        }
        match member.report {
            Some(report) if report.version == plan.version() => {
                let is_quiet = report.quiet_seconds >= self.quiet.as_secs_f64();
                (!is_quiet).then_some(Why::Used(report.quiet_seconds))
            }
            _ if member.is_live || member.report.is_some() => Some(Why::Unreported),
            _ => Some(Why::Away),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proto::fast_open::KeyRing;

    fn fleet(version: u64, members: &[(&str, Member)]) -> Fleet {
        let mut plan = Plan::first(KeyRing::new(Key::from_bytes([1; 16])));
        while plan.version() < version {
            plan = plan.next(|| Key::from_bytes([2; 16]));
        }
        Fleet { plan, members: members.iter().map(|(name, member)| ((*name).to_owned(), *member)).collect() }
    }

    fn reported(applied: u64, quiet_seconds: f64) -> Member {
        let report = Report { version: applied, quiet_seconds, backup_uses: 0 };
        Member { applied, report: Some(report), ..Member::default() }
    }

    fn next(fleet: &Fleet) -> Move {
        Rotation::new(Duration::from_secs(60)).next(fleet, || Key::from_bytes([9; 16]))
    }

    #[test]
    fn a_step_waits_for_every_host() {
        let late = Member { applied: 1, ..Member::default() };
        let ready = Member { applied: 2, ..Member::default() };
        assert!(matches!(next(&fleet(2, &[("a", ready)])), Move::Advance(plan) if plan.version() == 3));
        let Move::Wait(waiting) = next(&fleet(2, &[("a", ready), ("b", late)])) else { panic!() };
        assert_eq!(waiting, [Waiting { host: "b".to_owned(), why: Why::Applies(1) }]);
        assert_eq!(next(&fleet(2, &[])), Move::Wait(Vec::new()));
        let Move::Wait(waiting) = next(&fleet(1, &[("a", ready)])) else { panic!() };
        assert_eq!(waiting[0].why, Why::Ahead(2));
    }

    #[test]
    fn the_former_key_goes_when_no_host_has_seen_its_cookies_for_long() {
        for (member, why) in [
            (reported(3, 60.0), None),
            (reported(3, 59.0), Some(Why::Used(59.0))),
            (Member { applied: 3, ..Member::default() }, Some(Why::Away)),
            (Member { applied: 3, is_live: true, ..Member::default() }, Some(Why::Unreported)),
            (Member { report: reported(2, 99.0).report, ..reported(3, 0.0) }, Some(Why::Unreported)),
            (Member { is_unreadable: true, ..reported(3, 99.0) }, Some(Why::Unreadable)),
        ] {
            match (next(&fleet(3, &[("a", reported(3, 61.0)), ("b", member)])), why) {
                (Move::Advance(plan), None) => assert_eq!(plan.keys().backup(), None),
                (Move::Wait(waiting), Some(why)) => {
                    assert_eq!(waiting, [Waiting { host: "b".to_owned(), why }]);
                }
                (other, _) => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn one_that_begins_in_the_middle_ends_with_that_rotation() {
        let mut rotation = Rotation::new(Duration::ZERO);
        let mut fleet = fleet(2, &[("a", reported(2, 0.0))]);
        let mut moves = 0;
        while let Move::Advance(plan) = rotation.next(&fleet, || unreachable!()) {
            fleet.members.insert("a".to_owned(), reported(plan.version(), 0.0));
            fleet.plan = plan;
            moves += 1;
        }
        assert_eq!((moves, fleet.plan.version(), fleet.plan.step()), (2, 4, Step::Settled));
        // Another operator has started the next rotation: not ours.
        fleet.plan = fleet.plan.next(|| Key::from_bytes([5; 16]));
        assert_eq!(rotation.next(&fleet, || unreachable!()), Move::Complete);
    }
}
