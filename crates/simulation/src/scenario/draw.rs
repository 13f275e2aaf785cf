//! A scenario of a seed.

use super::{
    Attack, Change, Connection, End, Forgery, Host, Intensity, Listener, Opt, Scenario, Step, Wire, options,
    settings,
};
use crate::Random;
use proto::{Config, RouteMetrics, WriteFlags};

/// Keeps what is drawn apart from what happens packet by packet.
const DRAWN: u64 = 0x5851_f42d_4c95_7f2d;
/// Keeps what a compared world draws in addition apart from what every world draws.
const COMPARED: u64 = 0x1405_7b7e_f767_814f;

impl Scenario {
    /// The world of a seed. `attacked`: somebody who knows every number sends packets into it.
    pub fn draw(seed: u64, intensity: Intensity, attacked: bool) -> Scenario {
        let mut random = Random(seed ^ DRAWN);
        let random = &mut random;
        let v6 = random.chance(50);
        let least_mtu = if v6 { 1280 } else { 576 };
        let one_of = random.below(2) as usize;
        let hosts = [0, 1].map(|side| {
            let intensity = match intensity {
                Intensity::One if side != one_of => Intensity::Defaults,
                other => other,
            };
            host(random, intensity, least_mtu)
        });
        let changes = changes(random, intensity, &hosts);
        let connections =
            (0..1 + random.magnitude(3)).map(|_| connection(random, intensity)).collect::<Vec<_>>();
        let wire = wire(random, least_mtu);
        let drawn = Scenario {
            seed,
            v6,
            start_ns: start(random),
            hosts,
            listener: listener(random, intensity),
            connections,
            wire,
            changes,
            sleeps: in_order(several(random, 10, 2, |random| {
                (random.magnitude(100_000), random.magnitude(10_000_000))
            })),
            attacks: if attacked { attacks(random) } else { Vec::new() },
            signed: false,
            differential: false,
        };
        drawn.with_additions(intensity)
    }

    /// A world for stacks with fast paths and without, made of one that was drawn. In most of these
    /// worlds nobody asks for what closes the fast paths to a connection (socket options, routes,
    /// Linux's habits), or there would be nothing to compare.
    pub fn compared(mut self) -> Scenario {
        let random = &mut Random(self.seed ^ COMPARED);
        self.differential = true;
        if random.chance(75) {
            self.hosts.iter_mut().for_each(|host| host.linux = false);
        }
        if random.chance(75) {
            self.hosts.iter_mut().for_each(|host| host.route.clear());
            self.listener.options.clear();
            self.connections.iter_mut().flat_map(|connection| &mut connection.ends).for_each(|end| {
                end.options.clear();
                end.steps.retain(|step| !matches!(step, Step::Set(_)));
            });
        }
        self
    }

    /// The settings a host begins with.
    pub(crate) fn config(&self, side: usize) -> Config {
        let host = &self.hosts[side];
        let mut config = base(host.linux);
        config.tcp_fastopen = 3;
        for (name, value) in &host.settings {
            // What an older version of the table took may be refused by now (`refused`).
            let _ = config.set(name, value);
        }
        config
    }

    /// Settings and routes that the engine does not take, with its reasons: of a scenario that was
    /// saved with another version.
    pub fn refused(&self) -> Vec<String> {
        let sides = ["client", "server"].into_iter().zip(&self.hosts);
        sides
            .flat_map(|(side, host)| refused_by(host).into_iter().map(move |why| format!("{side}: {why}")))
            .collect()
    }
}

fn refused_by(host: &Host) -> Vec<String> {
    let mut config = base(host.linux);
    config.tcp_fastopen = 3;
    let set = |(name, value): &(String, String)| {
        config.set(name, value).err().map(|error| format!("{name} = {value}: {error}"))
    };
    let mut refused: Vec<String> = host.settings.iter().filter_map(set).collect();
    let route = host.route.join(" ");
    refused.extend(route.parse::<RouteMetrics>().err().map(|error| format!("{route}: {error}")));
    refused
}

fn base(linux: bool) -> Config {
    if linux { Config::linux() } else { Config::default() }
}

/// `None`: each of them.
fn wanted(random: &mut Random, intensity: Intensity, all: usize) -> Option<usize> {
    match intensity {
        Intensity::Defaults => Some(0),
        Intensity::One => Some(1),
        Intensity::Few => Some(2 + random.below(5) as usize),
        Intensity::Many => Some(all / 5),
        Intensity::All => None,
    }
}

fn host(random: &mut Random, intensity: Intensity, least_mtu: u64) -> Host {
    let linux = random.chance(50);
    let mut config = base(linux);
    config.tcp_fastopen = 3;
    let wanted = wanted(random, intensity, Config::rows().len());
    let gso = random.chance(50);
    let usual = [least_mtu, 1500, 1500, 1500, 9000, 65_535];
    let mtu = if random.chance(80) {
        random.pick(&usual)
    } else {
        least_mtu + random.magnitude(65_535 - least_mtu)
    };
    Host {
        linux,
        settings: settings::draw(random, &config, wanted),
        mtu: mtu as usize,
        gso_max_size: if gso { 65_536 >> random.below(6) } else { 0 },
        tx_checksum: gso,
        route: if intensity == Intensity::Defaults { Vec::new() } else { route(random) },
        isn: random.chance(25).then(|| (random.magnitude(200_000) as u32).wrapping_neg()),
        refusals: if random.chance(10) { random.below(30) } else { 0 },
    }
}

fn route(random: &mut Random) -> Vec<String> {
    if random.chance(70) {
        return Vec::new();
    }
    let lock = |random: &mut Random| random.pick(&["", "lock "]);
    let mut words = Vec::new();
    for _ in 0..1 + random.below(3) {
        words.push(match random.below(9) {
            0 => format!("mtu {}{}", lock(random), 1280 + random.magnitude(64_255)),
            1 => format!("advmss {}", 88 + random.magnitude(65_000)),
            2 => format!("initcwnd {}", 1 + random.magnitude(60_000)),
            3 => format!("initrwnd {}", 1 + random.magnitude(60_000)),
            4 => format!("cwnd {}{}", lock(random), 1 + random.magnitude(1000)),
            5 => format!("ssthresh {}{}", lock(random), 1 + random.magnitude(1000)),
            6 => format!("rto_min {}us", random.magnitude(2_000_000)),
            7 => "quickack 1".to_owned(),
            _ => "fastopen_no_cookie 1".to_owned(),
        });
    }
    words
}

fn drawn_options(random: &mut Random, intensity: Intensity) -> Vec<Opt> {
    match wanted(random, intensity, options::COUNT) {
        Some(wanted) => (0..wanted)
            .map(|_| {
                let at = random.below(options::COUNT as u64) as usize;
                Opt::draw(random, at)
            })
            .collect(),
        None => (0..options::COUNT).map(|at| Opt::draw(random, at)).collect(),
    }
}

fn several<T>(random: &mut Random, percent: u64, most: u64, mut one: impl FnMut(&mut Random) -> T) -> Vec<T> {
    if !random.chance(percent) {
        return Vec::new();
    }
    (0..1 + random.below(most)).map(|_| one(random)).collect()
}

/// Times, or bytes, and what happens then.
fn in_order(mut pairs: Vec<(u64, u64)>) -> Vec<(u64, u64)> {
    pairs.sort_by_key(|(at, _)| *at);
    pairs
}

fn changes(random: &mut Random, intensity: Intensity, hosts: &[Host; 2]) -> Vec<Change> {
    if intensity == Intensity::Defaults {
        return Vec::new();
    }
    let mut changes = several(random, 25, 4, |random| {
        let side = random.below(2) as usize;
        let rows = Config::rows();
        let row = &rows[random.below(rows.len() as u64) as usize];
        let mut config = base(hosts[side].linux);
        let (name, value) = settings::one(random, &mut config, row)
            .unwrap_or_else(|| ("firstbyte.icmp_echo".into(), "0".into()));
        Change { at_ms: random.magnitude(60_000), side, name, value }
    });
    changes.sort_by_key(|change| change.at_ms);
    changes
}

fn start(random: &mut Random) -> u64 {
    match random.below(5) {
        0 => 0,
        1 => random.magnitude(10_000_000_000_000_000),
        // Just before the milliseconds of timestamps wrap, and before a quarter of all moments has
        // passed.
        2 => ((1 << 32) * 1_000_000_u64).saturating_sub(random.magnitude(60_000_000_000)),
        3 => u64::MAX / 4,
        _ => random.below(1_000_000_000_000_000),
    }
}

fn listener(random: &mut Random, intensity: Intensity) -> Listener {
    let usual = intensity == Intensity::Defaults;
    Listener {
        backlog: if random.chance(20) { random.pick(&[0, 1, 2, 5]) } else { 1024 },
        fast_open: random.chance(70).then(|| random.pick(&[1, 2, 16, 256])),
        no_cookie: !usual && random.chance(10),
        synack_hold_us: (!usual && random.chance(20)).then(|| random.magnitude(10_000_000)),
        defer_accept_ms: if !usual && random.chance(10) { random.magnitude(10_000) } else { 0 },
        accepts_after_ms: if random.chance(20) { random.magnitude(20_000) } else { 0 },
        options: drawn_options(random, intensity),
    }
}

/// Bytes an application has to say: mostly little, so that many worlds can be played.
fn amount(random: &mut Random) -> u64 {
    let most = random.pick(&[0, 10, 3000, 3000, 3000, 30_000, 200_000]);
    random.magnitude(most)
}

fn connection(random: &mut Random, intensity: Intensity) -> Connection {
    let (up, down) = (amount(random), amount(random));
    let first_bytes = if random.chance(50) { random.magnitude(up.min(20_000)) } else { 0 };
    let client_shuts_last = random.chance(50);
    let asks = random.chance(40).then_some(up);
    let leaver = random.chance(10).then(|| random.below(2));
    let end = |random: &mut Random, client: bool| {
        let total = if client { up - first_bytes } else { down };
        let awaits = asks.filter(|_| !client).map(|up| random.magnitude(up));
        let leaves = leaver == Some(u64::from(!client));
        End {
            options: if client { drawn_options(random, intensity) } else { Vec::new() },
            steps: steps(random, intensity, total, awaits, leaves),
            read_most: 1 + random.magnitude(60_000) as u32,
            pauses: in_order(several(random, 25, 3, |random| {
                let most = random.pick(&[100, 5000, 100_000, 1_000_000]);
                (random.magnitude(if client { down } else { up }), random.magnitude(most))
            })),
            shuts_last: client_shuts_last == client && random.chance(70),
            close_shuts: random.chance(50),
        }
    };
    let ends = [end(random, true), end(random, false)];
    let fin = first_bytes == up && random.chance(50) && ends[0].steps.is_empty();
    Connection {
        at_ms: random.magnitude(5000),
        fast_open: random.pick(&[0, 0, 1, 1, 1, 2, 3]),
        first_bytes: first_bytes as u32,
        data_less: random.chance(20),
        fin,
        syn_fin: random.chance(50),
        ends,
    }
}

fn steps(
    random: &mut Random,
    intensity: Intensity,
    total: u64,
    awaits: Option<u64>,
    leaves: bool,
) -> Vec<Step> {
    let mut steps: Vec<Step> = awaits.into_iter().map(Step::Await).collect();
    let mut left = total;
    while left > 0 {
        let len = 1 + random.magnitude(left - 1).max(left / 8);
        left -= len;
        let flags = if random.chance(85) { 0 } else { random.pick(&FLAGS).bits() };
        steps.push(Step::Write { len: len as u32, flags });
        if random.chance(15) {
            let most = random.pick(&[10, 1000, 100_000, 2_000_000]);
            steps.push(Step::Pause(random.magnitude(most)));
        }
        if random.chance(3) {
            steps.push(random.pick(&[Step::Push, Step::Move, Step::Move, Step::ReadNoMore]));
        }
        if intensity != Intensity::Defaults && random.chance(5) {
            let at = random.below(options::COUNT as u64) as usize;
            steps.push(Step::Set(Opt::draw(random, at)));
        }
    }
    if leaves {
        let at = random.below(steps.len() as u64 + 1) as usize;
        steps.insert(at, random.pick(&[Step::Close, Step::Abort]));
    }
    steps
}

const FLAGS: [WriteFlags; 3] = [WriteFlags::MORE, WriteFlags::END_OF_RECORD, WriteFlags::URGENT];

fn wire(random: &mut Random, least_mtu: u64) -> Wire {
    let badness = random.below(4);
    let bad =
        |random: &mut Random, most: u64| if badness == 0 { 0 } else { random.below(most * badness / 3 + 1) };
    let loss = bad(random, 20);
    let small = |random: &mut Random| (least_mtu + random.magnitude(9000)) as usize;
    Wire {
        delay_us: random.pick(&[50, 1000, 10_000, 50_000, 150_000]),
        jitter_ms: random.pick(&[0, 0, 5, 50]),
        loss,
        duplicate: bad(random, 20),
        corrupt: bad(random, 10),
        reorder: bad(random, 40),
        mark: bad(random, 20),
        late: (bad(random, 2), random.pick(&[100, 10_000, 100_000])),
        icmp: if random.chance(10) { random.below(5) } else { 0 },
        mtus: several(random, 30, 2, |random| (random.magnitude(30_000), small(random))),
        outages: several(random, 10, 1, |random| (random.magnitude(20_000), random.magnitude(20_000))),
        honest_after_ms: random.pick(&[1000, 30_000]),
        merge: random.chance(50),
        batches: random.chance(50),
    }
}

/// One half of the attackers are judged by everything, the others are in the way.
fn attacks(random: &mut Random) -> Vec<Attack> {
    let bounded = random.chance(50);
    let mut attacks: Vec<_> = (0..1 + random.magnitude(6)).map(|_| attack(random, bounded)).collect();
    if !bounded && random.chance(60) {
        attacks.push(Attack { to: 1, kind: Forgery::StolenCookie, count: 1, ..attack(random, bounded) });
    }
    attacks
}

fn attack(random: &mut Random, bounded: bool) -> Attack {
    let off = |random: &mut Random| {
        let far = random.pick(&[0, 0, 1, 2, 100, 1460, 70_000, 1 << 20, 1 << 31]);
        let off = random.magnitude(far) as i64;
        if random.chance(50) { off } else { -off }
    };
    Attack {
        after: random.magnitude(100),
        to: random.below(2) as usize,
        kind: if bounded { random.pick(&Forgery::BOUNDED) } else { random.pick(&DESTRUCTIVE) },
        seq_off: off(random),
        ack_off: off(random),
        count: 1 + random.magnitude(20) as u32,
    }
}

const DESTRUCTIVE: [Forgery; 12] = [
    Forgery::Reset,
    Forgery::Syn,
    Forgery::SynAck,
    Forgery::Ack,
    Forgery::ZeroWindow,
    Forgery::Sack,
    Forgery::Text,
    Forgery::Urgent,
    Forgery::Fin,
    Forgery::Icmp,
    Forgery::Mutated,
    Forgery::Christmas,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_engine_takes_all_that_is_drawn() {
        for seed in 0..500 {
            for (name, intensity) in Intensity::ALL {
                let refused = Scenario::draw(seed, intensity, false).refused();
                assert!(refused.is_empty(), "seed {seed}, {name}: {refused:?}");
            }
        }
    }

    #[test]
    fn what_the_engine_does_not_take_is_named() {
        let mut scenario = Scenario::draw(0, Intensity::Defaults, false);
        scenario.hosts[1].settings.push(("firstbyte.gone".to_owned(), "1".to_owned()));
        scenario.hosts[0].route.push("speed 1".to_owned());
        let refused = scenario.refused();
        assert_eq!(refused.len(), 2, "{refused:?}");
        assert!(
            refused[0].starts_with("client: speed 1: ")
                && refused[1].starts_with("server: firstbyte.gone = 1: ")
        );
    }
}
