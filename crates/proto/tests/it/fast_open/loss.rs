//! Every subset of the first ten packets of an exchange is lost: the bytes are exact both ways all the same, each request is
//! delivered once, both ends come to an end, and nobody waits longer for the plain SYN than promised.

use super::exchange::*;
use super::*;
use crate::random::Random;

/// Packets that may be lost, from the first of the exchange on.
const PACKETS: u32 = 10;
/// By then everything is over: ten losses in a row back off to minutes.
const LIMIT_MS: u64 = 2_000_000;

struct Case {
    name: &'static str,
    client: fn() -> Config,
    server: fn() -> Config,
    options: fn() -> ConnectOptions,
    acquainted: bool,
    /// Written after `connect`, not with it.
    later: bool,
    calls: bool,
    reply: &'static [u8],
    /// When the first SYN is given up, if it is not answered.
    fallback_ms: u64,
}

fn syn_fin() -> ConnectOptions {
    ConnectOptions { fin: true, syn_fin: true, ..fast() }
}

/// Three segments, so that the SYN, the SYN-ACK and the rest behind them share the work.
const LONG: &[u8] = &{
    let mut bytes = [0; 4000];
    let mut at = 0;
    while at < bytes.len() {
        bytes[at] = (at % 251) as u8;
        at += 1;
    }
    bytes
};

fn fast_long() -> ConnectOptions {
    auto(LONG)
}

#[rustfmt::skip]
const CASES: [Case; 9] = [
    Case { name: "ours, FIN on the SYN: 3", client: Config::default, server: Config::default, options: syn_fin, acquainted: true, later: false, calls: false, reply: REPLY, fallback_ms: 100 },
    Case { name: "ours: 4", client: Config::default, server: Config::default, options: fast, acquainted: true, later: false, calls: false, reply: REPLY, fallback_ms: 100 },
    Case { name: "Linux client, ours: 4", client: linux, server: Config::default, options: fast, acquainted: true, later: false, calls: true, reply: REPLY, fallback_ms: 1000 },
    Case { name: "ours, Linux server: 6", client: Config::default, server: linux, options: fast, acquainted: true, later: false, calls: true, reply: REPLY, fallback_ms: 100 },
    Case { name: "ours, first visit: 6", client: Config::default, server: Config::default, options: fast, acquainted: false, later: false, calls: false, reply: REPLY, fallback_ms: 1000 },
    Case { name: "Linux: 8", client: linux, server: linux, options: fast, acquainted: true, later: false, calls: true, reply: REPLY, fallback_ms: 1000 },
    Case { name: "Linux plain: 10", client: linux, server: linux, options: ConnectOptions::default, acquainted: false, later: true, calls: true, reply: REPLY, fallback_ms: 1000 },
    Case { name: "ours, long", client: Config::default, server: Config::default, options: fast_long, acquainted: true, later: false, calls: false, reply: LONG, fallback_ms: 100 },
    Case { name: "Linux, long", client: linux, server: linux, options: fast_long, acquainted: true, later: false, calls: true, reply: LONG, fallback_ms: 1000 },
];

#[test]
fn any_subset_of_the_first_ten_packets() {
    for case in &CASES {
        for lost in 0..1 << PACKETS {
            run(case, lost);
        }
    }
}

impl Case {
    fn request(&self) -> &'static [u8] {
        if self.reply == LONG { LONG } else { REQUEST }
    }
}

fn start(case: &Case, pair: &mut Pair, listener: ListenerId) -> Exchange {
    let mut exchange =
        Exchange::start(pair, listener, (case.options)()).request(case.request()).reply(case.reply);
    if case.calls {
        exchange = exchange.calls();
    }
    if case.later {
        exchange = exchange.request_later();
    }
    exchange
}

fn run(case: &Case, lost: u32) {
    // As many repetitions as may be lost: else a server gives up in silence, and its client waits for ever.
    let server = (case.server)().tcp_synack_retries(PACKETS).tcp_orphan_retries(PACKETS);
    let client = (case.client)().tcp_orphan_retries(PACKETS);
    let (mut pair, listener) =
        if case.acquainted { acquainted(client, server) } else { pair(client, server) };
    let mut seen = 0;
    pair.filter = Box::new(move |_| {
        seen += 1;
        seen > PACKETS || lost & (1 << (seen - 1)) == 0
    });
    let mut exchange = start(case, &mut pair, listener);
    exchange.run(&mut pair, LIMIT_MS);
    let shown =
        || format!("{}, lost {lost:#b}:\n{}", case.name, timed_ladder(&pair, exchange.start).join("\n"));
    assert_eq!(exchange.failed, None, "{}", shown());
    assert!(exchange.complete, "not complete: {}", shown());
    assert!(exchange.answer == case.reply, "answer: {}", shown());
    assert!(exchange.delivered == [case.request()], "delivered: {}", shown());
    for stack in &pair.stacks {
        let sizes = stack.table_sizes();
        assert_eq!((sizes.connections, sizes.requests), (0, 0), "not over: {}", shown());
    }
    // A client whose TIME-WAIT is over resets; the slot then stays taken for a minute.
    let resets = pair.log.iter().filter(|sent| sent.header.flags.contains(wire::Flags::RST)).count();
    let pending = pair.stacks[SERVER].listener_info(listener).unwrap().fast_open_pending;
    assert!(pending as usize <= resets, "{pending} pending: {}", shown());
    let second = pair.log.iter().filter(|sent| sent.from == CLIENT).nth(1).unwrap();
    if second.header.flags == wire::Flags::SYN {
        let waited = second.at.since(exchange.start).as_millis() as u64;
        assert_eq!((waited, second.len), (case.fallback_ms, 0), "{}", shown());
    }
}

fn timed_ladder(pair: &Pair, start: Instant) -> Vec<String> {
    let line = |sent: &Sent| {
        let who = if sent.from == CLIENT { '>' } else { '<' };
        let fate = if sent.delivered { "" } else { "  lost" };
        format!("{:>9} {who} {}{fate}", sent.at.since(start).as_millis(), sent.short())
    };
    pair.log.iter().map(line).collect()
}

/// Each packet of ours arrives once more, at every later moment of the exchange and long after it.
#[test]
fn a_copy_of_any_packet_at_any_time() {
    for case in CASES.iter().filter(|case| (case.server)().replay_guard) {
        for copied in 0..6 {
            for after in 0..8 {
                copy(case, copied, after);
            }
        }
    }
}

fn copy(case: &Case, copied: usize, after: usize) {
    let (mut pair, listener) = if case.acquainted {
        acquainted((case.client)(), (case.server)())
    } else {
        pair((case.client)(), (case.server)())
    };
    let mut exchange = start(case, &mut pair, listener);
    // 5 ms at a time: a copy between any two arrivals, then some after the end.
    let mut wait = after;
    for _ in 0..60 {
        exchange.run(&mut pair, 5);
        if pair.log.len() > copied {
            if wait == 0 {
                pair.send_again(copied);
            }
            wait = wait.wrapping_sub(1);
        }
    }
    exchange.run(&mut pair, 100_000);
    if pair.log.len() > copied {
        pair.send_again(copied);
    }
    exchange.run(&mut pair, 100_000);
    let shown = || {
        format!("{}, packet {copied} again:\n{}", case.name, timed_ladder(&pair, exchange.start).join("\n"))
    };
    assert!(exchange.complete && exchange.failed.is_none(), "{}", shown());
    assert!(exchange.answer == case.reply, "answer: {}", shown());
    assert!(exchange.delivered == [case.request()], "delivered: {}", shown());
}

/// Loss, delays of seconds and copies of half a minute, at random: slow first SYNs are overtaken by their own fallback, and answers
/// by what follows them.
#[test]
fn a_wild_network() {
    for seed in 0..SEEDS {
        for case in CASES.iter().filter(|case| (case.server)().replay_guard) {
            wild(case, seed);
        }
    }
}

const SEEDS: u64 = 300;
/// Packets that meet a wild network; then it is tame, so that no limit of retransmissions is an excuse.
const WILD: u32 = 30;

fn wild(case: &Case, seed: u64) {
    let (mut pair, listener) = if case.acquainted {
        acquainted((case.client)(), (case.server)())
    } else {
        pair((case.client)(), (case.server)())
    };
    let mut random = Random(seed);
    let mut seen = 0;
    pair.copies = Box::new(move |_| {
        seen += 1;
        if seen > WILD {
            return vec![Duration::ZERO];
        }
        let mut late = match random.below(4) {
            0 => vec![],
            1 => vec![Duration::from_millis(random.below(3000))],
            _ => vec![Duration::ZERO],
        };
        if random.below(4) == 0 {
            late.push(Duration::from_millis(random.below(30_000)));
        }
        late
    });
    let mut exchange = start(case, &mut pair, listener);
    exchange.run(&mut pair, LIMIT_MS);
    let shown = || format!("{}, seed {seed}:\n{}", case.name, timed_ladder(&pair, exchange.start).join("\n"));
    assert!(
        exchange.complete && exchange.failed.is_none(),
        "not complete: {:?} {}",
        exchange.failed,
        shown()
    );
    assert!(exchange.answer == case.reply, "answer: {}", shown());
    assert!(
        exchange.delivered == [case.request()],
        "delivered {} times: {}",
        exchange.delivered.len(),
        shown()
    );
    for stack in &pair.stacks {
        let sizes = stack.table_sizes();
        assert_eq!((sizes.connections, sizes.requests), (0, 0), "not over: {}", shown());
    }
}
