//! The smallest scenario that fails in the same way: parts are taken away as long as it still does.

use crate::campaign::attempt;
use crate::scenario::{Connection, End, Scenario, Step};

/// Worlds that may be played to make one smaller.
const TRIES: usize = 4000;
/// What is left is played with so many other seeds: taking a part away changes which packets are
/// lost.
const SEEDS: u64 = 12;

/// Makes a failing scenario smaller. `kind` is what it fails by.
pub fn shrink(scenario: &Scenario, kind: &str) -> Scenario {
    let mut best = scenario.clone();
    let mut tries = 0;
    'again: loop {
        for smaller in reductions(&best) {
            for extra in 0..SEEDS {
                tries += 1;
                if tries > TRIES {
                    return best;
                }
                let candidate = Scenario { seed: best.seed.wrapping_add(extra), ..smaller.clone() };
                if attempt(&candidate, false).is_err_and(|failure| failure.kind == kind) {
                    best = candidate;
                    continue 'again;
                }
            }
        }
        return best;
    }
}

/// Every scenario that has one part less.
fn reductions(scenario: &Scenario) -> Vec<Scenario> {
    let mut all = Vec::new();
    let mut with = |change: &dyn Fn(&mut Scenario)| {
        let mut smaller = scenario.clone();
        change(&mut smaller);
        if smaller != *scenario {
            all.push(smaller);
        }
    };
    for at in 0..scenario.connections.len() {
        with(&|smaller| {
            smaller.connections.remove(at);
        });
    }
    for side in [0, 1] {
        let rows = scenario.hosts[side].settings.len();
        let half = rows / 2;
        with(&|smaller| smaller.hosts[side].settings.clear());
        with(&|smaller| smaller.hosts[side].settings.truncate(half));
        with(&|smaller| drop(smaller.hosts[side].settings.drain(..half)));
        for at in 0..rows {
            with(&|smaller| {
                smaller.hosts[side].settings.remove(at);
            });
        }
        with(&|smaller| smaller.hosts[side].route.clear());
        with(&|smaller| smaller.hosts[side].isn = None);
        with(&|smaller| smaller.hosts[side].refusals = 0);
        with(&|smaller| smaller.hosts[side].gso_max_size = 0);
        with(&|smaller| smaller.hosts[side].tx_checksum = false);
        with(&|smaller| smaller.hosts[side].mtu = 1500);
    }
    with(&|smaller| smaller.changes.clear());
    for at in 0..scenario.changes.len() {
        with(&|smaller| {
            smaller.changes.remove(at);
        });
    }
    with(&|smaller| smaller.sleeps.clear());
    for at in 0..scenario.attacks.len() {
        with(&|smaller| {
            smaller.attacks.remove(at);
        });
        with(&|smaller| smaller.attacks[at].count = 1);
    }
    reduce_wire(scenario, &mut all);
    reduce_listener(scenario, &mut all);
    for at in 0..scenario.connections.len() {
        for plan in connections(&scenario.connections[at]) {
            let mut smaller = scenario.clone();
            smaller.connections[at] = plan;
            all.push(smaller);
        }
    }
    if scenario.start_ns != 0 {
        all.push(Scenario { start_ns: 0, ..scenario.clone() });
    }
    if scenario.signed {
        all.push(Scenario { signed: false, ..scenario.clone() });
    }
    if scenario.v6 {
        all.push(Scenario { v6: false, ..scenario.clone() });
    }
    all
}

fn reduce_wire(scenario: &Scenario, all: &mut Vec<Scenario>) {
    let calm = [
        |scenario: &mut Scenario| scenario.wire.loss = 0,
        |scenario: &mut Scenario| scenario.wire.duplicate = 0,
        |scenario: &mut Scenario| scenario.wire.corrupt = 0,
        |scenario: &mut Scenario| scenario.wire.reorder = 0,
        |scenario: &mut Scenario| scenario.wire.mark = 0,
        |scenario: &mut Scenario| scenario.wire.late = (0, 0),
        |scenario: &mut Scenario| scenario.wire.icmp = 0,
        |scenario: &mut Scenario| scenario.wire.jitter_ms = 0,
        |scenario: &mut Scenario| scenario.wire.mtus.clear(),
        |scenario: &mut Scenario| scenario.wire.outages.clear(),
        |scenario: &mut Scenario| scenario.wire.merge = false,
        |scenario: &mut Scenario| scenario.wire.batches = false,
        |scenario: &mut Scenario| scenario.wire.delay_us = 10_000,
        |scenario: &mut Scenario| scenario.wire.mtus.truncate(1),
    ];
    extend(scenario, &calm, all);
}

fn reduce_listener(scenario: &Scenario, all: &mut Vec<Scenario>) {
    let plain = [
        |scenario: &mut Scenario| scenario.listener.backlog = 1024,
        |scenario: &mut Scenario| scenario.listener.fast_open = None,
        |scenario: &mut Scenario| scenario.listener.no_cookie = false,
        |scenario: &mut Scenario| scenario.listener.synack_hold_us = None,
        |scenario: &mut Scenario| scenario.listener.defer_accept_ms = 0,
        |scenario: &mut Scenario| scenario.listener.accepts_after_ms = 0,
        |scenario: &mut Scenario| scenario.listener.options.clear(),
    ];
    extend(scenario, &plain, all);
    for at in 0..scenario.listener.options.len() {
        let mut smaller = scenario.clone();
        smaller.listener.options.remove(at);
        all.push(smaller);
    }
}

fn extend(scenario: &Scenario, changes: &[fn(&mut Scenario)], all: &mut Vec<Scenario>) {
    for change in changes {
        let mut smaller = scenario.clone();
        change(&mut smaller);
        if smaller != *scenario {
            all.push(smaller);
        }
    }
}

fn connections(plan: &Connection) -> Vec<Connection> {
    let mut all = Vec::new();
    for side in [0, 1] {
        for end in ends(&plan.ends[side]) {
            let mut smaller = plan.clone();
            smaller.ends[side] = end;
            all.push(smaller);
        }
    }
    let simpler = [
        Connection { at_ms: 0, ..plan.clone() },
        Connection { fast_open: 0, ..plan.clone() },
        Connection { first_bytes: 0, ..plan.clone() },
        Connection { first_bytes: plan.first_bytes / 2, ..plan.clone() },
        Connection { data_less: false, ..plan.clone() },
        Connection { fin: false, ..plan.clone() },
        Connection { syn_fin: false, ..plan.clone() },
    ];
    all.extend(simpler.into_iter().filter(|simpler| simpler != plan));
    all
}

fn ends(end: &End) -> Vec<End> {
    let mut all = Vec::new();
    for at in 0..end.steps.len() {
        let mut smaller = end.clone();
        let step = smaller.steps.remove(at);
        all.push(smaller);
        if let Step::Write { len, flags } = step {
            for (len, flags) in [(len, 0), (len / 2, flags), (len - len / 4, flags)] {
                let mut smaller = end.clone();
                smaller.steps[at] = Step::Write { len, flags };
                if len > 0 && smaller != *end {
                    all.push(smaller);
                }
            }
        }
    }
    for at in 0..end.options.len() {
        let mut smaller = end.clone();
        smaller.options.remove(at);
        all.push(smaller);
    }
    let simpler = [
        End { pauses: Vec::new(), ..end.clone() },
        End { read_most: 100_000, ..end.clone() },
        End { shuts_last: false, ..end.clone() },
        End { close_shuts: false, ..end.clone() },
    ];
    all.extend(simpler.into_iter().filter(|simpler| simpler != end));
    all
}
