//! Measures the speed of the simulator: packets per second of one core, with few and many flows
//! that share one bottleneck.
//!
//! `cargo run --profile dist -p firstbyte-lab --example speed [FLOWS…]`. A packet is any frame that
//! went on a line, data or acknowledgment. Each number of flows runs once on one host and once on a
//! host per flow. Cards either leave everything to TCP or cut and merge segments (TSO, GRO).
//! Windows are either Linux's maximum, where two flows do not fill the line, or wide enough that
//! the bytes in flight do not depend on the number of flows. Each case runs once in each of seven
//! turns; the output is the median and the best rate.
//!
//! `--instructions FLOWS [HOSTS]`, or `--instructions-offloading FLOWS [HOSTS]` with cards that cut
//! and merge, runs one case once and prints only the number of packets, for `valgrind
//! --tool=callgrind`. `--ns3 TIMES` runs a smaller case in turns with ns-3 and prints the medians
//! and their ratio.
mod ns3;

use firstbyte_lab::apps::{Program, Rounds, Step};
use firstbyte_lab::middlebox::Direction;
use firstbyte_lab::network::{CardPlan, HostPlan, Network, PathId, Profile, Route};
use ns3::Ns3;
use proto::{ConnectOptions, ListenOptions};
use qdisc::{InputConfig, NicConfig};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::num::NonZeroU64;
use std::time::Duration;

/// Bytes that all flows transfer together.
const BYTES: usize = 400_000_000;
/// Bytes in the comparison with ns-3, which is much slower.
const BYTES_BESIDE_NS3: usize = 100_000_000;
/// Bytes per write.
const PIECE: usize = 50_000;
const BOTTLENECK: u64 = 10_000_000_000;
/// Frames that may wait for the line. With cards that cut, one queued packet is many frames; the
/// limit in bytes is the same.
const QUEUE: usize = 10_000;
/// Bytes of a full frame.
const FRAME: usize = 1500;

/// Turns. Every case runs in each turn, so that a busy moment of the machine affects all of them.
const TURNS: usize = 7;

/// Nanoseconds from a client's first packet to its interrupt; packets in this time can be merged.
const INTERRUPT_AFTER: u64 = 50_000;

/// Offloads of the hosts' network cards.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cards {
    Plain,
    /// Cut large segments into frames and merge consecutive frames, as the kernel does by default.
    Offloading,
}

/// Maximum buffer sizes of a connection.
#[derive(Clone, Copy)]
enum Windows {
    /// Linux's defaults: 6 MB to receive, 4 MB to send.
    Usual,
    /// Large enough for the line and its queue, even with one flow.
    Wide,
}

/// A simulated case: `flows` downloads of `bytes` in total, by `hosts` clients with a path each,
/// over the line of one server's card.
#[derive(Clone, Copy)]
struct World {
    hosts: usize,
    flows: usize,
    bytes: usize,
    cards: Cards,
    windows: Windows,
}

/// Runs the case and returns the number of packets.
fn play(World { hosts, flows, bytes, cards, windows }: World) -> u64 {
    let mut config = Profile::Firstbyte.config();
    if let Windows::Wide = windows {
        config.set("net.ipv4.tcp_rmem", "4096 131072 67108864").expect("three sizes");
        config.set("net.ipv4.tcp_wmem", "4096 16384 67108864").expect("three sizes");
    }
    let offloads = cards == Cards::Offloading;
    let peer = SocketAddr::from((Ipv4Addr::new(198, 51, 100, 1), 80));
    let mut network = Network::without_capture(1);
    let card = CardPlan {
        nic: NicConfig { rate: NonZeroU64::new(BOTTLENECK), ..NicConfig::default() },
        txqueuelen: QUEUE,
        qdisc: offloads.then(|| format!("bfifo limit {}", QUEUE * FRAME)),
        cuts: offloads,
        ..CardPlan::default()
    };
    let client_card = offloads.then(|| CardPlan {
        merges: true,
        input: InputConfig { interrupt_after: INTERRUPT_AFTER, ..InputConfig::default() },
        ..CardPlan::default()
    });
    let plan = |card, address: IpAddr| HostPlan {
        card,
        config: config.clone(),
        ..HostPlan::new(Profile::Firstbyte, address)
    };
    // In pieces: the cost of allocating one large text is not the simulator's.
    let pieces = bytes / flows / PIECE;
    let mut serving = vec![Step::Read(100)];
    serving.extend(std::iter::repeat_n(Step::Write(PIECE), pieces));
    serving.extend([Step::ReadToEnd, Step::Close]);
    let listening = ListenOptions { backlog: 4096, ..ListenOptions::default() };
    let server =
        network.add_host(plan(Some(card), peer.ip()), Program::server(vec![peer], listening, serving, true));
    let mut paths: Vec<PathId> = Vec::new();
    for number in 0..hosts {
        let address = IpAddr::V4(Ipv4Addr::from_bits(0x0a00_0001 + number as u32));
        let client = network.add_host(plan(client_card.clone(), address), firstbyte_lab::network::Idle);
        paths.push(network.join(client, server, Route::with_rtt(Duration::from_millis(10))));
        let steps =
            vec![Step::Connect { first: None }, Step::Write(100), Step::Read(pieces * PIECE), Step::Close];
        let count = flows / hosts;
        let once = Rounds { count, alone: 0, at_once: count, pause: Duration::ZERO };
        network.set_app(client, Program::client(vec![peer], ConnectOptions::default(), steps, once));
    }
    assert!(network.run_until_quiet(Duration::from_secs(600)), "every download ends");
    let on = |way| move |path: &PathId| (*path, way);
    let ways = paths.iter().map(on(Direction::Forward)).chain(paths.iter().map(on(Direction::Backward)));
    ways.flat_map(|(path, way)| network.link_stats(path, way)).map(|link| link.delivered_packets).sum()
}

/// Returns the processor time of this program in seconds (`/proc/self/schedstat`).
fn processor_time() -> f64 {
    let text = std::fs::read_to_string("/proc/self/schedstat").expect("Linux tells its programs' time");
    text.split(' ').next().and_then(|nanos| nanos.parse::<f64>().ok()).expect("its first number") / 1e9
}

/// Returns packets per second of one core, and the number of packets.
fn rate(world: World) -> (f64, u64) {
    let begun = processor_time();
    let packets = play(world);
    (packets as f64 / (processor_time() - begun), packets)
}

/// Measures all cases, once per turn.
fn compare(name: &str, worlds: &[World]) {
    let mut turns: Vec<Vec<(f64, u64)>> = vec![Vec::new(); worlds.len()];
    for _ in 0..TURNS {
        worlds.iter().zip(&mut turns).for_each(|(world, turns)| turns.push(rate(*world)));
    }
    let mut first = None;
    for (World { hosts, flows, .. }, turns) in worlds.iter().zip(turns) {
        let (rates, packets): (Vec<f64>, Vec<u64>) = turns.into_iter().unzip();
        let best = rates.iter().copied().fold(0.0, f64::max);
        let median = median(rates);
        let dear = *first.get_or_insert(median) / median;
        println!(
            "{name}, {flows:>5} flows, receiving hosts {hosts:>5}: {} packets, {median:.0} a second (best {best:.0}), {dear:.2} times as dear",
            packets[0]
        );
    }
}

fn beside_ns3(times: usize) {
    let ns3 = match Ns3::build() {
        Ok(ns3) => ns3,
        Err(why) => return println!("SKIPPED beside ns-3: {why}"),
    };
    for flows in [2, 1000] {
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for _ in 0..times.max(1) {
            let (cards, windows) = (Cards::Plain, Windows::Usual);
            ours.push(rate(World { hosts: flows, flows, bytes: BYTES_BESIDE_NS3, cards, windows }).0);
            let (packets, seconds) = ns3.share(flows, BYTES_BESIDE_NS3);
            theirs.push(packets as f64 / seconds);
        }
        let [ours, theirs] = [ours, theirs].map(median);
        println!(
            "{flows:>5} flows: {ours:.0} packets a second, ns-3 {theirs:.0}: {:.1} times",
            ours / theirs
        );
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [mode, number, rest @ ..] = arguments.as_slice()
        && mode.starts_with("--")
    {
        let number = number.parse().expect("--instructions takes the number of flows, --ns3 how many times");
        let hosts = rest
            .first()
            .map_or(number, |hosts| hosts.parse().expect("after the flows comes the number of hosts"));
        let count = |cards| {
            let world = World { hosts, flows: number, bytes: BYTES, cards, windows: Windows::Usual };
            println!("{} packets", play(world));
        };
        return match mode.as_str() {
            "--instructions" => count(Cards::Plain),
            "--instructions-offloading" => count(Cards::Offloading),
            "--ns3" => beside_ns3(number),
            _ => panic!("{mode} is not known"),
        };
    }
    let asked: Vec<usize> = arguments.iter().filter_map(|argument| argument.parse().ok()).collect();
    let counts = if asked.is_empty() { vec![2, 1000] } else { asked };
    for (windows, of_windows) in [(Windows::Usual, "usual windows"), (Windows::Wide, "wide windows")] {
        for (cards, of_cards) in [(Cards::Plain, "plain cards"), (Cards::Offloading, "TSO and GRO")] {
            let of_flows = |flows: &usize| {
                [1, *flows].map(|hosts| World { hosts, flows: *flows, bytes: BYTES, cards, windows })
            };
            let worlds: Vec<World> = counts.iter().flat_map(of_flows).collect();
            compare(&format!("{of_windows}, {of_cards}"), &worlds);
        }
    }
}
