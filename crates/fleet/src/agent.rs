//! The next action of a host, and the order of actions.
//!
//! The order makes it safe to stop at any time. A host takes part before it reads the plan, so that
//! the plan waits for it. It saves a plan before it uses it, so that it has the plan if it restarts
//! without the store. It uses a plan before it confirms it.
use crate::plan::Plan;
use proto::fast_open::KeyRing;

/// The next action. After each one, call the method that reports its result, or [`Agent::failed`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Make sure that these keys are in use; then [`Agent::holds`].
    Hold(KeyRing),
    /// Check that keys can be saved and used here; then [`Agent::checked`]. A host that cannot use
    /// keys must not take part, because every rotation would wait for it.
    Check,
    /// Claim this host's name for this agent, and add the host to the store if it is missing; then
    /// [`Agent::joined`].
    Join,
    /// Read the plan, and this host's entries in the store; then [`Agent::fetched`].
    Fetch,
    /// Save the plan for the next start, readable only by its owner; then [`Agent::saved`].
    Save(Plan),
    /// Record in the store that this version is applied, if the host is still a member; then
    /// [`Agent::confirmed`].
    Confirm(u64),
    /// Report how often the backup key was used while this version is in use; then
    /// [`Agent::reported`].
    Report(u64),
    /// Wait for a while, then [`Agent::wake`].
    Rest,
}

/// The state of a host in a fleet.
#[derive(Clone, Debug)]
pub struct Agent {
    /// The plan that is saved on this host.
    plan: Option<Plan>,
    /// A plan that was read but not saved yet.
    newer: Option<Plan>,
    /// True if its keys are in use, as far as this process knows.
    is_held: bool,
    /// True once keys are known to be saved and usable on this host.
    is_able: bool,
    joined: bool,
    /// True if the store was read since the last rest.
    is_fresh: bool,
    confirmed: u64,
    turn: Turn,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    Hold,
    Store,
    Report,
    Rest,
}

/// The store's plan is older than the plan of this host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Behind {
    /// Version in the store.
    pub store: u64,
    /// Version on this host.
    pub here: u64,
}

impl Agent {
    /// Creates an agent with the plan that an earlier run saved, if any.
    #[must_use]
    pub fn new(saved: Option<Plan>) -> Agent {
        Agent {
            plan: saved,
            newer: None,
            is_held: false,
            is_able: false,
            joined: false,
            is_fresh: false,
            confirmed: 0,
            turn: Turn::Hold,
        }
    }

    /// Returns the plan that this host follows.
    #[must_use]
    pub fn plan(&self) -> Option<&Plan> {
        self.plan.as_ref()
    }

    /// Returns the next action.
    #[must_use]
    pub fn action(&self) -> Action {
        if let Some(newer) = &self.newer {
            return Action::Save(newer.clone());
        }
        let version = self.plan.as_ref().map_or(0, Plan::version);
        match (self.turn, &self.plan) {
            (Turn::Hold, Some(plan)) => Action::Hold(plan.keys().clone()),
            (Turn::Report, Some(_)) if self.confirmed != version => Action::Confirm(version),
            (Turn::Report, Some(_)) => Action::Report(version),
            (Turn::Rest, _) => Action::Rest,
            _ if !self.is_able => Action::Check,
            _ if !self.joined => Action::Join,
            _ => Action::Fetch,
        }
    }

    /// Records that the keys of [`Action::Hold`] are in use.
    pub fn holds(&mut self) {
        self.is_held = true;
        self.turn = if self.is_fresh { Turn::Report } else { Turn::Store };
    }

    /// Records that keys can be saved and used on this host.
    pub fn checked(&mut self) {
        self.is_able = true;
    }

    /// Records that the store has this host's entry and this agent's claim.
    pub fn joined(&mut self) {
        self.joined = true;
    }

    /// Records the plan of the store, and the version that this host has `applied` according to the
    /// store. `None`: the host was removed from the store, or this agent's claim has expired.
    ///
    /// # Errors
    /// [`Behind`]: the current keys stay, and nothing is confirmed.
    pub fn fetched(&mut self, plan: Plan, applied: Option<u64>) -> Result<(), Behind> {
        let Some(applied) = applied else {
            self.joined = false;
            return Ok(());
        };
        (self.confirmed, self.is_fresh) = (applied, true);
        let here = self.plan.as_ref().map_or(0, Plan::version);
        let store = plan.version();
        self.turn = Turn::Hold;
        if store < here {
            self.turn = Turn::Rest;
            return Err(Behind { store, here });
        }
        self.newer = (store > here).then_some(plan);
        Ok(())
    }

    /// Records that the plan of [`Action::Save`] is saved.
    pub fn saved(&mut self) {
        self.plan = self.newer.take().or(self.plan.take());
        (self.turn, self.is_held) = (Turn::Hold, false);
    }

    /// Records that the store has the applied version; `false`: the host was removed from the
    /// store.
    pub fn confirmed(&mut self, is_entered: bool) {
        match is_entered {
            true => self.confirmed = self.plan.as_ref().map_or(0, Plan::version),
            false => (self.joined, self.turn) = (false, Turn::Store),
        }
    }

    /// Records that the report is written.
    pub fn reported(&mut self) {
        self.turn = Turn::Rest;
    }

    /// Records that the action failed: it is repeated after a rest. The current keys stay.
    pub fn failed(&mut self) {
        self.newer = None;
        self.turn = Turn::Rest;
    }

    /// Ends the rest.
    pub fn wake(&mut self) {
        self.is_fresh = false;
        self.turn = if self.is_held { Turn::Store } else { Turn::Hold };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proto::fast_open::Key;

    fn plan(version: u64) -> Plan {
        let mut plan = Plan::first(KeyRing::new(Key::from_bytes([1; 16])));
        while plan.version() < version {
            plan = plan.next(|| Key::from_bytes([2; 16]));
        }
        plan
    }

    #[test]
    fn a_host_takes_part_then_reads_saves_uses_and_confirms() {
        let mut agent = Agent::new(None);
        assert_eq!(agent.action(), Action::Check);
        agent.failed();
        assert_eq!(agent.action(), Action::Rest);
        agent.wake();
        assert_eq!(agent.action(), Action::Check, "who cannot use keys does not take part");
        agent.checked();
        assert_eq!(agent.action(), Action::Join);
        agent.joined();
        assert_eq!(agent.action(), Action::Fetch);
        agent.fetched(plan(2), Some(0)).unwrap();
        assert_eq!(agent.action(), Action::Save(plan(2)));
        agent.saved();
        assert_eq!(agent.action(), Action::Hold(plan(2).keys().clone()));
        agent.holds();
        assert_eq!(agent.action(), Action::Confirm(2));
        agent.confirmed(true);
        assert_eq!(agent.action(), Action::Report(2));
        agent.reported();
        assert_eq!(agent.action(), Action::Rest);
        agent.wake();
        assert_eq!(agent.action(), Action::Fetch);
        agent.fetched(plan(2), Some(2)).unwrap();
        assert_eq!(agent.action(), Action::Hold(plan(2).keys().clone()), "somebody may have changed them");
        agent.holds();
        assert_eq!(agent.action(), Action::Report(2));
    }

    #[test]
    fn without_the_store_the_saved_keys_are_used_and_kept() {
        let mut agent = Agent::new(Some(plan(3)));
        assert_eq!(agent.action(), Action::Hold(plan(3).keys().clone()));
        // The server is not running yet.
        agent.failed();
        agent.wake();
        assert_eq!(agent.action(), Action::Hold(plan(3).keys().clone()));
        agent.holds();
        agent.checked();
        assert_eq!(agent.action(), Action::Join);
        agent.failed();
        agent.wake();
        assert_eq!(agent.action(), Action::Join);
        assert_eq!(agent.plan(), Some(&plan(3)));
    }

    #[test]
    fn a_host_does_not_go_back_with_its_store() {
        let mut agent = Agent::new(Some(plan(3)));
        agent.holds();
        agent.joined();
        assert_eq!(agent.fetched(plan(2), Some(3)), Err(Behind { store: 2, here: 3 }));
        assert_eq!(agent.action(), Action::Rest);
        assert_eq!(agent.plan(), Some(&plan(3)));
    }

    #[test]
    fn a_host_that_was_forgotten_takes_part_anew_before_it_reads_the_plan() {
        let mut agent = Agent::new(Some(plan(1)));
        agent.holds();
        agent.checked();
        agent.joined();
        agent.fetched(plan(2), None).unwrap();
        assert_eq!(agent.action(), Action::Join);
        agent.joined();
        agent.fetched(plan(2), Some(0)).unwrap();
        agent.saved();
        agent.holds();
        assert_eq!(agent.action(), Action::Confirm(2));
        agent.confirmed(false);
        assert_eq!(agent.action(), Action::Join);
    }
}
