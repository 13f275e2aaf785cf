//! Greedy peers beside an honest one, on one server: whatever they do, the honest one is served in
//! bounded time.
//!
//! The greedy ones have a few addresses and many connections, and each has a [`Habit`]: it reads
//! slowly or not at all, leaves a hole that is never filled, opens and never completes, or only
//! holds its place. The honest one opens a connection now and then, asks for a little, and reads
//! it. [`Greed`] is what was drawn; `world` plays it; `server` and `peers` are the applications.

mod peers;
mod server;
mod world;

use crate::Random;
use crate::campaign::guarded;
use crate::world::Failure;
use core::ops::Range;
use core::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// A greedy connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Habit {
    /// Asks for much, and reads `bytes` every `every_ms`.
    ReadsSlowly {
        /** bytes */
        bytes: u32,
        /** milliseconds */
        every_ms: u64,
    },
    /// Asks for much and never reads.
    NeverReads,
    /// Asks for much, never reads, and writes as much as is accepted.
    WritesOn,
    /// Loses its first segment with data. All later segments arrive.
    LeavesHole,
    /// Does nothing.
    Idles,
    /// Sends a SYN that arrives. Nothing after it arrives.
    HalfOpens,
    /// Sends a Fast Open SYN with data that arrives. Nothing after it arrives.
    HalfOpensFast,
    /// Asks for much, and opens another connection after this many milliseconds without closing the
    /// first.
    OpensMore(u64),
}

/// A simulated run with greedy peers.
#[derive(Clone, Debug, PartialEq)]
pub struct Greed {
    /// The seed of all later random choices.
    pub seed: u64,
    /// Number of addresses of the greedy peers.
    pub hosts: u8,
    /// Connections that the greedy peers hold at a time. Their habits take turns.
    pub connections: u32,
    /// The habits of the greedy peers.
    pub habits: Vec<Habit>,
    /// The server's settings.
    pub settings: Vec<(String, String)>,
    /// The length of the server's accept queue.
    pub backlog: u32,
    /// The length of the server's Fast Open queue.
    pub fast_open: u32,
    /// One-way delay, ms.
    pub delay_ms: u64,
    /// Mean time between connections of the honest peer, ms.
    pub every_ms: u64,
    /// Bytes that the honest peer asks for.
    pub wants: u32,
    /// True if the honest peer uses Fast Open.
    pub honest_fast_open: bool,
}

impl Greed {
    /// Draws the simulated run of a seed.
    pub fn draw(seed: u64) -> Greed {
        let mut random = Random(seed ^ 0x6772_6565_6479);
        let pages = 256 << random.below(4);
        let connections = 16 << random.below(5);
        let mut settings = vec![
            (
                "net.ipv4.tcp_mem".to_owned(),
                format!("{} {} {pages}", pages / 2, pages * (50 + random.below(40)) / 100),
            ),
            ("net.ipv4.tcp_wmem".to_owned(), format!("4096 {} 4194304", 16_384 << random.below(5))),
        ];
        if random.chance(50) {
            let most = 64 << random.below(3);
            settings.push(("firstbyte.max_connections".to_owned(), format!("{most}")));
        }
        if random.chance(20) {
            settings.push(("net.ipv4.tcp_rmem".to_owned(), "4096 131072 1048576".to_owned()));
        }
        let habits = (0..1 + random.below(4)).map(|_| Habit::draw(&mut random)).collect();
        Greed {
            seed,
            hosts: 1 + random.below(3) as u8,
            connections: connections + random.below(connections.into()) as u32,
            habits,
            settings,
            backlog: 64 << random.below(3),
            fast_open: 64 << random.below(2),
            delay_ms: 1 + random.below(60),
            every_ms: 200 + random.below(2000),
            wants: 1 + random.magnitude(60_000) as u32,
            honest_fast_open: random.chance(50),
        }
    }
}

impl Habit {
    fn draw(random: &mut Random) -> Habit {
        match random.below(8) {
            0 => Habit::ReadsSlowly {
                bytes: 1 + random.below(3000) as u32,
                every_ms: 100 + random.below(8000),
            },
            1 => Habit::NeverReads,
            2 => Habit::WritesOn,
            3 => Habit::LeavesHole,
            4 => Habit::Idles,
            5 => Habit::HalfOpens,
            6 => Habit::HalfOpensFast,
            _ => Habit::OpensMore(500 + random.below(4000)),
        }
    }
}

/// Results of a simulated run that did not fail.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// Answers that the honest peer received.
    pub served: u64,
    /// The longest wait of the honest peer for an answer, ms of virtual time.
    pub longest_ms: u64,
    /// Connections that were reset to free memory.
    pub gave_way: u64,
    /// SYNs refused for lack of a place or of memory.
    pub refused: u64,
    /// Packets.
    pub packets: u64,
}

/// Plays a simulated run. A panic of the engine is a failure too.
///
/// # Errors
/// The honest peer was not served, or the server held too much memory.
pub fn play(greed: &Greed) -> Result<Held, Failure> {
    guarded(|| world::World::new(greed).run())
}

/// Plays the runs of these seeds on this many threads. Returns the sum of all results (the longest
/// wait is that of one run), and the failed runs.
pub fn play_all(seeds: Range<u64>, threads: usize) -> (Held, Vec<(u64, Failure)>) {
    let next = AtomicU64::new(seeds.start);
    let sum = Mutex::new((Held::default(), Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= seeds.end {
                        break;
                    }
                    let played = play(&Greed::draw(seed));
                    let mut sum = sum.lock().unwrap_or_else(PoisonError::into_inner);
                    match played {
                        Ok(held) => sum.0.add(&held),
                        Err(failure) => sum.1.push((seed, failure)),
                    }
                }
            });
        }
    });
    let (held, mut failures) = sum.into_inner().unwrap_or_else(PoisonError::into_inner);
    failures.sort_by_key(|(seed, _)| *seed);
    (held, failures)
}

impl Held {
    fn add(&mut self, other: &Held) {
        self.served += other.served;
        self.longest_ms = self.longest_ms.max(other.longest_ms);
        self.gave_way += other.gave_way;
        self.refused += other.refused;
        self.packets += other.packets;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_honest_peer_is_served_beside_greedy_ones() {
        let (held, failures) = play_all(0..60, 2);
        // The hook of worlds' panics keeps what an assertion says.
        failures.iter().for_each(|(seed, failure)| println!("{seed}: {failure}"));
        println!("{held:?}");
        assert_eq!(failures.len(), 0);
        assert!(held.gave_way > 0 && held.refused > 0, "{held:?}");
        assert_eq!(play(&Greed::draw(7)), play(&Greed::draw(7)), "the same twice");
    }

    /// Some runs must fail without fair shares. Otherwise the runs would test nothing.
    #[test]
    fn without_fair_shares_it_is_not() {
        let fails = |seed: &u64| {
            let mut greed = Greed::draw(*seed);
            greed.settings.push(("firstbyte.fair_shares".to_owned(), "0".to_owned()));
            play(&greed).is_err()
        };
        let failed = (0..60).filter(fails).count();
        assert!(failed >= 6, "{failed}");
    }
}
