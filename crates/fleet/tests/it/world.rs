//! Hosts, operators, clients and a store in virtual time, and their invariants after every event.
use firstbyte_fleet::{
    Action, Agent, Fleet, Key, KeyRing, Member, Move, Plan, Quiet, Report, Rotation, Step,
};
use std::collections::BTreeMap;
use std::time::Duration;

pub(crate) const HOSTS: usize = 4;
pub(crate) const OPERATORS: usize = 2;
/// Time without cookies after which the old key is removed.
const QUIET: Duration = Duration::from_secs(20);
/// Interval of a client that is never rejected, seconds. Reports are as old as the agents' last
/// turn.
const OFTEN: u64 = 10;
const CLIENTS: usize = 3;

/// Result of a process's action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    Done,
    /// The action succeeds, but the process sees a failure.
    AnswerLost,
    Fails,
    DiesBefore,
    DiesAfter,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Event {
    Agent(usize, How),
    AgentStarts(usize),
    Reboots(usize),
    LosesItsDisk(usize),
    /// Forgotten by an operator who knows that it is down.
    IsForgotten(usize),
    Network(usize, bool),
    Store(bool),
    Operator(usize, How),
    LockExpires,
    ReportExpires(usize),
    /// A visit of a client with irregular visits.
    Visit(usize),
    SecondsPass(u64),
}

pub(crate) struct World {
    now: u64,
    store: Store,
    hosts: Vec<Host>,
    operators: [Operator; OPERATORS],
    /// Clients with regular visits. A cookie is the key that made it.
    regular: [Client; CLIENTS],
    rare: Client,
    retired: Vec<Key>,
    keys_made: u8,
    /// The number of actions until one is interrupted, and its result.
    cut: Option<(usize, How)>,
}

struct Store {
    is_up: bool,
    plan: Plan,
    changed: u64,
    lock: Option<(usize, u64)>,
    revision: u64,
    applied: BTreeMap<usize, u64>,
    reports: BTreeMap<usize, Report>,
}

#[derive(Default)]
struct Host {
    disk: Option<Plan>,
    /// The host's keys; `None`: it does not serve until its agent has set keys.
    keys: Option<KeyRing>,
    agent: Option<Agent>,
    quiet: Quiet,
    booted: u64,
    uses: u64,
    is_connected: bool,
}

/// The fleet, the revision of its plan, and the holder of the lock with its start time.
type Seen = (Fleet, u64, Option<(usize, u64)>);

#[derive(Default)]
struct Operator {
    rotation: Option<Rotation>,
    seen: Option<Seen>,
    completed: usize,
}

#[derive(Clone, Copy, Default)]
struct Client {
    cookie: Option<Key>,
    came: u64,
}

impl World {
    pub(crate) fn new() -> World {
        let plan = Plan::first(KeyRing::new(Key::from_bytes([1; 16])));
        World {
            now: 0,
            store: Store {
                is_up: true,
                plan,
                changed: 1,
                lock: None,
                revision: 1,
                applied: BTreeMap::new(),
                reports: BTreeMap::new(),
            },
            hosts: (0..HOSTS).map(|_| Host { is_connected: true, ..Host::default() }).collect(),
            operators: Default::default(),
            regular: [Client::default(); CLIENTS],
            rare: Client::default(),
            retired: Vec::new(),
            keys_made: 1,
            cut: None,
        }
    }

    pub(crate) fn play(&mut self, event: Event) {
        match event {
            Event::Agent(host, how) => self.agent(host, how),
            Event::AgentStarts(host) => self.start(host),
            Event::Reboots(host) => self.reboot(host),
            Event::LosesItsDisk(host) => {
                self.reboot(host);
                self.hosts[host].disk = None;
            }
            Event::IsForgotten(host) => {
                if self.hosts[host].keys.is_none() && self.hosts[host].agent.is_none() {
                    self.store.applied.remove(&host);
                    self.store.reports.remove(&host);
                }
            }
            Event::Network(host, is_there) => self.hosts[host].is_connected = is_there,
            Event::Store(is_up) => self.store.is_up = is_up,
            Event::Operator(operator, how) => self.operator(operator, how),
            Event::LockExpires => self.store.lock = None,
            Event::ReportExpires(host) => drop(self.store.reports.remove(&host)),
            Event::Visit(host) => {
                let mut client = self.rare;
                if self.visit(&mut client, host) == Some(false) {
                    let lost = self.rare.cookie.unwrap();
                    assert!(self.retired.contains(&lost), "refused a key that is not retired");
                }
                self.rare = client;
            }
            Event::SecondsPass(seconds) => self.pass(seconds),
        }
        self.check();
    }

    /// Checks that every host accepts the cookies of every other host.
    fn check(&self) {
        for (from, maker) in self.hosts.iter().enumerate() {
            for (to, taker) in self.hosts.iter().enumerate() {
                let (Some(maker), Some(taker)) = (&maker.keys, &taker.keys) else { continue };
                assert!(takes(taker, maker.primary()), "host {to} refuses what host {from} makes");
            }
        }
    }

    fn reboot(&mut self, host: usize) {
        let now = self.now;
        let host = &mut self.hosts[host];
        (host.keys, host.agent, host.booted, host.uses) = (None, None, now, 0);
    }

    fn start(&mut self, host: usize) {
        let host = &mut self.hosts[host];
        if host.agent.is_none() {
            (host.agent, host.quiet) = (Some(Agent::new(host.disk.clone())), Quiet::default());
        }
    }

    fn agent(&mut self, at: usize, how: How) {
        let how = self.cut_here(how);
        let (now, host, store) = (self.now, &mut self.hosts[at], &mut self.store);
        let Some(agent) = &mut host.agent else { return };
        if how == How::DiesBefore {
            host.agent = None;
            return;
        }
        if how == How::Fails {
            return agent.failed();
        }
        let is_reached = store.is_up && host.is_connected;
        match agent.action() {
            Action::Hold(keys) => {
                host.keys = Some(keys);
                agent.holds();
            }
            Action::Save(plan) => {
                host.disk = Some(plan);
                agent.saved();
            }
            Action::Check => agent.checked(),
            Action::Rest => return agent.wake(),
            _ if !is_reached => agent.failed(),
            Action::Join => {
                store.applied.entry(at).or_insert(0);
                agent.joined();
            }
            Action::Fetch => {
                agent
                    .fetched(store.plan.clone(), store.applied.get(&at).copied())
                    .expect("the store never goes back");
            }
            Action::Confirm(version) => {
                let entry = store.applied.get_mut(&at);
                agent.confirmed(entry.is_some());
                if let Some(applied) = entry {
                    *applied = version;
                }
            }
            Action::Report(version) => {
                let uptime = Duration::from_secs(now - host.booted);
                let quiet = host.quiet.observe(Duration::from_secs(now), version, uptime, host.uses);
                let report = Report { version, quiet_seconds: quiet.as_secs_f64(), backup_uses: host.uses };
                store.reports.insert(at, report);
                agent.reported();
            }
        }
        match how {
            How::DiesAfter => host.agent = None,
            How::AnswerLost => host.agent.iter_mut().for_each(Agent::failed),
            _ => {}
        }
    }

    /// Acts on a snapshot that may be old by then.
    fn operator(&mut self, at: usize, how: How) {
        let how = self.cut_here(how);
        if how == How::DiesBefore {
            self.operators[at] = Operator { completed: self.operators[at].completed, ..Operator::default() };
            return;
        }
        if how == How::Fails || !self.store.is_up {
            return;
        }
        let store = &mut self.store;
        let operator = &mut self.operators[at];
        let Some((fleet, changed, lock)) = operator.seen.take() else {
            let member = |(host, applied): (&usize, &u64)| {
                let report = store.reports.get(host).copied();
                (host.to_string(), Member { applied: *applied, report, ..Member::default() })
            };
            let members = store.applied.iter().map(member).collect();
            operator.seen = Some((Fleet { plan: store.plan.clone(), members }, store.changed, store.lock));
            return;
        };
        match lock {
            None if store.lock.is_none() => {
                store.revision += 1;
                store.lock = Some((at, store.revision));
            }
            Some((holder, _)) if holder == at => {
                let next = self.keys_made + 1;
                let rotation = operator.rotation.get_or_insert(Rotation::new(QUIET));
                match rotation.next(&fleet, || Key::from_bytes([next; 16])) {
                    Move::Advance(plan) if store.changed == changed && store.lock == lock => {
                        if plan.step() == Step::Announced {
                            self.keys_made = next;
                        }
                        self.retired
                            .extend(store.plan.keys().backup().filter(|_| plan.step() == Step::Settled));
                        store.revision += 1;
                        (store.plan, store.changed) = (plan, store.revision);
                    }
                    Move::Complete => {
                        store.lock = None;
                        (operator.rotation, operator.completed) = (None, operator.completed + 1);
                    }
                    _ => {}
                }
            }
            _ => {}
        }
        if how == How::DiesAfter {
            operator.rotation = None;
        }
    }

    /// Returns `Some(false)` if rejected, `None` if the host does not serve.
    fn visit(&mut self, client: &mut Client, host: usize) -> Option<bool> {
        let host = &mut self.hosts[host];
        let keys = host.keys.as_ref()?;
        client.came = self.now;
        let is_taken = client.cookie.is_none_or(|cookie| takes(keys, cookie));
        host.uses += u64::from(client.cookie.is_some() && client.cookie == keys.backup());
        client.cookie = Some(keys.primary());
        Some(is_taken)
    }

    fn pass(&mut self, seconds: u64) {
        self.now += seconds;
        for at in 0..CLIENTS {
            let mut client = self.regular[at];
            if self.now < client.came + OFTEN / 2 {
                continue;
            }
            // Each visit goes to another host.
            let start = usize::try_from(self.now).unwrap() + at;
            let host =
                (start..start + HOSTS).map(|host| host % HOSTS).find(|host| self.hosts[*host].keys.is_some());
            let since = self.now - client.came;
            if let Some(host) = host
                && self.visit(&mut client, host) == Some(false)
            {
                assert!(since > OFTEN, "a client that came {since} s ago is refused");
            }
            self.regular[at] = client;
        }
    }

    pub(crate) fn heal(&mut self) {
        self.store.is_up = true;
        for at in 0..HOSTS {
            self.hosts[at].is_connected = true;
            self.start(at);
        }
    }

    /// Lets everybody take turns until an operator has completed a rotation.
    pub(crate) fn finish(&mut self) {
        let before = self.operators[0].completed;
        for _ in 0..200 {
            for host in 0..HOSTS {
                self.start(host);
                for _ in 0..8 {
                    self.play(Event::Agent(host, How::Done));
                }
            }
            self.play(Event::SecondsPass(1));
            if self.now.is_multiple_of(15) && self.store.lock.is_some_and(|(holder, _)| holder != 0) {
                self.play(Event::LockExpires);
            }
            self.play(Event::Operator(0, How::Done));
            if self.operators[0].completed > before {
                assert_eq!(self.store.plan.step(), Step::Settled);
                return;
            }
        }
        panic!("the rotation does not end: {:?} {:?}", self.store.plan, self.store.applied);
    }

    /// Runs a whole rotation, in which the action number `at` is interrupted.
    pub(crate) fn cut(&mut self, at: usize, how: How) {
        self.cut = Some((at, how));
        self.heal();
        self.finish();
    }

    pub(crate) fn was_cut(&self) -> bool {
        self.cut.is_none()
    }

    fn cut_here(&mut self, how: How) -> How {
        match &mut self.cut {
            Some((0, cut)) => {
                let cut = *cut;
                self.cut = None;
                cut
            }
            Some((left, _)) => {
                *left -= 1;
                how
            }
            None => how,
        }
    }

    /// Skips a step: from only the old key to only the new key.
    pub(crate) fn leave_a_step_out(&mut self) {
        self.hosts[0].keys = Some(KeyRing::new(Key::from_bytes([0xee; 16])));
        self.check();
    }
}

fn takes(keys: &KeyRing, cookie: Key) -> bool {
    cookie == keys.primary() || Some(cookie) == keys.backup()
}
