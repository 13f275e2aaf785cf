//! How fast the simulator is: packets a second of one core, with few and with many flows that share one bottleneck.
//!
//! `cargo run --release -p firstbyte-lab --example speed [FLOWS…]`; a packet is one that went on a line, data and acknowledgements alike.
//! Each number of flows is run four times: to one host and to a host for each flow, with cards that leave everything to TCP and with cards
//! that cut and merge segments (TSO, GRO).
//! With `--instructions N`, or `--instructions-offloading N` with cards that cut and merge, it runs N flows once and prints only how many
//! packets there were, for `valgrind --tool=callgrind`.
//! With `--ns3 TIMES` it runs a smaller world by turns with ns-3, and gives the medians and their ratio.
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

/// Bytes that all flows together bring.
const BYTES: usize = 400_000_000;
/// Bytes beside ns-3, which takes a minute and more for as many as that.
const BYTES_BESIDE_NS3: usize = 100_000_000;
/// Bytes of a write.
const PIECE: usize = 50_000;
const BOTTLENECK: u64 = 10_000_000_000;

/// From a client's first packet to its interrupt, for so many packets can be merged.
const INTERRUPT_AFTER: u64 = 50_000;

/// What the hosts' cards do for TCP.
#[derive(Clone, Copy)]
enum Cards {
    Plain,
    /// They cut large segments into frames and merge frames that follow each other, as the kernel has it by default.
    Offloading,
}

/// `flows` clients on so many hosts, each with a path of its own, download `bytes` together over the line of one server's card. Gives the
/// packets that went.
fn share(hosts: usize, flows: usize, bytes: usize, cards: Cards) -> u64 {
    let offloads = matches!(cards, Cards::Offloading);
    let peer = SocketAddr::from((Ipv4Addr::new(198, 51, 100, 1), 80));
    let mut network = Network::without_capture(1);
    let card = CardPlan {
        nic: NicConfig { rate: NonZeroU64::new(BOTTLENECK), ..NicConfig::default() },
        txqueuelen: 10_000,
        cuts: offloads,
        ..CardPlan::default()
    };
    let client_card = offloads.then(|| CardPlan {
        merges: true,
        input: InputConfig { interrupt_after: INTERRUPT_AFTER, ..InputConfig::default() },
        ..CardPlan::default()
    });
    let plan = HostPlan { card: Some(card), ..HostPlan::new(Profile::Firstbyte, peer.ip()) };
    // In pieces: what the memory of one large text costs is no matter of the simulator's.
    let pieces = bytes / flows / PIECE;
    let mut serving = vec![Step::Read(100)];
    serving.extend(std::iter::repeat_n(Step::Write(PIECE), pieces));
    serving.extend([Step::ReadToEnd, Step::Close]);
    let listening = ListenOptions { backlog: 4096, ..ListenOptions::default() };
    let server = network.add_host(plan, Program::server(vec![peer], listening, serving, true));
    let mut paths: Vec<PathId> = Vec::new();
    for number in 0..hosts {
        let address = IpAddr::V4(Ipv4Addr::from_bits(0x0a00_0001 + number as u32));
        let plan = HostPlan { card: client_card.clone(), ..HostPlan::new(Profile::Firstbyte, address) };
        let client = network.add_host(plan, firstbyte_lab::network::Idle);
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

/// Seconds that a processor has spent on this program, whatever else the machine does (`/proc/self/schedstat`).
fn processor_time() -> f64 {
    let text = std::fs::read_to_string("/proc/self/schedstat").expect("Linux tells its programs' time");
    text.split(' ').next().and_then(|nanos| nanos.parse::<f64>().ok()).expect("its first number") / 1e9
}

/// Packets a second of one core, and how many there were.
fn rate(hosts: usize, flows: usize, bytes: usize, cards: Cards) -> (f64, u64) {
    let begun = processor_time();
    let packets = share(hosts, flows, bytes, cards);
    (packets as f64 / (processor_time() - begun), packets)
}

fn beside_ns3(times: usize) {
    let ns3 = match Ns3::build() {
        Ok(ns3) => ns3,
        Err(why) => return println!("SKIPPED beside ns-3: {why}"),
    };
    for flows in [2, 1000] {
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for _ in 0..times.max(1) {
            ours.push(rate(flows, flows, BYTES_BESIDE_NS3, Cards::Plain).0);
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
    if let [mode, number] = arguments.as_slice()
        && mode.starts_with("--")
    {
        let number = number.parse().expect("--instructions takes the number of flows, --ns3 how many times");
        let count = |cards| println!("{} packets", share(number, number, BYTES, cards));
        return match mode.as_str() {
            "--instructions" => count(Cards::Plain),
            "--instructions-offloading" => count(Cards::Offloading),
            "--ns3" => beside_ns3(number),
            _ => panic!("{mode} is not known"),
        };
    }
    let asked: Vec<usize> = arguments.iter().filter_map(|argument| argument.parse().ok()).collect();
    let counts = if asked.is_empty() { vec![2, 1000] } else { asked };
    for (cards, name) in [(Cards::Plain, "plain cards"), (Cards::Offloading, "TSO and GRO")] {
        let mut first = None;
        for flows in &counts {
            for hosts in [1, *flows] {
                let (rate, packets) = rate(hosts, *flows, BYTES, cards);
                let dear = *first.get_or_insert(rate) / rate;
                println!(
                    "{name}, {flows:>5} flows, receiving hosts {hosts:>5}: {packets} packets, {rate:.0} a second, {dear:.2} times as dear"
                );
            }
        }
    }
}
