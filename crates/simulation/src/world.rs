//! Plays a scenario, and says what went wrong.
//!
//! `wire` carries packets and harms them, `app` is what both applications do, `attacker` forges,
//! `bystander` watches the packets, `check` is what must hold after every step, `judge` what must
//! hold at the end, `host` a stack, or two that must do the same, `summary` what was done. One
//! mutation of a stack is followed by draining it, as its contract asks.

mod app;
mod attacker;
mod bystander;
mod check;
mod host;
mod judge;
mod ledger;
mod summary;
mod text;
mod wire;

use crate::random::Random;
use crate::scenario::{Opt, Scenario};
use app::App;
pub use app::Fate;
use core::fmt;
use core::time::Duration;
use host::Host;
pub use ledger::Account;
use proto::{
    Capabilities, Config, ConnId, Instant, ListenOptions, ListenerId, Md5Key, RouteMetrics, SocketOptions,
    fast_open::Network,
};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
pub use summary::{Ends, Summary};

/// The opener's place in pairs.
pub const CLIENT: usize = 0;
/// The listener's.
pub const SERVER: usize = 1;
/// Of a world that is still not quiet there is something that waits for ever.
const LONGEST: Duration = Duration::from_secs(40 * 24 * 3600);
/// A connection that goes on waits no longer than this for its next packet (`TCP_RTO_MAX`).
const LONGEST_WAIT: Duration = Duration::from_secs(120);
/// So many times timers may go off, and applications act, while no packet is sent and none arrives.
const MOST_SILENT: u32 = 10_000;

/// A violation of an invariant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Which rule was broken; of a panic where.
    pub kind: String,
    /// The observation.
    pub seen: String,
}

impl Failure {
    pub(crate) fn new(kind: &str, seen: impl fmt::Display) -> Failure {
        Failure { kind: kind.to_owned(), seen: seen.to_string() }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind, self.seen)
    }
}

impl std::error::Error for Failure {}

/// Plays a scenario; `trace` prints every packet and what applications do.
///
/// # Errors
/// The first rule that was broken. (A panic of the engine is the caller's to catch.)
pub fn play(scenario: &Scenario, trace: bool) -> Result<Summary, Failure> {
    let mut world = World::new(scenario, trace);
    let played = world.run();
    let summary = played.map_err(|mut failure| {
        failure.seen += &world.describe_all();
        failure
    })?;
    let wire::Wire { fingerprint, packets, .. } = world.wire;
    Ok(Summary { fingerprint, packets, excused: world.excused, ..summary })
}

/// The options of a socket whose peers have this address.
fn socket(scenario: &Scenario, options: &[Opt], peer: IpAddr) -> SocketOptions {
    let mut socket = crate::scenario::socket(options);
    if scenario.signed {
        let prefix_len = if peer.is_ipv4() { 32 } else { 128 };
        let secret = b"known to both".as_slice().into();
        socket.md5_keys.insert(Md5Key { address: peer, prefix_len, of_domain: false, secret });
    }
    socket
}

struct World<'a> {
    scenario: &'a Scenario,
    random: Random,
    trace: bool,
    now: Instant,
    start: Instant,
    stacks: [Host; 2],
    addresses: [IpAddr; 2],
    listener: ListenerId,
    wire: wire::Wire,
    bystander: bystander::Bystander,
    apps: Vec<[Option<App>; 2]>,
    /// What is not open yet, by its place in the scenario.
    to_open: Vec<usize>,
    /// Connections that the server may accept, and when.
    to_accept: Option<Instant>,
    by_port: BTreeMap<u16, usize>,
    /// Connections that have had the same ports, one after the other.
    mistakable: BTreeSet<usize>,
    by_id: [BTreeMap<ConnId, usize>; 2],
    accounts: Vec<ledger::Accounts>,
    /// All that each side's settings have been.
    configs: [Vec<Config>; 2],
    changes_done: usize,
    sleeps_done: usize,
    /// What applications read into: as long as it ever had to be.
    read_into: Vec<u8>,
    /// It is left before its end.
    too_long: bool,
    excused: BTreeMap<&'static str, u64>,
}

impl<'a> World<'a> {
    fn new(scenario: &'a Scenario, trace: bool) -> World<'a> {
        let start = Instant::from_nanos(scenario.start_ns);
        let names = if scenario.v6 { ["fd00::1", "fd00::2"] } else { ["10.0.0.1", "10.0.0.2"] };
        let addresses = names.map(|name| name.parse::<IpAddr>().expect("it is one"));
        let mut stacks = [CLIENT, SERVER].map(|side| {
            let host = &scenario.hosts[side];
            let capabilities = Capabilities {
                mtu: host.mtu,
                gso_max_size: host.gso_max_size,
                tx_checksum: host.tx_checksum,
            };
            let seed = [side as u8 ^ scenario.seed as u8; 32];
            let mut stack = Host::new(scenario.config(side), capabilities, seed, scenario.differential);
            stack.add_address(addresses[side], 24);
            stack.fix_isn(host.isn);
            // A route without metrics is one too, and closes the fast paths to its connections.
            if !host.route.is_empty()
                && let Ok(metrics) = host.route.join(" ").parse::<RouteMetrics>()
            {
                stack.set_route(start, Network::new(addresses[1 - side].into(), 24), metrics);
            }
            stack
        });
        let options = ListenOptions {
            backlog: scenario.listener.backlog,
            fast_open: scenario.listener.fast_open,
            synack_hold: scenario.listener.synack_hold_us.map(Duration::from_micros),
            fast_open_no_cookie: scenario.listener.no_cookie,
            defer_accept: Duration::from_millis(scenario.listener.defer_accept_ms),
            socket: socket(scenario, &scenario.listener.options, addresses[CLIENT]),
            ..ListenOptions::default()
        };
        let name = SocketAddr::new(addresses[SERVER], 80);
        let listener = stacks[SERVER].listen(start, name, options).expect("nobody else listens");
        World {
            scenario,
            random: Random(scenario.seed),
            trace,
            now: start,
            start,
            stacks,
            addresses,
            listener,
            wire: wire::Wire::new(scenario),
            bystander: bystander::Bystander::new(scenario),
            apps: scenario.connections.iter().map(|_| [None, None]).collect(),
            to_open: (0..scenario.connections.len()).collect(),
            to_accept: None,
            by_port: BTreeMap::new(),
            mistakable: BTreeSet::new(),
            by_id: [BTreeMap::new(), BTreeMap::new()],
            accounts: scenario.connections.iter().map(|_| Default::default()).collect(),
            configs: [CLIENT, SERVER].map(|side| vec![scenario.config(side)]),
            changes_done: 0,
            sleeps_done: 0,
            read_into: Vec::new(),
            too_long: false,
            excused: BTreeMap::new(),
        }
    }

    /// Time since the beginning.
    fn elapsed(&self) -> Duration {
        self.now.since(self.start)
    }

    fn at(&self, ms: u64) -> Instant {
        self.start + Duration::from_millis(ms)
    }

    fn is_honest(&self) -> bool {
        self.elapsed() >= Duration::from_millis(self.scenario.wire.honest_after_ms)
    }

    fn say(&self, what: impl fmt::Display) {
        if self.trace {
            println!("{:>14.6} {what}", self.elapsed().as_secs_f64());
        }
    }

    fn run(&mut self) -> Result<Summary, Failure> {
        self.run_until_quiet()?;
        match self.too_long {
            true => {
                *self.excused.entry("a whole world was left before its end, as too long").or_default() += 1
            }
            false => {
                self.judge()?;
                self.watch_listener()?;
            }
        }
        let summary = self.sum_up();
        self.close_everything();
        self.run_until_quiet()?;
        self.check_nothing_is_left()?;
        Ok(summary)
    }

    fn run_until_quiet(&mut self) -> Result<(), Failure> {
        self.step()?;
        let until = self.now + LONGEST;
        // What `TCP_TX_DELAY` holds back has been sent as well.
        let sent = |stacks: &[Host; 2]| stacks.iter().map(|stack| stack.counters().out_segs).sum::<u64>();
        let (mut silent, mut before) = (0, (self.wire.packets, self.wire.flying(), sent(&self.stacks)));
        while let Some(next) = self.next() {
            let so_far = (self.wire.packets, self.wire.flying(), sent(&self.stacks));
            silent = if so_far == before { silent + 1 } else { 0 };
            before = so_far;
            if silent > MOST_SILENT && self.waits_for_a_rate() {
                self.too_long = true;
                return Ok(());
            }
            if silent > MOST_SILENT {
                let now = self.now;
                let timers = self.stacks.each_mut().map(|stack| stack.poll_timeout().map(|at| at.since(now)));
                return Err(Failure::new(
                    "timers go off and nothing happens",
                    format_args!("the next: {timers:?}"),
                ));
            }
            self.now = self.now.max(next);
            self.sleep();
            if self.too_long && self.apps.iter().flatten().flatten().any(|app| app.fate == Fate::Busy) {
                return Ok(());
            }
            if self.now > until {
                self.say("that was forty days");
                // A byte at a time that waits for more goes when a retransmission time-out passes,
                // two minutes at most by `tcp_rto_min_us`.
                self.too_long =
                    self.scenario.trickles() && self.wire.idle_since(self.now) <= 2 * LONGEST_WAIT;
                return Ok(());
            }
            self.change_settings();
            for side in [CLIENT, SERVER] {
                self.handle_timeouts(side)?;
            }
            self.drain()?;
            self.note_endings();
            self.deliver()?;
            self.step()?;
        }
        Ok(())
    }

    /// Somebody has text to send, with none in flight, and asks for a rate of its own: at a byte a
    /// second it may wait for days, while keepalive timers go off.
    fn waits_for_a_rate(&self) -> bool {
        let waits = |side: usize| {
            let mut infos = self.by_id[side].keys().filter_map(|id| self.stacks[side].info(*id));
            infos.any(|info| info.send_queue > 0 && info.flight_size == 0)
        };
        self.scenario.is_paced() && [CLIENT, SERVER].into_iter().any(waits)
    }

    /// Applications act as long as there is something for them to do.
    fn step(&mut self) -> Result<(), Failure> {
        self.run_apps()?;
        self.drain()?;
        if self.random.chance(10) {
            self.check_connections()?;
            self.watch_windows()?;
        }
        self.watch_moment()
    }

    /// The next moment at which something happens.
    fn next(&mut self) -> Option<Instant> {
        let now = self.now;
        let arrival = self.wire.next_arrival();
        let opens = self.to_open.iter().map(|which| self.at(self.scenario.connections[*which].at_ms)).min();
        let apps = self.apps.iter().flatten().flatten().filter_map(|app| app.next(now)).min();
        let timers = self.stacks.iter_mut().filter_map(Host::poll_timeout).min();
        let changes = self.scenario.changes.get(self.changes_done).map(|change| self.at(change.at_ms));
        let accepts = self.to_accept;
        [arrival, opens, apps, timers, changes, accepts].into_iter().flatten().min()
    }

    /// The machine that carries both stacks stands still.
    fn sleep(&mut self) {
        while let Some((at_ms, for_ms)) = self.scenario.sleeps.get(self.sleeps_done) {
            if self.now < self.at(*at_ms) {
                return;
            }
            self.sleeps_done += 1;
            self.now = self.now + Duration::from_millis(*for_ms);
            self.say(format_args!("the machine slept for {for_ms} ms"));
        }
    }

    fn change_settings(&mut self) {
        while let Some(change) = self.scenario.changes.get(self.changes_done) {
            if self.now < self.at(change.at_ms) {
                return;
            }
            self.changes_done += 1;
            let set = self.stacks[change.side].set(self.now, &change.name, &change.value);
            self.say(format_args!("side {}: {} = {}: {set:?}", change.side, change.name, change.value));
            let config = self.stacks[change.side].config().clone();
            self.configs[change.side].push(config);
        }
    }

    fn close_everything(&mut self) {
        for side in [CLIENT, SERVER] {
            for id in std::mem::take(&mut self.by_id[side]).into_keys() {
                self.stacks[side].abort(self.now, id);
            }
        }
        self.apps.iter_mut().for_each(|apps| *apps = [None, None]);
        self.to_open.clear();
        self.to_accept = None;
        self.stacks[SERVER].close_listener(self.now, self.listener);
    }
}
