//! Bulk transfers over paths that lose, reorder and duplicate, with every setting of loss recovery: each byte arrives once, in order, and
//! the sender is left with nothing.

use crate::pair::{CLIENT, Pair, SERVER};
use crate::peer::pattern;
use crate::random::Random;
use proto::*;

const SEEDS: u64 = 150;
const BYTES: usize = 300_000;

fn config(random: &mut Random) -> Config {
    Config::default()
        .tcp_timestamps(random.chance(70).into())
        .tcp_sack(random.chance(85))
        .tcp_dsack(random.chance(80))
        .tcp_recovery(random.pick(&[0, 1, 1, 1, 3, 5]))
        .tcp_early_retrans(random.pick(&[0, 3, 3]))
        .tcp_frto(random.pick(&[0, 2, 2]))
}

/// Sends [`BYTES`]; returns the sender's counters.
fn transfer(seed: u64) -> Counters {
    let mut random = Random(seed);
    let mut pair = Pair::new(config(&mut random), config(&mut random), 20);
    let (loss, reorder, duplicate) = (random.below(8), random.below(10), random.below(4));
    pair.trouble(seed, [loss, reorder, duplicate]);
    let listener = pair.listen(0);
    let id = pair.connect(ConnectOptions::default());
    pair.run(4000);
    let child = pair.accept(listener).expect("accepted");
    let data = pattern(1, BYTES);
    let begun = pair.now;
    let (mut written, mut heard) = (0, Vec::new());
    while heard.len() < BYTES {
        let now = pair.now;
        written += pair.stacks[CLIENT].write(now, id, &data[written..]).unwrap_or(0);
        pair.run(10);
        heard.extend(pair.read(SERVER, child).unwrap_or_default());
        assert!(pair.ms_since(begun) < 600_000, "seed {seed}: stuck at {} of {BYTES}", heard.len());
    }
    assert!(heard == data, "seed {seed}: the bytes are not those sent");
    pair.run(10_000);
    let info = pair.stacks[CLIENT].info(id).expect("still open");
    assert_eq!((info.send_queue, info.flight_size), (0, 0), "seed {seed}");
    pair.stacks[CLIENT].counters().clone()
}

#[test]
fn every_byte_arrives_once_whatever_the_path_does() {
    let mut sums = std::collections::BTreeMap::new();
    for seed in 0..SEEDS {
        let counters = transfer(seed);
        for (name, count) in counters.all() {
            *sums.entry(name).or_insert(0) += count;
        }
    }
    for name in [
        "TCPSackRecovery",
        "TCPRenoRecovery",
        "TCPLossProbes",
        "TCPSACKReorder",
        "TCPLostRetransmit",
        "TCPDSACKRecv",
        "TCPDSACKUndo",
        "TCPTimeouts",
    ] {
        assert!(sums[name] > 0, "{name} never happened: {sums:?}");
    }
}

/// Lossy transfers with SACK on at both ends and a loss of one in fifty: the timer is hardly ever needed.
#[test]
fn a_lossy_path_hardly_ever_waits_for_the_timer() {
    let mut timeouts = 0;
    for seed in 0..30 {
        let mut pair = Pair::ours();
        let mut dice = Random(seed);
        pair.filter = Box::new(move |sent| sent.len == 0 || !dice.chance(2));
        let listener = pair.listen(0);
        let id = pair.connect(ConnectOptions::default());
        pair.run(100);
        let child = pair.accept(listener).unwrap();
        let data = pattern(1, 200_000);
        pair.write(CLIENT, id, &data);
        pair.run(30_000);
        assert!(pair.read(SERVER, child).unwrap() == data, "seed {seed}");
        timeouts += pair.stacks[CLIENT].counters().timeouts;
    }
    assert!(timeouts <= 5, "{timeouts} time-outs in 30 transfers");
}
