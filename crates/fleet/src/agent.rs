//! What a host does next, and in which order.
//!
//! The order is what makes it safe to stop anywhere: a host takes part before it reads the plan (so that the plan waits for it), a plan is
//! saved before it is used (so that a host that starts without the store has it), and used before it is confirmed.
use crate::plan::Plan;
use proto::fast_open::KeyRing;

/// What to do next. After each comes the method that says how it went, or [`Agent::failed`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// See that these keys are in use; then [`Agent::holds`].
    Hold(KeyRing),
    /// Check that keys can be saved and used here; then [`Agent::checked`]. A host that cannot use
    /// keys must not take part, because every rotation would wait for it.
    Check,
    /// Claim this host's name for this agent, and enter the host in the store, unless it is there; then [`Agent::joined`].
    Join,
    /// Read the plan, and what the store has of this host; then [`Agent::fetched`].
    Fetch,
    /// Write the plan where it is found after a restart, for nobody else to read; then [`Agent::saved`].
    Save(Plan),
    /// Write into the store that this version is applied, if this host is still entered there; then [`Agent::confirmed`].
    Confirm(u64),
    /// Tell how often the backup key was used while this version is in use; then [`Agent::reported`].
    Report(u64),
    /// Wait for a while, then [`Agent::wake`].
    Rest,
}

/// A host's part in a fleet.
#[derive(Clone, Debug)]
pub struct Agent {
    /// The plan that is saved here.
    plan: Option<Plan>,
    /// Read, and not yet saved.
    newer: Option<Plan>,
    /// Its keys are in use, as far as this process knows.
    is_held: bool,
    /// True once it is known that keys can be saved and used here.
    is_able: bool,
    joined: bool,
    /// The store was read since the last rest.
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

/// The store's plan is older than the one that this host has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Behind {
    /// The store's version.
    pub store: u64,
    /// This host's.
    pub here: u64,
}

impl Agent {
    /// One that starts with what was saved here, if anything.
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

    /// The plan that this host follows.
    #[must_use]
    pub fn plan(&self) -> Option<&Plan> {
        self.plan.as_ref()
    }

    /// What to do next.
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

    /// The keys of [`Action::Hold`] are in use.
    pub fn holds(&mut self) {
        self.is_held = true;
        self.turn = if self.is_fresh { Turn::Report } else { Turn::Store };
    }

    /// Records that keys can be saved and used here.
    pub fn checked(&mut self) {
        self.is_able = true;
    }

    /// Records that the store has this host's entry and this agent's claim.
    pub fn joined(&mut self) {
        self.joined = true;
    }

    /// Records the plan of the store, and the version that this host has `applied` according to the
    /// store. `None`: the store was told to forget this host, or the claim of this agent has ended.
    ///
    /// # Errors
    /// [`Behind`]: the keys that are in use stay, and nothing is confirmed.
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

    /// The plan of [`Action::Save`] is saved.
    pub fn saved(&mut self) {
        self.plan = self.newer.take().or(self.plan.take());
        (self.turn, self.is_held) = (Turn::Hold, false);
    }

    /// The store knows that this version is applied; `false`: it was told to forget this host.
    pub fn confirmed(&mut self, is_entered: bool) {
        match is_entered {
            true => self.confirmed = self.plan.as_ref().map_or(0, Plan::version),
            false => (self.joined, self.turn) = (false, Turn::Store),
        }
    }

    /// The report is written.
    pub fn reported(&mut self) {
        self.turn = Turn::Rest;
    }

    /// Whatever was to be done has failed: it is tried again after a rest. Keys that are in use stay.
    pub fn failed(&mut self) {
        self.newer = None;
        self.turn = Turn::Rest;
    }

    /// The rest is over.
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
        // The server is not there yet.
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
