//! The layout of the store, and the conditions for writing to it.
//!
//! ```text
//!  /firstbyte/fleets/NAME/plan            the keys, the step, the version
//!                        /lock            who rotates; ends with a lease
//!                        /hosts/HOST      {"applied":3}; stays until an operator forgets the host
//!                        /claims/HOST     which agent speaks for the host; ends with a lease
//!                        /reports/HOST    what it told lately; ends with a lease
//! ```
use crate::etcd::{Call, Change, Entry, Guard, range, transaction};
use crate::plan::Plan;
use crate::rotation::{Fleet, Member, Report};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The keys of one fleet in the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    folder: String,
}

/// A snapshot of one fleet in the store.
#[derive(Clone, Debug, PartialEq)]
pub struct Stored {
    /// The plan and the hosts; `None` if the fleet does not exist.
    pub fleet: Option<Fleet>,
    /// The lock of a rotation.
    pub lock: Option<Lock>,
    /// The claims of agents, by host name.
    pub claims: BTreeMap<String, Claim>,
    /// Revision at which the plan was written.
    pub plan_changed: i64,
}

/// The lock of a rotation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lock {
    /// Description of its holder.
    pub holder: String,
    /// Lease that ends the lock.
    pub lease: i64,
    created: i64,
}

/// The right of one agent to act for a host, while its lease lives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// Identity of the machine and the stack whose keys the agent sets.
    pub instance: String,
    /// The lease that ends the claim.
    pub lease: i64,
    created: i64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Host {
    applied: u64,
}

/// Longest name, characters.
const NAME_MAX: usize = 200;

/// Checks the name of a fleet or host: letters, digits, `.`, `_` and `-`, as in host names.
///
/// # Errors
/// A message that describes a valid name.
pub fn name(text: &str) -> Result<String, String> {
    let is_fine = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    match text.bytes().all(is_fine) && (1..=NAME_MAX).contains(&text.len()) {
        true => Ok(text.to_owned()),
        false => Err(format!(
            "expected a name of 1 to {NAME_MAX} letters, digits, dots, hyphens and underscores, \
            like a host name"
        )),
    }
}

impl Layout {
    /// Returns the layout of the fleet of this name (see [`name`]).
    #[must_use]
    pub fn new(fleet: &str) -> Layout {
        Layout { folder: format!("/firstbyte/fleets/{fleet}/") }
    }

    /// Reads everything.
    #[must_use]
    pub fn read(&self) -> Call {
        range(&self.folder)
    }

    /// Parses the result of [`Layout::read`].
    ///
    /// An invalid entry of one host only affects that host: rotations wait for it, and other agents
    /// continue.
    ///
    /// # Errors
    /// The plan is invalid. The message shows no key.
    pub fn stored(&self, entries: &[Entry]) -> Result<Stored, String> {
        let (mut plan, mut lock, mut plan_changed) = (None, None, 0);
        let mut claims: BTreeMap<String, Claim> = BTreeMap::new();
        let mut members: BTreeMap<String, Member> = BTreeMap::new();
        let mut reports: BTreeMap<String, Report> = BTreeMap::new();
        for Entry { key, value, created, changed, lease } in entries {
            let wrong = |why: String| format!("{key} in the store: {why}");
            let Some(part) = key.strip_prefix(&self.folder) else { continue };
            match part.split_once('/').unwrap_or((part, "")) {
                ("plan", "") => {
                    (plan, plan_changed) = (Some(Plan::read(value).map_err(wrong)?), *changed);
                }
                ("lock", "") => {
                    lock = Some(Lock { holder: value.clone(), lease: *lease, created: *created });
                }
                ("hosts", host) => {
                    let read = serde_json::from_str::<Host>(value);
                    let (applied, is_unreadable) =
                        read.map_or((0, true), |Host { applied }| (applied, false));
                    members.insert(host.to_owned(), Member { applied, is_unreadable, ..Member::default() });
                }
                ("claims", host) => {
                    let claim = Claim { instance: value.clone(), lease: *lease, created: *created };
                    claims.insert(host.to_owned(), claim);
                }
                ("reports", host) => {
                    // An invalid report counts as missing until the next one.
                    if let Ok(report) = serde_json::from_str(value) {
                        reports.insert(host.to_owned(), report);
                    }
                }
                // An entry of a later release.
                _ => {}
            }
        }
        for (host, member) in &mut members {
            member.report = reports.remove(host);
            member.is_live = claims.contains_key(host);
        }
        Ok(Stored { fleet: plan.map(|plan| Fleet { plan, members }), lock, claims, plan_changed })
    }

    /// Creates the first plan, unless there is one.
    #[must_use]
    pub fn create(&self, plan: &Plan) -> Call {
        transaction(&[Guard::Absent(self.at("plan"))], &[Change::Put(self.at("plan"), plan.text(), 0)])
    }

    /// Takes the lock, if it is free.
    #[must_use]
    pub fn lock(&self, holder: &str, lease: i64) -> Call {
        transaction(
            &[Guard::Absent(self.at("lock"))],
            &[Change::Put(self.at("lock"), holder.to_owned(), lease)],
        )
    }

    /// Writes the next plan, if the plan that was read and the lock are unchanged.
    #[must_use]
    pub fn advance(&self, read: &Stored, plan: &Plan) -> Call {
        let lock = read.lock.as_ref().map_or(0, |lock| lock.created);
        transaction(
            &[Guard::Unchanged(self.at("plan"), read.plan_changed), Guard::Created(self.at("lock"), lock)],
            &[Change::Put(self.at("plan"), plan.text(), 0)],
        )
    }

    /// Adds a host, unless it is a member.
    #[must_use]
    pub fn join(&self, host: &str) -> Call {
        transaction(&[Guard::Absent(self.host(host))], &[Change::Put(self.host(host), applied(0), 0)])
    }

    /// Makes the agent of `instance` act for `host` while `lease` lives. `before` is the claim that
    /// was read, which the new one replaces.
    #[must_use]
    pub fn claim(&self, host: &str, instance: &str, lease: i64, before: Option<&Claim>) -> Call {
        let key = self.at(&format!("claims/{host}"));
        let guard = match before {
            Some(claim) => Guard::Created(key.clone(), claim.created),
            None => Guard::Absent(key.clone()),
        };
        transaction(&[guard], &[Change::Put(key, instance.to_owned(), lease)])
    }

    /// Records that a host has applied this version, if it is still a member.
    #[must_use]
    pub fn confirm(&self, host: &str, version: u64) -> Call {
        transaction(&[Guard::Present(self.host(host))], &[Change::Put(self.host(host), applied(version), 0)])
    }

    /// Writes a host's report, which ends with the lease.
    #[must_use]
    pub fn report(&self, host: &str, report: &Report, lease: i64) -> Call {
        let text = serde_json::to_string(report).unwrap_or_default();
        transaction(&[], &[Change::Put(self.at(&format!("reports/{host}")), text, lease)])
    }

    /// Removes a host.
    #[must_use]
    pub fn forget(&self, host: &str) -> Call {
        transaction(
            &[Guard::Present(self.host(host))],
            &[
                Change::Delete(self.host(host)),
                Change::Delete(self.at(&format!("claims/{host}"))),
                Change::Delete(self.at(&format!("reports/{host}"))),
            ],
        )
    }

    fn at(&self, part: &str) -> String {
        format!("{}{part}", self.folder)
    }

    fn host(&self, host: &str) -> String {
        self.at(&format!("hosts/{host}"))
    }
}

fn applied(version: u64) -> String {
    format!("{{\"applied\":{version}}}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proto::fast_open::{Key, KeyRing};

    fn entry(key: &str, value: &str, changed: i64) -> Entry {
        let key = format!("/firstbyte/fleets/web/{key}");
        Entry { key, value: value.to_owned(), created: 4, changed, lease: 0 }
    }

    #[test]
    fn what_was_written_is_read() {
        let layout = Layout::new("web");
        let plan = Plan::first(KeyRing::new(Key::from_bytes([7; 16])));
        let entries = [
            entry("plan", &plan.text(), 12),
            entry("lock", "root@here", 4),
            entry("hosts/a", &applied(1), 5),
            entry("hosts/b", &applied(0), 6),
            entry("claims/a", "a machine", 7),
            entry("reports/a", r#"{"version":1,"quiet_seconds":2.5,"backup_uses":3}"#, 7),
            entry("reports/gone", r#"{"version":1,"quiet_seconds":2.5,"backup_uses":3}"#, 7),
        ];
        let stored = layout.stored(&entries).unwrap();
        let fleet = stored.fleet.clone().unwrap();
        assert_eq!((&fleet.plan, stored.plan_changed), (&plan, 12));
        let report = Report { version: 1, quiet_seconds: 2.5, backup_uses: 3 };
        assert_eq!(
            fleet.members["a"],
            Member { applied: 1, report: Some(report), is_live: true, is_unreadable: false }
        );
        assert_eq!(fleet.members["b"], Member::default());
        assert_eq!(fleet.members.len(), 2);
        assert_eq!(stored.lock.as_ref().map(|lock| lock.holder.as_str()), Some("root@here"));
        let guards = layout.advance(&stored, &plan).body["compare"].to_string();
        assert!(guards.contains(r#""mod_revision":"12""#) && guards.contains(r#""create_revision":"4""#));
        assert_eq!(layout.stored(&[]).unwrap().fleet, None);
        let why = layout.stored(&[entry("plan", "07070707", 1)]).unwrap_err();
        assert!(why.contains("plan") && !why.contains("0707"), "{why}");
    }

    #[test]
    fn an_entry_that_cannot_be_read_concerns_its_host_alone() {
        let layout = Layout::new("web");
        let plan = Plan::first(KeyRing::new(Key::from_bytes([7; 16])));
        let entries = [
            entry("plan", &plan.text(), 12),
            entry("hosts/a", &applied(1), 5),
            entry("hosts/b", "x", 6),
            entry("hosts/c", r#"{"applied":-1}"#, 6),
            entry("reports/a", "{}", 7),
        ];
        let fleet = layout.stored(&entries).unwrap().fleet.unwrap();
        assert_eq!(fleet.members["a"], Member { applied: 1, ..Member::default() });
        for host in ["b", "c"] {
            assert_eq!(fleet.members[host], Member { is_unreadable: true, ..Member::default() });
        }
    }

    #[test]
    fn a_claim_replaces_only_the_one_that_was_read() {
        let layout = Layout::new("web");
        let first = layout.claim("a", "one", 9, None).body["compare"].to_string();
        assert!(first.contains(r#""create_revision":"0""#), "{first}");
        let stored = layout.stored(&[entry("claims/a", "one", 7)]).unwrap();
        assert_eq!(stored.claims["a"].instance, "one");
        let again = layout.claim("a", "one", 9, stored.claims.get("a")).body["compare"].to_string();
        assert!(again.contains(r#""create_revision":"4""#), "{again}");
    }

    #[test]
    fn names_are_those_of_hosts() {
        assert_eq!(name("web-1.example.org"), Ok("web-1.example.org".to_owned()));
        for wrong in ["", "a/b", "a b", "ä", "\n"] {
            assert!(name(wrong).is_err(), "{wrong}");
        }
    }
}
